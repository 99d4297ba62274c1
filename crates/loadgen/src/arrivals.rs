//! When a task's operations are due: in a closed loop with or without think time, in an open loop, or
//! in the original Insert Benchmark's bursts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{ArrivalProcess, Draws, Schedule};

/// How one task gets its arrivals. Times count from the barrier.
#[derive(Debug, Clone)]
pub enum Arrivals {
    /// The next operation is due when the one before it is answered.
    Closed,
    /// The next operation is due when a think time after the answer before it is over.
    Thinking(ThinkTime),
    /// Operations become due as they arrive, whatever happened before. A late task catches up.
    Open(ArrivalProcess),
    /// Operations come from a schedule that this task shares with others of its client and kind.
    Shared(Arc<Schedule>),
    /// The task sends `per_second` operations back to back, then is idle until a second has passed
    /// since the burst began. Lost time is not made up. This is the Insert Benchmark's rate limiter. It
    /// checks after operation r with r mod per_second = 0. When less than 0.95 s have passed since the
    /// last checkpoint, it sleeps to exactly 1.0 s. Then it sets the checkpoint to now.
    Burst { per_second: u64 },
}

/// How long a closed loop pauses between an answer and the next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkTime {
    /// The pause is always `time`. The pause before the first operation is a part of it, uniformly
    /// drawn, so that connections do not run in step.
    Fixed { time: Duration, draws: Draws },
    /// The pause is exponential with mean `mean`, before the first operation too, so that the loop is
    /// in a steady state from the beginning.
    Exponential { mean: Duration, draws: Draws },
}

impl ThinkTime {
    /// Returns the pause before operation `number`, which is a pure function of the number.
    pub fn before(&self, number: u64) -> Duration {
        match self {
            Self::Fixed { time, draws } if number == 0 => time.mul_f64(draws.uniform(0)),
            Self::Fixed { time, .. } => *time,
            Self::Exponential { mean, draws } => mean.mul_f64(draws.exponential(number)),
        }
    }
}

impl Arrivals {
    /// Returns whether the next operation waits for the answer to the one before, and for nothing but
    /// think time.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed | Self::Thinking(_))
    }

    /// Returns the open-loop process of this task alone. It is `None` for closed loops, bursts and
    /// shared schedules.
    pub fn arrival_process(&self) -> Option<ArrivalProcess> {
        match self {
            Self::Open(arrival_process) => Some(*arrival_process),
            Self::Closed | Self::Thinking(_) | Self::Shared(_) | Self::Burst { .. } => None,
        }
    }

    /// Returns the open-loop process, this task's own or a shared one.
    pub fn process(&self) -> Option<ArrivalProcess> {
        match self {
            Self::Shared(schedule) => Some(schedule.arrival_process()),
            _ => self.arrival_process(),
        }
    }

    /// Returns after which time operation `number` of an open loop is due. The result is `None` for
    /// arrivals without a schedule.
    pub fn due(&self, number: u64) -> Option<Duration> {
        self.process().map(|arrival_process| arrival_process.due(number))
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Thinking(ThinkTime::Fixed { time, .. }) => write!(f, "closed, think time {time:?}"),
            Self::Thinking(ThinkTime::Exponential { mean, .. }) => {
                write!(f, "closed, exponential think time {mean:?}")
            }
            Self::Open(arrival_process) => arrival_process.fmt(f),
            Self::Shared(schedule) => write!(f, "{} over all connections", schedule.arrival_process()),
            Self::Burst { per_second } => write!(f, "burst {per_second}/s"),
        }
    }
}

impl fmt::Display for ArrivalProcess {
    /// Writes the process and its rate, such as `constant 2.4/s` or `poisson 1000/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/s", self.name(), trim(self.rate_per_second()))
    }
}

fn trim(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(operations: u64, per_ms: u64) -> Arrivals {
        let per = Duration::from_millis(per_ms);
        Arrivals::Open(ArrivalProcess::Constant { operations, per, phase: Duration::ZERO })
    }

    fn draws() -> Draws {
        Draws::new(1, 2, 3)
    }

    #[test]
    fn paces_read_as_rates() {
        let arrival_process = ArrivalProcess::poisson(10_000, Duration::from_secs(1), draws());
        let think = |millis| ThinkTime::Fixed { time: Duration::from_millis(millis), draws: draws() };
        let mean = Duration::from_millis(1500);
        let texts = [
            even(2, 1000).to_string(),
            even(12, 5000).to_string(),
            Arrivals::Burst { per_second: 20 }.to_string(),
            Arrivals::Shared(Arc::new(Schedule::new(arrival_process))).to_string(),
            Arrivals::Thinking(think(100)).to_string(),
            Arrivals::Thinking(ThinkTime::Exponential { mean, draws: draws() }).to_string(),
        ];
        insta::assert_snapshot!(texts.join("\n"), @r"
        constant 2/s
        constant 2.4/s
        burst 20/s
        poisson 10000/s over all connections
        closed, think time 100ms
        closed, exponential think time 1.5s
        ");
    }

    #[test]
    fn thinking_has_its_mean_and_the_first_pause_spreads_connections() {
        let mean = Duration::from_millis(10);
        let exponential = ThinkTime::Exponential { mean, draws: draws() };
        let total: Duration = (0..100_000).map(|number| exponential.before(number)).sum();
        let seconds = total.as_secs_f64();
        // 1,000 s are expected, and the standard deviation is 3.2 s.
        assert!((seconds - 1000.0).abs() < 13.0, "{seconds}");
        let fixed = |client| ThinkTime::Fixed { time: mean, draws: Draws::new(1, 2, client) };
        assert!((1..50).all(|number| fixed(1).before(number) == mean));
        let first: Vec<Duration> = (1..=100).map(|client| fixed(client).before(0)).collect();
        assert!(first.iter().all(|pause| *pause <= mean));
        let early = first.iter().filter(|pause| **pause < mean / 2).count();
        assert!((30..70).contains(&early), "{early}");
    }
}
