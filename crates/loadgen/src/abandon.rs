//! Gives up answers that may never come, once a stopped step has waited long enough for them.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

/// The flag that the tasks of one thread share. A task pays for one look at this flag each time it is
/// woken. A `select!` over a notification would cost more.
#[derive(Debug, Default)]
pub(crate) struct Abandon {
    given_up: Cell<bool>,
    /// How often a task was woken.
    polls: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Abandon {
    /// From now on [`Abandon::unless`] waits for nothing.
    pub(crate) fn now(&self) {
        self.given_up.set(true);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Returns how often tasks were woken until now.
    pub(crate) fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Returns the outcome of `work`, or `None` when the work was given up first.
    pub(crate) async fn unless<F: Future>(&self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        let mut registered: Option<Waker> = None;
        poll_fn(|context| {
            self.polls.set(self.polls.get() + 1);
            if self.given_up.get() {
                return Poll::Ready(None);
            }
            let Poll::Ready(outcome) = work.as_mut().poll(context) else {
                // A task keeps its waker, so this happens once.
                if !registered.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                    registered = Some(context.waker().clone());
                    self.waiting.borrow_mut().push(context.waker().clone());
                }
                return Poll::Pending;
            };
            Poll::Ready(Some(outcome))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn work_that_ends_is_not_touched() {
        assert_eq!(Abandon::default().unless(ready(7)).await, Some(7));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn waiting_work_ends_when_it_is_given_up() {
        let abandon = Abandon::default();
        let waits = abandon.unless(pending::<u32>());
        let gives_up = async {
            tokio::task::yield_now().await;
            abandon.now();
        };
        assert_eq!(tokio::join!(waits, gives_up).0, None);
        assert_eq!(abandon.unless(pending::<u32>()).await, None);
    }
}
