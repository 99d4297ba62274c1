//! Where agents are started: on hosts that the plan names, or on those that Slurm or Ray gives, all
//! at once and each alone on its host.

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
use crate::engines::gang;
use crate::engines::launcher::{Gang, this_program};
use crate::exit::{Ended, MACHINE};

/// Variables that the plan's command gets next to those that all programs get: where ssh finds its
/// agent, and (they begin so) what `srun` knows of its allocation. No password is among them.
const HANDED_ON: [&str; 2] = ["SSH_AUTH_SOCK", "SLURM_"];
/// An engine gives hosts in this time, or says that it cannot.
const PATIENCE: Duration = Duration::from_secs(90);

/// A host, and how a program is started there.
pub(super) struct HostAccess {
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
pub(super) fn places(clients: &Clients, log: &Path) -> Result<(Vec<HostAccess>, Option<Reservation>), Ended> {
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

fn named(name: &str, start: &str) -> HostAccess {
    let is_handed_on =
        |key: &OsString| HANDED_ON.iter().any(|start| key.to_str().is_some_and(|key| key.starts_with(start)));
    HostAccess {
        address: name.to_owned(),
        start: start.split_whitespace().map(|word| word.replace("{host}", name)).collect(),
        variables: std::env::vars_os().filter(|(key, _)| is_handed_on(key)).collect(),
    }
}

fn reserved(on: &On, hosts: u32, log: &Path) -> Result<(Vec<HostAccess>, Reservation), Ended> {
    let cannot = |why: &str| {
        let what = format!("cannot get {hosts} client hosts at once from {on}: {why}");
        Ended::new(MACHINE, format!("{what}; see {}, and [clients] hosts in the plan", log.display()))
    };
    let program = this_program()?.display().to_string();
    let gang = gang(on, hosts)?;
    let errors = log_file(log).map_err(|error| cannot(&error.to_string()))?;
    let mut command = calling(&gang.words[0]);
    command.args(&gang.words[1..]).envs(gang.variables.iter().cloned()).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors);
    let mut child = command.spawn().map_err(|error| cannot(&format!("{}: {error}", gang.words[0])))?;
    let (said, lines) = mpsc::channel();
    let output = child.stdout.take();
    let reservation = Reservation { _input: child.stdin.take(), _process: Process(child) };
    thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
        lines.map_while(Result::ok).try_for_each(|line| said.send(line))
    });
    let mut places: Vec<HostAccess> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while places.len() < hosts as usize {
        let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
            let words = std::fs::read_to_string(log).unwrap_or_default();
            return Err(cannot(words.lines().rfind(|line| !line.is_empty()).unwrap_or("it says nothing")));
        };
        let Some(place) = of_line(&line, &gang, &program) else { continue };
        // A node of two partitions is listed twice.
        if places.iter().all(|other| other.address != place.address) {
            places.push(place);
        }
    }
    Ok((places, reservation))
}

/// The host that a line of an engine names.
fn of_line(line: &str, gang: &Gang, program: &str) -> Option<HostAccess> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["host", key @ .., address] = &words[..] else { return None };
    let mut start = (gang.starting)(key)?;
    start.push(program.to_owned());
    Some(HostAccess { address: (*address).to_owned(), start, variables: gang.variables.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_slurm_are_those_of_one_allocation() {
        let gang = gang(&On::Slurm(Some("perf".to_owned())), 4).unwrap();
        let reserving = gang.words.join(" ");
        assert!(reserving.contains("--nodes=4") && reserving.contains("--partition=perf"), "{reserving}");
        let HostAccess { address, start, .. } = of_line("host 17 n2 10.0.0.3", &gang, "/bin/dbdyno").unwrap();
        assert_eq!(address, "10.0.0.3");
        assert!(start.contains(&"--jobid=17".to_owned()) && start.ends_with(&["/bin/dbdyno".to_owned()]));
        assert!(of_line("salloc: granted", &gang, "/bin/dbdyno").is_none());
    }
}
