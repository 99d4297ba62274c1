//! What is known of loaded tables, as a snapshot of them keeps it.

use serde_json::{Value, json};

/// Of the tables as the load has left them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Loaded {
    /// What the workload knows of them.
    pub(crate) knowledge: Value,
    /// The content checks after the load that failed, in words.
    pub(crate) faults: Vec<String>,
}

impl Loaded {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "workload": self.knowledge, "faults": self.faults })
    }

    /// What [`Loaded::to_json`] wrote. Anything else is the workload's alone, which is all that
    /// snapshots of old have.
    pub(crate) fn from_json(value: &Value) -> Self {
        let (Some(knowledge), Some(faults)) = (value.get("workload"), value.get("faults")) else {
            return Self { knowledge: value.clone(), faults: Vec::new() };
        };
        let words = faults.as_array().into_iter().flatten().filter_map(Value::as_str);
        Self { knowledge: knowledge.clone(), faults: words.map(str::to_owned).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_remembers_the_checks_of_its_load_that_failed() {
        let knowledge = json!({ "rows": "2000" });
        for faults in [vec!["table sbtest1: rows is 1999, must be 2000".to_owned()], Vec::new()] {
            let loaded = Loaded { knowledge: knowledge.clone(), faults };
            assert_eq!(Loaded::from_json(&loaded.to_json()), loaded);
        }
        assert_eq!(Loaded::from_json(&knowledge), Loaded { knowledge, faults: Vec::new() });
    }
}
