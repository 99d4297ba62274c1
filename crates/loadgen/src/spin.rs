//! A mode in which a load thread does not sleep while a step runs. It polls the kernel for answers
//! again and again, so that the server never has to wake it. The time of polls that found nothing is
//! counted separately from its work.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::shared::Shared;

/// A round that found nothing and took longer than this was interrupted. For the rest of it the thread
/// was not on its CPU, or was at work for the kernel.
const LONGEST_ROUND: Duration = Duration::from_micros(20);
/// After this many rounds that found nothing, the thread offers its CPU to others that wait for it: the
/// sampler, the main thread, and the kernel's own threads. A thread that is always ready would let them
/// wait until its time slice ends.
const ROUNDS_PER_OFFER: u32 = 32;

/// Runs from the start of the clock until it is aborted. `polled_ns` holds one counter per load thread,
/// and `index` is this thread's.
pub(crate) async fn spin(shared: Rc<Shared>, polled_ns: Arc<[AtomicU64]>, index: usize) {
    let Some(counter) = polled_ns.get(index) else { return };
    let Some(start) = shared.control.wait_for_start().await else { return };
    let _ = shared.timer.wait_until(start).await;
    let (mut sum, mut rounds) = (Duration::ZERO, 0_u32);
    let (mut begin, mut seen) = (Instant::now(), woken(&shared));
    loop {
        // A task that yields is put off until no other is ready. The runtime then asks epoll without
        // waiting, runs the tasks that have become ready, and comes back. That is one round.
        tokio::task::yield_now().await;
        let (now, woken) = (Instant::now(), woken(&shared));
        if woken == seen {
            sum += now.duration_since(begin).min(LONGEST_ROUND);
            counter.store(u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            rounds += 1;
            if rounds.is_multiple_of(ROUNDS_PER_OFFER) {
                std::thread::yield_now();
            }
        }
        (begin, seen) = (now, woken);
    }
}

/// Returns how much has been done on this thread besides spinning, as the number of wake-ups of tasks
/// and of the timer.
fn woken(shared: &Shared) -> u64 {
    shared.abandon.polls() + shared.timer.fired()
}
