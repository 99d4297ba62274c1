//! Opens connections before the barrier, a limited number at once, and at a given rate if the
//! caller sets one. It also opens a lost connection again. The pauses between attempts double. The
//! attempts end when the connection is open, when the task has nothing left to do, or when time is
//! up.

use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;

use crate::batch::{histogram, record};
use crate::collector::Message;
use crate::load_threads::Shared;
use crate::running_task::{Next, RunningTask, describe};
use crate::{ConnectionTask, Draws, Failure, Limit};

/// Highest number of logins that a load thread has under way at once, unless the caller sets
/// another number.
const AT_ONCE: usize = 32;

/// How a step opens its connections before the barrier, and how it handles connections that are
/// lost later.
#[derive(Debug, Clone, PartialEq)]
pub struct Connections {
    /// Logins that are begun per second, over all threads. `None` means as fast as possible.
    pub rate_per_second: Option<f64>,
    /// Highest number of logins that each thread has under way at once. The number is limited
    /// because a server's queue for new connections is short.
    pub at_once: usize,
    /// The step fails when a connection is not open after this time, with its statements prepared.
    pub open_within: Duration,
    /// The option with which users set [`Connections::open_within`], for messages.
    pub open_key: &'static str,
    /// A step that has no time cap fails when no connection has had an answer for this time.
    pub silence: Duration,
    pub lost: LostConnections,
}

/// What happens when a connection is lost while the clock runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LostConnections {
    /// The step fails.
    #[default]
    Fail,
    /// The operation on its way fails, the connection is opened again, and the task goes on.
    Reconnect(Reconnect),
}

/// How a lost connection is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// Pause before the first attempt. Each later pause is twice as long as the one before it.
    pub wait: Duration,
    /// No pause is longer than this.
    pub wait_max: Duration,
    /// The step fails when a connection is not open again after this time.
    pub give_up_after: Duration,
    /// Shortens each pause by up to a half, so that connections that were lost together do not come
    /// back together.
    pub draws: Draws,
}

impl Default for Connections {
    fn default() -> Self {
        let (open_within, silence) = (Duration::from_secs(30), Duration::from_secs(12 * 3600));
        Self {
            rate_per_second: None,
            at_once: AT_ONCE,
            open_within,
            open_key: "login_timeout",
            silence,
            lost: LostConnections::Fail,
        }
    }
}

impl Connections {
    /// Returns when login `number` of the step may begin, counted from the first one.
    pub(crate) fn due(&self, number: usize) -> Duration {
        match self.rate_per_second {
            // A rate that is no number, or so low that the time overflows, was refused with the
            // plan.
            Some(rate) => Duration::try_from_secs_f64(number as f64 / rate).unwrap_or(Duration::ZERO),
            None => Duration::ZERO,
        }
    }
}

impl Reconnect {
    /// Returns the pause before attempt `attempt` (from 0) of task `task`.
    pub(crate) fn pause(&self, task: usize, attempt: u32) -> Duration {
        let doubled = self.wait.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        let longest = doubled.min(self.wait_max);
        let address = (task as u64) << 32 | u64::from(attempt);
        longest.mul_f64(1.0 - 0.5 * self.draws.uniform(address))
    }
}

/// How a step opens its connections. Each load thread has a copy.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) began: Instant,
    pub(crate) connections: Connections,
}

/// Opens `tasks`, each given with its number among all tasks of the step, and measures how long each
/// took in microseconds. The first failure stops the step, and those whose turn comes after a stop stay
/// closed. `None` stands in place of a task that panicked.
pub(crate) async fn open_all<L: ConnectionTask + 'static>(
    shared: &Rc<Shared>,
    opening: &Opening,
    tasks: impl Iterator<Item = (usize, L)>,
) -> (Vec<Option<L>>, Histogram<u64>) {
    let permits = Rc::new(Semaphore::new(opening.connections.at_once.max(1)));
    let Connections { open_within: within, open_key: key, .. } = opening.connections;
    let spawned = |(number, task): (usize, L)| {
        let due = opening.began + opening.connections.due(number);
        let (shared, permits) = (Rc::clone(shared), Rc::clone(&permits));
        tokio::task::spawn_local(async move {
            let _ = shared.timer.wait_until(due).await;
            // The semaphore is never closed. Even without a permit the connection would open.
            let _permit = permits.acquire().await.ok();
            open(&shared, task, (within, key)).await
        })
    };
    let handles: Vec<_> = tasks.map(spawned).collect();
    let mut open = Vec::new();
    let mut logins = histogram();
    for handle in handles {
        match handle.await {
            Ok((task, took_us)) => {
                if let Some(took_us) = took_us {
                    record(&mut logins, took_us);
                }
                open.push(Some(task));
            }
            Err(error) => {
                shared.fail(format!("a connection's task failed: {error}"));
                shared.control.abandon();
                open.push(None);
            }
        }
    }
    (open, logins)
}

/// Opens one task's connection. The result has the time that this took in microseconds, if it
/// succeeded.
async fn open<L: ConnectionTask>(
    shared: &Shared,
    mut task: L,
    (within, key): (Duration, &str),
) -> (L, Option<u64>) {
    if shared.control.is_stopping() {
        return (task, None);
    }
    let began = Instant::now();
    // The state of a login is large. It is on the heap only while the login lasts, because thousands
    // of tasks may wait for their turn, and each keeps the space for its own state until then.
    let opening = tokio::time::timeout(within, Box::pin(task.open()));
    let Some(opened) = shared.abandon.unless(opening).await else { return (task, None) };
    let Ok(opened) = opened else {
        shared.fail(not_open(shared.control.unopened(), shared.control.tasks, (within, key)));
        return (task, None);
    };
    match opened {
        Ok(()) => {
            shared.control.task_opened();
            let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            (task, Some(took_us))
        }
        Err(failure) => {
            shared.fail(describe(&failure));
            (task, None)
        }
    }
}

fn not_open(waiting: usize, all: usize, (within, key): (Duration, &str)) -> String {
    format!(
        "{waiting} of {all} connections were not open, with their statements prepared, when one of them had waited for \
         {within:?}: see whether a pooler or max_connections holds them, or raise {key}"
    )
}

impl RunningTask {
    /// Opens the connection that was found lost at `lost_ns` again, and prepares its statements again.
    pub(crate) async fn reconnect<L: ConnectionTask>(
        &mut self,
        task: &mut L,
        how: &Reconnect,
        failure: Failure,
        lost_ns: u64,
    ) -> Next {
        let (client, kind) = (self.spec.client, self.spec.kind);
        self.shared.recorder.borrow_mut().down(self.index, lost_ns);
        let _ = self.shared.messages.send(Message::Lost { at_ns: lost_ns, client, kind, failure });
        let began = Instant::now();
        let give_up_at = began + how.give_up_after;
        // A task with a time limit ends at that limit, connected or not.
        let end_at = match self.spec.limit {
            Limit::Time(time) | Limit::Either(_, time) => {
                Some(began + time.saturating_sub(Duration::from_nanos(lost_ns)))
                    .filter(|end| *end < give_up_at)
            }
            _ => None,
        };
        let mut last_failure = None;
        for attempt in 0_u32.. {
            // Every attempt ends by the deadline, even one that the server does not answer.
            let deadline = end_at.unwrap_or(give_up_at);
            let pause_until = (Instant::now() + how.pause(self.number, attempt)).min(deadline);
            let waited = self.wait_until(pause_until).await;
            if waited != Next::GoOn {
                return waited;
            }
            if pause_until == deadline {
                break;
            }
            let mut opening = Box::pin(task.open());
            let opened = tokio::select! {
                biased;
                opened = &mut opening => opened,
                next = self.ended_from_outside() => return next,
                _ = self.shared.timer.wait_until(deadline) => break,
            };
            let now_ns = self.shared.tick();
            match opened {
                Ok(()) => {
                    self.shared.recorder.borrow_mut().up(self.index, now_ns);
                    self.write_reconnected(now_ns, lost_ns, attempt + 1);
                    return Next::GoOn;
                }
                Err(failure) => last_failure = Some(failure),
            }
        }
        if end_at.is_some() {
            return Next::Complete;
        }
        let why = last_failure.as_ref().map_or_else(|| "no answer".to_owned(), describe);
        self.shared.fail(format!(
            "a lost connection could not be opened again within {} s: {why}; raise reconnect_for",
            how.give_up_after.as_secs_f64()
        ));
        Next::GiveUp
    }

    fn write_reconnected(&mut self, now_ns: u64, lost_ns: u64, attempts: u32) {
        self.count_reconnect();
        let _ = self.shared.messages.send(Message::Reconnected {
            at_ns: now_ns,
            client: self.spec.client,
            kind: self.spec.kind,
            down_ns: now_ns.saturating_sub(lost_ns),
            attempts,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_differ_between_connections() {
        let (wait, wait_max) = (Duration::from_millis(100), Duration::from_secs(5));
        let reconnect =
            Reconnect { wait, wait_max, give_up_after: Duration::from_secs(60), draws: Draws::new(1, 2, 3) };
        for (attempt, longest_ms) in [(0, 100), (1, 200), (3, 800), (6, 5000), (31, 5000), (40, 5000)] {
            let pauses: Vec<_> = (0..100).map(|task| reconnect.pause(task, attempt)).collect();
            let longest = Duration::from_millis(longest_ms);
            assert!(pauses.iter().all(|pause| *pause >= longest / 2 && *pause < longest), "{attempt}");
            assert!(pauses.iter().any(|pause| *pause < longest * 6 / 10));
            assert!(pauses.iter().any(|pause| *pause > longest * 9 / 10));
        }
        assert_eq!(reconnect.pause(7, 2), reconnect.pause(7, 2));
    }

    #[test]
    fn logins_keep_the_rate_asked_for() {
        let limited = Connections { rate_per_second: Some(50.0), ..Connections::default() };
        assert_eq!(limited.due(100), Duration::from_secs(2));
        assert_eq!(Connections::default().due(100), Duration::ZERO);
    }
}
