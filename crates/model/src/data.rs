//! The keys `data` and `cold`: what happens to a workload's data and server between its steps.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::named;

named! {
    /// What a measured step finds. Measured steps are those after the load.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum DataMode {
        /// Each cell begins with fresh data and loads them. Each of its steps works on what the one
        /// before it left; the server keeps running, except before cold steps.
        #[default]
        Preserve = "preserve",
        /// As `preserve`, but the server is stopped and started before each measured step.
        Restart = "restart",
        /// Before each measured step: fresh data, a new start, and the load again. The repeated
        /// load is in no rate.
        Reset = "reset",
        /// The load runs once for each variant, in its first block. Then the server is stopped, and
        /// its data directory becomes a snapshot. Every block's measured steps begin on a copy of
        /// that snapshot, in a server that has just started, and go on in it.
        Restore = "restore",
        /// As `restore`, but a new copy of the snapshot, and a new start, before each measured
        /// step.
        RestoreEachStep = "restore-each-step",
    }
}

/// Which steps begin with a stopped server and empty caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cold {
    /// All measured steps, or none.
    All(bool),
    /// The measured steps of these names.
    Steps(Vec<String>),
}

impl Default for Cold {
    fn default() -> Self {
        Self::All(false)
    }
}

impl Cold {
    /// Whether the measured step `name` begins cold.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Steps(names) => names.iter().any(|cold| cold == name),
        }
    }

    pub fn is_any(&self) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Steps(names) => !names.is_empty(),
        }
    }
}

/// Reads the key by hand, because the derived code answers a wrong value with "did not match any
/// variant".
impl<'de> Deserialize<'de> for Cold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Cold;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a list of steps such as [\"qr100\"]")
            }

            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Cold, E> {
                Ok(Cold::All(all))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, names: A) -> Result<Cold, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(names)).map(Cold::Steps)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl DataMode {
    /// Whether each measured step begins on the data as they were loaded, without any change by the
    /// step before it.
    pub const fn restores_each_step(self) -> bool {
        matches!(self, Self::Reset | Self::RestoreEachStep)
    }

    /// Whether measured steps begin on copies of a snapshot.
    pub const fn uses_snapshot(self) -> bool {
        matches!(self, Self::Restore | Self::RestoreEachStep)
    }
}
