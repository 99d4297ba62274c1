//! Figures for one execution of a step, such as latencies, time series, and the server's deferred
//! work.

pub(crate) mod hosts;
pub(crate) mod latency;
pub(crate) mod outages;
pub(crate) mod schedule;
pub(crate) mod server_state;
pub(crate) mod statements;
pub(crate) mod time_series;
