//! A workload that does nothing, for tests of the code around workloads.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Error, Forecast, Mistake, Needs, Plan, Size, StepEstimate, StepOutline, TableError, WorkloadKind,
    WorkloadOptions, WorkloadTable,
};

struct FakeKind;

/// `[workload.fake]`
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fake {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) deep: Map<String, Value>,
}

impl WorkloadKind for FakeKind {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn read(&self, table: WorkloadTable<'_>) -> Result<Box<dyn WorkloadOptions>, TableError> {
        Ok(Box::new(table.read::<Fake>()?))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Fake>()
    }
}

impl WorkloadOptions for Fake {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        (self.rows == Some(0)).then(|| ("rows", "rows must be 1 or more".to_owned()))
    }

    fn spell_out(&mut self) {}

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn steps(&self) -> Vec<StepOutline> {
        let rows = self.rows.unwrap_or(1) as f64;
        let load = StepOutline::new(StepEstimate::of_work("load", "rows", "oltp row loaded", rows));
        let test = StepOutline::new(StepEstimate::new("test", "2 s", Duration::from_secs(2)));
        vec![StepOutline { loads: true, ..load }, test]
    }

    fn estimate(&self, _: &Size) -> Forecast {
        let prepare = StepEstimate::of_work("prepare", "server", "server started", 1.0);
        let steps = self.steps().into_iter().map(|step| step.estimate);
        Forecast { steps: [prepare].into_iter().chain(steps).collect(), disk_bytes: 0, loaded_bytes: 0 }
    }
}

pub(crate) fn parse(text: &str, origin: &str) -> Result<Plan, Error> {
    parse_with(text, origin, &[])
}

pub(crate) fn parse_with(text: &str, origin: &str, overrides: &[(String, String)]) -> Result<Plan, Error> {
    crate::parse_with(text, origin, overrides, &[&FakeKind])
}
