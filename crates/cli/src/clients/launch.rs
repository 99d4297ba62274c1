//! Starts agents by the plan's command, each with certificates of its own.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dbdyno_provision::{Certificates, calling};

use super::places::HostAccess;
use super::process::{Process, log_file};
use super::wire::Credentials;
use crate::exit::{Ended, MACHINE};

/// An agent listens after this time.
const START: Duration = Duration::from_secs(60);

/// An agent that was started.
pub(super) struct Launched {
    pub(super) process: Process,
    pub(super) log: PathBuf,
    /// The conductor's side.
    pub(super) credentials: Credentials,
    name: String,
}

/// Starts the agent at a place; what it says on standard error goes to `log`.
pub(super) fn launch(place: &HostAccess, log: PathBuf) -> Result<Launched, Ended> {
    let name = &place.address;
    let ended = |what: &str, error: &dyn std::fmt::Display| {
        Ended::new(MACHINE, format!("cannot start an agent on client host {name}: {what}: {error}"))
    };
    let certificates = Certificates::for_server_at(&[name.as_str()], "conductor");
    let certificates = certificates.map_err(|error| ended("certificates", &error))?;
    let errors = log_file(&log).map_err(|error| ended(&log.display().to_string(), &error))?;
    let mut words = place.start.iter();
    let program = words.next().map_or("", String::as_str);
    let mut command = calling(program);
    command.args(words).args(["agent", "--listen", name.as_str()]).envs(place.variables.iter().cloned());
    // Ctrl-C is for dbdyno, which ends its agents.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
    let mut child = command.spawn().map_err(|error| ended(program, &error))?;
    let input = child.stdin.take();
    let process = Process(child);
    let secret = serde_json::to_string(&Credentials::from(certificates.for_server()));
    let secret = secret.map_err(|error| ended("certificates", &error))?;
    if let Some(mut input) = input {
        // One that ends before it reads says why in its log.
        let _ = writeln!(input, "{secret}");
    }
    Ok(Launched { process, log, credentials: certificates.for_client().into(), name: name.clone() })
}

impl Launched {
    /// Waits until the agent listens; on which port.
    pub(super) fn port(&mut self) -> Result<u16, Ended> {
        let (said, line) = mpsc::channel();
        let output = self.process.0.stdout.take();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = output.map(|output| BufReader::new(output).read_line(&mut line));
            let _ = said.send(line);
        });
        let line = line.recv_timeout(START).unwrap_or_default();
        let port = line.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.ok_or_else(|| {
            let words = std::fs::read_to_string(&self.log).unwrap_or_default();
            let last = words.lines().rfind(|line| !line.is_empty()).unwrap_or("it says nothing");
            let (name, log) = (&self.name, self.log.display());
            let what = format!("the agent on client host {name} does not listen: {last}; see {log}");
            Ended::new(MACHINE, format!("{what}, and [clients] start in the plan"))
        })
    }
}
