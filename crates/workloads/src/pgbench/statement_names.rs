//! Names under which commands are counted. They live as long as the process: there are few, and
//! each run of a script has the same.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// `name`, kept.
pub(crate) fn kept(name: String) -> &'static str {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(own) = all.get(name.as_str()) {
        return own;
    }
    let own: &'static str = Box::leak(name.into_boxed_str());
    all.insert(own);
    own
}
