//! Bench `forecast` measures how close `dbdyno plan` comes to the time that a plan takes. It runs
//! one block of each plan that follows a published report, in its small size. It compares that time
//! with the forecast from the shipped figures, and with the forecast from what the run has shown.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bound, Setting, Table};
use crate::servers::{get_for_plan, measured, servers_of};
use crate::workspace::output;

const PLANS: [&str; 7] = [
    "binlog-sync-2x2",
    "dbt3-2012",
    "insert-benchmark-2024",
    "microbenchmarks-2024",
    "oltp-2012",
    "sysbench-io-bound-2021",
    "thread-pool-2012",
];

/// Highest factor between the forecast by the shipped figures and a plan's time, in either
/// direction.
const EACH: f64 = 1.5;
/// The same factor for the forecast from the run, and for all plans together.
const WHOLE: f64 = 1.2;

/// Runs each plan once per round. The first forecast of a plan knows nothing of earlier runs.
pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    for round in 1..=setting.rounds {
        let mut whole = [0.0; 2];
        for name in PLANS {
            if !setting.wants(name) {
                continue;
            }
            setting.note_round(round, name);
            // The time of a plan is proportional to its blocks.
            let plan = [&format!("@{name}"), "--size", "small", "--blocks", "1"];
            let servers = servers_of(&setting.dbdyno, &plan)?;
            // dbdyno gives no forecast of a plan that cannot run.
            get_for_plan(&servers)?;
            // Each plan has a state folder of its own, because what dbdyno learns from one plan
            // would improve the forecast of the next.
            let state = tempfile::Builder::new().prefix("state-").tempdir_in(&setting.folder)?;
            let shipped = forecast(setting, &plan, state.path())?;
            let runs = setting.folder.join(format!("{name}-{round}"));
            let took = took(setting, &measured(&setting.dbdyno, &plan, &runs, Some(state.path()))?)?;
            let learned = forecast(setting, &plan, state.path())?;
            table.add(name, "by the shipped figures, s", Bound::Factor(EACH), [shipped, took]);
            table.add(name, "by this run, s", Bound::Factor(WHOLE), [learned, took]);
            whole[0] += shipped;
            whole[1] += took;
        }
        if setting.only.is_none() {
            table.add("all of them", "by the shipped figures, s", Bound::Factor(WHOLE), whole);
        }
    }
    Ok(Vec::new())
}

/// Returns the seconds that `dbdyno plan` forecasts with what `state` holds about earlier runs.
fn forecast(setting: &Setting, plan: &[&str], state: &Path) -> Result<f64> {
    let mut command = Command::new(&setting.dbdyno);
    command.arg("plan").args(plan).arg("--json").env("XDG_STATE_HOME", state);
    let plan: Value = serde_json::from_str(&output(&mut command)?).context("the plan is not JSON")?;
    plan["duration_seconds"].as_f64().context("the plan has no duration")
}

/// Returns the seconds that a run took.
fn took(setting: &Setting, run: &Path) -> Result<f64> {
    let report = output(Command::new(&setting.dbdyno).arg("report").arg(run).args(["--format", "json"]))?;
    let report: Value = serde_json::from_str(&report).context("the report is not JSON")?;
    report["run"]["time"]["total_seconds"].as_f64().context("the run does not say how long it took")
}
