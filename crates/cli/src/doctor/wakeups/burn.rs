//! CPU time that is used up: how fast a CPU is while another one is idle, and while it is busy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use dbdyno_plan::CpuList;
use nix::time::{ClockId, clock_gettime};

use crate::exit::ExitError;
use crate::host;

const SLICE: Duration = Duration::from_millis(4);
/// Measurements of each kind; the median counts.
const SLICES: usize = 5;
const ROUNDS: u64 = 1_000;

/// Independent operations of a round.
const CHAINS: usize = 8;

/// Works for so many rounds, in chains that do not wait for each other: two threads that do this on
/// one core take its units from each other.
pub(super) fn burn(rounds: u64) -> u64 {
    let mut chains: [u64; CHAINS] = [1, 2, 3, 4, 5, 6, 7, 8];
    for round in 0..rounds {
        for chain in &mut chains {
            *chain = chain.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
        }
    }
    std::hint::black_box(chains.into_iter().fold(0, |sum, chain| sum ^ chain))
}

pub(super) fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Rounds that the calling thread does in a µs of CPU time, over one slice. Time in which others
/// ran does not count.
fn speed() -> f64 {
    let began = thread_cpu();
    let mut rounds = 0.0;
    loop {
        burn(ROUNDS);
        rounds += ROUNDS as f64;
        let used = thread_cpu().saturating_sub(began);
        if used >= SLICE {
            return rounds / (used.as_secs_f64() * 1e6);
        }
    }
}

/// Multiplications with an addition that the calling thread does in a second of CPU time: the
/// median of a few slices, together 20 ms.
pub(crate) fn cpu_operations_per_second() -> f64 {
    CHAINS as f64 * 1e6 * super::median((0..SLICES).map(|_| speed()).collect())
}

/// What a CPU does in a µs of CPU time, in rounds: alone, and which part of that is lost while the
/// other one is busy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    pub(super) rounds_per_us: f64,
    pub(super) lost_share: f64,
}

#[derive(Default)]
struct Wanted {
    busy: AtomicBool,
    is_busy: AtomicBool,
    end: AtomicBool,
}

/// Measures `cpu` with `other` idle and busy by turns.
pub(super) fn speed_and_loss(cpu: u32, other: u32) -> Result<Speed, ExitError> {
    let wanted = &Wanted::default();
    std::thread::scope(|scope| {
        let disturbing = scope.spawn(move || {
            let kept = host::keep_to(&CpuList(vec![other]));
            disturb(wanted);
            kept
        });
        let other = disturbing.thread().clone();
        let measuring = scope.spawn(move || {
            let kept = host::keep_to(&CpuList(vec![cpu]));
            let speed = measure(wanted, &other);
            kept.map(|()| speed)
        });
        let speed = measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        disturbing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        speed
    })
}

fn disturb(wanted: &Wanted) {
    while !wanted.end.load(Ordering::Acquire) {
        let busy = wanted.busy.load(Ordering::Acquire);
        wanted.is_busy.store(busy, Ordering::Release);
        if busy {
            burn(ROUNDS);
        } else {
            std::thread::park();
        }
    }
}

fn measure(wanted: &Wanted, other: &Thread) -> Speed {
    let (mut alone, mut lost) = (Vec::new(), Vec::new());
    for _ in 0..SLICES {
        let [idle, busy] = [false, true].map(|wants| {
            wanted.busy.store(wants, Ordering::Release);
            other.unpark();
            while wanted.is_busy.load(Ordering::Acquire) != wants {
                std::thread::yield_now();
            }
            speed()
        });
        alone.push(idle);
        lost.push(1.0 - busy / idle);
    }
    wanted.end.store(true, Ordering::Release);
    other.unpark();
    Speed { rounds_per_us: super::median(alone), lost_share: super::median(lost) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_a_speed_and_more_rounds_take_more_time() {
        let usable = host::usable_cpus().expect("this process has CPUs").0;
        let (first, last) = (usable[0], usable[usable.len() - 1]);
        assert!(cpu_operations_per_second() > 0.0);
        let speed = speed_and_loss(first, last).expect("CPUs that may be used");
        assert!(speed.rounds_per_us > 0.0 && speed.lost_share < 1.0, "{speed:?}");
        assert!(speed_and_loss(1_023, first).is_err() && speed_and_loss(first, 1_023).is_err());
    }
}
