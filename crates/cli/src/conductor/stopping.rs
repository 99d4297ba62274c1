//! The server of a cell that is over stops while that of the next cell starts: nothing is measured
//! meanwhile.

use std::sync::Arc;
use std::thread::JoinHandle;

use dbdyno_record::{CellId, RunEvent};

use crate::conductor::Conductor;
use crate::conductor::database::Database;
use crate::exit::ExitError;
use crate::host_files::HostFiles;
use crate::time;

/// A server that stops, and the cell that it ran for.
pub(crate) struct Stopping {
    cell: CellId,
    /// Returns what is odd about the end.
    thread: JoinHandle<Vec<String>>,
}

impl Conductor<'_> {
    /// Whether the server of a cell may stop while that of `next` starts on fresh data.
    pub(super) fn overlaps(&self, next: Option<&CellId>) -> bool {
        let Some(next) = next else { return false };
        // A copy of a snapshot needs the space of the data that are removed now.
        let is_fresh = self.snapshot(next).is_none();
        is_fresh && self.plan.host.rest.0.is_zero() && !self.cancelled() && is_half_free(&HostFiles::here())
    }

    /// Ends a database, which takes a while. Returns what is odd about it.
    pub(super) fn end_of(&self, database: Database) -> Vec<String> {
        database.end(self.plan.host.keep_data, self.plan.host.stop_timeout.0, &self.cancel)
    }

    /// [`Conductor::end_of`] without waiting for it.
    pub(super) fn begin_to_stop(&mut self, cell: &CellId, database: Database) {
        let (keep_data, limit) = (self.plan.host.keep_data, self.plan.host.stop_timeout.0);
        let cancel = Arc::clone(&self.cancel);
        let thread = std::thread::spawn(move || database.end(keep_data, limit, &cancel));
        self.stopping = Some(Stopping { cell: cell.clone(), thread });
    }

    /// Waits for the server that stops. Whether there was one.
    pub(crate) fn has_waited_for_stop(&mut self) -> Result<bool, ExitError> {
        let Some(Stopping { cell, thread }) = self.stopping.take() else { return Ok(false) };
        let odd = thread.join().unwrap_or_else(|_| vec!["the server may not have stopped".into()]);
        self.warn_of_run(odd.into_iter().map(|text| format!("{cell}: {text}")))?;
        Ok(true)
    }

    /// Reports and records what belongs to no cell that goes on.
    pub(super) fn warn_of_run(&mut self, texts: impl IntoIterator<Item = String>) -> Result<(), ExitError> {
        for text in texts {
            self.progress.line(&format!("warning: {text}"));
            self.writer.event(&RunEvent::Warning { at: time::now(), text })?;
        }
        Ok(())
    }
}

/// A second server like those that run has room.
fn is_half_free(files: &HostFiles) -> bool {
    let free = files.meminfo("MemAvailable").zip(files.meminfo("MemTotal"));
    free.is_some_and(|(free, total)| free >= total / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
