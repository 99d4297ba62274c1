//! Finds where agents are started: on hosts that the plan names, or on hosts that Slurm or Ray
//! reserves, all at once and each for itself.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use dbdyno_model::{ClientNames, Clients, On};

use super::process::{HostAccess, Process};
use crate::engines::{Gang, gang, shared_program};
use crate::exit::ExitError;

/// Variables that the plan's command gets in addition to those that all programs get. They tell
/// where ssh finds its agent, and (all with this beginning) what `srun` knows of its allocation. No
/// password is among them.
const HANDED_ON: [&str; 2] = ["SSH_AUTH_SOCK", "SLURM_"];
/// Longest time in which an engine provides hosts or says that it cannot.
const PATIENCE: Duration = Duration::from_secs(90);

/// Returns the client hosts of a plan, and the process that reserves those of an engine. They are
/// free when it is dropped, or when this process ends. The engine's messages go to `log`.
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
    let is_handed_on =
        |key: &OsString| HANDED_ON.iter().any(|start| key.to_str().is_some_and(|key| key.starts_with(start)));
    HostAccess {
        address: name.to_owned(),
        start: start.split_whitespace().map(|word| word.replace("{host}", name)).collect(),
        variables: std::env::vars_os().filter(|(key, _)| is_handed_on(key)).collect(),
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
        let Some(place) = of_line(&line, &gang, &program) else { continue };
        // A node that is in two partitions is listed twice.
        if places.iter().all(|other| other.address != place.address) {
            places.push(place);
        }
    }
    Ok((places, process))
}

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
