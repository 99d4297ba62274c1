//! What is asked, with the truth of each answer.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use dbdyno_known_answer::Distribution;

use super::ask::{Answer, Load, ask};
use super::check::{Bound, Checks};

/// A figure's place in the report, in the server's account, and its probability (`None` for the
/// mean).
const TIMES: [(&str, &str, &str, Option<f64>); 6] = [
    ("mean", "mean_us", "mean_us", None),
    ("p50", "p50_us", "p50_us", Some(0.5)),
    ("p90", "p90_us", "p90_us", Some(0.9)),
    ("p95", "p95_us", "p95_us", Some(0.95)),
    ("p99", "p99_us", "p99_us", Some(0.99)),
    ("p99.9", "p999_us", "p99_9_us", Some(0.999)),
];
/// Queries a second where nothing else is said.
const RATE: u32 = 10_000;

/// Where a round's runs go, and the numbers that distinguish it from others.
pub(super) struct Round<'a> {
    pub(super) dbdyno: &'a Path,
    pub(super) folder: &'a Path,
    /// From 1 on; the server's seed, so that rounds draw different delays.
    pub(super) number: u32,
}

impl Round<'_> {
    pub(super) fn ask(&self, name: &str, options: &[&str], load: Load) -> Result<Answer> {
        crate::terminal::note(&format!("round {}: {name}", self.number));
        ask(self.dbdyno, self.folder, name, options, load)
    }
}

/// Reported service times against the distribution that the delays were drawn from.
pub(super) fn delays(round: &Round<'_>, checks: &mut Checks) -> Result<()> {
    const SECONDS: u32 = 30;
    for (name, text) in [("delay-exponential", "exponential 5ms"), ("delay-lognormal", "lognormal 4ms 0.5")] {
        let delay: Distribution = text.parse()?;
        let load = Load { connections: 128, rate: Some(RATE), seconds: SECONDS, sampling: true, wait: None };
        let answer = round.ask(name, &["--delay", text, "--seed", &round.number.to_string()], load)?;
        let part = format!("delay {text}, {RATE}/s");
        for (figure, reported, of_server, probability) in TIMES {
            let truth = probability.map_or_else(|| delay.mean(), |probability| delay.quantile(probability));
            let bound = Bound::Near { truth: micros(truth), share: 0.03 };
            let sample = answer.number(&format!("/kinds/0/service/{reported}"))?;
            let of_server = answer.server_number(&format!("/actual/{of_server}"))?;
            checks.add(&part, &format!("service {figure}, µs"), bound, sample).of_server.push(of_server);
        }
        let late = answer.server_number("/late/p99_us")?;
        checks.add(&part, "the server's own lateness p99, µs", Bound::Shown, late);
    }
    Ok(())
}

/// Response times over a server that freezes, and that a closed loop does not see it.
pub(super) fn freeze(round: &Round<'_>, checks: &mut Checks) -> Result<()> {
    const CONNECTIONS: u32 = 20;
    const SERVICE: Duration = Duration::from_millis(1);
    const FREEZE: Duration = Duration::from_millis(200);
    const PERIOD: Duration = Duration::from_secs(10);
    // Freezes count from the first statement of the set-up. Their first comes after 5 s, so that
    // the 30 s of the step hold three with all that they cause, and none is cut off.
    let options = ["--delay", "constant 1ms", "--freeze", "200ms every 10s at 5s"];
    let load = Load { connections: CONNECTIONS, rate: Some(RATE), seconds: 30, sampling: true, wait: None };
    let answer = round.ask("freeze-open", &options, load)?;
    let part = format!("freeze 200ms every 10s, {RATE}/s on {CONNECTIONS} connections, 1 ms each");
    let used = f64::from(RATE) * SERVICE.as_secs_f64() / f64::from(CONNECTIONS);
    for (figure, reported, tail) in [("p99", "p99_us", 0.01), ("p99.9", "p999_us", 0.001)] {
        let truth = micros(SERVICE) + micros(longest_wait(FREEZE, PERIOD, used, tail));
        let bound = Bound::Near { truth, share: 0.05 };
        let sample = answer.number(&format!("/kinds/0/response/{reported}"))?;
        checks.add(&part, &format!("response {figure}, µs"), bound, sample);
    }
    let answer = round.ask("freeze-closed", &options, Load { rate: None, ..load })?;
    let part = "the same server, closed loop".to_owned();
    // A request a connection and freeze meets it: too few to be seen at p99.
    let bound = Bound::AtMost(micros(2 * SERVICE));
    checks.add(&part, "service p99, µs", bound, answer.number("/kinds/0/service/p99_us")?);
    checks.add(&part, "service p99.9, µs", Bound::Shown, answer.number("/kinds/0/service/p999_us")?);
    Ok(())
}

/// The wait that a share `tail` of evenly spaced arrivals exceeds, at a server that is `used` in
/// that part of its time and freezes for `freeze` every `period`.
///
/// Who arrives when the freeze begins waits for all of it. Who arrives at time t of it waits for
/// its rest and for those before: freeze - t + used t. After its end the backlog is worked off
/// while more arrives: the wait still falls by 1 - used a second. So it falls evenly from `freeze`
/// to 0 over a busy time of freeze / (1 - used), and P(wait > x) = (busy time / period) (1 - x /
/// freeze). At half load and 200 ms every 10 s that is 0.04 (1 - x / 200 ms).
fn longest_wait(freeze: Duration, period: Duration, used: f64, tail: f64) -> Duration {
    let delayed_share = freeze.as_secs_f64() / (1.0 - used) / period.as_secs_f64();
    freeze.mul_f64((1.0 - tail / delayed_share).max(0.0))
}

/// CPU that each query costs the server, more with a burn than without.
pub(super) fn burn(round: &Round<'_>, checks: &mut Checks) -> Result<()> {
    let load = Load { connections: 16, rate: Some(2_000), seconds: 10, sampling: true, wait: None };
    // A burn of 1 ns reads the thread's CPU clock as the other does, and so costs the same calls.
    let answer = round.ask("burn", &["--burn", "100us"], load)?;
    let with = answer.number("/cost/server_cpu_us")?;
    let statements = answer.server_number("/actual/count")?;
    let burnt = answer.server_number("/burnt_seconds")? * 1e6 / statements;
    let without = round.ask("burn-none", &["--burn", "1ns"], load)?.number("/cost/server_cpu_us")?;
    let bound = Bound::Near { truth: 100.0, share: 0.03 };
    let (part, figure) = ("burn 100us a query, 2000/s", "server CPU a query beyond none, µs");
    checks.add(part, figure, bound, with - without).of_server.push(burnt);
    Ok(())
}

/// Whether a constant schedule is kept, and what the process uses during its load threads
/// meanwhile.
pub(super) fn schedule(round: &Round<'_>, checks: &mut Checks) -> Result<()> {
    for rate in [1_000, RATE] {
        let load = Load { connections: 16, rate: Some(rate), seconds: 60, sampling: true, wait: None };
        let answer = round.ask(&format!("schedule-{rate}"), &[], load)?;
        let part = format!("schedule {rate}/s for {} s", load.seconds);
        let bound = Bound::Near { truth: f64::from(rate), share: 0.001 };
        checks.add(&part, "rate, per second", bound, answer.number("/rate")?);
        checks.add(&part, "lag p99, µs", Bound::AtMost(200.0), answer.lag_p99_us()?);
        let outside = answer.outside_load_share()? * 100.0;
        checks.add(&part, "CPU outside the load threads, % of a core", Bound::AtMost(0.5), outside);
        let sampler = answer.number("/cost/sampler_core_share")? * 100.0;
        checks.add(&part, "of it the sampler, % of a core", Bound::Shown, sampler);
    }
    Ok(())
}

/// p99.9 with and without sampling, in turn. Returns both.
pub(super) fn recording(round: &Round<'_>) -> Result<[Vec<f64>; 2]> {
    const PAIRS: u32 = 4;
    let mut p999 = [Vec::new(), Vec::new()];
    for turn in 0..2 * PAIRS {
        // on, off, off, on: neither always comes second
        let sampling = matches!(turn % 4, 0 | 3);
        let load = Load { connections: 16, rate: Some(RATE), seconds: 8, sampling, wait: None };
        let name = format!("sampling-{}-{turn}", if sampling { "on" } else { "off" });
        let answer = round.ask(&name, &["--delay", "constant 500us"], load)?;
        p999[usize::from(!sampling)].push(answer.number("/kinds/0/response/p999_us")?);
    }
    Ok(p999)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_at_half_load_are_those_of_the_formula() {
        let wait = |tail| longest_wait(Duration::from_millis(200), Duration::from_secs(10), 0.5, tail);
        assert_eq!((wait(0.01), wait(0.001)), (Duration::from_millis(150), Duration::from_millis(195)));
        assert_eq!(wait(0.05), Duration::ZERO);
    }

    /// The formula against the queue itself: every arrival of a period, served one after the other.
    #[test]
    fn waits_are_those_of_a_queue_that_is_worked_through() {
        let (service_us, gap_us, freeze_us) = (50_i64, 100_i64, 200_000_i64);
        let mut free_at = freeze_us;
        let mut waits: Vec<i64> = (0..100_000)
            .map(|number| {
                let due = number * gap_us;
                let begin = free_at.max(due);
                free_at = begin + service_us;
                begin - due
            })
            .collect();
        waits.sort_unstable();
        assert_eq!((waits[99_000] - 150_000).abs() / 1_000, 0);
        assert_eq!((waits[99_900] - 195_000).abs() / 1_000, 0);
    }
}
