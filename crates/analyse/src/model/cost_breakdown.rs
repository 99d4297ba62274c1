//! What a difference of rates is made of.

use serde::Serialize;

/// Why a variant's rate differs from the base's, as factors whose product is the ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostBreakdown {
    /// CPUs that the database could use, of server or, embedded, of the client.
    pub cpus: u32,
    pub parts: Vec<CostPart>,
}

impl CostBreakdown {
    /// The cause that changes the rate most.
    pub fn main_part(&self) -> Option<&CostPart> {
        let weight = |part: &&CostPart| part.factor.ln().abs();
        self.parts.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)))
    }
}

/// One cause. Its figures are means over the blocks of the ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostPart {
    pub cause: Cause,
    /// µs per operation for CPU, % of the CPUs' time for the others.
    pub base: f64,
    pub variant: f64,
    /// What this cause alone does to the rate: 0.95 is 5 % less.
    pub factor: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// CPU of the database in user mode, for one operation.
    CpuUser,
    /// CPU of the database in the kernel, for one operation.
    CpuKernel,
    /// Time in which the database's CPUs had nothing to run and something waited for IO.
    IoWait,
    /// The rest of their time: waits for locks, for the client and for other programs.
    Idle,
}

impl Cause {
    /// Its word in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuUser => "cpu_user",
            Self::CpuKernel => "cpu_kernel",
            Self::IoWait => "io_wait",
            Self::Idle => "idle",
        }
    }
}
