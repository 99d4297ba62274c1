//! A known-answer server as a child process: started on its CPUs, on a private socket, gone when
//! dbdyno is.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use dbdyno_plan::CpuList;
use dbdyno_provision::calling;

use crate::exit::Ended;

/// Killed when dropped; there is nothing that it would have to finish.
pub(crate) struct Answering {
    child: Child,
}

impl Answering {
    /// Starts a server that answers without delay and waits until it listens. `socket` is the path
    /// of the socket, for PostgreSQL its folder.
    pub(crate) fn start(protocol: &str, socket: &Path, cpus: Option<&CpuList>) -> Result<Self, Ended> {
        let cannot =
            |why: String| Ended::machine(format!("cannot start the {protocol} server that answers: {why}"));
        let program = std::env::current_exe().map_err(|error| cannot(error.to_string()))?;
        // The kernel ends it when the thread that starts it ends, even by `kill -9`.
        let mut command = calling("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command.args(["known-answer", "--protocol", protocol, "--socket"]).arg(socket);
        if let Some(cpus) = cpus {
            command.args(["--cpus", &cpus.to_string()]);
        }
        // In a group of its own: Ctrl-C is for dbdyno, which ends it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child =
            command.spawn().map_err(|error| cannot(format!("{error} (setpriv of util-linux is needed)")))?;
        let mut answering = Self { child };
        answering.wait_until_it_listens().map_err(cannot)?;
        Ok(answering)
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        if line.starts_with("listening on ") {
            return Ok(());
        }
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        Err(said.trim_end().trim_start_matches("error: ").to_owned())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
