//! Ends what was started. A cell's database may stop while that of the next cell starts, if the
//! machine has room for both. The data that a run has kept for its cells are removed at its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dbdyno_db::server::{RuntimeDir, remove_data};
use dbdyno_record::CellId;

use crate::conductor::reset::{SNAPSHOTS, TEMPLATES};
use crate::conductor::start::{Database, data_dir};
use crate::conductor::{Conductor, OpenCell};
use crate::exit::ExitError;
use crate::host_files::HostFiles;
use crate::terminal;

/// A server that stops, and the cell that it ran for.
pub(crate) struct Stopping {
    cell: CellId,
    /// The thread that stops the server. It returns what was odd about the end.
    thread: JoinHandle<Vec<String>>,
}

impl Conductor<'_> {
    /// Stops the cell's server and removes its data. Where both servers fit, the next cell begins
    /// meanwhile.
    pub(super) fn give_back(
        &mut self,
        cell: &mut OpenCell<'_>,
        next: Option<&CellId>,
        database: Database,
    ) -> Result<(), ExitError> {
        if database.can_turn() && self.overlaps(next) {
            self.begin_to_stop(cell.id, database);
            return Ok(());
        }
        self.progress.busy("stopping");
        self.warn(&mut cell.writer, self.end_of(database))
    }

    /// Whether the server of a cell may stop while that of `next` starts on fresh data.
    fn overlaps(&self, next: Option<&CellId>) -> bool {
        let Some(next) = next else { return false };
        // A copy of a snapshot needs the space of the data that are removed now.
        let is_fresh = self.snapshot(next).is_none();
        is_fresh && self.plan.host.rest.0.is_zero() && !self.cancelled() && is_half_free(&HostFiles::here())
    }

    /// Ends a database, which takes a while. It returns what was odd about the end.
    pub(super) fn end_of(&self, database: Database) -> Vec<String> {
        database.end(self.plan.host.keep_data, self.plan.host.stop_timeout.0, &self.cancel)
    }

    /// Does the work of [`Conductor::end_of`] in a thread, without waiting for it.
    fn begin_to_stop(&mut self, cell: &CellId, database: Database) {
        let (keep_data, limit) = (self.plan.host.keep_data, self.plan.host.stop_timeout.0);
        let cancel = Arc::clone(&self.cancel);
        let thread = std::thread::spawn(move || database.end(keep_data, limit, &cancel));
        self.stopping = Some(Stopping { cell: cell.clone(), thread });
    }

    /// Waits for the server that stops. It returns whether there was one.
    pub(crate) fn has_waited_for_stop(&mut self) -> Result<bool, ExitError> {
        let Some(Stopping { cell, thread }) = self.stopping.take() else { return Ok(false) };
        let odd = thread.join().unwrap_or_else(|_| vec!["the server may not have stopped".into()]);
        self.warn_of_run(odd.into_iter().map(|text| format!("{cell}: {text}")))?;
        Ok(true)
    }
}

impl Database {
    /// Stops the server cleanly and returns its runtime directory, in which it can be started
    /// again. Its address stays as it is. The result is `None` where dbdyno runs no server. All
    /// sessions must be closed.
    pub(crate) fn halt(&mut self, limit: Duration) -> Result<Option<RuntimeDir>, String> {
        let halted = self.server.take().map(|server| server.halt(limit)).transpose();
        halted.map(|halted| halted.map(|(_, runtime_dir)| runtime_dir)).map_err(|error| error.to_string())
    }

    /// Stops what was started and removes the data, unless they are to be kept. It returns what was
    /// odd about the end, and what could not be removed. When the user has set `cancel`, a killed
    /// server is no fault and is not reported.
    pub(crate) fn end(self, keep_data: bool, limit: Duration, cancel: &AtomicBool) -> Vec<String> {
        let mut warning = None;
        if let Some(server) = self.server {
            match server.stop_within(limit) {
                Ok(stopped) if stopped.killed => {
                    warning = Some(format!(
                        "the server had to be killed: it did not stop within {} s (host.stop_timeout)",
                        limit.as_secs_f64()
                    ));
                }
                Ok(stopped) if stopped.had_ended || stopped.code != Some(0) => {
                    warning = Some(format!("the server did not stop cleanly: {stopped}; see its log"));
                }
                Ok(_) => {}
                Err(error) => warning = Some(error.to_string()),
            }
        }
        let removed = self.data_dir.as_deref().filter(|_| !keep_data).map_or(Ok(()), remove_data);
        let warning = warning.filter(|_| !cancel.load(Ordering::Relaxed));
        warning.into_iter().chain(removed.err().map(|error| error.to_string())).collect()
    }
}

/// Whether half of the memory is free. A second server like the running one then has room.
fn is_half_free(files: &HostFiles) -> bool {
    let free = files.meminfo("MemAvailable").zip(files.meminfo("MemTotal"));
    free.is_some_and(|(free, total)| free >= total / 2)
}

/// Refuses links in the place of the folders that a run makes for its data. Links may lead to the
/// folders that the user names.
pub(crate) fn refuse_links(data_root: &Path) -> Result<(), ExitError> {
    let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.file_type().is_symlink());
    let own = [data_root.to_owned(), data_root.join(TEMPLATES), data_root.join(SNAPSHOTS)];
    let Some(link) = own.iter().find(|path| is_link(path)) else { return Ok(()) };
    let advice = "remove the link, or name the folder that it leads to with host.data_dir";
    let what =
        format!("{} is a symbolic link, and a run does not follow it for its data; {advice}", link.display());
    Err(ExitError::machine(what))
}

/// Removes what a run has kept next to its cells' data, except a folder of templates that the user
/// names. It warns of what is left.
pub(crate) fn remove_data_root(data_root: &Path, templates: Option<&Path>) {
    if let Err(ExitError { message: Some(message), .. }) = refuse_links(data_root) {
        return terminal::warning(&message);
    }
    let own = [TEMPLATES, SNAPSHOTS].map(|name| data_root.join(name));
    for folder in own.iter().filter(|folder| Some(folder.as_path()) != templates) {
        let _ = std::fs::remove_dir_all(folder);
    }
    match std::fs::remove_dir(data_root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            terminal::warning(&format!("data are left in {}: {error}; remove them", data_root.display()));
        }
        _ => {}
    }
}

/// Removes the data directories of cells that have ended. A process that was killed between a
/// cell's end and the removal has left one.
pub(crate) fn remove_data_of<'a>(ended: impl Iterator<Item = &'a CellId>, data_root: &Path) {
    if let Err(ExitError { message: Some(message), .. }) = refuse_links(data_root) {
        return terminal::warning(&message);
    }
    for cell in ended {
        if let Err(error) = remove_data(&data_dir(data_root, cell)) {
            terminal::warning(&error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;
    use crate::host_files::machine;

    #[test]
    fn two_servers_run_at_once_only_where_half_of_the_memory_is_free() {
        let is_free = |free: u64| {
            let text = format!("MemTotal: 100 kB\nMemAvailable: {free} kB\n");
            let (_folder, files) = machine(&[("/proc/meminfo", &text)]);
            is_half_free(&files)
        };
        assert!(is_free(50) && !is_free(49));
        assert!(!is_half_free(&machine(&[]).1));
    }

    #[test]
    fn templates_of_the_run_go_with_it_and_kept_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data_root, kept) = (folder.path().join("data"), folder.path().join("kept/below"));
        let kept = host::kept_templates(Some(&kept)).expect("it can be made").expect("it is named");
        let own = data_root.join(TEMPLATES);
        std::fs::create_dir_all(&own).expect("a folder");
        remove_data_root(&data_root, Some(&own));
        assert!(own.exists(), "it is named");
        remove_data_root(&data_root, Some(&kept));
        assert!(!data_root.exists() && kept.exists());
    }
}
