//! Reads plans that may use any workload in [`crate::ALL`], and finds options by their markers in
//! the schema. A marker is a key that an option has in its workload's JSON schema.

use std::path::Path;

use dbdyno_plan::{Error, Plan, WorkloadKind};
use schemars::SchemaGenerator;
use serde_json::Value;

use crate::{ALL, kind_of};

/// The marker of an option that is the length of steps, which `--time` sets. Such a length is at
/// least 1 s.
pub const STEP_TIME: &str = "x-step-time";
/// The marker of an option that is a time with a lower limit. Its value is the limit in
/// milliseconds.
pub(crate) const MIN_MS: &str = "x-least-ms";
/// The marker of an option that is a time in whole seconds.
pub(crate) const WHOLE_SECONDS: &str = "x-whole-seconds";
/// The marker of an option that `dbdyno init` asks for.
pub const ASKED: &str = "x-asked";
/// The marker of an option that says how much data there is. dbdyno lowers such an option if the
/// user gives little time.
pub const SIZE: &str = "x-size";

fn kinds() -> Vec<&'static dyn WorkloadKind> {
    ALL.iter().map(|kind| *kind as &dyn WorkloadKind).collect()
}

/// Reads a plan file as [`dbdyno_plan::read_with`] does, with the workloads in [`ALL`].
pub fn read_with(path: &Path, overrides: &[(String, String)]) -> Result<Plan, Error> {
    dbdyno_plan::read_with(path, overrides, &kinds())
}

/// Reads a plan's text as [`dbdyno_plan::parse_with`] does, with the workloads in [`ALL`].
pub fn parse_with(text: &str, origin: &str, overrides: &[(String, String)]) -> Result<Plan, Error> {
    dbdyno_plan::parse_with(text, origin, overrides, &kinds())
}

/// Reads a plan's text as [`parse_with`] does, without overrides.
pub fn parse(text: &str, origin: &str) -> Result<Plan, Error> {
    parse_with(text, origin, &[])
}

/// Reads the plan of a record again, so that its workloads can be run.
pub fn of_record(plan: &dbdyno_model::Plan) -> Result<Plan, Error> {
    let text = toml::to_string(plan).map_err(|error| Error::Recorded(error.to_string()))?;
    parse(&text, "the run's plan")
}

/// Returns the JSON schema of plans with the workloads in [`ALL`].
pub fn json_schema() -> Value {
    dbdyno_plan::json_schema(&kinds())
}

/// Returns the names of a workload's options that have `marker` in the schema, in the schema's
/// order. The result is empty for an unknown workload.
pub fn marked(workload: &str, marker: &str) -> Vec<String> {
    let Some(kind) = kind_of(workload) else { return Vec::new() };
    let mut generator = SchemaGenerator::default();
    kind.schema(&mut generator);
    let tables = generator.take_definitions(false);
    let options = tables.values().filter_map(|table| table["properties"].as_object()).flatten();
    options.filter(|(_, option)| option.get(marker).is_some()).map(|(key, _)| key.clone()).collect()
}
