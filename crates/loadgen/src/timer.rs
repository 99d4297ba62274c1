//! Waits until scheduled times, to within tens of microseconds. tokio's timer wheel has a tick of 1 ms, and a
//! schedule needs better. So each load thread owns one kernel timer, which wakes its runtime through a
//! file descriptor, and a heap of the tasks that wait.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

/// The timer of one load thread, which is accurate to some tens of microseconds. [`Timer::run`]
/// must be running for waits to end.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<Kernel>,
    waiting: RefCell<BinaryHeap<Reverse<TimerWait>>>,
    /// When the kernel will wake this thread.
    armed: Cell<Option<Instant>>,
    /// How often the kernel has woken this thread.
    fired: Cell<u64>,
}

/// The kernel's timer in a form that tokio accepts as a file descriptor.
#[derive(Debug)]
struct Kernel(TimerFd);

/// A task that waits. A task that no longer waits is still woken, which does no harm.
#[derive(Debug)]
struct TimerWait {
    until: Instant,
    waker: Waker,
}

impl PartialEq for TimerWait {
    fn eq(&self, other: &Self) -> bool {
        self.until == other.until
    }
}

impl Eq for TimerWait {}

impl PartialOrd for TimerWait {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimerWait {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

impl AsFd for Kernel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Kernel {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Timer {
    /// Returns a timer of the current runtime.
    pub(crate) fn new() -> std::io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        // `new` is deprecated because a type could lie about its descriptor. `Kernel` owns its
        // descriptor as long as it exists.
        #[expect(
            deprecated,
            reason = "the replacement is an unsafe function, and this crate has no unsafe code"
        )]
        let fd = AsyncFd::new(Kernel(timer))?;
        Ok(Self { fd, waiting: RefCell::default(), armed: Cell::new(None), fired: Cell::new(0) })
    }

    /// Returns at `until`, or at once when that has passed.
    pub(crate) async fn wait_until(&self, until: Instant) -> std::io::Result<()> {
        let mut is_waiting = false;
        poll_fn(|context| {
            if Instant::now() >= until {
                return Poll::Ready(Ok(()));
            }
            // A task keeps its waker, so entering it once is enough.
            if !is_waiting {
                is_waiting = true;
                self.waiting.borrow_mut().push(Reverse(TimerWait { until, waker: context.waker().clone() }));
                if self.armed.get().is_none_or(|armed| until < armed)
                    && let Err(error) = self.arm(until)
                {
                    return Poll::Ready(Err(error));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Wakes the tasks whose time has come. It ends only when the kernel's timer fails.
    pub(crate) async fn run(&self) -> std::io::Result<()> {
        loop {
            // The descriptor is edge-triggered, and each expiry is an edge, so nothing has to be
            // read from it.
            self.fd.readable().await?.clear_ready();
            self.armed.set(None);
            self.fired.set(self.fired.get() + 1);
            self.wake_due();
            let next = self.waiting.borrow().peek().map(|Reverse(next)| next.until);
            if let Some(next) = next {
                self.arm(next)?;
            }
        }
    }

    /// Returns how often the kernel has woken this thread up to now.
    pub(crate) fn fired(&self) -> u64 {
        self.fired.get()
    }

    fn wake_due(&self) {
        let now = Instant::now();
        let mut waiting = self.waiting.borrow_mut();
        while waiting.peek().is_some_and(|Reverse(next)| next.until <= now) {
            if let Some(Reverse(due)) = waiting.pop() {
                due.waker.wake();
            }
        }
    }

    fn arm(&self, until: Instant) -> std::io::Result<()> {
        // A time of 0 would disarm the timer.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let expiration = Expiration::OneShot(TimeSpec::from_duration(left));
        self.fd.get_ref().0.set(expiration, TimerSetTimeFlags::empty())?;
        self.armed.set(Some(until));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Runs `work` together with the timer that it uses.
    async fn with_timer<T>(timer: &Timer, work: impl Future<Output = T>) -> T {
        tokio::select! {
            ended = timer.run() => panic!("the timer ended: {ended:?}"),
            done = work => done,
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_wait_ends_after_its_time_and_never_before() {
        let timer = Timer::new().expect("a file descriptor is free");
        with_timer(&timer, async {
            for millis in [0, 1, 3, 10] {
                let until = Instant::now() + Duration::from_millis(millis);
                timer.wait_until(until).await.expect("the timer works");
                assert!(Instant::now() >= until);
            }
        })
        .await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_wait_that_was_given_up_does_not_shorten_the_next() {
        let timer = Timer::new().expect("a file descriptor is free");
        with_timer(&timer, async {
            // The wait is begun and given up at once, even on a busy machine.
            tokio::select! {
                biased;
                _ = timer.wait_until(Instant::now() + Duration::from_millis(250)) => panic!("it is not over yet"),
                () = std::future::ready(()) => {}
            }
            let until = Instant::now() + Duration::from_millis(400);
            timer.wait_until(until).await.expect("the timer works");
            assert!(Instant::now() >= until);
        })
        .await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn many_tasks_wait_on_one_timer_and_wake_in_order() {
        // A task whose time has come before it waits does not wait. On a busy machine, this may be
        // true of all tasks.
        for lead_ms in [30, 300, 3_000] {
            let (all_waited, woken) = wake_many(Duration::from_millis(lead_ms)).await;
            assert_eq!(woken.len(), 300);
            if all_waited {
                assert!(woken.is_sorted(), "{woken:?}");
                return;
            }
        }
        panic!("they did not wait");
    }

    /// Lets 300 tasks wait, the first for `lead` and the others for a little longer. The result is
    /// whether all of them did wait, and the order in which they woke, each by its index in the
    /// order of times.
    async fn wake_many(lead: Duration) -> (bool, Vec<u64>) {
        let timer = Rc::new(Timer::new().expect("a file descriptor is free"));
        let woken = Rc::new(RefCell::new(Vec::new()));
        let start = Instant::now() + lead;
        let waits = (0..300_u64).map(|index| {
            // The tasks wait in an order that is not that of their times.
            let place = index * 77 % 300;
            let (timer, woken) = (Rc::clone(&timer), Rc::clone(&woken));
            async move {
                timer.wait_until(start + Duration::from_micros(place * 100)).await.expect("the timer works");
                woken.borrow_mut().push(place);
            }
        });
        let local = tokio::task::LocalSet::new();
        let running = Rc::clone(&timer);
        local.spawn_local(async move { running.run().await });
        let all_waited = local
            .run_until(async {
                let tasks: Vec<_> = waits.map(tokio::task::spawn_local).collect();
                // This task's turn comes after those of the tasks before it.
                let looking = Rc::clone(&timer);
                let look = async move { looking.waiting.borrow().len() == 300 && Instant::now() < start };
                let all_waited = tokio::task::spawn_local(look).await.expect("a look ends");
                for task in tasks {
                    task.await.expect("a wait ends");
                }
                all_waited
            })
            .await;
        assert!(Instant::now() >= start + Duration::from_micros(29_900));
        (all_waited, woken.take())
    }
}
