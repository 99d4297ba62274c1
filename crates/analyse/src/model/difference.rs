//! Differences between two runs, or between two starts of a server. They hold data only; the report
//! crate writes the sentences.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub aspect: Aspect,
    /// The variant that differs, where both sides have it under the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// `None` where the base has no such thing, or no limit to it.
    pub base: Option<String>,
    pub new: Option<String>,
}

/// The property in which the two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    Plan,
    Seed,
    Build,
    Dbdyno,
    Kernel,
    Machine,
    CpuModel,
    Cpus,
    MemoryGib,
    ServerCpus,
    ClientCpus,
    ClientWait,
    DataFilesystem,
    /// Memory of a server that dbdyno started.
    StartedMemory,
    StartedCpus,
    RatioBase,
    Workload,
    /// Version of the workload with this name.
    Version(String),
    /// A key of the plan, or an option of a workload, by its path.
    Key(String),
}

impl Difference {
    /// `None` where both values are the same.
    pub(crate) fn of(aspect: Aspect, base: Option<String>, new: Option<String>) -> Option<Self> {
        (base != new).then_some(Self { aspect, variant: None, base, new })
    }
}
