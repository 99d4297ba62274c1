//! Runs Debian's sysbench: the same statements on the same server, its CPU time as the kernel
//! counts it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::hosts::Host;
use crate::bench::machine;

/// What one sysbench run used and did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::bench) struct Used {
    /// User and kernel time of the whole process for one transaction.
    pub(in crate::bench) cpu_us: f64,
    pub(in crate::bench) rate_per_second: f64,
}

pub(in crate::bench) struct Done {
    pub(in crate::bench) count: f64,
    pub(in crate::bench) used: Used,
}

/// Makes sysbench's table: one of `rows` rows.
pub(in crate::bench) fn prepare(host: &Host, rows: u32) -> Result<()> {
    on_table(host, rows, "prepare")
}

pub(in crate::bench) fn cleanup(host: &Host) -> Result<()> {
    on_table(host, 1, "cleanup")
}

/// Makes sysbench's table anew and has PostgreSQL vacuum it: pages of an old table are full of dead
/// rows, and the client that measures first leaves an older one to the next.
pub(in crate::bench) fn prepare_anew(host: &Host, rows: u32) -> Result<()> {
    cleanup(host)?;
    prepare(host, rows)?;
    host.tidy_up()
}

fn on_table(host: &Host, rows: u32, command: &str) -> Result<()> {
    let size = format!("--table-size={rows}");
    // By default this version draws k from another distribution than dbdyno.
    let options = ["--tables=1", &size, "--threads=1", "--rand-type=uniform"];
    sysbench(host, "oltp_read_write", &options, command).map(|_| ())
}

/// Runs `test` (`oltp_point_select`) with its `options` for `seconds` on `threads` connections,
/// uniformly over `rows` rows.
pub(in crate::bench) fn done(
    host: &Host,
    test: &str,
    options: &[&str],
    threads: u32,
    seconds: u32,
    rows: u32,
) -> Result<Done> {
    let (rows, threads) = (format!("--table-size={rows}"), format!("--threads={threads}"));
    let time = format!("--time={seconds}");
    let common = ["--tables=1", &rows, &threads, &time, "--rand-type=uniform"];
    let before = children_cpu_us()?;
    let text = sysbench(host, test, &[&common, options].concat(), "run")?;
    let cpu_us = (children_cpu_us()? - before) as f64;
    let (count, rate_per_second) = transactions(&text).context("sysbench printed no transactions")?;
    Ok(Done { count, used: Used { cpu_us: cpu_us / count, rate_per_second } })
}

/// First line of `sysbench --version`.
pub(in crate::bench) fn version() -> Result<String> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.context("sysbench cannot be run; install it: apt-get install sysbench")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs a command of sysbench on the client's CPUs; returns what it printed.
pub(in crate::bench) fn sysbench(host: &Host, test: &str, options: &[&str], command: &str) -> Result<String> {
    sysbench_with(&host.peer_options, test, options, command)
}

/// [`sysbench`] with other options to connect.
pub(in crate::bench) fn sysbench_with(
    peer_options: &[String],
    test: &str,
    options: &[&str],
    command: &str,
) -> Result<String> {
    let mut line = machine::on_client_cpus("sysbench");
    line.arg(test).args(peer_options).args(options).arg(command).stdin(Stdio::null());
    let output = line.output().context("sysbench cannot be run; install it: apt-get install sysbench")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("sysbench {test} {command} failed: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}

/// CPU time of all children that have been waited for.
pub(in crate::bench) fn children_cpu_us() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds())
}

/// Transactions and their rate, from `    transactions:    12345  (2468.10 per sec.)`.
pub(in crate::bench) fn transactions(text: &str) -> Option<(f64, f64)> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let (count, rate) = line.split_once('(')?;
    Some((count.trim().parse().ok()?, rate.split(' ').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_and_rate_are_read_from_sysbenchs_summary() {
        let text = "SQL statistics:\n    queries performed:\n        read:  9\n    \
                    transactions:                        98765  (9876.43 per sec.)\n    \
                    queries:                             98765  (9876.43 per sec.)\n";
        assert_eq!(transactions(text), Some((98_765.0, 9876.43)));
        assert_eq!(transactions("FATAL: no"), None);
    }
}
