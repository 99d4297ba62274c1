//! Figures for one execution of a step: latencies, time series, and the server's deferred work.

pub(crate) mod client_headroom;
pub(crate) mod deferred_work;
pub(crate) mod executions;
pub(crate) mod group_memory;
pub(crate) mod hosts;
pub(crate) mod latency;
pub(crate) mod lookups;
pub(crate) mod outages;
pub(crate) mod schedule;
pub(crate) mod statements;
pub(crate) mod steadiness;
pub(crate) mod target;
pub(crate) mod time_series;
