//! Runs dbdyno with a plan, and reads its report and records.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use dbdyno_record::StepRecord;
use serde_json::Value;

use super::{Setting, machine};
use crate::command::{cargo, output, run as run_command};
use crate::places;

/// A run that has ended.
pub(super) struct Ran {
    report: Value,
    directory: PathBuf,
    /// Highest resident memory of the process, in bytes.
    pub(super) peak_bytes: f64,
}

/// Builds an example of the drivers in release, and returns its path.
pub(super) fn built_example(name: &str) -> Result<PathBuf> {
    let package = ["--package", "dbdyno-db"];
    run_command(cargo(&["build", "--locked", "--release", "--example", name]).args(package))?;
    Ok(places::target().join("release/examples").join(name))
}

/// Makes a plan of workload `oltp` on the server at `address`, with its client on the client's
/// CPUs. `host` and `oltp` are lines of these sections.
pub(super) fn plan(address: &str, host: &str, oltp: &str) -> String {
    let cpus = machine::halves().1;
    let cpus =
        cpus.map_or_else(String::new, |cpus| format!("client_cpus = \"{}\"\n", machine::list(Some(&cpus))));
    format!(
        "name = \"bench\"\n\n[host]\n{cpus}{host}\n\n[[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n\
         [workload.oltp]\n{oltp}\n"
    )
}

/// Runs a plan in a folder of its own.
pub(super) fn run(setting: &Setting, plan: &str) -> Result<Ran> {
    let folder = tempfile::Builder::new().prefix("run-").tempdir_in(&setting.folder)?.keep();
    let (file, runs) = (folder.join("plan.toml"), folder.join("runs"));
    std::fs::write(&file, plan)?;
    let ended = machine::ended(Command::new(&setting.dbdyno).arg("run").arg(&file).arg("--out").arg(&runs))?;
    let found = std::fs::read_dir(&runs)?.flatten().map(|entry| entry.path()).next();
    let directory = found.with_context(|| format!("{} holds no run", runs.display()))?;
    let report =
        output(Command::new(&setting.dbdyno).arg("report").arg(&directory).args(["--format", "json"]))?;
    let report = serde_json::from_str(&report).context("the report is not JSON")?;
    Ok(Ran { report, directory, peak_bytes: ended.peak_bytes })
}

impl Ran {
    /// Returns the step of this name in the report. It must be valid.
    pub(super) fn step(&self, name: &str) -> Result<&Value> {
        let step = self.any_step(name)?;
        match step["state"] == "valid" {
            true => Ok(step),
            false => bail!("step {name} is not valid: {}", why(step)),
        }
    }

    /// Returns a step as [`Ran::step`] does, valid or not. It is for a bench that judges the
    /// figures itself.
    pub(super) fn any_step(&self, name: &str) -> Result<&Value> {
        let rows = self.report["observations"].as_array().context("the report has no observations")?;
        let found = rows.iter().find(|one| one["step"] == name && one["block"].is_number());
        found.with_context(|| format!("the report has no step {name}"))
    }

    /// Returns the record of a step in the only cell.
    pub(super) fn record(&self, step: &str) -> Result<StepRecord> {
        let run = dbdyno_record::Run::open(&self.directory)?;
        let cell = run.cells.into_iter().next_back().context("the run has no cell")?;
        let found = cell.steps.into_iter().find(|one| one.name == step);
        found.with_context(|| format!("the run has no step {step}"))
    }
}

/// Says why a step's run is not valid.
pub(super) fn why(step: &Value) -> String {
    let parts = ["state", "reasons", "message"].map(|name| &step[name]).into_iter();
    parts.filter(|part| !part.is_null()).map(Value::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns the number at `pointer` (as `/metrics/client_cpu_us`) in a report.
pub(super) fn number(report: &Value, pointer: &str) -> Result<f64> {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_that_is_not_valid_or_not_there_is_no_figure() {
        let row = json!({ "step": "a", "block": 1, "state": "failed", "metrics": { "rate": 7.5 } });
        let report = json!({ "observations": [{ "step": "a", "metrics": { "rate": 9 } }, row] });
        let ran = Ran { report, directory: PathBuf::new(), peak_bytes: 0.0 };
        let error = ran.step("a").unwrap_err().to_string();
        assert_eq!(error, r#"step a is not valid: "failed""#);
        assert_eq!(ran.step("b").unwrap_err().to_string(), "the report has no step b");
        assert_eq!(number(ran.any_step("a").unwrap(), "/metrics/rate").unwrap(), 7.5);
        let error = number(ran.any_step("a").unwrap(), "/lag").unwrap_err().to_string();
        assert_eq!(error, "the report has no /lag");
    }
}
