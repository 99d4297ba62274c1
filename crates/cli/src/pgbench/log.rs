//! Counts failures and retries by script and command while a run goes on, and writes log files of
//! transactions in pgbench's format, with one line per transaction or per interval.

use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dbdyno_workloads::pgbench::{Attempt, Ending, FailureKind, Listener, Skipped, Transaction};

use crate::pgbench::invocation::PgbenchInvocation;
use crate::terminal;

/// Counts of transactions that were skipped, or that failed or were retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FailureCounts {
    pub(super) serialization: u64,
    pub(super) deadlock: u64,
    pub(super) other: u64,
    pub(super) skipped: u64,
    pub(super) retried: u64,
    pub(super) retries: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScriptTally {
    pub(super) all: FailureCounts,
    scripts: Vec<FailureCounts>,
    /// Failures and retries, by script and command.
    commands: Vec<Vec<(u64, u64)>>,
}

impl FailureCounts {
    pub(super) const fn failed(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    fn add(&mut self, transaction: &Transaction) {
        self.retries += u64::from(transaction.retries);
        self.retried += u64::from(transaction.retries > 0);
        match transaction.ending {
            Ending::Done => {}
            Ending::Failed(FailureKind::Serialization) => self.serialization += 1,
            Ending::Failed(FailureKind::Deadlock) => self.deadlock += 1,
            Ending::Failed(FailureKind::Other) => self.other += 1,
        }
    }

    /// Returns the counts since `before`.
    pub(super) const fn since(&self, before: &Self) -> Self {
        Self {
            serialization: self.serialization - before.serialization,
            deadlock: self.deadlock - before.deadlock,
            other: self.other - before.other,
            skipped: self.skipped - before.skipped,
            retried: self.retried - before.retried,
            retries: self.retries - before.retries,
        }
    }
}

/// Returns the item at `index` of a list that grows as needed.
fn item<T: Default + Clone>(list: &mut Vec<T>, index: usize) -> &mut T {
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    &mut list[index]
}

impl ScriptTally {
    pub(super) fn add(&mut self, transaction: &Transaction) {
        self.all.add(transaction);
        item(&mut self.scripts, transaction.script).add(transaction);
    }

    pub(super) fn skip(&mut self, skipped: &Skipped) {
        self.all.skipped += skipped.count;
        item(&mut self.scripts, skipped.script).skipped += skipped.count;
    }

    /// Counts a failed try: as a retry if the transaction is tried again, and otherwise as a
    /// failure. An error that ends the run counts as neither, as in pgbench.
    pub(super) fn failed(&mut self, attempt: &Attempt<'_>) {
        let (failures, retries) = item(item(&mut self.commands, attempt.script), attempt.command);
        *retries += u64::from(attempt.will_be_retried);
        *failures += u64::from(!attempt.will_be_retried && !attempt.is_fatal);
    }

    pub(super) fn script(&self, script: usize) -> FailureCounts {
        self.scripts.get(script).copied().unwrap_or_default()
    }

    /// Returns the failures and retries of a command.
    pub(super) fn command(&self, script: usize, command: usize) -> (u64, u64) {
        self.commands.get(script).and_then(|commands| commands.get(command)).copied().unwrap_or_default()
    }
}

/// Listens to a run's transactions. It counts failures and retries, writes the log files, and
/// prints the messages of `--verbose-errors`.
pub(super) struct Watch {
    tally: Mutex<ScriptTally>,
    logs: Option<Logs>,
    /// Whether errors are printed.
    is_verbose: bool,
    /// Highest number of tries per transaction. 0 means no limit except time.
    tries: u32,
    latency_limit: Option<Duration>,
}

impl Watch {
    /// Makes the log files, if any.
    pub(super) fn new(invocation: &PgbenchInvocation) -> Result<Self, String> {
        let logs = invocation.log.as_ref().map(|options| Logs::create(options, invocation)).transpose()?;
        Ok(Self {
            tally: Mutex::default(),
            logs,
            is_verbose: invocation.verbose_errors,
            tries: invocation.tries,
            latency_limit: invocation.latency_limit,
        })
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, ScriptTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, at: SystemTime) {
        if let Some(logs) = &self.logs {
            logs.begin(at);
        }
    }

    pub(super) fn finish(&self) -> Result<(), std::io::Error> {
        self.logs.as_ref().map_or(Ok(()), |logs| logs.finish(SystemTime::now()))
    }

    /// Returns the two messages of `--verbose-errors`.
    fn verbose_messages(&self, attempt: &Attempt<'_>) -> [String; 2] {
        let Attempt { client, script, command, tries, message, .. } = attempt;
        let what = if attempt.will_be_retried {
            "repeats the transaction after the error"
        } else {
            "ends the failed transaction"
        };
        let most = if self.tries == 0 { String::new() } else { format!("/{}", self.tries) };
        let used = self.latency_limit.map_or(String::new(), |limit| {
            let percent = 100.0 * attempt.took.as_secs_f64() / limit.as_secs_f64();
            format!(", {percent:.3}% of the maximum time of tries was used")
        });
        [
            format!("client {client} got an error in command {command} (SQL) of script {script}; {message}"),
            format!("client {client} {what} (try {tries}{most}{used})"),
        ]
    }
}

impl Listener for Watch {
    fn wants_all(&self) -> bool {
        self.logs.is_some()
    }

    fn failed(&self, attempt: &Attempt<'_>) {
        self.tally().failed(attempt);
        if self.is_verbose && !attempt.is_fatal {
            self.verbose_messages(attempt).iter().for_each(|line| terminal::note(line));
        }
    }

    fn ended(&self, transaction: &Transaction) {
        if transaction.ending != Ending::Done || transaction.retries > 0 {
            self.tally().add(transaction);
        }
        if let Some(logs) = &self.logs {
            logs.write(transaction, SystemTime::now());
        }
    }

    fn skipped(&self, skipped: &Skipped) {
        self.tally().skip(skipped);
        if let Some(logs) = &self.logs {
            logs.skip(skipped, SystemTime::now());
        }
    }
}

/// The random stream that chooses the transactions to log, where only a sample of them is logged.
/// The transactions themselves use other streams.
const SAMPLES: u32 = u32::MAX;

/// Options of the log that `-l` requests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LogOptions {
    pub(super) prefix: String,
    /// Length of an interval in seconds. `None` means one line per transaction.
    pub(super) aggregate_s: Option<u64>,
    /// The share of transactions that have a line.
    pub(super) sampling: Option<f64>,
}

/// Columns and kind of a log's lines.
#[derive(Debug, Clone, Default)]
struct Format {
    aggregate_s: Option<u64>,
    sampling: Option<f64>,
    seed: u64,
    has_rate: bool,
    has_limit: bool,
    has_retries: bool,
    is_detailed: bool,
}

/// The log files, one per thread, as pgbench has them. Clients are divided between the threads as
/// in pgbench.
pub(super) struct Logs {
    files: Vec<Mutex<LogFile>>,
    /// Each client's index in `files`.
    of_client: Vec<usize>,
    format: Format,
}

struct LogFile {
    out: Box<dyn Write + Send>,
    /// Start of the current interval, as a time since 1970, and its figures. It is `None` until
    /// [`Logs::begin`] sets the start of the first interval.
    interval: Option<(Duration, LogInterval)>,
    /// The error of the first line that could not be written.
    failure: Option<Error>,
}

/// Count, sum, sum of squares, lowest and highest value, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct LogFigures {
    count: u64,
    sum: f64,
    squares: f64,
    lowest: f64,
    highest: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct LogInterval {
    latency: LogFigures,
    lag: LogFigures,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
}

impl Logs {
    /// Makes the files of a run, `PREFIX.PID`, `PREFIX.PID.1` and so on.
    pub(super) fn create(options: &LogOptions, invocation: &PgbenchInvocation) -> Result<Self, String> {
        let file = |thread: u32| {
            let mut path = format!("{}.{}", options.prefix, std::process::id());
            if thread > 0 {
                path = format!("{path}.{thread}");
            }
            let made = File::create(&path);
            let file = made.map_err(|error| {
                format!("cannot write log file {path}: {error}; name another with --log-prefix")
            })?;
            let out: Box<dyn Write + Send> = Box::new(BufWriter::new(file));
            Ok(Mutex::new(LogFile { out, interval: None, failure: None }))
        };
        let files = (0..invocation.jobs).map(file).collect::<Result<Vec<_>, String>>()?;
        let format = Format {
            aggregate_s: options.aggregate_s,
            sampling: options.sampling,
            seed: invocation.seed,
            has_rate: !invocation.options.rates.is_empty(),
            has_limit: invocation.latency_limit.is_some(),
            has_retries: invocation.tries != 1,
            is_detailed: invocation.failures_detailed,
        };
        Ok(Self { files, of_client: threads(invocation.clients, invocation.jobs), format })
    }

    /// Starts the first interval of each file at `at`.
    pub(super) fn begin(&self, at: SystemTime) {
        for file in &self.files {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.interval = Some((since_1970(at), LogInterval::default()));
        }
    }

    pub(super) fn write(&self, transaction: &Transaction, now: SystemTime) {
        if let Some(mut file) = self.file(transaction.client) {
            file.add(transaction, &self.format, since_1970(now));
        }
    }

    /// Writes one line per skipped transaction, or counts them where each line is an interval.
    pub(super) fn skip(&self, skipped: &Skipped, now: SystemTime) {
        if let Some(mut file) = self.file(skipped.client) {
            file.skip(skipped, &self.format, since_1970(now));
        }
    }

    fn file(&self, client: u32) -> Option<MutexGuard<'_, LogFile>> {
        let thread = self.of_client.get(client as usize).copied().unwrap_or(0);
        Some(self.files.get(thread)?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the intervals that are over and not yet written.
    pub(super) fn finish(&self, now: SystemTime) -> Result<(), Error> {
        for file in &self.files {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.print_ended_intervals(&self.format, since_1970(now));
            match file.failure.take() {
                Some(failure) => return Err(failure),
                None => file.out.flush()?,
            }
        }
        Ok(())
    }
}

fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the thread of each client. Where the clients do not divide evenly, the first threads
/// have one more.
fn threads(clients: u32, jobs: u32) -> Vec<usize> {
    let mut of_client = Vec::new();
    for job in 0..jobs {
        let left = clients.saturating_sub(of_client.len() as u32);
        let own = (left + jobs - job - 1) / (jobs - job);
        of_client.extend(std::iter::repeat_n(job as usize, own as usize));
    }
    of_client
}

impl LogFile {
    fn add(&mut self, transaction: &Transaction, format: &Format, now: Duration) {
        if !is_sampled(transaction.client, transaction.number, format) {
            return;
        }
        if format.aggregate_s.is_none() {
            let line = line(transaction, format, now);
            return self.print(&line);
        }
        self.print_ended_intervals(format, now);
        if let Some((_, interval)) = &mut self.interval {
            interval.add(transaction);
        }
    }

    fn skip(&mut self, skipped: &Skipped, format: &Format, now: Duration) {
        let Skipped { client, first, count, script } = *skipped;
        if format.aggregate_s.is_none() {
            let own = (first..first + count).filter(|number| is_sampled(client, *number, format));
            for number in own {
                self.print(
                    &(begin_of_line(client, number, "skipped", script, now) + &end_of_line(format, 0, 0)),
                );
            }
            return;
        }
        self.print_ended_intervals(format, now);
        if let Some((_, interval)) = &mut self.interval {
            interval.skipped += count;
        }
    }

    /// Prints intervals that are over, including empty ones.
    fn print_ended_intervals(&mut self, format: &Format, now: Duration) {
        let Some(length) = format.aggregate_s.map(Duration::from_secs) else { return };
        while let Some((from, interval)) = self.interval
            && from + length <= now
        {
            self.print(&interval.line(from.as_secs(), format));
            self.interval = Some((from + length, LogInterval::default()));
        }
    }

    fn print(&mut self, line: &str) {
        if let Err(error) = writeln!(self.out, "{line}") {
            self.failure.get_or_insert(error);
        }
    }
}

/// Whether a transaction belongs to the sample. This depends only on the seed, the client and the
/// transaction's number, so runs with the same seed have the same sample.
fn is_sampled(client: u32, number: u64, format: &Format) -> bool {
    let Some(share) = format.sampling else { return true };
    let draw = dbdyno_workloads::Philox::new(format.seed, SAMPLES).at(client, number, 0);
    f64::from(draw[0]) <= share * f64::from(u32::MAX)
}

/// Returns a transaction's latency and its lag in microseconds. Both count from the time at which
/// it was due: the latency until it ended, and the lag until it was sent.
fn latency_and_lag(transaction: &Transaction) -> (u64, u64) {
    let times = transaction.times;
    let since_scheduled = |at_ns: u64| (at_ns.saturating_sub(times.scheduled_ns) + 500) / 1_000;
    (since_scheduled(times.ended_ns), since_scheduled(times.sent_ns))
}

fn line(transaction: &Transaction, format: &Format, now: Duration) -> String {
    let (latency, lag) = latency_and_lag(transaction);
    let (result, lag) = match transaction.ending {
        Ending::Done => (latency.to_string(), lag),
        Ending::Failed(FailureKind::Serialization) if format.is_detailed => ("serialization".to_owned(), 0),
        Ending::Failed(FailureKind::Deadlock) if format.is_detailed => ("deadlock".to_owned(), 0),
        Ending::Failed(_) => ("failed".to_owned(), 0),
    };
    let Transaction { client, number, script, retries, .. } = *transaction;
    begin_of_line(client, number, &result, script, now) + &end_of_line(format, lag, retries)
}

fn begin_of_line(client: u32, number: u64, result: &str, script: usize, now: Duration) -> String {
    format!("{client} {number} {result} {script} {} {}", now.as_secs(), now.subsec_micros())
}

fn end_of_line(format: &Format, lag: u64, retries: u32) -> String {
    let lag = if format.has_rate { format!(" {lag}") } else { String::new() };
    let retries = if format.has_retries { format!(" {retries}") } else { String::new() };
    lag + &retries
}

impl LogFigures {
    fn add(&mut self, value: u64) {
        let value = value as f64;
        self.lowest = if self.count == 0 { value } else { self.lowest.min(value) };
        self.highest = self.highest.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn text(&self) -> String {
        format!("{:.0} {:.0} {:.0} {:.0}", self.sum, self.squares, self.lowest, self.highest)
    }
}

impl LogInterval {
    fn add(&mut self, transaction: &Transaction) {
        self.retries += u64::from(transaction.retries);
        self.retried += u64::from(transaction.retries > 0);
        match transaction.ending {
            Ending::Done => {
                let (latency, lag) = latency_and_lag(transaction);
                self.latency.add(latency);
                self.lag.add(lag);
            }
            Ending::Failed(FailureKind::Serialization) => self.serialization += 1,
            Ending::Failed(FailureKind::Deadlock) => self.deadlock += 1,
            Ending::Failed(FailureKind::Other) => {}
        }
    }

    /// Writes the line of an interval. It always has all columns, and those that were not requested
    /// are 0.
    fn line(&self, from_s: u64, format: &Format) -> String {
        let lag = if format.has_rate { self.lag } else { LogFigures::default() };
        let shown = |is_shown: bool, count: u64| if is_shown { count } else { 0 };
        format!(
            "{from_s} {} {} {} {} {} {} {} {}",
            self.latency.count,
            self.latency.text(),
            lag.text(),
            shown(format.has_limit, self.skipped),
            shown(format.has_retries, self.retried),
            shown(format.has_retries, self.retries),
            shown(format.is_detailed, self.serialization),
            shown(format.is_detailed, self.deadlock),
        )
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod log_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(will_be_retried: bool) -> Attempt<'static> {
        Attempt {
            client: 3,
            script: 1,
            command: 2,
            tries: 1,
            will_be_retried,
            is_fatal: false,
            took: Duration::from_millis(5),
            message: "could not serialize",
        }
    }

    #[test]
    fn failures_and_retries_count_by_script_and_command() {
        let mut tally = ScriptTally::default();
        tally.failed(&attempt(true));
        tally.failed(&attempt(true));
        tally.failed(&attempt(false));
        tally.failed(&Attempt { is_fatal: true, ..attempt(false) });
        assert_eq!((tally.command(1, 2), tally.command(0, 2), tally.command(1, 9)), ((1, 2), (0, 0), (0, 0)));
        let times = dbdyno_loadgen::OperationTimes { scheduled_ns: 0, sent_ns: 0, ended_ns: 0 };
        let ended =
            |script, ending, retries| Transaction { client: 0, number: 1, script, ending, retries, times };
        tally.add(&ended(1, Ending::Failed(FailureKind::Serialization), 2));
        tally.add(&ended(1, Ending::Done, 3));
        tally.add(&ended(0, Ending::Failed(FailureKind::Deadlock), 0));
        tally.skip(&Skipped { client: 0, first: 7, count: 90_000_000, script: 0 });
        let own = FailureCounts { serialization: 1, retried: 2, retries: 5, ..FailureCounts::default() };
        assert_eq!(tally.script(1), own);
        assert_eq!(tally.all, FailureCounts { deadlock: 1, skipped: 90_000_000, ..own });
        assert_eq!((tally.all.failed(), tally.all.since(&own).failed()), (2, 1));
    }

    #[test]
    fn verbose_messages_say_whether_the_transaction_is_retried() {
        let mut watch =
            Watch { tally: Mutex::default(), logs: None, is_verbose: true, tries: 3, latency_limit: None };
        insta::assert_snapshot!(watch.verbose_messages(&attempt(true)).join("\n"), @r"
        client 3 got an error in command 2 (SQL) of script 1; could not serialize
        client 3 repeats the transaction after the error (try 1/3)
        ");
        (watch.tries, watch.latency_limit) = (0, Some(Duration::from_millis(20)));
        insta::assert_snapshot!(watch.verbose_messages(&attempt(false))[1], @"client 3 ends the failed transaction (try 1, 25.000% of the maximum time of tries was used)");
    }
}
