//! Tells a listener how transactions end, in runs outside of a plan. The listener writes log files and
//! counts by script and command.

use std::time::Duration;

use dbdyno_loadgen::{Failure, OperationTimes};

/// Receives the calls on load threads, while transactions wait.
pub trait Listener: Send + Sync {
    /// Returns whether it also wants transactions that were done at the first try.
    fn wants_all(&self) -> bool;
    /// A try failed. [`Listener::ended`] follows unless the transaction is repeated.
    fn failed(&self, attempt: &Attempt<'_>);
    fn ended(&self, transaction: &Transaction);
    /// Transactions were late and are not sent. At a high rate one call may report millions.
    fn skipped(&self, skipped: &Skipped);
}

/// Why a transaction failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Serialization,
    Deadlock,
    /// Another failure after which the server asks to try again.
    Other,
}

impl FailureKind {
    pub(crate) fn of(failure: &Failure) -> Self {
        match failure.code.as_str() {
            "40001" => Self::Serialization,
            "40P01" => Self::Deadlock,
            _ => Self::Other,
        }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Done,
    Failed(FailureKind),
}

/// One try of a transaction, which failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    pub client: u32,
    pub script: usize,
    /// Index among the commands of [`super::ScriptInfo`].
    pub command: usize,
    /// Number of the try, from 1.
    pub tries: u32,
    pub is_repeated: bool,
    /// Whether the error ends the run.
    pub is_fatal: bool,
    /// Time since the beginning of the first try.
    pub took: Duration,
    pub message: &'a str,
}

/// A transaction that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    pub client: u32,
    /// Number of the transaction among those of this client, from 1.
    pub number: u64,
    pub script: usize,
    pub ending: Ending,
    pub retries: u32,
    pub times: OperationTimes,
}

/// Transactions that follow each other and were not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub client: u32,
    /// Number of the first one among those of this client, from 1.
    pub first: u64,
    pub count: u64,
    /// For all of them, the script of the transaction that is sent after them, as in the original.
    pub script: usize,
}

/// What a connection knows about its transactions, for the listener.
#[derive(Debug, Default)]
pub(crate) struct TransactionState {
    pub(crate) script: usize,
    pub(crate) command: usize,
    /// Transactions that have ended.
    ended: u64,
    /// How the transaction that was tried last has ended, and its retries. It is `None` while the
    /// transaction is repeated, and after one that ended the run.
    pub(crate) ending: Option<(Ending, u32)>,
}

impl TransactionState {
    /// Reports the transaction that was tried last, if it has ended.
    pub(crate) fn tell(&mut self, listener: &dyn Listener, client: u32, times: OperationTimes) {
        let Some((ending, retries)) = self.ending.take() else { return };
        self.ended += 1;
        if listener.wants_all() || retries > 0 || ending != Ending::Done {
            let (number, script) = (self.ended, self.script);
            listener.ended(&Transaction { client, number, script, ending, retries, times });
        }
    }

    /// Reports `count` transactions that are not sent.
    pub(crate) fn skip(&mut self, listener: &dyn Listener, client: u32, count: u64, script: usize) {
        listener.skipped(&Skipped { client, first: self.ended + 1, count, script });
        self.ended += count;
    }
}
