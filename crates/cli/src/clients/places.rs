//! Where agents are started: on hosts that the plan names, or on those that Slurm or Ray gives, all at once and each alone on its host.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_plan::{ClientNames, Clients, On};
use dbdyno_provision::calling;

use super::process::{Process, log_file};
use crate::engines::launcher::variables;
use crate::engines::ray::{Ray, called, of_ray};
use crate::exit::{Ended, MACHINE};

/// Variables that the plan's command gets next to those that all programs get: where ssh finds its agent, and (they begin so) what
/// `srun` knows of its allocation. No password is among them.
const HANDED_ON: [&str; 2] = ["SSH_AUTH_SOCK", "SLURM_"];
/// An engine gives hosts in this time, or says that it cannot.
const PATIENCE: Duration = Duration::from_secs(90);
/// In an allocation: prints its hosts, and keeps them until standard input ends.
const HOLD: &str = "sinfo --noheader --Node --nodes=\"$SLURM_JOB_NODELIST\" --format=\"host $SLURM_JOB_ID %N %o\" && exec cat";

/// A host, and how a program is started there.
pub(super) struct Place {
    pub(super) address: String,
    /// Words before those of the program's arguments.
    pub(super) start: Vec<String>,
    pub(super) variables: Vec<(OsString, OsString)>,
}

/// Keeps hosts of an engine. They are free when it is dropped, or this process ends.
pub(super) struct Reservation {
    /// Its end is the end of the process, so it goes first.
    _input: Option<ChildStdin>,
    _process: Process,
}

/// The client hosts of a plan. What an engine says goes to `log`.
///
/// # Errors
/// That an engine does not have so many free hosts.
pub(super) fn places(clients: &Clients, log: &Path) -> Result<(Vec<Place>, Option<Reservation>), Ended> {
    match (&clients.hosts, &clients.on) {
        (ClientNames::Number(hosts), Some(on)) => {
            reserved(on, *hosts, log).map(|(places, reservation)| (places, Some(reservation)))
        }
        (ClientNames::Named(names), _) => {
            Ok((names.iter().map(|name| named(name, &clients.start)).collect(), None))
        }
        (ClientNames::Number(_), None) => Ok((Vec::new(), None)),
    }
}

fn named(name: &str, start: &str) -> Place {
    let is_handed_on =
        |key: &OsString| HANDED_ON.iter().any(|start| key.to_str().is_some_and(|key| key.starts_with(start)));
    Place {
        address: name.to_owned(),
        start: start.split_whitespace().map(|word| word.replace("{host}", name)).collect(),
        variables: std::env::vars_os().filter(|(key, _)| is_handed_on(key)).collect(),
    }
}

fn reserved(on: &On, hosts: u32, log: &Path) -> Result<(Vec<Place>, Reservation), Ended> {
    let cannot = |why: &str| {
        let what = format!("cannot get {hosts} client hosts at once from {on}: {why}");
        Ended::new(MACHINE, format!("{what}; see {}, and [clients] hosts in the plan", log.display()))
    };
    let program = std::env::current_exe().map_err(|error| cannot(&error.to_string()))?;
    let program = program.display().to_string();
    let engine = Engine::of(on)?;
    let (words, variables) = (engine.reserving(hosts), engine.variables());
    let errors = log_file(log).map_err(|error| cannot(&error.to_string()))?;
    let mut command = calling(&words[0]);
    command.args(&words[1..]).envs(variables.iter().cloned()).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
    let mut child = command.spawn().map_err(|error| cannot(&format!("{}: {error}", words[0])))?;
    let (said, lines) = mpsc::channel();
    let output = child.stdout.take();
    let reservation = Reservation { _input: child.stdin.take(), _process: Process(child) };
    thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
        lines.map_while(Result::ok).try_for_each(|line| said.send(line))
    });
    let mut places: Vec<Place> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while places.len() < hosts as usize {
        let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
            let words = std::fs::read_to_string(log).unwrap_or_default();
            return Err(cannot(words.lines().rfind(|line| !line.is_empty()).unwrap_or("it says nothing")));
        };
        let Some((address, start)) = engine.starting(&line, &program) else { continue };
        // A node of two partitions is listed twice.
        if places.iter().all(|place| place.address != address) {
            places.push(Place { address, start, variables: variables.clone() });
        }
    }
    Ok((places, reservation))
}

enum Engine<'a> {
    Slurm(Option<&'a str>),
    Ray(&'a str),
}

impl<'a> Engine<'a> {
    /// # Errors
    /// A cluster of Ray that is not there, or open to the network.
    fn of(on: &'a On) -> Result<Self, Ended> {
        match on {
            On::Slurm(partition) => Ok(Self::Slurm(partition.as_deref())),
            On::Ray(address) => {
                Ray::find(address.as_deref())?;
                Ok(Self::Ray(address.as_deref().unwrap_or("auto")))
            }
            On::Local(_) => Err(Ended::new(MACHINE, "client hosts are found by slurm or ray")),
        }
    }

    fn variables(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Slurm(_) => variables(),
            Self::Ray(_) => of_ray(),
        }
    }

    /// The command that prints a line for each of so many hosts and keeps them until its standard input ends.
    fn reserving(&self, hosts: u32) -> Vec<String> {
        match self {
            Self::Slurm(partition) => {
                let of_all =
                    ["salloc", "--job-name=dbdyno", "--quiet", "--immediate=60", "--exclusive", "--mem=0"];
                let mut words = of_all.map(str::to_owned).to_vec();
                words.extend([format!("--nodes={hosts}"), "--ntasks-per-node=1".to_owned()]);
                words.extend(partition.map(|name| format!("--partition={name}")));
                words.extend(["sh", "-c", HOLD].map(str::to_owned));
                words
            }
            Self::Ray(address) => called(address, ["reserve".to_owned(), hosts.to_string()]),
        }
    }

    /// The address of the host that a line names, and the words that start a program there.
    fn starting(&self, line: &str, program: &str) -> Option<(String, Vec<String>)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (self, &words[..]) {
            (Self::Slurm(_), ["host", job, node, address]) => {
                let of_all = ["--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none"];
                let mut start =
                    vec!["srun".to_owned(), format!("--jobid={job}"), format!("--nodelist={node}")];
                start.extend(of_all.map(str::to_owned));
                start.push(program.to_owned());
                Some(((*address).to_owned(), start))
            }
            (Self::Ray(cluster), ["host", node, address]) => {
                let words = ["agent", node, program].map(str::to_owned);
                Some(((*address).to_owned(), called(cluster, words)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_slurm_are_those_of_one_allocation() {
        let engine = Engine::Slurm(Some("perf"));
        let reserving = engine.reserving(4).join(" ");
        assert!(reserving.contains("--nodes=4") && reserving.contains("--partition=perf"), "{reserving}");
        let (address, start) = engine.starting("host 17 n2 10.0.0.3", "/bin/dbdyno").unwrap();
        assert_eq!(address, "10.0.0.3");
        assert!(start.contains(&"--jobid=17".to_owned()) && start.ends_with(&["/bin/dbdyno".to_owned()]));
        assert_eq!(engine.starting("salloc: granted", "/bin/dbdyno"), None);
    }
}
