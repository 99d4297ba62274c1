//! Writes pgbench's report, line by line as version 15 prints it, so that programs that read it
//! keep working.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dbdyno_workloads::pgbench::ScriptInfo;

use super::invocation::PgbenchInvocation;
use crate::load::ResponseTimes;
use crate::pgbench::log::{FailureCounts, ScriptTally};
use crate::time::to_us;

#[derive(Debug, Clone, Default)]
pub(super) struct PgbenchCounts {
    pub(super) done: u64,
    /// Times from when a transaction was due to its end, and until it was sent.
    pub(super) times: ResponseTimes,
    pub(super) lag_us: u64,
    pub(super) lag_max_us: u64,
    pub(super) parts: BTreeMap<String, (u64, ResponseTimes)>,
}

impl PgbenchCounts {
    fn part(&self, name: &str) -> (u64, f64, f64) {
        let part = self.parts.get(name);
        part.map_or((0, 0.0, 0.0), |(done, times)| (*done, times.0.mean() / 1e3, times.0.stdev() / 1e3))
    }

    fn lag_ms(&self) -> f64 {
        self.lag_us as f64 / 1e3 / self.done.max(1) as f64
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ReportTimes {
    pub(super) seconds: f64,
    pub(super) connecting: Duration,
}

/// Data for a report.
pub(super) struct PgbenchReport<'a> {
    pub(super) counts: &'a PgbenchCounts,
    pub(super) tally: &'a ScriptTally,
    pub(super) invocation: &'a PgbenchInvocation,
    pub(super) scripts: &'a [ScriptInfo],
    pub(super) scale: u64,
    /// How the accounts are partitioned.
    pub(super) partitions: Option<(&'static str, i64)>,
    pub(super) took: ReportTimes,
}

/// Writes a percentage. Where `of` is 0 it is `NaN`, as in pgbench.
fn percent(part: u64, of: u64) -> String {
    percent_of(part, of, 3)
}

fn percent_of(part: u64, of: u64, digits: usize) -> String {
    if of == 0 { "NaN".to_owned() } else { format!("{:.digits$}", 100.0 * part as f64 / of as f64) }
}

/// Writes a line of `--progress`. `total` is the time since the start. `seconds`, `counts` and
/// `troubles` are since the previous line.
pub(super) fn progress(
    counts: &PgbenchCounts,
    troubles: &FailureCounts,
    invocation: &PgbenchInvocation,
    seconds: f64,
    total: f64,
) -> String {
    let rate = if seconds > 0.0 { counts.done as f64 / seconds } else { 0.0 };
    let (mean, spread) = (counts.times.0.mean() / 1e3, counts.times.0.stdev() / 1e3);
    let at = if invocation.progress_timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:.3}", since.as_secs_f64())
    } else {
        format!("{total:.1}")
    };
    let failed = troubles.failed();
    let mut line =
        format!("progress: {at} s, {rate:.1} tps, lat {mean:.3} ms stddev {spread:.3}, {failed} failed");
    // Writing to a String cannot fail.
    if !invocation.options.rates.is_empty() {
        let _ = write!(line, ", lag {:.3} ms", counts.lag_ms());
        if invocation.latency_limit.is_some() {
            let _ = write!(line, ", {} skipped", troubles.skipped);
        }
    }
    if invocation.tries != 1 {
        let _ = write!(line, ", {} retried, {} retries", troubles.retried, troubles.retries);
    }
    line
}

impl PgbenchReport<'_> {
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            let _ = writeln!(out, "{text}");
        };
        self.head(&mut line);
        self.troubles("", self.tally.all, self.counts.done, &mut line);
        // Without a transaction there are no further figures.
        if self.counts.done + self.tally.all.skipped == 0 {
            return out;
        }
        self.late(&mut line);
        self.latency(&mut line);
        self.rates(&mut line);
        self.each_script(&mut line);
        out
    }

    fn head(&self, line: &mut impl FnMut(String)) {
        let Self { invocation, counts, .. } = self;
        let options = &invocation.options;
        let title = if let [only] = self.scripts { only.title.as_str() } else { "multiple scripts" };
        line(format!("transaction type: {title}"));
        line(format!("scaling factor: {}", self.scale));
        if let Some((method, count)) = self.partitions {
            line(format!("partition method: {method}"));
            line(format!("partitions: {count}"));
        }
        line(format!("query mode: {}", options.protocol.name()));
        line(format!("number of clients: {}", invocation.clients));
        line(format!("number of threads: {}", invocation.jobs));
        if invocation.tries != 0 {
            line(format!("maximum number of tries: {}", invocation.tries));
        }
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
    }

    /// Writes failures and retries of `done` transactions and of those that failed, for all or for
    /// one script.
    fn troubles(&self, lead: &str, troubles: FailureCounts, done: u64, line: &mut impl FnMut(String)) {
        let total = done + troubles.skipped + troubles.failed();
        let mut share = |what: &str, count: u64| {
            line(format!("{lead}number of {what}: {count} ({}%)", percent(count, total)));
        };
        share("failed transactions", troubles.failed());
        if self.invocation.failures_detailed {
            share("serialization failures", troubles.serialization);
            share("deadlock failures", troubles.deadlock);
        }
        if self.invocation.tries != 1 {
            share("transactions retried", troubles.retried);
            line(format!("{lead}total number of retries: {}", troubles.retries));
        }
    }

    /// Writes the number of scheduled transactions that were never sent.
    fn skipped(&self, lead: &str, troubles: FailureCounts, done: u64, line: &mut impl FnMut(String)) {
        if self.invocation.latency_limit.is_some() && !self.invocation.options.rates.is_empty() {
            let (skipped, all) = (troubles.skipped, done + troubles.failed() + troubles.skipped);
            line(format!("{lead}number of transactions skipped: {skipped} ({}%)", percent(skipped, all)));
        }
    }

    fn late(&self, line: &mut impl FnMut(String)) {
        let Some(limit) = self.invocation.latency_limit else { return };
        let counts = self.counts;
        self.skipped("", self.tally.all, counts.done, line);
        let within = counts.times.0.count_between(0, to_us(limit));
        let above = counts.times.0.len().saturating_sub(within);
        let ms = limit.as_secs_f64() * 1e3;
        let share = if counts.done == 0 { "0.000".to_owned() } else { percent(above, counts.done) };
        line(format!(
            "number of transactions above the {ms:.1} ms latency limit: {above}/{} ({share}%)",
            counts.done
        ));
    }

    fn latency(&self, line: &mut impl FnMut(String)) {
        let Self { invocation, counts, .. } = self;
        let is_measured = invocation.progress > 0
            || invocation.latency_limit.is_some()
            || !invocation.options.rates.is_empty();
        if is_measured {
            spread("latency", counts.done, &counts.times, line);
        } else {
            let failed = self.tally.all.failed();
            let each = 1e3 * self.took.seconds * f64::from(invocation.clients)
                / (counts.done + failed).max(1) as f64;
            let note = if failed > 0 { " (including failures)" } else { "" };
            line(format!("latency average = {each:.3} ms{note}"));
        }
        if !invocation.options.rates.is_empty() {
            let max_ms = counts.lag_max_us as f64 / 1e3;
            line(format!("rate limit schedule lag: avg {:.3} (max {max_ms:.3}) ms", counts.lag_ms()));
        }
    }

    fn rates(&self, line: &mut impl FnMut(String)) {
        let (counts, took) = (self.counts, self.took);
        let tps = if took.seconds > 0.0 { counts.done as f64 / took.seconds } else { 0.0 };
        if self.invocation.options.connect {
            line(format!("average connection time = {:.3} ms", counts.part("connect").1));
            line(format!("tps = {tps:.6} (including reconnection times)"));
        } else {
            line(format!("initial connection time = {:.3} ms", took.connecting.as_secs_f64() * 1e3));
            line(format!("tps = {tps:.6} (without initial connection time)"));
        }
    }

    fn each_script(&self, line: &mut impl FnMut(String)) {
        let is_single = self.scripts.len() == 1;
        if is_single && !self.invocation.per_command {
            return;
        }
        let weights: u64 = self.scripts.iter().map(|script| script.weight).sum();
        for (index, script) in self.scripts.iter().enumerate() {
            if !is_single {
                let own = self.counts.parts.get(script.name);
                let (done, times) = own.cloned().unwrap_or_default();
                let (share, target) =
                    (percent_of(done, self.counts.done, 1), percent_of(script.weight, weights, 1));
                let tps = done as f64 / self.took.seconds.max(1e-9);
                line(format!("SQL script {}: {}", index + 1, script.title));
                line(format!(" - weight: {} (targets {target}% of total)", script.weight));
                line(format!(" - {done} transactions ({share}% of total, tps = {tps:.6})"));
                let troubles = self.tally.script(index);
                self.troubles(" - ", troubles, done, line);
                if done + troubles.failed() + troubles.skipped > 0 {
                    self.skipped(" - ", troubles, done, line);
                }
                spread(" - latency", done, &times, line);
            }
            if self.invocation.per_command {
                self.each_command(index, if is_single { "" } else { " - " }, line);
            }
        }
    }

    fn each_command(&self, script: usize, lead: &str, line: &mut impl FnMut(String)) {
        let has_retries = self.invocation.tries != 1;
        let more = if has_retries { ", failures and retries" } else { " and failures" };
        line(format!("{lead}statement latencies in milliseconds{more}:"));
        for (index, command) in self.scripts[script].commands.iter().enumerate() {
            let text = command.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let ms = self.counts.part(command.name).1;
            let (failures, retries) = self.tally.command(script, index);
            let retries = if has_retries { format!("  {retries:>10}") } else { String::new() };
            line(format!("   {ms:>11.3}  {failures:>10}{retries}  {text}"));
        }
    }
}

/// Writes mean and standard deviation in one line, if anything was done.
fn spread(what: &str, done: u64, times: &ResponseTimes, line: &mut impl FnMut(String)) {
    if done > 0 {
        line(format!("{what} average = {:.3} ms", times.0.mean() / 1e3));
        line(format!("{what} stddev = {:.3} ms", times.0.stdev() / 1e3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgbench::invocation;

    fn invocation(line: &str) -> PgbenchInvocation {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        PgbenchInvocation::of(&invocation::read_words(&words).unwrap()).unwrap()
    }

    /// Returns the report of `done` transactions in two seconds, each of which took 50 ms.
    fn report(line: &str, done: u64, troubles: FailureCounts) -> String {
        let invocation = invocation(line);
        let mut counts = PgbenchCounts { done, ..PgbenchCounts::default() };
        (0..done).for_each(|_| counts.times.0.record(50_000).unwrap());
        let mut tally = ScriptTally::default();
        tally.all = troubles;
        let script = ScriptInfo { name: "s", title: "s".to_owned(), weight: 1, commands: Vec::new() };
        let took = ReportTimes { seconds: 2.0, connecting: Duration::ZERO };
        PgbenchReport {
            counts: &counts,
            tally: &tally,
            invocation: &invocation,
            scripts: &[script],
            scale: 1,
            partitions: None,
            took,
        }
        .text()
    }

    #[test]
    fn a_run_that_ends_with_its_transactions_has_a_latency_too() {
        for line in ["-U any -t 20 -c 2", "-U any -T 2 -c 2"] {
            let text = report(line, 40, FailureCounts::default());
            assert!(text.contains("\nlatency average = 100.000 ms\n"), "{line}: {text}");
            assert!(text.contains("\ntps = 20.000000 (without initial connection time)\n"), "{line}: {text}");
        }
        let text = report("-U any -t 20 -c 2 -P 1", 40, FailureCounts::default());
        // Times are exact to 0.1 %.
        let line = text.lines().find_map(|line| line.strip_prefix("latency average = ")).unwrap();
        let ms: f64 = line.trim_end_matches(" ms").parse().unwrap();
        assert!((ms - 50.0).abs() <= 0.05, "{text}");
    }

    #[test]
    fn skipped_transactions_count_in_no_rate_and_no_share_of_those_done() {
        let skipped = FailureCounts { skipped: 60, ..FailureCounts::default() };
        let text = report("-U any -T 2 -R 50 -L 10", 40, skipped);
        for line in [
            "number of transactions actually processed: 40",
            "number of transactions skipped: 60 (60.000%)",
            "number of transactions above the 10.0 ms latency limit: 40/40 (100.000%)",
            "tps = 20.000000 (without initial connection time)",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
        let all = report("-U any -T 2 -R 50 -L 10", 0, skipped);
        assert!(all.contains("transactions skipped: 60 (100.000%)\n") && !all.contains("NaN"), "{all}");
    }

    #[test]
    fn lines_of_progress_have_the_time_since_the_start_or_since_1970() {
        let line = |words| {
            progress(&PgbenchCounts::default(), &FailureCounts::default(), &invocation(words), 5.0, 15.0)
        };
        assert_eq!(
            line("-U any -T 20 -P 5"),
            "progress: 15.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed"
        );
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let before = now();
        let stamped = line("-U any -T 20 -P 5 --progress-timestamp");
        let at: f64 = stamped.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((before - 0.001..=now() + 0.001).contains(&at), "{stamped}");
    }
}
