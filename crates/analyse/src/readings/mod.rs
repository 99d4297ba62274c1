//! What was done and counted between two moments of a step: answers, rates and counters.

pub(crate) mod client_hosts;
pub(crate) mod counted;
pub(crate) mod counters;
pub(crate) mod deferred_counters;
pub(crate) mod foreign_cpu;
pub(crate) mod load_threads;
pub(crate) mod measured;
pub(crate) mod polling;
pub(crate) mod rates;
pub(crate) mod span;
