//! sysbench with as many connections: its memory, and when it says that all threads have started.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{CONNECTIONS, ROWS, SECONDS, Taken, peak};
use crate::bench::machine;
use crate::bench::sysbench::hosts::Host;
use crate::bench::sysbench::peer::transactions;

/// sysbench says this before it opens the first connection, and that when all threads have theirs
/// and have prepared.
const BEGUN: &str = "Initializing worker threads";
const READY: &str = "Threads started!";

/// Runs point selects on all connections.
pub(super) fn measured(host: &Host) -> Result<Taken> {
    // Standard output is a pipe: without stdbuf the lines would come at the end.
    let mut line = machine::with_many_files("stdbuf");
    line.args(["-oL", "sysbench", "oltp_point_select"]).args(&host.peer_options).args([
        "--tables=1".to_owned(),
        format!("--table-size={ROWS}"),
        format!("--threads={CONNECTIONS}"),
        format!("--time={SECONDS}"),
        "--rand-type=uniform".to_owned(),
        "run".to_owned(),
    ]);
    let child = line.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.context("sh cannot be run")?;
    let out = child.stdout.take().context("its output is a pipe")?;
    let mut errors = child.stderr.take().context("its errors are a pipe")?;
    let reader = thread::spawn(move || read(out));
    let complaints = thread::spawn(move || {
        let mut text = String::new();
        // What cannot be read is not reported.
        let _ = errors.read_to_string(&mut text);
        text
    });
    let (peak_bytes, status) = peak::watched(child)?;
    let lines = reader.join().ok().context("the reader of sysbench's output panicked")?;
    let complaints = complaints.join().unwrap_or_default();
    if !status.success() {
        bail!("sysbench with {CONNECTIONS} threads ended with {status}: {complaints}");
    }
    let text = lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n");
    let (_, rate_per_second) = transactions(&text).context("sysbench printed no transactions")?;
    let ready_seconds = ready_seconds(&lines).context("sysbench did not say when its threads started")?;
    Ok(Taken { peak_bytes, ready_seconds, rate_per_second })
}

fn read(out: impl Read) -> Vec<(Instant, String)> {
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    lines.map(|line| (Instant::now(), line)).collect()
}

/// From the line that begins the connections to the line that ends them.
fn ready_seconds(lines: &[(Instant, String)]) -> Option<f64> {
    let at = |text: &str| lines.iter().find(|(_, line)| line.starts_with(text)).map(|(at, _)| *at);
    Some(at(READY)?.checked_duration_since(at(BEGUN)?)?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn readiness_is_the_time_between_sysbenchs_two_lines() {
        let begin = Instant::now();
        let line = |seconds, text: &str| (begin + Duration::from_secs(seconds), text.to_owned());
        let lines = [
            line(1, "sysbench 1.0.20"),
            line(2, "Initializing worker threads..."),
            line(5, "Threads started!"),
        ];
        assert_eq!(ready_seconds(&lines), Some(3.0));
        assert_eq!(ready_seconds(&lines[..2]), None);
    }
}
