//! Reads plans whose workloads are those of [`crate::ALL`].

use std::path::Path;

use dbdyno_plan::{Error, Plan, WorkloadKind};
use schemars::SchemaGenerator;
use serde_json::Value;

use crate::{ALL, kind_of};

/// An option's mark in its schema for a length of steps, which `--time` sets. Such a length is at least
/// 1 s.
pub const STEP_TIME: &str = "x-step-time";
/// The mark of a time that has a shortest length, in milliseconds.
pub(crate) const MIN_MS: &str = "x-least-ms";
/// The mark of a time that must be whole seconds.
pub(crate) const WHOLE_SECONDS: &str = "x-whole-seconds";
/// The mark of an option that `dbdyno init` asks for.
pub const ASKED: &str = "x-asked";
/// The mark of an option that says how much data there is. It is lowered where the user gives little
/// time.
pub const SIZE: &str = "x-size";

fn kinds() -> Vec<&'static dyn WorkloadKind> {
    ALL.iter().map(|kind| *kind as &dyn WorkloadKind).collect()
}

/// Does [`dbdyno_plan::read_with`] with these workloads.
pub fn read_with(path: &Path, overrides: &[(String, String)]) -> Result<Plan, Error> {
    dbdyno_plan::read_with(path, overrides, &kinds())
}

/// Does [`dbdyno_plan::parse_with`] with these workloads.
pub fn parse_with(text: &str, origin: &str, overrides: &[(String, String)]) -> Result<Plan, Error> {
    dbdyno_plan::parse_with(text, origin, overrides, &kinds())
}

/// Does [`parse_with`] without overrides.
pub fn parse(text: &str, origin: &str) -> Result<Plan, Error> {
    parse_with(text, origin, &[])
}

/// Returns the plan of a record, whose workloads can be run.
pub fn of_record(plan: &dbdyno_model::Plan) -> Result<Plan, Error> {
    let text = toml::to_string(plan).map_err(|error| Error::Recorded(error.to_string()))?;
    parse(&text, "the run's plan")
}

/// Does [`dbdyno_plan::json_schema`] with these workloads.
pub fn json_schema() -> Value {
    dbdyno_plan::json_schema(&kinds())
}

/// Returns the options of a workload whose schema has `mark`, in their order. There are none for a
/// workload that is not known.
pub fn marked(workload: &str, mark: &str) -> Vec<String> {
    let Some(kind) = kind_of(workload) else { return Vec::new() };
    let mut generator = SchemaGenerator::default();
    kind.schema(&mut generator);
    let tables = generator.take_definitions(false);
    let options = tables.values().filter_map(|table| table["properties"].as_object()).flatten();
    options.filter(|(_, option)| option.get(mark).is_some()).map(|(key, _)| key.clone()).collect()
}
