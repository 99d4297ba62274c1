//! Divides the CPUs of this machine between servers and clients, and measures what a client's
//! process takes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// Returns the numbers of the CPUs that this process may use. In a container or a cpuset they need
/// not begin with 0.
fn ours() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let numbers = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    let ours: Vec<u32> = numbers.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    if ours.is_empty() { vec![0] } else { ours }
}

/// Returns the CPUs of the server and of the client, half of them each. Both are `None` when there
/// is only one CPU.
pub(super) fn halves() -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    split(&ours())
}

fn split(cpus: &[u32]) -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    match cpus.split_at(cpus.len() / 2) {
        ([], _) => (None, None),
        (server, client) => (Some(server.to_vec()), Some(client.to_vec())),
    }
}

/// Writes `2,3` as `taskset` and plans read it. `None` stands for all CPUs.
pub(super) fn list(cpus: Option<&[u32]>) -> String {
    let all = ours();
    cpus.unwrap_or(&all).iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Makes a call of `program` on the client's CPUs. A program that would buffer its output writes each
/// line at once, so that the time of the line is known.
pub(super) fn on_client_cpus(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list(halves().1.as_deref())).args(["stdbuf", "-oL"]).arg(program);
    command
}

/// A client's process that has ended well.
pub(super) struct Ended {
    /// User and kernel time of the whole process, in µs.
    pub(super) cpu_us: f64,
    /// Highest resident memory in bytes. It is NaN for a process that ended at once.
    pub(super) peak_bytes: f64,
    /// What it printed on both outputs, with the time of each line.
    lines: Vec<(Instant, String)>,
}

/// Runs a client to its end, without a limit on open files. A shell lifts the limit and then
/// becomes the program.
pub(super) fn ended(line: &Command) -> Result<Ended> {
    let said = |line: &Command| format!("{:?}", line.get_program()).replace('"', "");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n $(ulimit -H -n); exec \"$@\" 2>&1", "sh"]);
    command.arg(line.get_program()).args(line.get_args()).stdin(Stdio::null()).stdout(Stdio::piped());
    let before = children_cpu_us()?;
    let mut child = command.spawn().context("sh cannot be run")?;
    let out = BufReader::new(child.stdout.take().context("its output is a pipe")?);
    let reader = thread::spawn(move || {
        out.lines().map_while(Result::ok).map(|line| (Instant::now(), line)).collect::<Vec<_>>()
    });
    let mut peak_bytes = f64::NAN;
    let status = loop {
        // The kernel keeps the highest value itself, so only what comes after the last reading is
        // missed. After its end the process has no memory, and the line is missing.
        peak_bytes = resident_peak(child.id()).unwrap_or(peak_bytes);
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    let cpu_us = (children_cpu_us()? - before) as f64;
    let lines = reader.join().ok().context("the reader of its output panicked")?;
    let ended = Ended { cpu_us, peak_bytes, lines };
    if !status.success() {
        bail!("{} ended with {status}: {}", said(line), ended.text());
    }
    Ok(ended)
}

/// Returns the CPU time in µs of all children that have been waited for.
fn children_cpu_us() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds())
}

/// Returns `VmHWM` of process `pid`, in bytes.
fn resident_peak(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

impl Ended {
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the seconds between the first lines with these beginnings.
    pub(super) fn seconds_between(&self, begin: &str, end: &str) -> Option<f64> {
        let at = |text: &str| self.lines.iter().find(|(_, line)| line.starts_with(text)).map(|(at, _)| *at);
        Some(at(end)?.checked_duration_since(at(begin)?)?.as_secs_f64())
    }

    /// Returns the transactions and their rate, as sysbench or pgbench reports them.
    pub(super) fn transactions(&self) -> Result<(f64, f64)> {
        let text = self.text();
        transactions(&text).with_context(|| format!("no transactions in: {text}"))
    }
}

/// Reads `    transactions:    12345  (2468.10 per sec.)`, or pgbench's two lines.
fn transactions(text: &str) -> Option<(f64, f64)> {
    let after = |head: &str| text.lines().find_map(|line| line.trim().strip_prefix(head));
    let first = |text: &str| text.split(['/', ' ']).next()?.parse().ok();
    if let Some((count, rate)) = after("transactions:").and_then(|rest| rest.split_once('(')) {
        return Some((count.trim().parse().ok()?, first(rate)?));
    }
    Some((first(after("number of transactions actually processed: ")?)?, first(after("tps = ")?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_client_share_no_cpu_where_there_are_two() {
        assert_eq!(split(&[4, 5, 6, 7, 9]), (Some(vec![4, 5]), Some(vec![6, 7, 9])));
        assert_eq!(split(&[3]), (None, None));
        assert_eq!(list(Some(&[2, 3])), "2,3");
    }

    #[test]
    fn transactions_and_their_rate_are_read_from_both_programs_reports() {
        let text = "SQL statistics:\n    transactions:                        98765  (9876.43 per sec.)\n    \
                    queries:                             98765  (9876.43 per sec.)\n";
        assert_eq!(transactions(text), Some((98_765.0, 9876.43)));
        let text = "number of transactions actually processed: 1234/1234\n\
                    tps = 617.25 (without initial connection time)\n";
        assert_eq!(transactions(text), Some((1234.0, 617.25)));
        assert_eq!(transactions("FATAL: no"), None);
    }

    #[test]
    fn a_clients_end_says_what_it_took_and_when_it_wrote_its_lines() {
        let mut line = Command::new("sh");
        let done = ended(line.args(["-c", "echo begun; echo ready >&2"])).unwrap();
        assert_eq!(done.text(), "begun\nready");
        assert!(done.seconds_between("begun", "ready").is_some_and(|seconds| seconds >= 0.0));
        assert_eq!(done.seconds_between("ready", "done"), None);
        assert!(resident_peak(std::process::id()).is_some_and(|bytes| bytes > 100_000.0));
        let error = ended(Command::new("sh").args(["-c", "echo why; exit 3"])).err().unwrap();
        assert_eq!(error.to_string(), "sh ended with exit status: 3: why");
    }
}
