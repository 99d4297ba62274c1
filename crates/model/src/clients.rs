//! The table `[clients]`: hosts that put the load on, where it is not the host that conducts the
//! run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::On;

/// Client hosts: each has its part of the connections of measured steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// Addresses or names of the hosts, or with `on` how many there are. An agent listens on each
    /// at its address and at no other.
    pub hosts: ClientNames,
    /// Where hosts are found, all of them at once: `"slurm"`, `"slurm:PARTITION"`, `"ray"` or
    /// `"ray://HOST:PORT"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub on: Option<On>,
    /// Command that runs dbdyno on a named host; `{host}` is replaced by its name. It must hand its
    /// standard input on, by which agents get their certificates.
    #[serde(default = "start")]
    pub start: String,
}

/// Which hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "names or addresses of hosts, or with `on` a number")]
pub enum ClientNames {
    Named(#[schemars(length(min = 1))] Vec<String>),
    Number(u32),
}

fn start() -> String {
    "ssh {host} dbdyno".to_owned()
}
