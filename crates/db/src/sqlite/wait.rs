//! How a statement waits for another connection's lock: with short pauses that grow, until the time
//! limit.
//!
//! SQLite's own handler sleeps up to 100 ms at a time. A waiter may then stay asleep long after the
//! lock is free, and the response time shows the sleep and not the lock. These pauses start at 50
//! µs and double up to 2 ms.

use std::time::Duration;

const FIRST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(2);

/// The pause after the lock was found taken for the `count`-th time, counted from 0. It starts at
/// 50 µs and doubles up to 2 ms.
fn pause(count: u32) -> Duration {
    FIRST.saturating_mul(1_u32.checked_shl(count).unwrap_or(u32::MAX)).min(LONGEST)
}

/// How many pauses fit into `limit`.
///
/// SQLite counts one statement's pauses from 0 and passes only that count to the handler, so the
/// deadline is a count too. It limits the sleep that is requested. The system's timers oversleep by
/// some 60 µs per pause, so a wait may last a few percent longer than `limit`. The statement's work
/// between two waits is not counted.
pub(super) fn pauses_within(limit: Duration) -> u32 {
    let mut count = 0;
    let mut left = limit;
    while pause(count) < LONGEST {
        match left.checked_sub(pause(count)) {
            Some(rest) => left = rest,
            None => return count,
        }
        count += 1;
    }
    count.saturating_add(u32::try_from(left.as_micros() / LONGEST.as_micros()).unwrap_or(u32::MAX))
}

/// A handler for SQLite. It sleeps and returns `true` ("try again"), or returns `false` once
/// `pauses` are used up.
pub(super) fn handler(pauses: u32) -> impl FnMut(i32) -> bool + Send + 'static {
    move |count| {
        let count = u32::try_from(count).unwrap_or(0);
        if count >= pauses {
            return false;
        }
        std::thread::sleep(pause(count));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_50_us_to_2_ms() {
        let pauses: Vec<u128> = (0..9).map(|count| pause(count).as_micros()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
        assert_eq!(pause(40), LONGEST);
    }

    #[test]
    fn the_pauses_that_fit_never_exceed_the_limit_and_one_more_would() {
        for limit_us in [0, 49, 50, 149, 150, 3149, 3150, 5149, 5150, 20_000, 5_000_000] {
            let limit = Duration::from_micros(limit_us);
            let count = pauses_within(limit);
            let total: Duration = (0..count).map(pause).sum();
            assert!(total <= limit, "{count} pauses are {total:?}, more than {limit:?}");
            assert!(
                total + pause(count) > limit,
                "{count} pauses are {total:?}, one more fits into {limit:?}"
            );
        }
    }

    #[test]
    fn the_handler_gives_up_at_the_limit() {
        let mut handler = handler(pauses_within(Duration::from_micros(150)));
        assert!(handler(0));
        assert!(handler(1));
        assert!(!handler(2));
    }
}
