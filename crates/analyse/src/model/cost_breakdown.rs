//! A difference between two rates, split into its causes: CPU time, waiting for IO, idle time.

use serde::Serialize;

/// Why a variant's rate differs from the base's, as factors whose product is the ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostBreakdown {
    /// CPUs that the database could use: the server's, or the client's for an embedded database.
    pub cpus: u32,
    pub parts: Vec<CostPart>,
}

impl CostBreakdown {
    /// Returns the cause that changes the rate most.
    pub fn main_part(&self) -> Option<&CostPart> {
        let weight = |part: &&CostPart| part.factor.ln().abs();
        self.parts.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))
    }
}

/// One cause. Its figures are means over the ratio's blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostPart {
    pub cause: Cause,
    /// µs per operation for CPU time, % of the CPUs' time for the other causes.
    pub base: f64,
    pub variant: f64,
    /// What this cause alone does to the rate: 0.95 means 5 % less.
    pub factor: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The database's CPU time per operation in user mode.
    CpuUser,
    /// The database's CPU time per operation in the kernel.
    CpuKernel,
    /// Time in which the database's CPUs had nothing to run while something waited for IO.
    IoWait,
    /// The rest of the CPUs' time: waits for locks, for the client and for other programs.
    Idle,
}

impl Cause {
    /// Returns the name that tables for programs have for the cause.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuUser => "cpu_user",
            Self::CpuKernel => "cpu_kernel",
            Self::IoWait => "io_wait",
            Self::Idle => "idle",
        }
    }
}
