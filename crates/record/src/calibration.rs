//! Records which rates the load client reached on a host, measured against a server that only
//! answers, and how fast the host itself is.

use serde::{Deserialize, Serialize};

use crate::ToolInfo;

/// Statement rates that the client reached. They hold for one build of dbdyno on certain CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCalibration {
    /// When it was measured, RFC 3339, UTC.
    pub at: String,
    pub tool: ToolInfo,
    pub host: CalibratedHost,
    pub rates: Vec<ClientRate>,
}

/// Short measurements of a machine at the start of a run, or at the start of a block in a fleet. They
/// show how alike machines are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCalibration {
    /// Multiplications with an addition that one thread does per second of its CPU time. This is the
    /// median of several measurements.
    pub cpu_operations_per_second: f64,
    /// Median time for writing 4 KiB to the data's filesystem and syncing them to the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_us: Option<f64>,
    /// The highest rate that the client reached in a [`ClientCalibration`] that holds for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_statements_per_second: Option<f64>,
}

/// The properties of the host and of a plan's `[host]` on which a client's speed depends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibratedHost {
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// CPU list of the client, such as `2-3`. `None` means not pinned.
    pub client_cpus: Option<String>,
    /// CPU list of the server that answered.
    pub server_cpus: Option<String>,
    /// Number of load threads in the plan. `None` means dbdyno's own choice.
    pub client_threads: Option<u32>,
    /// How load threads waited for answers, `sleep` or `spin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_wait: Option<String>,
}

/// The rate that the client reached with one number of connections, which sent prepared point
/// selects in a closed loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRate {
    /// Driver: `mysql` or `postgres`.
    pub driver: String,
    pub connections: u32,
    pub statements_per_second: f64,
    /// CPU time of the client per statement.
    pub client_cpu_us: Option<f64>,
    /// Share of the time in which the busiest load thread ran or waited for a CPU.
    pub busiest_load_thread_share: Option<f64>,
    /// Share of its CPUs' time in which the answering server ran.
    pub server_share: Option<f64>,
    pub limit: LimitedBy,
}

/// The limit that kept a rate from being higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    Client,
    /// The client could do more, so the rate is a lower bound of what it can reach.
    Server,
    /// Client and server had time to spare, because each connection waits for its answer before it
    /// sends again.
    RoundTrip,
    /// The limit is unknown, because the measurement was too short for samples of the load threads.
    Unknown,
}

impl ClientCalibration {
    /// Returns whether the calibration holds for a client of that `tool` on that `host`. The server's
    /// CPUs do not matter.
    pub fn holds_for(&self, tool: &ToolInfo, host: &CalibratedHost) -> bool {
        let client = |host: &CalibratedHost| CalibratedHost { server_cpus: None, ..host.clone() };
        self.tool == *tool && client(&self.host) == client(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(commit: &str) -> ToolInfo {
        ToolInfo { version: "1.0.0".into(), commit: commit.into(), build: "release".into() }
    }

    #[test]
    fn a_calibration_holds_for_the_same_build_on_the_same_client_cpus() {
        let host = CalibratedHost {
            cpu_model: "x".into(),
            cpus: 4,
            client_cpus: Some("2-3".into()),
            server_cpus: Some("0-1".into()),
            client_threads: None,
            client_wait: Some("spin".into()),
        };
        let calibration =
            ClientCalibration { at: "t".into(), tool: tool("a"), host: host.clone(), rates: Vec::new() };
        let holds = |host: CalibratedHost| calibration.holds_for(&tool("a"), &host);
        assert!(holds(host.clone()) && holds(CalibratedHost { server_cpus: None, ..host.clone() }));
        assert!(!holds(CalibratedHost { client_cpus: None, ..host.clone() }));
        assert!(!holds(CalibratedHost { client_threads: Some(2), ..host.clone() }));
        assert!(!holds(CalibratedHost { client_wait: Some("sleep".into()), ..host.clone() }));
        assert!(!holds(CalibratedHost { cpus: 8, ..host.clone() }));
        assert!(!calibration.holds_for(&tool("b"), &host));
    }
}
