//! Burns a requested amount of CPU time, as the thread's own CPU clock measures it.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Continues until this thread has used at least `wanted` of CPU time since its clock was at
/// `begin`, and returns the amount. Time in which the thread did not run does not count.
pub(crate) fn burn(begin: Duration, wanted: Duration) -> Duration {
    let mut used = Duration::ZERO;
    while used < wanted {
        // The thread's clock costs a system call, but the wall clock costs none. Wall time is never
        // less than CPU time.
        let wall = Instant::now();
        while wall.elapsed() < wanted - used {
            std::hint::spin_loop();
        }
        used = cpu_time().saturating_sub(begin);
    }
    used
}

pub(crate) fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).expect("every thread has this clock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burn_uses_the_cpu_time_that_it_says() {
        let wanted = Duration::from_micros(50);
        let before = cpu_time();
        let said: Duration = (0..200).map(|_| burn(cpu_time(), wanted)).sum();
        let used = cpu_time() - before;
        assert!(said >= wanted * 200 && said <= used, "{said:?} of {used:?}");
        assert_eq!(burn(cpu_time(), Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn what_the_thread_has_used_since_the_beginning_counts() {
        let begin = cpu_time();
        let before = burn(begin, Duration::from_micros(400));
        let used = burn(begin, Duration::from_micros(100));
        assert!(used >= before, "{used:?} after {before:?}");
    }
}
