//! One question: a known-answer server, a plan of point selects against it, and what both say
//! afterwards.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use dbdyno_record::{Clock, HistogramSpan, StepRecord};
use serde_json::Value;

use super::server::KnownAnswer;
use crate::bench::{machine, runs};
use crate::terminal;

#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: u32,
    /// Queries a second of all connections together, at equal distances; `None` for a closed loop.
    pub(super) rate: Option<u32>,
    pub(super) seconds: u32,
    pub(super) sampling: bool,
    /// How the client waits for answers; dbdyno's own choice for `None`, and where it has no CPUs
    /// of its own.
    pub(super) wait: Option<&'static str>,
}

/// What client and server say of the step.
pub(super) struct Answer {
    /// The step's run in the report.
    pub(super) run: Value,
    pub(super) record: StepRecord,
    /// The server's own account.
    pub(super) server: Value,
}

/// Runs `load` against a server with `options`; the run lies in folder `name` of `folder`.
pub(super) fn ask(dbdyno: &Path, folder: &Path, name: &str, options: &[&str], load: Load) -> Result<Answer> {
    let server = KnownAnswer::start(dbdyno, options)?;
    let (_, cpus) = machine::halves();
    let text = plan(name, &server.address(), load, cpus.as_deref());
    let report = runs::measured(dbdyno, folder, name, &text, &[])?;
    let step = step_name(load);
    let run = runs::any_step(&report, &step)?.clone();
    if run["validity"]["state"] != "valid" {
        terminal::note(&format!("{name} is not valid, but its figures count: {}", run["validity"]));
    }
    let record = runs::record(folder, name, &step)?;
    Ok(Answer { run, record, server: server.stop()? })
}

fn step_name(load: Load) -> String {
    let rate = load.rate.map_or_else(String::new, |rate| format!(".r{rate}"));
    format!("point-select.c{}{rate}", load.connections)
}

fn plan(name: &str, address: &str, load: Load, client_cpus: Option<&[u32]>) -> String {
    let Load { connections, rate, seconds, sampling, wait } = load;
    let mut text = format!("name = \"{name}\"\n\n[host]\nsampling = {sampling}\n");
    if let Some(cpus) = client_cpus {
        let _ = writeln!(text, "client_cpus = \"{}\"", machine::list(Some(cpus)));
        if let Some(wait) = wait {
            let _ = writeln!(text, "client_wait = \"{}\"", wait);
        }
    }
    let _ = write!(
        text,
        "\n[[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\n\
         connections = [{connections}]\ntime = \"{seconds}s\"\ntable_size = 100\nload_connections = 1\n\
         create_secondary = false\nverify = \"off\"\n"
    );
    if let Some(rate) = rate {
        let _ = write!(text, "pace = \"constant\"\nrates = [{rate}]\n");
    }
    text
}

impl Answer {
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        runs::number(&self.run, pointer)
    }

    /// The number at `pointer` of the server's account.
    pub(super) fn server_number(&self, pointer: &str) -> Result<f64> {
        let value = self.server.pointer(pointer).and_then(Value::as_f64);
        value.with_context(|| format!("the known-answer server does not report {pointer}"))
    }

    /// p99 of how late the load engine was with what a free connection was waiting to send.
    pub(super) fn lag_p99_us(&self) -> Result<f64> {
        let (from_us, to_us) = self.window()?;
        let lags = self.record.histograms.iter().filter(|span| {
            span.clock == Clock::Lag && span.kind == "query" && span.from_us >= from_us && span.to_us <= to_us
        });
        let sum = HistogramSpan::sum(lags)?.context("the record holds no lag")?;
        Ok(sum.value_at_quantile(0.99) as f64)
    }

    /// CPU that the client's process used during its load threads, as a share of one core:
    /// sampling, writing the record and everything else.
    pub(super) fn outside_load_share(&self) -> Result<f64> {
        let (from_us, to_us) = self.window()?;
        let share = |source: &str| -> Result<f64> {
            let series = self.record.counters.get(source);
            let series = series.with_context(|| format!("the record has no counters of {source}"))?;
            let at = |at_us: u64| series.nearest("cpu_us", at_us.cast_signed());
            let ends = at(from_us).zip(at(to_us)).filter(|(from, to)| from.0 < to.0);
            let (from, to) = ends.with_context(|| format!("{source} was not sampled twice"))?;
            Ok((to.1 - from.1) as f64 / (to.0 - from.0) as f64)
        };
        Ok(share("client")? - share("load")?)
    }

    fn window(&self) -> Result<(u64, u64)> {
        self.record.window().context("the step has no common window")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_needs_nothing_of_the_server_but_point_selects() {
        let load = Load { connections: 128, rate: Some(10_000), seconds: 30, sampling: true, wait: None };
        assert_eq!(step_name(load), "point-select.c128.r10000");
        insta::assert_snapshot!(plan("x", "mysql://root@localhost/dbdyno?socket=/run/s", load, Some(&[2, 3])), @r#"
        name = "x"

        [host]
        sampling = true
        client_cpus = "2,3"

        [[variant]]
        name = "server"
        address = "mysql://root@localhost/dbdyno?socket=/run/s"

        [workload.oltp]
        settle_wait = "0s"
        tests = ["point-select"]
        connections = [128]
        time = "30s"
        table_size = 100
        load_connections = 1
        create_secondary = false
        verify = "off"
        pace = "constant"
        rates = [10000]
        "#);
        let spinning = Load { wait: Some("spin"), ..load };
        assert!(
            plan("x", "a", spinning, Some(&[2])).contains("client_cpus = \"2\"\nclient_wait = \"spin\"\n")
        );
        let closed = Load { rate: None, ..load };
        assert_eq!(step_name(closed), "point-select.c128");
        assert!(!plan("x", "a", closed, None).contains("pace"));
    }
}
