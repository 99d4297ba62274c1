//! `dbdyno list WHAT --json`: drivers, metrics and runs for a program.

use std::path::PathBuf;

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{HostCheck, MetricGroup};
use dbdyno_record::{Outcome, Run};
use serde_json::{Value, json};

use super::{completed, ended};

/// Version of the shape of each of them. It rises when a key is removed or changes its meaning.
const SCHEMA: u32 = 1;

pub(super) fn drivers() -> Value {
    let drivers: Vec<Value> =
        dbdyno_drivers::ALL.iter().map(|(name, what)| json!({ "name": name, "what": what })).collect();
    json!({ "schema": SCHEMA, "drivers": drivers })
}

/// Every column of every table, with its name in JSON and CSV.
pub(super) fn metrics() -> Value {
    let column = |table: &str, metric: &Metric| {
        json!({ "table": table, "name": metric.name, "field": metric.id, "unit": metric.unit, "meaning": metric.meaning,
            "better": metric.better })
    };
    let of_group = |group: &MetricGroup| group.in_tables().map(|metric| column(group.name, metric));
    let mut columns: Vec<Value> = MetricGroup::ALL.iter().flat_map(of_group).collect();
    columns.extend(HostCheck::METRICS.iter().map(|own| {
        json!({ "table": "host_check", "name": own.name, "field": own.id, "unit": own.unit, "meaning": own.meaning })
    }));
    json!({ "schema": SCHEMA, "metrics": columns })
}

/// The newest first, as in the text. A folder that cannot be read as a run has `error` and nothing
/// but its path.
pub(super) fn runs(dirs: &[PathBuf]) -> Value {
    let run = |path: &PathBuf| match Run::without_steps(path) {
        Err(error) => json!({ "path": path, "error": error.to_string() }),
        Ok(run) => json!({
            "path": path,
            "run_id": run.manifest.run_id,
            "name": run.manifest.name,
            "started": run.manifest.started,
            "state": state(&run),
            "cells_completed": completed(&run),
            "cells_planned": run.manifest.order.len(),
            "variants": run.manifest.variants.iter().map(|variant| &variant.name).collect::<Vec<_>>(),
        }),
    };
    json!({ "schema": SCHEMA, "runs": dirs.iter().map(run).collect::<Vec<_>>() })
}

fn state(run: &Run) -> &'static str {
    match ended(run) {
        _ if run.is_going_on => "going-on",
        Some(Outcome::Completed) => "completed",
        Some(Outcome::Failed) => "failed-cells",
        Some(Outcome::Interrupted) => "interrupted",
        None => "not-ended",
    }
}
