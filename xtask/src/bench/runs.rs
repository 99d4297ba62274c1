//! Runs of dbdyno: a plan in, the report as JSON out.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use dbdyno_record::{CellRecord, StepRecord};
use serde_json::Value;

use crate::command::{cargo, output, run as run_command};
use crate::places;

/// Builds an example of the drivers in release; returns where it lies.
pub(super) fn built_example(name: &str) -> Result<PathBuf> {
    let package = ["--package", "dbdyno-drivers"];
    run_command(cargo(&["build", "--locked", "--release", "--example", name]).args(package))?;
    Ok(places::target().join("release/examples").join(name))
}

/// Runs the plan `text` in a new folder `name` of `folder` and returns its report. `files` are
/// written next to the plan.
pub(super) fn measured(
    dbdyno: &Path,
    folder: &Path,
    name: &str,
    text: &str,
    files: &[(&str, &str)],
) -> Result<Value> {
    let out = folder.join(name);
    std::fs::create_dir_all(&out)?;
    for (file, content) in files {
        std::fs::write(out.join(file), content)?;
    }
    let file = out.join(format!("{name}.toml"));
    std::fs::write(&file, text)?;
    let runs = out.join("runs");
    output(Command::new(dbdyno).arg("run").arg(&file).arg("--out").arg(&runs))?;
    let run = only_run(&runs)?;
    let report = output(Command::new(dbdyno).arg("report").arg(&run).args(["--format", "json"]))?;
    serde_json::from_str(&report).context("the report is not JSON")
}

/// The record of step `step` of the only cell of a run that [`measured`] made.
pub(super) fn record(folder: &Path, name: &str, step: &str) -> Result<StepRecord> {
    let found = cell(folder, name)?.steps.into_iter().find(|one| one.name == step);
    found.with_context(|| format!("the run has no step {step}"))
}

/// The only cell of a run that [`measured`] made.
pub(super) fn cell(folder: &Path, name: &str) -> Result<CellRecord> {
    let run = dbdyno_record::Run::open(&only_run(&folder.join(name).join("runs"))?)?;
    run.cells.into_iter().next_back().context("the run has no cell")
}

fn only_run(runs: &Path) -> Result<PathBuf> {
    let mut found = std::fs::read_dir(runs)?.flatten().map(|entry| entry.path());
    match (found.next(), found.next()) {
        (Some(run), None) => Ok(run),
        _ => bail!("{} holds not exactly one run: empty it", runs.display()),
    }
}

/// The only run of step `step` of the only workload and variant.
pub(super) fn step<'a>(report: &'a Value, step: &str) -> Result<&'a Value> {
    let run = any_step(report, step)?;
    if run["validity"]["state"] != "valid" {
        bail!("step {step} is not valid: {}", run["validity"]);
    }
    Ok(run)
}

/// As [`step`], but valid or not: for a bench that judges the figures itself.
pub(super) fn any_step<'a>(report: &'a Value, step: &str) -> Result<&'a Value> {
    let steps = report["workloads"][0]["steps"].as_array().context("the report has no steps")?;
    let found = steps.iter().find(|one| one["name"] == step);
    Ok(&found.with_context(|| format!("the report has no step {step}"))?["variants"][0]["runs"][0])
}

/// The number at `pointer` (as `/cost/client_cpu_us`) of a step's run.
pub(super) fn number(run: &Value, pointer: &str) -> Result<f64> {
    let value = run.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_that_is_not_valid_or_not_there_is_no_figure() {
        let run = json!({ "validity": { "state": "failed" } });
        let report =
            json!({ "workloads": [{ "steps": [{ "name": "l.i0", "variants": [{ "runs": [run] }] }] }] });
        let error = step(&report, "l.i0").unwrap_err().to_string();
        assert_eq!(error, r#"step l.i0 is not valid: {"state":"failed"}"#);
        assert_eq!(step(&report, "l.i9").unwrap_err().to_string(), "the report has no step l.i9");
    }

    #[test]
    fn a_number_that_is_missing_is_named() {
        let run = json!({ "cost": { "client_cpu_us": 7.5 } });
        assert_eq!(number(&run, "/cost/client_cpu_us").unwrap(), 7.5);
        assert_eq!(number(&run, "/rate").unwrap_err().to_string(), "the report has no /rate");
    }
}
