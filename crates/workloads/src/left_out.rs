//! Workloads that this build leaves out. They are listed, and a plan that names one is refused with the
//! command that builds dbdyno with them.

use dbdyno_plan::{BuildPart, TableError, WorkloadKind, WorkloadOptions, WorkloadTable};
use dbdyno_record::WorkloadInfo;
use schemars::{Schema, SchemaGenerator};

use crate::{AnyWorkload, Context, Kind, Result, Surroundings, WorkloadSummary};

/// A workload that needs a Cargo feature that is off.
pub(crate) struct LeftOut {
    name: &'static str,
    part: BuildPart,
}

pub(crate) const SYSBENCH: LeftOut = LeftOut { name: "sysbench", part: BuildPart::SCRIPTS };

impl WorkloadKind for LeftOut {
    fn name(&self) -> &'static str {
        self.name
    }

    fn read(&self, table: WorkloadTable<'_>) -> Result<Box<dyn WorkloadOptions>, TableError> {
        Err(table.refused(dbdyno_plan::built_without(self.part)))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<serde_json::Value>()
    }
}

impl Kind for LeftOut {
    fn purpose(&self) -> String {
        format!("not in this build; {} has it", self.part.command())
    }

    fn summaries(&self) -> Vec<WorkloadSummary> {
        Vec::new()
    }

    fn info(&self, _: &str, _: &dyn WorkloadOptions, _: &Surroundings) -> Option<WorkloadInfo> {
        None
    }

    fn open(&self, _: &dyn WorkloadOptions, _: Context) -> Option<Box<dyn AnyWorkload>> {
        None
    }
}
