//! Runs one measurement: it starts a known-answer server, runs a plan of point selects against it,
//! and collects what both report afterwards.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use dbdyno_record::{Clock, HistogramSpan, StepRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::bench::{Setting, machine, runs};
use crate::terminal;

#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: u32,
    /// Queries per second of all connections together, at equal distances. `None` is a closed loop.
    pub(super) rate: Option<u32>,
    pub(super) seconds: u32,
    pub(super) sampling: bool,
    /// How the client waits for answers. `None` leaves it to dbdyno, as does a client without CPUs
    /// of its own.
    pub(super) wait: Option<&'static str>,
}

/// What client and server report of the step.
pub(super) struct Answer {
    /// The step in the report.
    step: Value,
    record: StepRecord,
    /// The server's own statistics.
    server: Value,
}

/// Runs `load` against a server with `options`.
pub(super) fn ask(setting: &Setting, what: &str, options: &[&str], load: Load) -> Result<Answer> {
    terminal::note(what);
    let server = KnownAnswer::start(setting, options)?;
    let Load { connections, rate, seconds, sampling, wait } = load;
    let wait = wait.filter(|_| machine::halves().1.is_some());
    let wait = wait.map_or_else(String::new, |wait| format!("\nclient_wait = \"{wait}\""));
    let arrivals =
        rate.map_or_else(String::new, |rate| format!("\narrivals = \"constant\"\nrates = [{rate}]"));
    let oltp = format!(
        "settle_wait = \"0s\"\ntests = [\"point-select\"]\nconnections = [{connections}]\ntime = \"{seconds}s\"\n\
         table_size = 100\nload_connections = 1\ncreate_secondary = false\nverify = \"off\"{arrivals}"
    );
    let address = format!("mysql://root@localhost/dbdyno?socket={}", server.file("answer.sock").display());
    let plan = runs::plan(&address, &format!("sampling = {sampling}{wait}"), &oltp);
    let ran = runs::run(setting, &plan)?;
    let rate = rate.map_or_else(String::new, |rate| format!(".r{rate}"));
    let name = format!("point-select.c{connections}{rate}");
    let step = ran.any_step(&name)?.clone();
    if step["state"] != "valid" {
        terminal::note(&format!("{what} is not valid, but its figures count: {}", runs::why(&step)));
    }
    Ok(Answer { step, record: ran.record(&name)?, server: server.stop()? })
}

impl Answer {
    /// Returns the number at `pointer` of the step.
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        runs::number(&self.step, pointer)
    }

    /// Returns the number at `pointer` of the server's statistics.
    pub(super) fn of_server(&self, pointer: &str) -> Result<f64> {
        runs::number(&self.server, pointer).context("the known-answer server's account")
    }

    /// Returns the 99th percentile in µs of the time by which the load engine was late to send what
    /// a free connection had to send.
    pub(super) fn lag_p99_us(&self) -> Result<f64> {
        let (from_us, to_us) = self.window()?;
        let lags = self.record.histograms.iter().filter(|span| {
            span.clock == Clock::Lag && span.kind == "query" && span.from_us >= from_us && span.to_us <= to_us
        });
        let sum = HistogramSpan::sum(lags)?.context("the record holds no lag")?;
        Ok(sum.value_at_quantile(0.99) as f64)
    }

    /// Returns the mean time in µs from the end of one query of a connection to the end of the
    /// next.
    pub(super) fn mean_cycle_us(&self) -> Result<f64> {
        let (from_us, _) = self.window()?;
        let since = self.record.intervals.iter().filter(|interval| interval.from_us >= from_us);
        let (mut queries, mut cycles_us) = (0, 0);
        for interval in since {
            queries += interval.done;
            cycles_us += interval.cycle_sum_us;
        }
        Ok(cycles_us as f64 / queries as f64)
    }

    /// Returns the CPU that the client's process used beside its load threads, in percent of one
    /// core. It covers sampling, writing the record and everything else.
    pub(super) fn outside_load_percent(&self) -> Result<f64> {
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
        line.arg(machine::list(machine::halves().0.as_deref())).args(options);
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

    /// Stops the server, and returns its report on what it did.
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
        // The call has no effect on a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
