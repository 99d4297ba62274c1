//! Plans whose workloads are those of [`crate::ALL`].

use std::path::Path;

use dbdyno_plan::{Error, Plan, WorkloadKind};
use serde_json::Value;

use crate::ALL;

fn kinds() -> Vec<&'static dyn WorkloadKind> {
    ALL.iter().map(|kind| *kind as &dyn WorkloadKind).collect()
}

/// [`dbdyno_plan::read_with`].
pub fn read_with(path: &Path, overrides: &[(String, String)]) -> Result<Plan, Error> {
    dbdyno_plan::read_with(path, overrides, &kinds())
}

/// [`dbdyno_plan::parse_with`].
pub fn parse_with(text: &str, origin: &str, overrides: &[(String, String)]) -> Result<Plan, Error> {
    dbdyno_plan::parse_with(text, origin, overrides, &kinds())
}

/// [`parse_with`] without overrides.
pub fn parse(text: &str, origin: &str) -> Result<Plan, Error> {
    parse_with(text, origin, &[])
}

/// [`dbdyno_plan::json_schema`].
pub fn json_schema() -> Value {
    dbdyno_plan::json_schema(&kinds())
}
