//! The text of the plan, as a record holds it. Each key and each table of an array is read by
//! itself: one that cannot be read hides no other.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

pub(crate) struct PlanText(Table);

impl PlanText {
    /// Without keys where it is no plan.
    pub(crate) fn read(text: &str) -> Self {
        Self(text.parse().unwrap_or_default())
    }

    pub(crate) fn table(&self, key: &str) -> Self {
        Self(self.key(key))
    }

    pub(crate) fn tables<T: DeserializeOwned>(&self, key: &str) -> Vec<T> {
        let all: Vec<Value> = self.key(key);
        all.into_iter().filter_map(|table| table.try_into().ok()).collect()
    }

    /// The default where it is not there or cannot be read.
    pub(crate) fn key<T: DeserializeOwned + Default>(&self, key: &str) -> T {
        let value = self.0.get(key).cloned();
        value.and_then(|value| value.try_into().ok()).unwrap_or_default()
    }
}
