//! Counts failures and retries by script and command while a run goes on, and writes its log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use dbdyno_workloads::pgbench::{Attempt, Ending, FailureKind, Listener, Skipped, Transaction};

use super::invocation::Invocation;
use super::log::Logs;
use crate::terminal;

/// Counts of transactions that did not end well at the first try.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Troubles {
    pub(super) serialization: u64,
    pub(super) deadlock: u64,
    pub(super) other: u64,
    pub(super) skipped: u64,
    pub(super) retried: u64,
    pub(super) retries: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) all: Troubles,
    scripts: Vec<Troubles>,
    /// Failures and retries, by script and command.
    commands: Vec<Vec<(u64, u64)>>,
}

impl Troubles {
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

    /// Returns what came since `before`.
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

impl Tally {
    pub(super) fn add(&mut self, transaction: &Transaction) {
        self.all.add(transaction);
        item(&mut self.scripts, transaction.script).add(transaction);
    }

    pub(super) fn skip(&mut self, skipped: &Skipped) {
        self.all.skipped += skipped.count;
        item(&mut self.scripts, skipped.script).skipped += skipped.count;
    }

    /// Counts a failure. An error that ends the run counts nowhere, as in pgbench.
    pub(super) fn failed(&mut self, attempt: &Attempt<'_>) {
        let (failures, retries) = item(item(&mut self.commands, attempt.script), attempt.command);
        *retries += u64::from(attempt.is_repeated);
        *failures += u64::from(!attempt.is_repeated && !attempt.is_fatal);
    }

    pub(super) fn script(&self, script: usize) -> Troubles {
        self.scripts.get(script).copied().unwrap_or_default()
    }

    /// Returns the failures and retries of a command.
    pub(super) fn command(&self, script: usize, command: usize) -> (u64, u64) {
        self.commands.get(script).and_then(|commands| commands.get(command)).copied().unwrap_or_default()
    }
}

pub(super) struct Watch {
    tally: Mutex<Tally>,
    logs: Option<Logs>,
    /// Whether errors are printed.
    is_verbose: bool,
    /// How often a transaction is tried. 0 means as often as there is time for.
    tries: u32,
    latency_limit: Option<Duration>,
}

impl Watch {
    /// Makes the log files, if any.
    pub(super) fn new(invocation: &Invocation) -> Result<Self, String> {
        let logs = invocation.log.as_ref().map(|options| Logs::create(options, invocation)).transpose()?;
        Ok(Self {
            tally: Mutex::default(),
            logs,
            is_verbose: invocation.verbose_errors,
            tries: invocation.tries,
            latency_limit: invocation.latency_limit,
        })
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
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

    /// Writes the two messages of `--verbose-errors`.
    fn said(&self, attempt: &Attempt<'_>) -> [String; 2] {
        let Attempt { client, script, command, tries, message, .. } = attempt;
        let what = if attempt.is_repeated {
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
            self.said(attempt).iter().for_each(|line| terminal::note(line));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(is_repeated: bool) -> Attempt<'static> {
        Attempt {
            client: 3,
            script: 1,
            command: 2,
            tries: 1,
            is_repeated,
            is_fatal: false,
            took: Duration::from_millis(5),
            message: "could not serialize",
        }
    }

    #[test]
    fn failures_and_retries_count_by_script_and_command() {
        let mut tally = Tally::default();
        tally.failed(&attempt(true));
        tally.failed(&attempt(true));
        tally.failed(&attempt(false));
        tally.failed(&Attempt { is_fatal: true, ..attempt(false) });
        assert_eq!((tally.command(1, 2), tally.command(0, 2), tally.command(1, 9)), ((1, 2), (0, 0), (0, 0)));
        let times = dbdyno_loadgen::OperationTimes { due_ns: 0, sent_ns: 0, ended_ns: 0 };
        let ended =
            |script, ending, retries| Transaction { client: 0, number: 1, script, ending, retries, times };
        tally.add(&ended(1, Ending::Failed(FailureKind::Serialization), 2));
        tally.add(&ended(1, Ending::Done, 3));
        tally.add(&ended(0, Ending::Failed(FailureKind::Deadlock), 0));
        tally.skip(&Skipped { client: 0, first: 7, count: 90_000_000, script: 0 });
        let own = Troubles { serialization: 1, retried: 2, retries: 5, ..Troubles::default() };
        assert_eq!(tally.script(1), own);
        assert_eq!(tally.all, Troubles { deadlock: 1, skipped: 90_000_000, ..own });
        assert_eq!((tally.all.failed(), tally.all.since(&own).failed()), (2, 1));
    }

    #[test]
    fn verbose_messages_say_what_becomes_of_the_transaction() {
        let mut watch =
            Watch { tally: Mutex::default(), logs: None, is_verbose: true, tries: 3, latency_limit: None };
        insta::assert_snapshot!(watch.said(&attempt(true)).join("\n"), @r"
        client 3 got an error in command 2 (SQL) of script 1; could not serialize
        client 3 repeats the transaction after the error (try 1/3)
        ");
        (watch.tries, watch.latency_limit) = (0, Some(Duration::from_millis(20)));
        insta::assert_snapshot!(watch.said(&attempt(false))[1], @"client 3 ends the failed transaction (try 1, 25.000% of the maximum time of tries was used)");
    }
}
