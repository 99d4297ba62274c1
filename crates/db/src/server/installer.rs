//! Runs the program that makes a data directory, with its input, its log file and a time limit.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::server::process::Process;
use crate::server::process_group::ProcessGroup;
use crate::server::{Error, launch, log};

/// Time limit for an installer. No server needs a minute on an idle machine, so a busy one gets
/// ten.
const LIMIT: Duration = Duration::from_secs(600);

/// Size limit for the log. Installers print a few pages, so one that prints this much would fill
/// the disk.
const LOG_MAX_BYTES: u64 = 64 << 20;

/// Interval between two checks of the time and the log's size.
const LOOK: Duration = Duration::from_millis(50);

/// Where an installer runs and what it logs to.
pub(crate) struct Installer<'a> {
    /// Product and version for people.
    pub(crate) title: String,
    /// The file that gets all output.
    pub(crate) log: &'a Path,
    /// The folder in which the installer runs.
    pub(crate) folder: &'a Path,
    pub(crate) tmp_dir: &'a Path,
    pub(crate) cancel: &'a AtomicBool,
}

impl Installer<'_> {
    /// Runs `line` to its end with `input` as its standard input. All processes that it has started
    /// end with it, or with dbdyno.
    pub(crate) fn run(&self, line: &[String], input: &str) -> Result<(), Error> {
        let failed = |why: String| Error::Initialise {
            server: self.title.clone(),
            why: format!("{}: {why}", line.join(" ")),
            log_tail: log::reason(&log::Part::whole(self.log)),
        };
        let mut command = launch::detached(line, self.log)?;
        let process_group = ProcessGroup::start().map_err(|error| failed(format!("sh: {error}")))?;
        command.process_group(process_group.group());
        command.current_dir(self.folder).env("TMPDIR", self.tmp_dir).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_owned();
            // A thread writes the input, because a frozen program reads nothing. A program that
            // ended early closes the pipe; its exit status says more than the broken pipe.
            std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        }
        let process = Process::new(child, Signal::SIGTERM);
        let ended = self.wait(&process);
        drop(process_group);
        match ended {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(status.to_string())),
            None => {}
        }
        // Dropping the process group has killed it.
        let _ = process.wait(Duration::from_secs(5), &AtomicBool::new(false), Duration::ZERO);
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled { what: format!("initialising {}", self.title) });
        }
        if log::length(self.log) > LOG_MAX_BYTES {
            return Err(failed(format!(
                "it wrote more than {} MiB into its log and was killed",
                LOG_MAX_BYTES >> 20
            )));
        }
        Err(failed(format!("not done after {} s", LIMIT.as_secs())))
    }

    /// Waits until the program has ended, the time is over, the log is too long, or the user
    /// cancels.
    fn wait(&self, process: &Process) -> Option<ExitStatus> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let ended = process.wait(LOOK, self.cancel, Duration::ZERO);
            let is_over = Instant::now() >= deadline || self.cancel.load(Ordering::Relaxed);
            if ended.is_some() || is_over || log::length(self.log) > LOG_MAX_BYTES {
                return ended;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installer_that_writes_for_ever_is_killed_before_it_has_filled_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (log, cancel) = (folder.path().join("log"), AtomicBool::new(false));
        let installer = Installer {
            title: "X 1".to_owned(),
            log: &log,
            folder: folder.path(),
            tmp_dir: folder.path(),
            cancel: &cancel,
        };
        let error = installer.run(&["yes".to_owned()], "").unwrap_err().to_string();
        let said = "initialising a data directory for X 1 failed: yes: it wrote more than 64 MiB into its log and was killed\n";
        assert!(error.starts_with(said), "{}", &error[..200.min(error.len())]);
    }
}
