//! In what two runs, or two starts of a server, are not alike, as data. The words are in the
//! report.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub aspect: Aspect,
    /// The variant that it is of, where both call it the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// `None` where there is no such thing, or no limit to it.
    pub base: Option<String>,
    pub new: Option<String>,
}

/// In what they differ.
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
    /// Of a server that was started.
    StartedMemory,
    StartedCpus,
    RatioBase,
    Workload,
    /// Of the workload of that name.
    Version(String),
    /// A key of the plan, or an option of a workload, by its path.
    Key(String),
}

impl Difference {
    /// `None` where both are the same.
    pub(crate) fn of(aspect: Aspect, base: Option<String>, new: Option<String>) -> Option<Self> {
        (base != new).then_some(Self { aspect, variant: None, base, new })
    }
}
