//! Facts of this machine and moment that the runs do not record themselves.

use std::ffi::OsStr;
use std::process::Command;

use jiff::Timestamp;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// When a measurement began, and how busy the machine was.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub(super) date: String,
    /// Runnable tasks, averaged over the minute before.
    pub(super) load: String,
}

pub(super) fn now() -> Moment {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    Moment {
        date: Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        load: load.split(' ').next().filter(|first| !first.is_empty()).unwrap_or("unknown").to_owned(),
    }
}

/// How many CPUs of this machine we may use.
pub(super) fn cpus() -> usize {
    ours().len()
}

/// Numbers of the CPUs that we may use: in a container or a cpuset they need not begin with 0.
fn ours() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let numbers = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    let ours: Vec<u32> = numbers.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    if ours.is_empty() { vec![0] } else { ours }
}

/// CPUs of the server and of the client: half of ours each; `None` for both when there is only one.
pub(super) fn halves() -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    split(&ours())
}

fn split(cpus: &[u32]) -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    match cpus.split_at(cpus.len() / 2) {
        ([], _) => (None, None),
        (server, client) => (Some(server.to_vec()), Some(client.to_vec())),
    }
}

/// `2,3` as `taskset` and plans read it; all CPUs for `None`.
pub(super) fn list(cpus: Option<&[u32]>) -> String {
    let all = ours();
    let cpus = cpus.unwrap_or(&all);
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// A call of `program` on the client's CPUs.
pub(super) fn on_client_cpus(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list(halves().1.as_deref())).arg(program);
    command
}

/// The same, with the limit on open files lifted: the shell does that and becomes the program, so
/// that who watches the process watches the program.
pub(super) fn with_many_files(program: impl AsRef<OsStr>) -> Command {
    let call = on_client_cpus(program);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n $(ulimit -H -n); exec \"$@\"", "sh"]);
    command.arg(call.get_program()).args(call.get_args());
    command
}

/// Where servers and clients run, for the facts of a page.
pub(super) fn shares() -> String {
    let (servers, clients) = halves();
    format!("on CPUs {}; clients on CPUs {}", list(servers.as_deref()), list(clients.as_deref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_client_share_no_cpu_where_there_are_two() {
        assert_eq!(split(&[4, 5, 6, 7, 9]), (Some(vec![4, 5]), Some(vec![6, 7, 9])));
        assert_eq!(split(&[3]), (None, None));
        assert_eq!(list(Some(&[2, 3])), "2,3");
        assert_eq!(list(None).split(',').count(), cpus());
    }
}
