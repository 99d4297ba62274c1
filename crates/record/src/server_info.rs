//! A server as it described itself once it ran.

use std::collections::BTreeMap;

use dbdyno_model::foreign_title;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// `MariaDB`, `MySQL`, `SQLite`, ... For another server, this is the name that it gives itself.
    pub product: String,
    /// For a server that is none of the products: the product whose protocol it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaks: Option<String>,
    /// What such a server did not do when it was asked, with its own words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Version number, such as `10.11.19`.
    pub version: String,
    /// The server's whole version text.
    pub version_text: String,
    /// Default storage engine and its version, where there is one.
    pub engine: Option<String>,
    /// The engine that the workload's tables ask for, where tables have one: `InnoDB`, `aria`, in the
    /// plan's spelling.
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
    /// Values of a connection as the load gets it, where they may differ from the server's: isolation,
    /// autocommit, character set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session: BTreeMap<String, String>,
    /// Where settings that are no defaults come from, as far as the server reports it: `configuration
    /// file`, `CONFIG`, `EXPLICIT`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

impl ServerInfo {
    /// Returns what the server is, for a server that is none of the products.
    pub fn foreign_title(&self) -> Option<String> {
        Some(foreign_title(&self.product, self.speaks.as_ref()?))
    }
}
