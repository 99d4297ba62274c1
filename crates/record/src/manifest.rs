//! Defines `manifest.json`, which has the plan, the variants, the workloads, the machine and the
//! order of the cells. It is written once, before anything runs. [`ServerInfo`] and [`ToolInfo`]
//! have the facts that a server and dbdyno report about themselves.

use std::collections::BTreeMap;

use dbdyno_model::{Plan, foreign_title};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ClientCalibration, HostCalibration};

/// The first file of a run directory. `format_version` is its first key, so that any reader can check
/// it before it trusts the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format_version: u32,
    pub tool: ToolInfo,
    /// Folder name of the run, `<UTC time>-<plan name>`.
    pub run_id: String,
    /// When the run was started, RFC 3339, UTC.
    pub started: String,
    /// The plan, with every default filled in. A plan holds no secrets.
    pub plan: Plan,
    pub host: HostInfo,
    /// The rates that the client could reach on this host, where they were measured before the run
    /// (`dbdyno doctor --client`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_calibration: Option<ClientCalibration>,
    pub variants: Vec<VariantInfo>,
    pub workloads: Vec<WorkloadInfo>,
    /// Every cell in the order in which it was to run. In the manifest from `Run::open`, the list
    /// also has the cells of blocks that were added while the run went on (`RunEvent::Look`).
    pub order: Vec<CellId>,
}

impl Manifest {
    /// Returns the name of the variant that the others are compared with.
    pub fn base(&self) -> &str {
        self.plan.base_name()
    }
}

/// The machine that ran server and client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostInfo {
    pub hostname: String,
    pub os: String,
    pub kernel: String,
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    pub memory_bytes: u64,
    /// CPU list that the plan gives to the servers, such as `0-1`. `None` means not pinned.
    pub server_cpus: Option<String>,
    /// CPU list that the plan gives to the load client.
    pub client_cpus: Option<String>,
    /// How load threads waited for answers, `sleep` or `spin`. The next field says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_wait: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_wait_reason: Option<String>,
    /// Folder that holds the data directories while the run goes on, its filesystem and block device.
    pub data_filesystem: String,
    pub data_device: String,
    /// Other properties of the machine at the start of the run, as name and value: SMT, governor,
    /// disk, time of an fsync, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(String, String)>,
    /// `None` where it was not measured, as for a calibration of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<HostCalibration>,
}

/// A variant, which is a server with a configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantInfo {
    pub name: String,
    /// Driver that speaks to the server, such as `sqlite`, `mysql` or `null`.
    pub driver: String,
    /// Which server it is, in words: the base directory's name, the address without a password, or
    /// `SQLite (embedded)`.
    pub server: String,
    /// The configuration as the server got it: the text of its option file, or its pragmas, one per
    /// line.
    pub config: String,
    /// The intents that the option file was rendered from, with their values. It is empty if there are
    /// none.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub intents: Map<String, Value>,
    /// `true` when others run the server and dbdyno only connects.
    pub external: bool,
    /// Whether the database works inside dbdyno.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub embedded: bool,
    /// The variant's levels in a factorial design, by factor: `{ "binlog": "on" }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, String>,
}

/// A workload as it was configured, with every way in which it differs from the original.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadInfo {
    /// The name with its set-up, where the plan has several. See [`workload_and_setup`].
    pub name: String,
    /// Version of dbdyno's implementation. Runs of different versions are not comparable.
    pub version: u32,
    /// The benchmark that the workload follows, in words.
    pub follows: String,
    /// All options with their effective values.
    pub options: Map<String, Value>,
    pub deviations: Vec<Deviation>,
    /// Names of the steps in order.
    pub steps: Vec<String>,
    /// How many of the first steps only make the data.
    pub load_steps: usize,
    /// Approximate size of its tables on the disk after the load, computed from the usual size of a
    /// row. It is `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// Connections that its largest step has open at once.
    pub connections: u32,
}

/// One respect in which a workload differs from the original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deviation {
    /// The option that controls it, or the topic when no option does.
    pub topic: String,
    pub original: String,
    pub here: String,
}

/// Splits a name into the workload and its set-up: `insert-benchmark@IO-bound` is the Insert Benchmark
/// in the set-up IO-bound.
pub fn workload_and_setup(name: &str) -> (&str, Option<&str>) {
    name.split_once('@').map_or((name, None), |(workload, setup)| (workload, Some(setup)))
}

/// Address of a cell within a run. Blocks count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CellId {
    pub block: u32,
    pub variant: String,
    /// The workload with its set-up, where the plan has several: `insert-benchmark@IO-bound`.
    pub workload: String,
}

impl std::fmt::Display for CellId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {} {} {}", self.block, self.variant, self.workload)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// `MariaDB`, `MySQL`, `SQLite`, ... For another server, this is the name that it gives itself.
    pub product: String,
    /// For a server that is none of the products: the product whose protocol it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaks: Option<String>,
    /// The capabilities that such a server lacked when dbdyno probed it, each with the reason,
    /// which is usually the server's message.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Version number, such as `10.11.19`.
    pub version: String,
    /// The server's whole version text.
    pub version_text: String,
    /// Default storage engine and its version, where there is one.
    pub engine: Option<String>,
    /// The engine of the workload's tables, where tables have one, in the plan's spelling:
    /// `InnoDB`, `aria`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables_engine: Option<String>,
    pub pid: Option<u32>,
    /// CPUs that the server's threads may run on, as the kernel lists them (`0-1,4`). It is `None` for
    /// an embedded database, and where the process cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Limit on the server's memory and the page cache of its files. `None` means that dbdyno set no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Effective settings, read back after start.
    pub settings: BTreeMap<String, String>,
    /// Settings of a connection as the load gets it, where they may differ from the server's:
    /// isolation, autocommit, character set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session: BTreeMap<String, String>,
    /// The origin of settings that are not at their default, as far as the server reports it:
    /// `configuration file`, `CONFIG`, `EXPLICIT`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

impl ServerInfo {
    /// Returns a title for a server that is none of the products, and `None` for any other.
    pub fn foreign_title(&self) -> Option<String> {
        Some(foreign_title(&self.product, self.speaks.as_ref()?))
    }
}

/// Which build of dbdyno made the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    pub version: String,
    /// Commit from which the binary was built, or `unknown`.
    pub commit: String,
    /// `release` or `debug`. Figures from a debug build are not worth comparing.
    pub build: String,
}
