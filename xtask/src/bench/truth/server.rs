//! A known-answer server as a child process: started, asked by dbdyno, stopped, and its own account
//! of what it did.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::bench::machine;

/// A running `dbdyno known-answer`; dropped without [`KnownAnswer::stop`], it is killed.
pub(in crate::bench) struct KnownAnswer {
    child: Child,
    stats: PathBuf,
    socket: PathBuf,
    /// Of the socket: paths of sockets are short, and those of build folders may not be.
    _folder: tempfile::TempDir,
}

impl KnownAnswer {
    /// Starts it on the server's half of the CPUs with `options` (`["--delay", "exponential
    /// 5ms"]`).
    pub(in crate::bench) fn start(dbdyno: &Path, options: &[&str]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bench-truth-").tempdir()?;
        let (socket, stats) = (folder.path().join("answer.sock"), folder.path().join("stats.json"));
        let (cpus, _) = machine::halves();
        let mut line = Command::new(dbdyno);
        line.args(["known-answer", "--protocol", "mysql", "--cpus"]).arg(machine::list(cpus.as_deref()));
        line.arg("--socket").arg(&socket).arg("--stats").arg(&stats).args(options);
        let child = line.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut server =
            Self { child: child.context("dbdyno cannot be run")?, stats, socket, _folder: folder };
        let out = server.child.stdout.take().context("its output is a pipe")?;
        let mut said = String::new();
        BufReader::new(out).read_line(&mut said)?;
        if !said.starts_with("listening") {
            bail!("dbdyno known-answer {} does not listen", options.join(" "));
        }
        Ok(server)
    }

    pub(in crate::bench) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Address for a plan.
    pub(super) fn address(&self) -> String {
        format!("mysql://root@localhost/dbdyno?socket={}", self.socket.display())
    }

    /// Ends it; returns what it says it did.
    pub(super) fn stop(mut self) -> Result<Value> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("dbdyno known-answer ended with {status}");
        }
        serde_json::from_str(&std::fs::read_to_string(&self.stats)?).context("its statistics are not JSON")
    }
}

impl Drop for KnownAnswer {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
