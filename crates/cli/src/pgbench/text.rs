//! pgbench's report, line by line as version 15 prints it, so that what reads it goes on working.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use dbdyno_workloads::pgbench::ScriptInfo;

use super::invocation::Invocation;
use crate::time::to_us;
use crate::unrecorded::Times;

#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) retries: u64,
    pub(super) skipped: u64,
    /// From when a transaction was due to its end, and those before it was sent.
    pub(super) times: Times,
    pub(super) lag_us: u64,
    pub(super) lag_max_us: u64,
    pub(super) parts: BTreeMap<String, (u64, Times)>,
}

impl Counts {
    fn part(&self, name: &str) -> (u64, f64, f64) {
        let part = self.parts.get(name);
        part.map_or((0, 0.0, 0.0), |(done, times)| (*done, times.0.mean() / 1e3, times.0.stdev() / 1e3))
    }

    fn lag_ms(&self) -> f64 {
        self.lag_us as f64 / 1e3 / self.done.max(1) as f64
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    pub(super) seconds: f64,
    pub(super) connecting: Duration,
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * part as f64 / of as f64 }
}

/// A line of `--progress`; `total` and `seconds` are since the start and since the line before.
pub(super) fn progress(counts: &Counts, invocation: &Invocation, seconds: f64, total: f64) -> String {
    let rate = if seconds > 0.0 { counts.done as f64 / seconds } else { 0.0 };
    let (mean, spread) = (counts.times.0.mean() / 1e3, counts.times.0.stdev() / 1e3);
    let failed = counts.failed;
    let mut line = format!(
        "progress: {total:.1} s, {rate:.1} tps, lat {mean:.3} ms stddev {spread:.3}, {failed} failed"
    );
    // Writing to a text cannot fail.
    if !invocation.options.rates.is_empty() {
        let _ = write!(line, ", lag {:.3} ms", counts.lag_ms());
        if invocation.latency_limit.is_some() {
            let _ = write!(line, ", {} skipped", counts.skipped);
        }
    }
    line
}

pub(super) fn report(
    counts: &Counts,
    invocation: &Invocation,
    scripts: &[ScriptInfo],
    scale: u64,
    took: Took,
) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    let options = &invocation.options;
    let total = counts.done + counts.failed;
    let title = if let [only] = scripts { only.title.as_str() } else { "multiple scripts" };
    line(format!("transaction type: {title}"));
    line(format!("scaling factor: {scale}"));
    line(format!("query mode: {}", options.protocol.name()));
    line(format!("number of clients: {}", invocation.clients));
    line(format!("number of threads: {}", invocation.jobs));
    line(format!("maximum number of tries: {}", options.max_tries));
    match options.transactions {
        Some(each) => {
            line(format!("number of transactions per client: {each}"));
            let all = each * u64::from(invocation.clients);
            line(format!("number of transactions actually processed: {}/{all}", counts.done));
        }
        None => {
            line(format!("duration: {} s", options.time.0.as_secs()));
            line(format!("number of transactions actually processed: {}", counts.done));
        }
    }
    line(format!("number of failed transactions: {} ({:.3}%)", counts.failed, percent(counts.failed, total)));
    if options.max_tries > 1 {
        line(format!("total number of retries: {}", counts.retries));
    }
    late(counts, invocation, &mut line);
    latency(counts, invocation, took, &mut line);
    if !options.rates.is_empty() {
        let max_ms = counts.lag_max_us as f64 / 1e3;
        line(format!("rate limit schedule lag: avg {:.3} (max {max_ms:.3}) ms", counts.lag_ms()));
    }
    let tps = if took.seconds > 0.0 { counts.done as f64 / took.seconds } else { 0.0 };
    if options.connect {
        line(format!("average connection time = {:.3} ms", counts.part("connect").1));
        line(format!("tps = {tps:.6} (including reconnection times)"));
    } else {
        line(format!("initial connection time = {:.3} ms", took.connecting.as_secs_f64() * 1e3));
        line(format!("tps = {tps:.6} (without initial connection time)"));
    }
    each_script(counts, invocation, scripts, took, &mut line);
    out
}

fn late(counts: &Counts, invocation: &Invocation, line: &mut impl FnMut(String)) {
    let Some(limit) = invocation.latency_limit else { return };
    if !invocation.options.rates.is_empty() {
        let all = counts.done + counts.failed + counts.skipped;
        let skipped = counts.skipped;
        line(format!("number of transactions skipped: {skipped} ({:.3}%)", percent(skipped, all)));
    }
    let within = counts.times.0.count_between(0, to_us(limit));
    let above = counts.times.0.len().saturating_sub(within);
    let ms = limit.as_secs_f64() * 1e3;
    let share = percent(above, counts.done);
    line(format!(
        "number of transactions above the {ms:.1} ms latency limit: {above}/{} ({share:.3}%)",
        counts.done
    ));
}

fn latency(counts: &Counts, invocation: &Invocation, took: Took, line: &mut impl FnMut(String)) {
    let is_measured =
        invocation.progress > 0 || invocation.latency_limit.is_some() || !invocation.options.rates.is_empty();
    if is_measured {
        line(format!("latency average = {:.3} ms", counts.times.0.mean() / 1e3));
        line(format!("latency stddev = {:.3} ms", counts.times.0.stdev() / 1e3));
    } else {
        let each =
            1e3 * took.seconds * f64::from(invocation.clients) / (counts.done + counts.failed).max(1) as f64;
        let note = if counts.failed > 0 { " (including failures)" } else { "" };
        line(format!("latency average = {each:.3} ms{note}"));
    }
}

fn each_script(
    counts: &Counts,
    invocation: &Invocation,
    scripts: &[ScriptInfo],
    took: Took,
    line: &mut impl FnMut(String),
) {
    let is_single = scripts.len() == 1;
    if is_single && !invocation.per_command {
        return;
    }
    let weights: u64 = scripts.iter().map(|script| script.weight).sum();
    for (number, script) in (1..).zip(scripts) {
        if !is_single {
            let (done, mean, spread) = counts.part(script.name);
            let (share, tps) = (percent(done, counts.done), done as f64 / took.seconds.max(1e-9));
            let target = percent(script.weight, weights);
            line(format!("SQL script {number}: {}", script.title));
            line(format!(" - weight: {} (targets {target:.1}% of total)", script.weight));
            line(format!(" - {done} transactions ({share:.1}% of total, tps = {tps:.6})"));
            if counts.failed == 0 {
                line(" - number of failed transactions: 0 (0.000%)".to_owned());
            }
            line(format!(" - latency average = {mean:.3} ms"));
            line(format!(" - latency stddev = {spread:.3} ms"));
        }
        if invocation.per_command {
            let head = if is_single { "" } else { " - " };
            let more =
                if invocation.options.max_tries > 1 { ", failures and retries" } else { " and failures" };
            line(format!("{head}statement latencies in milliseconds{more}:"));
            // Which command a transaction failed at is not counted.
            let failures = if counts.failed == 0 { "0" } else { "-" };
            let retries = if counts.retries == 0 { "0" } else { "-" };
            let retries =
                if invocation.options.max_tries > 1 { format!("  {retries:>10}") } else { String::new() };
            for command in &script.commands {
                let text = command.text.split_whitespace().collect::<Vec<_>>().join(" ");
                let ms = counts.part(command.name).1;
                line(format!("   {ms:>11.3}  {failures:>10}{retries}  {text}"));
            }
        }
    }
}
