//! Changes a cell's server and data before a measured step. The data mode says whether the server
//! is stopped, and whether its data are put back, made again, or left with cold caches.

use std::path::{Path, PathBuf};
use std::time::Instant;

use dbdyno_db::server::{Copied, Data, Snapshot};
use dbdyno_db::{AnySession, Session};
use dbdyno_model::DataMode;
use dbdyno_record::{CellId, CellWriter, ServerInfo};
use dbdyno_workloads::Work;
use serde_json::{Map, Value, json};

use crate::conductor::database::Database;
use crate::conductor::{Conductor, Stop};
use crate::exit::BoxedError;
use crate::host;

/// The change to the data and the caches before a measured step. The server is stopped while it is
/// made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reset {
    pub(crate) data: DataChange,
    pub(crate) is_cold: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataChange {
    AsItIs,
    /// The data directory is made again, and the load then runs again.
    Reload,
    /// The data become the snapshot. A copy of the snapshot then takes their place.
    TakeAndRestore,
    /// A copy of the snapshot takes the place of the data.
    Restore,
}

/// Facts about a measured step that decide which data it gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepStart {
    /// Whether this is the cell's first measured step.
    pub(crate) is_first: bool,
    /// Whether the cell began on a copy of the snapshot, without a load of its own.
    pub(crate) began_on_copy: bool,
    /// Whether data may be put back before the step. It is false for a step that continues with the
    /// data of the step before it.
    pub(crate) begins_group: bool,
    pub(crate) is_cold: bool,
}

/// Returns the change that a data mode requires before a step, or `None` when the step runs on the
/// server as it is.
pub(crate) fn reset_before(mode: DataMode, step: StepStart) -> Option<Reset> {
    let is_later_group = !step.is_first && step.begins_group;
    let change = match mode {
        DataMode::Preserve => None,
        DataMode::Restart => step.begins_group.then_some(DataChange::AsItIs),
        DataMode::Reset => is_later_group.then_some(DataChange::Reload),
        DataMode::Restore | DataMode::RestoreEachStep if step.is_first => {
            (!step.began_on_copy).then_some(DataChange::TakeAndRestore)
        }
        DataMode::Restore => None,
        DataMode::RestoreEachStep => is_later_group.then_some(DataChange::Restore),
    };
    match change {
        Some(data) => Some(Reset { data, is_cold: step.is_cold }),
        None => step.is_cold.then_some(Reset { data: DataChange::AsItIs, is_cold: true }),
    }
}

/// Returns a record of work that began at `began` and ends now.
fn work(name: &str, began: Instant, details: Value) -> Work {
    let details = match details {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    Work::new(name, began.elapsed(), details)
}

pub(crate) const SNAPSHOTS: &str = "snapshots";
/// Folder of the run's own templates of data directories.
pub(crate) const TEMPLATES: &str = "templates";

/// Returns the path of a variant's snapshot of loaded data. It is the same for all blocks.
pub(crate) fn snapshot_dir(data_root: &Path, id: &CellId) -> PathBuf {
    data_root.join(SNAPSHOTS).join(format!("{}-{}", id.variant, id.workload))
}

impl Conductor<'_> {
    /// Returns the snapshot on which this cell begins, if its workload's data mode uses one and an
    /// earlier block has taken it.
    pub(crate) fn snapshot(&self, id: &CellId) -> Option<Snapshot> {
        let mode = self.plan.workload.data_of(&id.workload).0;
        mode.uses_snapshot().then(|| Snapshot::open(&snapshot_dir(&self.data_root, id))).flatten()
    }

    /// Makes a data directory a copy of the snapshot.
    pub(super) fn restored(&self, snapshot: &Snapshot, data_dir: &Path) -> Result<Work, BoxedError> {
        let began = Instant::now();
        let Copied { files, bytes, shared_files } = snapshot.restore(data_dir, &self.cancel)?;
        let details = json!({ "files": files, "bytes": bytes, "shared_files": shared_files });
        Ok(work("restore", began, details))
    }

    /// Stops the server, does what `reset` says, and starts the server. The record gets one entry
    /// for each part of this work. `loaded` is the workload's state after the load, which a
    /// snapshot keeps. The method returns a new session for set-up and checks.
    pub(crate) fn reset_before(
        &mut self,
        id: &CellId,
        writer: &mut CellWriter,
        database: &mut Database,
        session: AnySession,
        reset: Reset,
        loaded: Value,
    ) -> Result<AnySession, Stop> {
        self.progress.busy("between steps");
        self.runtime.block_on(session.close());
        let mut works = Vec::new();
        let restarted = self.restarted(id, database, reset, loaded, &mut works);
        // The work before a failure is recorded too, because it took time.
        self.write_works(writer, Ok(works))?;
        restarted
    }

    fn restarted(
        &mut self,
        id: &CellId,
        database: &mut Database,
        reset: Reset,
        loaded: Value,
        works: &mut Vec<Work>,
    ) -> Result<AnySession, Stop> {
        let limit = self.plan.host.stop_timeout.0;
        let began = Instant::now();
        let runtime_dir = database.halt(limit).map_err(Stop::failed)?;
        if runtime_dir.is_some() {
            works.push(work("stop", began, Value::Null));
        }
        self.change(id, reset, loaded, works).map_err(Stop::failed)?;
        let data = match reset.data {
            DataChange::Reload => Data::Fresh,
            _ if reset.is_cold => Data::Cold,
            _ => Data::AsItIs,
        };
        // The server continues the cell's log file.
        let (data_dir, log) = (self.data_dir(id), self.log_file(id, false));
        let began = Instant::now();
        let variant = self.prepared(id)?;
        let started = self.started(async {
            *database = self.database(variant, data_dir, log, runtime_dir, data).await?;
            Ok(database.connect().await?)
        });
        if started.is_ok() && database.pid().is_some() {
            works.push(work("start", began, json!({ "pid": database.pid() })));
        }
        started
    }

    /// Changes the data of a stopped server as `reset` says.
    fn change(
        &self,
        id: &CellId,
        reset: Reset,
        loaded: Value,
        works: &mut Vec<Work>,
    ) -> Result<(), BoxedError> {
        let (data_dir, folder) = (self.data_dir(id), snapshot_dir(&self.data_root, id));
        let began = Instant::now();
        let snapshot = match reset.data {
            DataChange::AsItIs | DataChange::Reload => None,
            DataChange::Restore => {
                Some(Snapshot::open(&folder).ok_or("the snapshot of the loaded data is gone")?)
            }
            DataChange::TakeAndRestore => {
                let taken = Snapshot::take(&data_dir, &folder, loaded, &self.cancel)?;
                let info = &taken.info;
                let (files, bytes, sha256) = (info.files.len(), info.bytes, &info.sha256);
                let details = json!({ "files": files, "bytes": bytes, "sha256": sha256 });
                works.push(work("snapshot", began, details));
                Some(taken)
            }
        };
        if let Some(snapshot) = snapshot {
            works.push(self.restored(&snapshot, &data_dir)?);
        }
        if reset.is_cold {
            let began = Instant::now();
            host::drop_caches()?;
            works.push(work("drop caches", began, Value::Null));
        }
        Ok(())
    }

    /// Returns a note if a MySQL or MariaDB server reloads its last buffer pool after each start,
    /// because it does so during the first step.
    pub(crate) fn warming_note(&self, id: &CellId, server: &ServerInfo) -> Option<String> {
        let mode = self.plan.workload.data_of(&id.workload).0;
        let setting = server.settings.get("innodb_buffer_pool_load_at_startup")?;
        (mode != DataMode::Preserve && matches!(setting.as_str(), "ON" | "1")).then(|| {
            "innodb_buffer_pool_load_at_startup is ON: after a restart that is not cold the server reloads its \
             last buffer pool, during the first step"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [DataMode; 5] = [
        DataMode::Preserve,
        DataMode::Restart,
        DataMode::Reset,
        DataMode::Restore,
        DataMode::RestoreEachStep,
    ];

    fn table(is_cold: bool) -> String {
        let mut lines = String::new();
        for mode in MODES {
            let change = |is_first, began_on_copy, begins_group| {
                let step = StepStart { is_first, began_on_copy, begins_group, is_cold };
                match reset_before(mode, step) {
                    None => "goes on".to_owned(),
                    Some(Reset { data, is_cold }) => {
                        format!("{data:?}{}", if is_cold { " cold" } else { "" })
                    }
                }
            };
            let first = change(true, false, true);
            let (later, in_group) = (change(false, false, true), change(false, false, false));
            lines.push_str(&format!(
                "{}: first {first}; on a copy {}; later {later}; within a group {in_group}\n",
                mode.name(),
                change(true, true, true)
            ));
        }
        lines
    }

    #[test]
    fn each_mode_resets_before_the_steps_that_it_promises() {
        insta::assert_snapshot!(table(false), @r"
        preserve: first goes on; on a copy goes on; later goes on; within a group goes on
        restart: first AsItIs; on a copy AsItIs; later AsItIs; within a group goes on
        reset: first goes on; on a copy goes on; later Reload; within a group goes on
        restore: first TakeAndRestore; on a copy goes on; later goes on; within a group goes on
        restore-each-step: first TakeAndRestore; on a copy goes on; later Restore; within a group goes on
        ");
        insta::assert_snapshot!(table(true), @r"
        preserve: first AsItIs cold; on a copy AsItIs cold; later AsItIs cold; within a group AsItIs cold
        restart: first AsItIs cold; on a copy AsItIs cold; later AsItIs cold; within a group AsItIs cold
        reset: first AsItIs cold; on a copy AsItIs cold; later Reload cold; within a group AsItIs cold
        restore: first TakeAndRestore cold; on a copy AsItIs cold; later AsItIs cold; within a group AsItIs cold
        restore-each-step: first TakeAndRestore cold; on a copy AsItIs cold; later Restore cold; within a group AsItIs cold
        ");
    }
}
