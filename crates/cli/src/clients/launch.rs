//! Starts agents by the plan's command, each with certificates of its own.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use dbdyno_provision::Certificates;

use super::places::HostAccess;
use super::process::Process;
use super::wire::Credentials;
use crate::exit::Ended;

/// An agent listens after this time.
const START: Duration = Duration::from_secs(60);

pub(super) struct Launched {
    pub(super) process: Process,
    /// The conductor's side.
    pub(super) credentials: Credentials,
    pub(super) name: String,
}

/// Starts the agent at a place; what it says on standard error goes to `log`.
pub(super) fn launch(place: &HostAccess, log: PathBuf) -> Result<Launched, Ended> {
    let name = &place.address;
    let ended = |why: String| Ended::machine(format!("cannot start an agent on client host {name}: {why}"));
    let certificates = Certificates::for_server_at(&[name.as_str()], "conductor");
    let certificates = certificates.map_err(|error| ended(format!("certificates: {error}")))?;
    let secret = serde_json::to_string(&Credentials::from(certificates.for_server()));
    let secret = secret.map_err(|error| ended(format!("certificates: {error}")))?;
    let words = [&place.start[..], &["agent", "--listen", name].map(str::to_owned)].concat();
    let mut process = Process::start(&words, &place.variables, log).map_err(ended)?;
    if let Some(mut input) = process.input.take() {
        // One that ends before it reads says why in its log.
        let _ = writeln!(input, "{secret}");
    }
    Ok(Launched { process, credentials: certificates.for_client().into(), name: name.clone() })
}

impl Launched {
    /// Waits until the agent listens; on which port.
    pub(super) fn port(&self) -> Result<u16, Ended> {
        let line = self.process.lines.recv_timeout(START).unwrap_or_default();
        let port = line.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.ok_or_else(|| {
            let (name, last, log) = (&self.name, self.process.last_words(), self.process.log.display());
            let what = format!("the agent on client host {name} does not listen: {last}; see {log}");
            Ended::machine(format!("{what}, and [clients] start in the plan"))
        })
    }
}
