//! Runs a program that makes a data directory: its input, its log, its time limit.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

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
}

impl Installer<'_> {
    /// Runs `line` to its end with `input` as its standard input.
    ///
    /// # Errors
    /// [`Error::Initialise`] with the end of the output.
    pub(crate) fn run(&self, line: &[String], input: &str) -> Result<(), Error> {
        let failed = |why: String| Error::Initialise {
            server: self.title.clone(),
            why: format!("{}: {why}", line.join(" ")),
            log_tail: log::reason(self.log, 0),
        };
        let mut command = launch::detached(line, self.log)?;
        command.current_dir(self.folder).env("TMPDIR", self.tmp_dir).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ended early closes the pipe; its exit status tells more than the broken pipe.
            let _ = stdin.write_all(input.as_bytes());
        }
        let process = Process::new(child, Signal::SIGTERM);
        match process.wait(LIMIT) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(failed(status.to_string())),
            None => {
                // A script's server is in the script's process group.
                let _ = i32::try_from(process.pid()).map(|pid| killpg(Pid::from_raw(pid), Signal::SIGKILL));
                let _ = process.wait(Duration::from_secs(5));
                Err(failed(format!("not done after {} s", LIMIT.as_secs())))
            }
        }
    }
}
