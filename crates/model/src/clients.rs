//! The table `[clients]`. It names the hosts that generate the load when the conducting host does
//! not, or asks Slurm or Ray for machines (`dbdyno run --on`, and `on` in `[clients]`).

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// The system that provides the machines, and the part of it from which they are taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum On {
    /// Nodes of a Ray cluster: the cluster at this address (`ray://HOST:PORT`), otherwise the one
    /// that Ray finds.
    Ray(Option<String>),
    /// Idle nodes of a Slurm cluster: those in this partition, otherwise those in its default
    /// partition.
    Slurm(Option<String>),
}

impl FromStr for On {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (engine, detail) = text.split_once(':').map_or((text, None), |(engine, of)| (engine, Some(of)));
        match (engine, detail) {
            ("ray", None) => Ok(Self::Ray(None)),
            ("ray", Some(address)) if address.len() > 2 && address.starts_with("//") => {
                Ok(Self::Ray(Some(text.to_owned())))
            }
            ("slurm", None) => Ok(Self::Slurm(None)),
            ("slurm", Some(partition)) if !partition.is_empty() => {
                Ok(Self::Slurm(Some(partition.to_owned())))
            }
            _ => Err("there are ray, ray://HOST:PORT, slurm and slurm:PARTITION".to_owned()),
        }
    }
}

impl Display for On {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ray(None) => write!(f, "ray"),
            Self::Ray(Some(address)) => write!(f, "{address}"),
            Self::Slurm(None) => write!(f, "slurm"),
            Self::Slurm(Some(partition)) => write!(f, "slurm:{partition}"),
        }
    }
}

impl TryFrom<String> for On {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<On> for String {
    fn from(on: On) -> Self {
        on.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_written_as_it_is_read_and_others_are_refused() {
        for text in ["ray", "ray://head:10001", "slurm", "slurm:perf"] {
            assert_eq!(text.parse::<On>().map(|on| on.to_string()).as_deref(), Ok(text));
        }
        for text in ["local:2", "slurm:", "ray:head", "ray://", ""] {
            assert!(text.parse::<On>().is_err(), "{text}");
        }
    }
}
