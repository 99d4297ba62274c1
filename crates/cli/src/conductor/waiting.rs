//! Waits for a server outside the measured time. The wait ends when the user wants the run to end,
//! and a long wait is reported.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dbdyno_db::AnySession;
use dbdyno_record::RunEvent;

use crate::conductor::Conductor;
use crate::conductor::start::Database;
use crate::exit::ExitError;
use crate::progress::Progress;
use crate::stall_watch::FIRST_WORD;
use crate::time;

impl Conductor<'_> {
    /// Waits for `work`. It is `None` when the user wants the run to end before the work is done.
    pub(crate) fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(unless_cancelled(&self.cancel, work))
    }

    /// Waits for server queries in the same way. A server may work long or may have stopped
    /// responding, so the progress line counts the time, and a message reports it now and then.
    pub(crate) fn answered<T>(&self, what: &str, queries: impl Future<Output = T>) -> Option<T> {
        self.progress.busy(what);
        self.unless_cancelled(async {
            tokio::select! {
                biased;
                done = queries => done,
                never = tell_of_waiting(&self.progress, what) => match never {},
            }
        })
    }

    /// Cancels what the server still does for connections that were dropped before its response, so
    /// that nothing is measured beside it. It waits for that, but only briefly when the user wants
    /// the run to end.
    pub(crate) fn cancel_abandoned(&self, database: &Database) -> Result<(), String> {
        let limit = Duration::from_secs(if self.cancelled() { 1 } else { 15 });
        self.runtime.block_on(database.database_server.cancel_abandoned(limit))
    }

    /// Gives later statements of `session` the plan's time limit for statements whose time depends
    /// on the data.
    pub(crate) fn let_work(&self, session: &mut AnySession) {
        session.limit_statements(Some(self.plan.host.statement_timeout.0));
    }

    /// Leaves the machine alone between two cells for as long as the plan says, unless the user
    /// wants the run to end.
    pub(super) fn rest(&mut self) -> Result<(), ExitError> {
        let length = self.plan.host.rest.0;
        if length.is_zero() || self.cancelled() {
            return Ok(());
        }
        let began = Instant::now();
        self.unless_cancelled(rest_until_over(&self.progress, began, length));
        self.progress.rested(length);
        self.writer.event(&RunEvent::Rested {
            at: time::now(),
            duration_us: time::to_us(began.elapsed()),
            elapsed_us: self.clock.elapsed_us(),
        })?;
        Ok(())
    }
}

async fn rest_until_over(progress: &Progress, began: Instant, length: Duration) {
    loop {
        let passed = began.elapsed();
        let left = length.saturating_sub(passed);
        if left.is_zero() {
            return;
        }
        progress.resting(passed, left);
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}

/// Reports how long `what` has taken, until the future is dropped.
async fn tell_of_waiting(progress: &Progress, what: &str) -> std::convert::Infallible {
    let began = Instant::now();
    let mut next_word = FIRST_WORD;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let waited = began.elapsed();
        progress.busy(&format!("{what}  {}", time::clock(waited)));
        if waited >= next_word {
            next_word *= 2;
            progress.line(&format!("{what}: the server has not answered for {}", time::about(waited)));
        }
    }
}

async fn unless_cancelled<T>(cancel: &AtomicBool, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = cancelled(cancel) => None,
    }
}

async fn cancelled(cancel: &AtomicBool) {
    const POLL: Duration = Duration::from_millis(50);
    while !cancel.load(Ordering::Relaxed) {
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_is_waited_for_until_the_user_has_enough() {
        let cancel = AtomicBool::new(false);
        assert_eq!(unless_cancelled(&cancel, async { 7 }).await, Some(7));
        let stop = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancel.store(true, Ordering::Relaxed);
        };
        let (waited, ()) = tokio::join!(unless_cancelled(&cancel, std::future::pending::<()>()), stop);
        assert_eq!(waited, None);
    }
}
