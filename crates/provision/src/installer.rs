//! Runs a program that makes a data directory: its input, its log, its time limit.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::guard::Guard;
use crate::process::Process;
use crate::{Error, launch, log};

/// No server takes a minute on an idle machine; a busy one gets ten.
const LIMIT: Duration = Duration::from_secs(600);

/// Where an installer runs.
pub(crate) struct Installer<'a> {
    /// Product and version for people.
    pub(crate) title: String,
    /// Gets all output.
    pub(crate) log: &'a Path,
    /// The folder that it is called from.
    pub(crate) folder: &'a Path,
    pub(crate) tmp_dir: &'a Path,
    pub(crate) cancel: &'a AtomicBool,
}

impl Installer<'_> {
    /// Runs `line` to its end with `input` as its standard input. What it has started ends with it,
    /// or with dbdyno.
    pub(crate) fn run(&self, line: &[String], input: &str) -> Result<(), Error> {
        let failed = |why: String| Error::Initialise {
            server: self.title.clone(),
            why: format!("{}: {why}", line.join(" ")),
            log_tail: log::reason(self.log, 0),
        };
        let mut command = launch::detached(line, self.log)?;
        let guard = Guard::start().map_err(|error| failed(format!("sh: {error}")))?;
        command.process_group(guard.group());
        command.current_dir(self.folder).env("TMPDIR", self.tmp_dir).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_owned();
            // In a thread: a program that is frozen reads nothing. One that ended early closes the
            // pipe; its exit status says more than the broken pipe.
            std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        }
        let process = Process::new(child, Signal::SIGTERM);
        let ended = process.wait(LIMIT, self.cancel, Duration::ZERO);
        drop(guard);
        match ended {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(status.to_string())),
            None => {}
        }
        // The guard has killed it.
        let _ = process.wait(Duration::from_secs(5), &AtomicBool::new(false), Duration::ZERO);
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled { what: format!("initialising {}", self.title) });
        }
        Err(failed(format!("not done after {} s", LIMIT.as_secs())))
    }
}
