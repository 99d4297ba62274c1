//! `counters/<source>.jsonl`: raw counters of one source, one line a sample, the first line a header.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// First line of a counter file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterHeader {
    /// `host`, `server`, `switches`, `client`, `disk`, `status`, `size`, `sampler`
    pub source: String,
    /// What is sampled: device name, process id, path, ...
    pub about: Map<String, Value>,
}

/// One sample. A key that is left out has not changed since the line before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterLine {
    /// Since the barrier; negative before it.
    pub at_us: i64,
    /// Unit is the key's last word (`cpu_user_us`, `rss_bytes`); server status keeps the server's names.
    pub values: BTreeMap<String, i64>,
}

/// A counter file as read: every line complete, unchanged values filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterSeries {
    pub header: CounterHeader,
    pub lines: Vec<CounterLine>,
}

impl CounterSeries {
    /// The value of `key` at the sample nearest to `at_us`, with that sample's time.
    pub fn nearest(&self, key: &str, at_us: i64) -> Option<(i64, i64)> {
        let line = self.lines.iter().min_by_key(|line| (line.at_us - at_us).abs())?;
        Some((line.at_us, *line.values.get(key)?))
    }
}
