//! Burning CPU time: as much as asked for, by the clock of the thread's own CPU time.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Uses up at least `wanted` of this thread's CPU time and returns how much it was. Time in which the thread did not run does
/// not count.
pub(crate) fn burn(wanted: Duration) -> Duration {
    let begin = cpu_time();
    let mut used = Duration::ZERO;
    while used < wanted {
        // The thread's clock costs a system call, the wall clock none. Wall time is never less than CPU time.
        let wall = Instant::now();
        while wall.elapsed() < wanted - used {
            std::hint::spin_loop();
        }
        used = cpu_time().saturating_sub(begin);
    }
    used
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).expect("every thread has this clock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burn_uses_the_cpu_time_that_it_says() {
        let wanted = Duration::from_micros(50);
        let before = cpu_time();
        let said: Duration = (0..200).map(|_| burn(wanted)).sum();
        let used = cpu_time() - before;
        assert!(said >= wanted * 200 && said <= used, "{said:?} of {used:?}");
        assert_eq!(burn(Duration::ZERO), Duration::ZERO);
    }
}
