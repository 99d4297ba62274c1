//! Finds the hosts for agents, and starts the agents there. The plan names the hosts, or Slurm or
//! Ray reserves all of them at once. Each agent has a host of its own.
//!
//! Each agent has one process on this host: the agent itself, or the program that runs it on
//! another host (ssh, srun). One more process keeps the reservation, if there is one. On hosts that
//! the plan names, the plan's command starts the agents. Each agent gets certificates of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_db::server::{Certificates, clean_command};
use dbdyno_model::{ClientNames, Clients, On};

use crate::clients::link::Credentials;
use crate::engines::{Gang, gang, shared_program};
use crate::exit::ExitError;

/// Prefixes of the environment variables that the plan's command gets in addition to those that all
/// programs get. ssh needs them to find its agent, and `srun` to find its allocation. They hold no
/// passwords.
const PASSED_ON: [&str; 2] = ["SSH_AUTH_SOCK", "SLURM_"];
/// Longest wait until an engine provides hosts or reports that it cannot.
const PATIENCE: Duration = Duration::from_secs(90);

/// Returns the client hosts of a plan and, where an engine provides them, the process that reserves
/// them. The hosts become free when that process is dropped, or when this process ends. The
/// engine's messages go to `log`.
pub(super) fn places(clients: &Clients, log: &Path) -> Result<(Vec<HostAccess>, Option<Process>), ExitError> {
    match (&clients.hosts, &clients.on) {
        (ClientNames::Number(hosts), Some(on)) => {
            reserved(on, *hosts, log).map(|(places, process)| (places, Some(process)))
        }
        (ClientNames::Named(names), _) => {
            Ok((names.iter().map(|name| named(name, &clients.start)).collect(), None))
        }
        (ClientNames::Number(_), None) => Ok((Vec::new(), None)),
    }
}

fn named(name: &str, start: &str) -> HostAccess {
    let is_passed_on =
        |key: &OsString| PASSED_ON.iter().any(|start| key.to_str().is_some_and(|key| key.starts_with(start)));
    HostAccess {
        address: name.to_owned(),
        start: start.split_whitespace().map(|word| word.replace("{host}", name)).collect(),
        variables: std::env::vars_os().filter(|(key, _)| is_passed_on(key)).collect(),
    }
}

fn reserved(on: &On, hosts: u32, log: &Path) -> Result<(Vec<HostAccess>, Process), ExitError> {
    let cannot = |why: String| {
        let what = format!("cannot get {hosts} client hosts at once from {on}: {why}");
        ExitError::machine(format!("{what}; see {}, and [clients] hosts in the plan", log.display()))
    };
    let program = shared_program()?.display().to_string();
    let gang = gang(on, hosts)?;
    let process = Process::start(&gang.words, &gang.variables, log.to_owned()).map_err(cannot)?;
    let mut places: Vec<HostAccess> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while places.len() < hosts as usize {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = process.lines.recv_timeout(left).map_err(|_| cannot(process.log_end()))?;
        let Some(place) = host_of_line(&line, &gang, &program) else { continue };
        // A node that is in two partitions is listed twice.
        if places.iter().all(|other| other.address != place.address) {
            places.push(place);
        }
    }
    Ok((places, process))
}

fn host_of_line(line: &str, gang: &Gang, program: &str) -> Option<HostAccess> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["host", key @ .., address] = &words[..] else { return None };
    let mut start = (gang.starting)(key)?;
    start.push(program.to_owned());
    Some(HostAccess { address: (*address).to_owned(), start, variables: gang.variables.clone() })
}

/// Longest time until an agent listens.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest time that an agent takes to end after its connection or its input has ended.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A process on this host: an agent, the program that runs an agent on another host, or the one
/// that reserves hosts. It ends when this value is dropped.
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    pub(super) lines: Receiver<String>,
    log: PathBuf,
}

impl Process {
    /// Starts a program with its arguments. Its standard error goes to a new file `log`.
    pub(super) fn start(
        words: &[String],
        variables: &[(OsString, OsString)],
        log: PathBuf,
    ) -> Result<Self, String> {
        let errors = log_file(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let program = words.first().map_or("", String::as_str);
        let mut command = clean_command(program);
        command.args(words.iter().skip(1)).envs(variables.iter().cloned());
        // The program gets a process group of its own. Ctrl-C must reach only dbdyno, which ends
        // its programs.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let (said, lines) = mpsc::channel();
        let output = child.stdout.take();
        thread::spawn(move || {
            let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            lines.map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Ok(Self { input: child.stdin.take(), child, lines, log })
    }

    /// Returns the last line of the process's log.
    pub(super) fn log_end(&self) -> String {
        let words = std::fs::read_to_string(&self.log).unwrap_or_default();
        words.lines().rfind(|line| !line.is_empty()).unwrap_or("it says nothing").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + END_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn log_file(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // A resumed run starts its agents again, with new logs.
    let _ = std::fs::remove_file(path);
    File::create_new(path)
}

/// A host, and how a program is started there.
pub(super) struct HostAccess {
    pub(super) address: String,
    /// Words in front of the program and its arguments.
    pub(super) start: Vec<String>,
    pub(super) variables: Vec<(OsString, OsString)>,
}

pub(super) struct Launched {
    pub(super) process: Process,
    /// The conductor's certificate and key.
    pub(super) credentials: Credentials,
    pub(super) name: String,
}

/// Starts the agent on a host. Its standard error goes to `log`.
pub(super) fn launch(place: &HostAccess, log: PathBuf) -> Result<Launched, ExitError> {
    let name = &place.address;
    let ended =
        |why: String| ExitError::machine(format!("cannot start an agent on client host {name}: {why}"));
    let certificates = Certificates::for_server_at(&[name.as_str()], "conductor");
    let certificates = certificates.map_err(|error| ended(format!("certificates: {error}")))?;
    let secret = serde_json::to_string(&Credentials::from(certificates.for_server()));
    let secret = secret.map_err(|error| ended(format!("certificates: {error}")))?;
    let words = [&place.start[..], &["agent", "--listen", name].map(str::to_owned)].concat();
    let mut process = Process::start(&words, &place.variables, log).map_err(ended)?;
    if let Some(mut input) = process.input.take() {
        // An agent that ends before it reads its input writes the reason to its log.
        let _ = writeln!(input, "{secret}");
    }
    Ok(Launched { process, credentials: certificates.for_client().into(), name: name.clone() })
}

impl Launched {
    /// Waits until the agent listens, and returns its port.
    pub(super) fn port(&self) -> Result<u16, ExitError> {
        let line = self.process.lines.recv_timeout(START_TIMEOUT).unwrap_or_default();
        let port = line.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        port.ok_or_else(|| {
            let (name, last, log) = (&self.name, self.process.log_end(), self.process.log.display());
            let what = format!("the agent on client host {name} does not listen: {last}; see {log}");
            ExitError::machine(format!("{what}, and [clients] start in the plan"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_slurm_are_those_of_one_allocation() {
        let gang = gang(&On::Slurm(Some("perf".to_owned())), 4).unwrap();
        let reserving = gang.words.join(" ");
        assert!(reserving.contains("--nodes=4") && reserving.contains("--partition=perf"), "{reserving}");
        let HostAccess { address, start, .. } =
            host_of_line("host 17 n2 10.0.0.3", &gang, "/bin/dbdyno").unwrap();
        assert_eq!(address, "10.0.0.3");
        assert!(start.contains(&"--jobid=17".to_owned()) && start.ends_with(&["/bin/dbdyno".to_owned()]));
        assert!(host_of_line("salloc: granted", &gang, "/bin/dbdyno").is_none());
    }
}
