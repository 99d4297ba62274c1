//! The hosts that put the load on, where it is not the one that conducts the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Client hosts: each has its part of the connections of measured steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// Addresses or names of the hosts. An agent listens on each at that address and at no other.
    #[schemars(length(min = 1))]
    pub hosts: Vec<String>,
    /// Command that runs dbdyno on a host, `{host}` standing for it. It must hand its standard input on, by which agents get
    /// their certificates.
    #[serde(default = "start")]
    pub start: String,
}

fn start() -> String {
    "ssh {host} dbdyno".to_owned()
}
