//! Takes the locks of a run. A locked file makes the run known on this host. It lies in a folder
//! that all dbdyno processes share, so that each of them sees the others. Advisory locks on
//! databases at addresses keep other runs from making and dropping tables in them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_db::{AdvisoryLock, DatabaseServer, DbError, LockAttempt};
use dbdyno_plan::Plan;
use tokio::runtime::Runtime;

use crate::exit::ExitError;
use crate::plan::prepare::{PreparedVariant, ServerSource};
use crate::time;

/// Longest wait for a lock that another run has, because that run may be about to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The locks of a run. They are released when its connections close, however the run ends.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    kept: Vec<LockedDatabase>,
    pub(crate) others: OtherRuns,
    /// Other runs on this host, and databases that could not be locked, with the reason.
    pub(crate) doubts: Vec<String>,
}

/// One locked database of one or several variants.
#[derive(Debug)]
struct LockedDatabase {
    database_server: DatabaseServer,
    variants: Vec<String>,
    advisory_lock: AdvisoryLock,
}

impl AdvisoryLocks {
    /// Locks the databases of all variants that have an address, and makes the run known on this
    /// host.
    pub(crate) fn take(
        plan: &Plan,
        variants: &[PreparedVariant],
        alone: bool,
        runtime: &Runtime,
    ) -> Result<Self, ExitError> {
        let (others, doubt) = OtherRuns::enter(&plan.name, alone)?;
        let mut advisory_locks = Self { kept: Vec::new(), others, doubts: Vec::from_iter(doubt) };
        for variant in variants {
            let Some(database_server) = database_server(variant) else { continue };
            let name = &variant.info.name;
            let refuse = |why: String| ExitError::server(format!("variant {name}: {why}"));
            let attempt = runtime
                .block_on(advisory_locks.request_lock(&database_server))
                .map_err(|error| refuse(error.to_string()))?;
            match attempt {
                LockAttempt::Taken(advisory_lock) => {
                    advisory_locks.kept.push(LockedDatabase {
                        database_server,
                        variants: vec![name.clone()],
                        advisory_lock: *advisory_lock,
                    });
                }
                LockAttempt::OwnedBy(owner) => {
                    match advisory_locks
                        .kept
                        .iter_mut()
                        .find(|kept| kept.advisory_lock.owner().is_same_connection(&owner))
                    {
                        Some(kept) => kept.variants.push(name.clone()),
                        None => {
                            let advice = "wait until that has ended, or name another database; if there is none any more, end that connection";
                            return Err(refuse(format!(
                                "{}; {advice}",
                                in_use(&database_server, &owner.to_string())
                            )));
                        }
                    }
                }
                LockAttempt::Impossible(Some(why)) => advisory_locks.doubts.push(format!(
                    "variant {name}: {} could not be locked, so another run of dbdyno may use it \
                     at the same time: {why}",
                    database_in_words(&database_server)
                )),
                LockAttempt::Impossible(None) => {}
            }
        }
        Ok(advisory_locks)
    }

    /// Requests the lock on the database. It waits while another run has the lock, but not where
    /// another variant of this run has it.
    async fn request_lock(&self, database_server: &DatabaseServer) -> Result<LockAttempt, DbError> {
        match database_server.take_advisory_lock(Duration::ZERO).await? {
            LockAttempt::OwnedBy(owner)
                if !self.kept.iter().any(|kept| kept.advisory_lock.owner().is_same_connection(&owner)) =>
            {
                database_server.take_advisory_lock(PATIENCE).await
            }
            attempt => Ok(attempt),
        }
    }

    /// Makes sure that the variant's database is locked. It returns a warning where the lock was
    /// lost.
    pub(crate) async fn renew(&mut self, variant: &str) -> Result<Option<String>, String> {
        let Some(kept) = self.of_variant(variant) else { return Ok(None) };
        if kept.advisory_lock.is_kept().await {
            return Ok(None);
        }
        match kept.database_server.take_advisory_lock(PATIENCE).await {
            Ok(LockAttempt::Taken(advisory_lock)) => {
                kept.advisory_lock = *advisory_lock;
                Ok(Some(format!(
                    "the connection that held the lock on {} was lost, and the lock was taken again: another run of dbdyno could have \
                     used the database meanwhile",
                    database_in_words(&kept.database_server)
                )))
            }
            // The server has not yet noticed that our own connection is gone, so no other run can
            // have had the lock.
            Ok(LockAttempt::OwnedBy(owner)) if owner.is_same_connection(kept.advisory_lock.owner()) => {
                Ok(None)
            }
            Ok(LockAttempt::OwnedBy(owner)) => Err(format!(
                "{}; the connection that held the lock on it was lost",
                in_use(&kept.database_server, &owner.to_string())
            )),
            // The next connection finds out whether the server is gone.
            Ok(LockAttempt::Impossible(_)) | Err(_) => Ok(None),
        }
    }

    /// Returns a warning where other statements run in the variant's database. A killed run, for
    /// example, may have left statements there.
    pub(crate) async fn other_statements(&mut self, variant: &str) -> Option<String> {
        let kept = self.of_variant(variant)?;
        let others = kept.advisory_lock.other_running_statements().await;
        (!others.is_empty()).then(|| {
            format!(
                "other statements were running in {} when the cell began, and its figures include \
                 their cost: {}",
                database_in_words(&kept.database_server),
                others.join("; ")
            )
        })
    }

    fn of_variant(&mut self, variant: &str) -> Option<&mut LockedDatabase> {
        self.kept.iter_mut().find(|kept| kept.variants.iter().any(|name| name == variant))
    }

    /// Releases all locks.
    pub(crate) async fn release(self) {
        for kept in self.kept {
            kept.advisory_lock.release().await;
        }
    }
}

/// Returns the servers that others run, with their addresses.
pub(crate) fn elsewhere(variants: &[PreparedVariant]) -> Vec<DatabaseServer> {
    variants.iter().filter_map(database_server).collect()
}

fn database_server(variant: &PreparedVariant) -> Option<DatabaseServer> {
    match &variant.source {
        ServerSource::Address(database_server) => Some((**database_server).clone()),
        ServerSource::Embedded(_) | ServerSource::Null | ServerSource::Started { .. } => None,
    }
}

/// Writes `database bench at 127.0.0.1:3306`.
fn database_in_words(database_server: &DatabaseServer) -> String {
    let Some(login) = database_server.address.login() else { return String::new() };
    format!("database {} at {}", login.database.as_deref().unwrap_or_default(), login.address)
}

fn in_use(database_server: &DatabaseServer, owner: &str) -> String {
    format!("{} is in use by another run of dbdyno ({owner})", database_in_words(database_server))
}

/// Variable that names the folder of the files. Without it they are in the folder for temporary
/// files.
const FOLDER_VARIABLE: &str = "DBDYNO_RUNTIME";

/// Beginning of the name of a run's file. The process number follows.
const PREFIX: &str = "dbdyno-run-";

#[derive(Debug, Default)]
pub(crate) struct OtherRuns {
    folder: PathBuf,
    /// The file of this run, which is locked while it is open. It is `None` where none could be
    /// made.
    own: Option<(File, PathBuf)>,
    known: HashSet<PathBuf>,
}

impl OtherRuns {
    /// Makes this run known to others. It returns one sentence that names the other runs, if any.
    pub(crate) fn enter(plan: &str, alone: bool) -> Result<(Self, Option<String>), ExitError> {
        Self::enter_in(folder(), plan, alone)
    }

    fn enter_in(folder: PathBuf, plan: &str, alone: bool) -> Result<(Self, Option<String>), ExitError> {
        let name = format!("{PREFIX}{}", std::process::id());
        // A folder that cannot be written must not keep anyone from measuring.
        let own = create_locked_file(&folder, &name, plan).ok();
        let mut runs = Self { folder, own, known: HashSet::new() };
        let others = runs.new_ones();
        match others {
            Some(others) if alone => {
                let advice = "wait until that has ended, or leave out --alone";
                Err(ExitError::machine(format!("{others}; {advice}")))
            }
            others => Ok((runs, others)),
        }
    }

    /// Returns one sentence that names the runs that are new since the last call, if any.
    pub(crate) fn new_ones(&mut self) -> Option<String> {
        let own = self.own.as_ref().map(|(_, path)| path.clone());
        let mut found = Vec::new();
        for path in self.files().into_iter().filter(|path| Some(path) != own.as_ref()) {
            let Ok(file) = File::open(&path) else { continue };
            if file.try_lock().is_ok() {
                // A killed dbdyno has left the file. A file of another user may stay, because
                // removing it may fail.
                let _ = fs::remove_file(&path);
            } else if self.known.insert(path.clone()) {
                let said = fs::read_to_string(&path).unwrap_or_default();
                found.push(said.lines().next().unwrap_or_default().to_owned());
            }
        }
        let others = found.join("; ");
        (!found.is_empty()).then(|| {
            format!("another dbdyno measures on this host and takes CPU and disk from this run: {others}")
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.folder, PREFIX)
    }
}

/// Returns the folder in which all dbdyno processes have their files.
fn folder() -> PathBuf {
    std::env::var_os(FOLDER_VARIABLE).map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Returns the files whose names begin with `prefix`, sorted.
fn files(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let mut files: Vec<PathBuf> = entries.filter(is_one).map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Removes the files of killed dbdyno processes, and returns their paths.
pub(crate) fn sweep_run_files() -> Vec<PathBuf> {
    sweep_run_files_in(&folder())
}

fn sweep_run_files_in(folder: &Path) -> Vec<PathBuf> {
    let is_left = |path: &PathBuf| File::open(path).is_ok_and(|file| file.try_lock().is_ok());
    // A new file is not locked at first, so only the process number in its name shows whether its
    // process has ended.
    let has_ended = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.rsplit('-').next().is_some_and(is_ended_process)
    };
    let unseen = files(folder, &format!(".{PREFIX}")).into_iter().filter(has_ended);
    let left = files(folder, PREFIX).into_iter().chain(unseen).filter(is_left);
    left.filter(|path| fs::remove_file(path).is_ok()).collect()
}

/// Whether this is a process number, and no process has it.
pub(crate) fn is_ended_process(number: &str) -> bool {
    number.parse::<u32>().is_ok() && !Path::new("/proc").join(number).exists()
}

impl Drop for OtherRuns {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.own {
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes the file under a hidden name and locks it. It gets its final name only then, so that no
/// other process sees it unlocked.
fn create_locked_file(folder: &Path, name: &str, plan: &str) -> std::io::Result<(File, PathBuf)> {
    let (unseen, path) = (folder.join(format!(".{name}")), folder.join(name));
    let _ = fs::remove_file(&unseen);
    let mut file = File::create_new(&unseen)?;
    file.lock()?;
    writeln!(file, "process {}, plan {plan}, since {}", std::process::id(), time::now())?;
    fs::rename(&unseen, &path)?;
    Ok((file, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::MACHINE;

    #[test]
    fn other_runs_are_named_once_and_refused_on_request_and_files_of_killed_runs_go() {
        let folder = tempfile::tempdir().unwrap();
        let enter = |alone| OtherRuns::enter_in(folder.path().to_owned(), "mine", alone);
        let stale = folder.path().join("dbdyno-run-1");
        fs::write(&stale, "process 1, plan killed\n").unwrap();
        let (mut runs, others) = enter(true).unwrap();
        assert!(others.is_none() && !stale.exists());
        let other = create_locked_file(folder.path(), "dbdyno-run-2", "theirs").unwrap();
        let said = runs.new_ones().unwrap();
        assert!(said.contains("on this host") && said.contains(", plan theirs, since "), "{said}");
        assert_eq!(runs.new_ones(), None, "said once");
        drop(runs);
        let refused = enter(true).unwrap_err();
        assert_eq!(refused.code, MACHINE);
        let message = refused.message.unwrap();
        assert!(message.ends_with("; wait until that has ended, or leave out --alone"), "{message}");
        drop(other);
        assert!(enter(true).is_ok_and(|(_, others)| others.is_none()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "every file has gone");
    }

    #[test]
    fn files_of_killed_runs_are_swept_hidden_ones_too() {
        let folder = tempfile::tempdir().unwrap();
        let (own, gone) = (std::process::id(), u32::MAX);
        let file = |name: String| {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            path
        };
        let left = [format!(".dbdyno-run-{gone}"), format!("dbdyno-run-{gone}")].map(file);
        // The first file is just being made, and the other two belong to no dbdyno.
        let stay = [format!(".dbdyno-run-{own}"), ".dbdyno-run-x".to_owned(), "other".to_owned()].map(file);
        let _other = create_locked_file(folder.path(), "dbdyno-run-2", "theirs").unwrap();
        let mut swept = sweep_run_files_in(folder.path());
        swept.sort();
        assert_eq!(swept, left);
        assert!(stay.iter().all(|path| path.exists()) && folder.path().join("dbdyno-run-2").exists());
    }
}
