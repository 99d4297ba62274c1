//! Texts of scripts, for the record.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::Work;

/// Returns the SHA-256 hash of all `texts`, in their order.
pub(crate) fn sha256<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    texts.for_each(|text| hash.update(text.as_bytes()));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the work of having read the scripts: their hash, and their files with their texts.
pub(crate) fn read(hash: &impl Serialize, files: Map<String, Value>) -> Work {
    Work::new("read script", Duration::ZERO, [("sha256", json!(hash)), ("files", Value::Object(files))])
}
