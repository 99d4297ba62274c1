//! The `profile` of a plan: which steps are run again with a profiler, and how it samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{named, with_defaults};

/// Whether the servers are profiled: a switch, or how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "profile is true, false, or a table such as { steps = [\"point-select\"] }")]
pub enum Profile {
    Switch(bool),
    Chosen(ProfileOptions),
}

impl Default for Profile {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl Profile {
    pub fn is_off(&self) -> bool {
        *self == Self::Switch(false)
    }

    /// Returns how the servers are profiled, or `None` where they are not.
    pub fn options(&self) -> Option<ProfileOptions> {
        match self {
            Self::Switch(false) => None,
            Self::Switch(true) => Some(ProfileOptions::default()),
            Self::Chosen(options) => Some(options.clone()),
        }
    }
}

with_defaults! {
    /// How the servers are profiled. Each profile block runs every variant once, as a block does,
    /// with the profiler; no rate of these blocks is compared.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct ProfileOptions {
        /// Patterns of the steps to profile, in which `*` matches any letters; the steps in which a
        /// variant is faster or slower than the base when left out.
        pub steps: Vec<String> = Vec::new(),
        /// Number of profile blocks; differences by function have an interval from two on.
        #[schemars(range(min = 1, max = 100))]
        pub blocks: u32 = 5,
        /// Samples per second of CPU time.
        #[schemars(range(min = 1, max = 25_000))]
        pub samples_per_second: u32 = 499,
        /// How callers are found.
        pub call_chains: CallChains = CallChains::FramePointer,
    }
}

named! {
    /// How the profiler finds the callers of a function.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum CallChains {
        /// By frame pointers, which costs least. A function of a build without them has wrong or no
        /// callers; its own time is right.
        #[default]
        FramePointer = "frame-pointer",
        /// By the CPU's record of the last branches (Intel); up to 32 callers.
        Lbr = "lbr",
        /// By debug information, of which each sample copies 8 KiB of the stack: complete, and
        /// many times as expensive.
        Dwarf = "dwarf",
        /// None: each function by itself.
        Off = "off",
    }
}
