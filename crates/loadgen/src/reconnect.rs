//! Opens a lost connection again. The pauses between attempts double until it is open, the task has
//! nothing left to do, or time is up.

use std::time::{Duration, Instant};

use crate::message::Message;
use crate::running_task::{Next, RunningTask, describe};
use crate::{ConnectionTask, Failure, Limit, Reconnect};

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
        // A task that is limited in time ends with its time, connected or not.
        let end_at = match self.spec.limit {
            Limit::Time(time) | Limit::Either(_, time) => {
                Some(began + time.saturating_sub(Duration::from_nanos(lost_ns)))
                    .filter(|end| *end < give_up_at)
            }
            _ => None,
        };
        let mut last_failure = None;
        for attempt in 0_u32.. {
            // Every attempt ends by then, also one that no one answers.
            let deadline = end_at.unwrap_or(give_up_at);
            let pause_until = (Instant::now() + how.pause(self.number, attempt)).min(deadline);
            let waited = self.wait_until(pause_until).await;
            if waited != Next::GoOn {
                return waited;
            }
            if pause_until == deadline {
                break;
            }
            let opened = tokio::select! {
                biased;
                opened = task.open() => opened,
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
