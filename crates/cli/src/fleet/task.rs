//! A block that a machine runs: the local process that stands for it, and where it leaves its
//! records.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use crate::engines::{Launcher, ask_to_end, this_program};
use crate::exit::ExitError;
use crate::fleet::FOLDER;
use crate::fleet::shipment::Shipment;

pub(super) struct Task {
    pub(super) block: u32,
    pub(super) name: String,
    /// The task's run directory, once the task has made it.
    pub(super) dir: PathBuf,
    pub(super) log: PathBuf,
    child: Child,
    /// The thread that brings files to its machine, and records back.
    courier: Option<JoinHandle<io::Result<()>>>,
    lost: Option<io::Error>,
    pub(super) started: Instant,
    status: Option<ExitStatus>,
}

impl Task {
    /// Starts the task of `block` of a run (directory and name) on a machine.
    pub(super) fn start(
        launcher: &dyn Launcher,
        machine: usize,
        (run, run_id): (&Path, &str),
        block: u32,
        templates: Option<&Path>,
        shipment: Option<&Arc<Shipment>>,
    ) -> Result<Self, ExitError> {
        let run = std::path::absolute(run).unwrap_or(run.to_owned());
        let folder = run.join(FOLDER);
        let mut attempt = 1;
        let (name, log) = loop {
            // Data outside the run directory are in folders of this name.
            let name = format!("{run_id}-{block}.{attempt}");
            let log = folder.join(format!("{name}.log"));
            if !log.exists() {
                break (name, log);
            }
            attempt += 1;
        };
        let templates = templates.map(|folder| format!("--templates={}", folder.display()));
        let words = match shipment {
            Some(shipment) => shipment.words(block, &name, templates),
            None => {
                let text = |path: &Path| path.display().to_string();
                let mut words = vec![text(&this_program()?), "task".to_owned()];
                words.extend(templates);
                words.extend([text(&run), block.to_string(), text(&folder), name.clone()]);
                words
            }
        };
        let mut child = launcher.start(machine, &words, &log, shipment.is_some())?;
        let courier = shipment.map(|shipment| shipment.attend(&mut child, &run, &name));
        let (dir, started) = (folder.join(&name), Instant::now());
        Ok(Self { block, dir, name, log, child, courier, lost: None, started, status: None })
    }

    /// Looks whether the task has ended. A process that cannot be checked counts as running, and
    /// its end shows at the next look.
    pub(super) fn look(&mut self) {
        let has_records = self.courier.as_ref().is_none_or(JoinHandle::is_finished);
        self.status = has_records.then(|| self.child.try_wait().ok().flatten()).flatten();
        if let Some(courier) = self.courier.take_if(|courier| courier.is_finished()) {
            self.lost = courier.join().ok().and_then(Result::err);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    pub(super) fn stop(&self) {
        if self.status.is_none() {
            ask_to_end(&self.child);
        }
    }

    /// Returns why the task ended, as far as it has said so.
    pub(super) fn why(&self) -> String {
        let status = self.status.map_or_else(String::new, |status| status.to_string());
        let lost = self.lost.as_ref().map(|error| format!("{error} ({status})"));
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        match log.lines().rfind(|line| line.contains("error: ")) {
            Some(last) => format!("{} ({status})", last.trim()),
            None => lost.unwrap_or(status),
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.stop();
    }
}
