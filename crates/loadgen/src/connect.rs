//! How connections are opened, and what happens to those that are lost.

use std::time::Duration;

use crate::Draws;

/// Logins that a load thread has on their way at once.
const AT_ONCE: usize = 32;

/// How a step opens its connections before the barrier, and what it does with connections lost later.
#[derive(Debug, Clone, PartialEq)]
pub struct Connections {
    /// Logins that are begun per second, over all threads. `None` means as fast as they go.
    pub rate_per_second: Option<f64>,
    /// Logins that each thread has on their way at once. They are limited because a server's queue for
    /// new connections is short.
    pub at_once: usize,
    /// The step fails when a connection is not open after this time, its statements prepared.
    pub open_within: Duration,
    /// The option with which users set that time, for messages.
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
    /// Pause before the first attempt. The pause before each later one is twice as long as the one
    /// before it.
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
            // A rate that is no number, or so small that the time overflows, was refused with the plan.
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
    fn paced_logins_keep_their_rate() {
        let paced = Connections { rate_per_second: Some(50.0), ..Connections::default() };
        assert_eq!(paced.due(100), Duration::from_secs(2));
        assert_eq!(Connections::default().due(100), Duration::ZERO);
    }
}
