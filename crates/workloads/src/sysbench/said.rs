//! What scripts print: kept until they are asked for, up to a limit.

use std::sync::{Mutex, PoisonError};

/// More than a script prints of a step, unless it prints in each event.
const MOST_BYTES: usize = 1 << 20;

/// Lines of all states of a step.
#[derive(Debug, Default)]
pub(crate) struct Said(Mutex<String>);

impl Said {
    pub(crate) fn add(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() + text.len() <= MOST_BYTES {
            all.push_str(text);
        }
    }

    /// What was said since it was taken for the last time.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
