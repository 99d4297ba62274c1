//! Bench `truth` compares what dbdyno reports with the known truth of a programmed server. It also
//! measures what recording costs. A measurement starts a known-answer server, runs a plan of point
//! selects against it, and collects what both report afterwards.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dbdyno_known_answer::Distribution;
use dbdyno_record::{Clock, HistogramSpan, StepRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Bound, Setting, Table, hosts, median};
use crate::workspace;

/// Figures of times: the title, the key in the report, the key in the server's statistics, and the
/// probability (`None` for the mean).
const TIMES: [(&str, &str, &str, Option<f64>); 6] = [
    ("mean", "mean_us", "mean_us", None),
    ("p50", "p50_us", "p50_us", Some(0.5)),
    ("p90", "p90_us", "p90_us", Some(0.9)),
    ("p95", "p95_us", "p95_us", Some(0.95)),
    ("p99", "p99_us", "p99_us", Some(0.99)),
    ("p99.9", "p999_us", "p99_9_us", Some(0.999)),
];
/// Queries per second, unless a part has a rate of its own.
const RATE: u32 = 10_000;
/// Bound for a ratio to a limit, which is at most 1.
const LIMIT: Bound = Bound::AtMost(1.0);

/// One part of the bench. The number is the round's.
type BenchPart = fn(&Setting, u32, &mut Table) -> Result<()>;

const PARTS: [(&str, BenchPart); 7] = [
    ("delay", delays),
    ("long operations", long_operations),
    ("freeze", freeze),
    ("burn", burn),
    ("closed loop", wake_ups),
    ("schedule", schedule),
    ("sampling", recording),
];

pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    for round in 1..=setting.rounds {
        for (name, part) in PARTS.iter().filter(|(name, _)| setting.wants(name)) {
            setting.note_round(round, name);
            part(setting, round, table)?;
        }
    }
    Ok(vec![hosts::servers(&["known-answer".to_owned()])])
}

/// Compares reported service times with the distribution that the delays were drawn from, and also
/// with the server's own statistics, so that errors of client and server cannot cancel each other.
fn delays(setting: &Setting, round: u32, table: &mut Table) -> Result<()> {
    for text in ["exponential 5ms", "lognormal 4ms 0.5"] {
        let delay: Distribution = text.parse()?;
        let load = Load { connections: 128, rate: Some(RATE), seconds: 30, sampling: true, wait: None };
        // Each round draws other delays.
        let answer = measure(setting, text, &["--delay", text, "--seed", &round.to_string()], load)?;
        let part = format!("delay {text}, {RATE}/s");
        for (figure, reported, of_server, probability) in TIMES {
            let truth = probability.map_or_else(|| delay.mean(), |probability| delay.quantile(probability));
            let reported = answer.number(&format!("/metrics/query_service_{reported}"))?;
            let of_server = answer.of_server(&format!("/actual/{of_server}"))?;
            let near = Bound::Within(0.03);
            table.add(&part, &format!("service {figure}, µs"), near, [reported, micros(truth)]);
            let figure = format!("service {figure}, and the server's own, µs");
            table.add(&part, &figure, near, [reported, of_server]);
        }
        table.show(&part, "the server's own lateness p99, µs", answer.of_server("/late/p99_us")?);
    }
    Ok(())
}

/// Measures operations that are short and long relative to their window. The rate must follow from
/// the server's delay. The rate times the mean time must be the number of connections (Little's
/// law).
fn long_operations(setting: &Setting, _: u32, table: &mut Table) -> Result<()> {
    for (delay, delay_us) in [("50us", 50.0), ("1ms", 1e3), ("50ms", 5e4), ("500ms", 5e5), ("2s", 2e6)] {
        for connections in [1, 4, 16, 64, 256] {
            let load = Load { connections, rate: None, seconds: 3, sampling: true, wait: None };
            let what = format!("{connections} connections, {delay}");
            let answer =
                measure(setting, &what, &["--prepared-only", "--delay", &format!("constant {delay}")], load)?;
            let rate = answer.number("/metrics/rate")?;
            let truth = f64::from(connections) * 1e6 / delay_us;
            // Waking server and client takes up to some hundred µs more than a short delay.
            let is_within_reach = delay_us >= 10_000.0;
            let near = |share| if is_within_reach { Bound::Within(share) } else { Bound::Shown };
            table.add("long operations", &format!("{what}: rate/s"), near(0.1), [rate, truth]);
            let at_work = rate * answer.mean_cycle_us()? / 1e6;
            table.add(
                "long operations",
                &format!("{what}: rate × mean time"),
                Bound::Within(0.03),
                [at_work, f64::from(connections)],
            );
        }
    }
    Ok(())
}

/// Compares response times of a server that freezes with their known truth, and shows that a closed
/// loop does not see the freeze.
fn freeze(setting: &Setting, _: u32, table: &mut Table) -> Result<()> {
    const CONNECTIONS: u32 = 20;
    const SERVICE: Duration = Duration::from_millis(1);
    const FREEZE: Duration = Duration::from_millis(200);
    const PERIOD: Duration = Duration::from_secs(10);
    // Freezes count from the first statement of the set-up. The first freeze comes after 5 s.
    // Therefore the 30 s of the step hold three freezes with all their effects, and none is cut
    // off.
    let options = ["--delay", "constant 1ms", "--freeze", "200ms every 10s at 5s"];
    let load = Load { connections: CONNECTIONS, rate: Some(RATE), seconds: 30, sampling: true, wait: None };
    let answer = measure(setting, "freeze, open loop", &options, load)?;
    let part = format!("freeze 200ms every 10s, {RATE}/s on {CONNECTIONS} connections, 1 ms each");
    let used = f64::from(RATE) * SERVICE.as_secs_f64() / f64::from(CONNECTIONS);
    for (figure, reported, tail) in [("p99", "p99_us", 0.01), ("p99.9", "p999_us", 0.001)] {
        let truth = micros(SERVICE) + micros(longest_wait(FREEZE, PERIOD, used, tail));
        let reported = answer.number(&format!("/metrics/query_response_{reported}"))?;
        table.add(&part, &format!("response {figure}, µs"), Bound::Within(0.05), [reported, truth]);
    }
    let answer = measure(setting, "freeze, closed loop", &options, Load { rate: None, ..load })?;
    let part = "the same server, closed loop";
    // Each freeze meets one request per connection, which is too few to show at p99.
    let most = micros(2 * SERVICE);
    table.add(part, "service p99, µs", LIMIT, [answer.number("/metrics/query_service_p99_us")?, most]);
    table.show(part, "service p99.9, µs", answer.number("/metrics/query_service_p999_us")?);
    Ok(())
}

/// Returns the wait that a share `tail` of evenly spaced arrivals exceeds. The server is busy for
/// the share `used` of its time, and freezes for `freeze` every `period`.
///
/// A request that arrives when the freeze begins waits for all of it. A request that arrives at
/// time t after that waits for the rest of the freeze and for the requests before it, which is
/// freeze - t + used t. After the freeze the backlog is worked off while more requests arrive, and
/// the wait still falls by 1 - used per second. So the wait falls evenly from `freeze` to 0 over a
/// busy time of freeze / (1 - used), and P(wait > x) = (busy time / period) (1 - x / freeze). At
/// half load and 200 ms every 10 s that is 0.04 (1 - x / 200 ms).
fn longest_wait(freeze: Duration, period: Duration, used: f64, tail: f64) -> Duration {
    let delayed_share = freeze.as_secs_f64() / (1.0 - used) / period.as_secs_f64();
    freeze.mul_f64((1.0 - tail / delayed_share).max(0.0))
}

/// Compares the server CPU that a burn adds to each query with the length of the burn.
fn burn(setting: &Setting, _: u32, table: &mut Table) -> Result<()> {
    let load = Load { connections: 16, rate: Some(2_000), seconds: 10, sampling: true, wait: None };
    let answer = measure(setting, "burn 100us", &["--burn", "100us"], load)?;
    let with = answer.number("/metrics/server_cpu_us")?;
    let burnt = answer.of_server("/burnt_seconds")? * 1e6 / answer.of_server("/actual/count")?;
    // A burn of 1 ns reads the thread's CPU clock as the other burn does, and so costs the same
    // calls.
    let without = measure(setting, "no burn", &["--burn", "1ns"], load)?.number("/metrics/server_cpu_us")?;
    let (part, figure) = ("burn 100us per query, 2000/s", "server CPU per query beyond none, µs");
    table.add(part, figure, Bound::Within(0.03), [with - without, 100.0]);
    let figure = "server CPU per query beyond none, and the server's own, µs";
    table.add(part, figure, Bound::Within(0.03), [with - without, burnt]);
    Ok(())
}

/// Measures what waking the client costs a server. The same programmed work runs in a closed loop
/// at full speed, for a client that sleeps and for one that spins. The true cost of a request is
/// its burn and the protocol's own work. That work is the cost of a request without a burn while
/// the client spins. Nothing is measured where server and client have no CPUs of their own.
fn wake_ups(setting: &Setting, _: u32, table: &mut Table) -> Result<()> {
    const BURNS_US: [u32; 4] = [40, 5, 10, 20];
    if hosts::halves().1.is_none() {
        return Ok(());
    }
    for connections in [1, 4, 16] {
        let server_cpu_us = |wait: &'static str, burn_us: u32| {
            let burn = if burn_us == 0 { "1ns".to_owned() } else { format!("{burn_us}us") };
            let load = Load { connections, rate: None, seconds: 3, sampling: true, wait: Some(wait) };
            let what = format!("burn {burn}, {connections} connections, {wait}");
            measure(setting, &what, &["--threads", "1", "--burn", &burn], load)?
                .number("/metrics/server_cpu_us")
        };
        let own_us = server_cpu_us("spin", 0)?;
        for wait in ["spin", "sleep"] {
            let part = format!("closed loop, {connections} connections, client {wait}s");
            // What a sleeping client adds is the server's cost of waking it.
            let near = |share| if wait == "spin" { Bound::Within(share) } else { Bound::Shown };
            let truth = |burn_us: u32| f64::from(burn_us) + own_us;
            let mut dearest = None;
            for burn_us in BURNS_US {
                let cpu_us = server_cpu_us(wait, burn_us)?;
                let figure = format!("server CPU per query, burn {burn_us} µs");
                table.add(&part, &figure, near(0.05), [cpu_us, truth(burn_us)]);
                if let Some(dearest_us) = dearest {
                    let figure = format!("burn {burn_us} ÷ burn {}", BURNS_US[0]);
                    let ratio = truth(burn_us) / truth(BURNS_US[0]);
                    table.add(&part, &figure, near(0.02), [cpu_us / dearest_us, ratio]);
                }
                dearest = dearest.or(Some(cpu_us));
            }
        }
    }
    Ok(())
}

/// Measures whether a constant schedule is kept, and how much CPU the process uses meanwhile
/// besides its load threads.
fn schedule(setting: &Setting, _: u32, table: &mut Table) -> Result<()> {
    for rate in [1_000, RATE] {
        let load = Load { connections: 16, rate: Some(rate), seconds: 60, sampling: true, wait: None };
        let part = format!("schedule {rate}/s for {} s", load.seconds);
        let answer = measure(setting, &part, &[], load)?;
        let truth = f64::from(rate);
        table.add(&part, "rate, per second", Bound::Within(0.001), [answer.number("/metrics/rate")?, truth]);
        table.add(&part, "lag p99, µs", LIMIT, [answer.lag_p99_us()?, 200.0]);
        let outside = answer.outside_load_percent()?;
        table.add(&part, "CPU outside the load threads, % of a core", LIMIT, [outside, 0.5]);
        let sampler = answer.number("/metrics/sampler_core_share")? * 100.0;
        table.show(&part, "of it the sampler, % of a core", sampler);
    }
    Ok(())
}

/// Shows that sampling has no visible cost: the median of p99.9 with sampling is no higher than the
/// highest value without it.
fn recording(setting: &Setting, _: u32, table: &mut Table) -> Result<()> {
    const PAIRS: u32 = 4;
    let mut p999 = [Vec::new(), Vec::new()];
    for turn in 0..2 * PAIRS {
        // The order is on, off, off, on, so that neither always comes second.
        let sampling = matches!(turn % 4, 0 | 3);
        let load = Load { connections: 16, rate: Some(RATE), seconds: 8, sampling, wait: None };
        let what = if sampling { "with sampling" } else { "without sampling" };
        let answer = measure(setting, what, &["--delay", "constant 500us"], load)?;
        p999[usize::from(!sampling)].push(answer.number("/metrics/query_response_p999_us")?);
    }
    let part = "delay 500us, 10000/s, sampling on and off in turn";
    let highest = p999[1].iter().copied().fold(0.0, f64::max);
    let figure = "response p99.9 with sampling (median), and the highest without, µs";
    table.add(part, figure, LIMIT, [median(p999[0].iter().copied()), highest]);
    table.show(part, "response p99.9 without, µs", median(p999[1].iter().copied()));
    Ok(())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) connections: u32,
    /// Queries per second of all connections together, at equal distances. `None` is a closed loop.
    pub(crate) rate: Option<u32>,
    pub(crate) seconds: u32,
    pub(crate) sampling: bool,
    /// How the client waits for answers. `None` leaves it to dbdyno, as does a client without CPUs
    /// of its own.
    pub(crate) wait: Option<&'static str>,
}

/// What client and server report of the step.
pub(crate) struct Answer {
    /// The step in the report.
    step: Value,
    record: StepRecord,
    /// The server's own statistics.
    server: Value,
}

/// Runs `load` against a known-answer server with `options`, and returns what both report.
fn measure(setting: &Setting, what: &str, options: &[&str], load: Load) -> Result<Answer> {
    workspace::note(what);
    let server = KnownAnswer::start(setting, options)?;
    let Load { connections, rate, seconds, sampling, wait } = load;
    let wait = wait.filter(|_| hosts::halves().1.is_some());
    let wait = wait.map_or_else(String::new, |wait| format!("\nclient_wait = \"{wait}\""));
    let arrivals =
        rate.map_or_else(String::new, |rate| format!("\narrivals = \"constant\"\nrates = [{rate}]"));
    let oltp = format!(
        "settle_wait = \"0s\"\ntests = [\"point-select\"]\nconnections = [{connections}]\ntime = \"{seconds}s\"\n\
         table_size = 100\nload_connections = 1\ncreate_secondary = false\nverify = \"off\"{arrivals}"
    );
    let address = format!("mysql://root@localhost/dbdyno?socket={}", server.file("answer.sock").display());
    let plan = hosts::plan_text(&address, &format!("sampling = {sampling}{wait}"), &oltp);
    let ran = hosts::run_plan(setting, &plan)?;
    let rate = rate.map_or_else(String::new, |rate| format!(".r{rate}"));
    let name = format!("point-select.c{connections}{rate}");
    let step = ran.any_step(&name)?.clone();
    if step["state"] != "valid" {
        workspace::note(&format!("{what} is not valid, but its figures count: {}", hosts::why(&step)));
    }
    Ok(Answer { step, record: ran.record(&name)?, server: server.stop()? })
}

impl Answer {
    /// Returns the number at `pointer` of the step.
    pub(crate) fn number(&self, pointer: &str) -> Result<f64> {
        hosts::number(&self.step, pointer)
    }

    /// Returns the number at `pointer` of the server's statistics.
    pub(crate) fn of_server(&self, pointer: &str) -> Result<f64> {
        hosts::number(&self.server, pointer).context("the known-answer server's account")
    }

    /// Returns the 99th percentile, in µs, of the delay with which the load engine sent an
    /// operation for which a connection was free.
    fn lag_p99_us(&self) -> Result<f64> {
        let (from_us, to_us) = self.window()?;
        let lags = self.record.histograms.iter().filter(|span| {
            span.clock == Clock::Lag && span.kind == "query" && span.from_us >= from_us && span.to_us <= to_us
        });
        let sum = HistogramSpan::sum(lags)?.context("the record holds no lag")?;
        Ok(sum.value_at_quantile(0.99) as f64)
    }

    /// Returns the mean time in µs from the end of one query of a connection to the end of the
    /// next.
    fn mean_cycle_us(&self) -> Result<f64> {
        let (from_us, _) = self.window()?;
        let since = self.record.intervals.iter().filter(|interval| interval.from_us >= from_us);
        let (mut queries, mut cycles_us) = (0, 0);
        for interval in since {
            queries += interval.done;
            cycles_us += interval.cycle_sum_us;
        }
        Ok(cycles_us as f64 / queries as f64)
    }

    /// Returns the CPU that the client's process used besides its load threads, in percent of one
    /// core. It covers sampling, writing the record and everything else.
    fn outside_load_percent(&self) -> Result<f64> {
        let (from_us, to_us) = self.window()?;
        let share = |source: &str| -> Result<f64> {
            let series = self.record.counters.get(source);
            let series = series.with_context(|| format!("the record has no counters of {source}"))?;
            let at = |at_us: u64| series.nearest("cpu_us", at_us.cast_signed());
            let ends = at(from_us).zip(at(to_us)).filter(|(from, to)| from.0 < to.0);
            let (from, to) = ends.with_context(|| format!("{source} was not sampled twice"))?;
            Ok((to.1 - from.1) as f64 / (to.0 - from.0) as f64)
        };
        Ok((share("client")? - share("load")?) * 100.0)
    }

    fn window(&self) -> Result<(u64, u64)> {
        self.record.window().context("the step has no common window")
    }
}

/// A running `dbdyno known-answer`. It is killed when dropped without [`KnownAnswer::stop`].
struct KnownAnswer {
    child: Child,
    /// Folder of socket and statistics. Socket paths must be short, and the paths of build folders
    /// may not be.
    folder: tempfile::TempDir,
}

impl KnownAnswer {
    /// Starts it on the server's half of the CPUs with `options` (`["--delay", "exponential
    /// 5ms"]`).
    fn start(setting: &Setting, options: &[&str]) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("bench-truth-").tempdir()?;
        let mut line = Command::new(&setting.dbdyno);
        line.args(["known-answer", "--protocol", "mysql", "--cpus"]);
        line.arg(hosts::cpu_list(hosts::halves().0.as_deref())).args(options);
        line.arg("--socket").arg(folder.path().join("answer.sock"));
        line.arg("--stats").arg(folder.path().join("stats.json"));
        let child = line.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut server = Self { child: child.context("dbdyno cannot be run")?, folder };
        let out = server.child.stdout.take().context("its output is a pipe")?;
        let mut said = String::new();
        BufReader::new(out).read_line(&mut said)?;
        match said.starts_with("listening") {
            true => Ok(server),
            false => bail!("dbdyno known-answer {} does not listen", options.join(" ")),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Stops the server, and returns its statistics.
    fn stop(mut self) -> Result<Value> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("dbdyno known-answer ended with {status}");
        }
        let stats = std::fs::read_to_string(self.file("stats.json"))?;
        serde_json::from_str(&stats).context("its statistics are not JSON")
    }
}

impl Drop for KnownAnswer {
    fn drop(&mut self) {
        // This has no effect on a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

    /// The test compares the formula with a simulated queue, which serves every arrival of a period
    /// one after the other.
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
