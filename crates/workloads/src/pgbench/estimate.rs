//! Forecasts the steps. Exact: the length of timed runs. The load and transactions are guesses.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, Speed, StepEstimate, numbered, seconds};

use super::builtin::ACCOUNTS;
use super::options::Pgbench;
use crate::oltp::estimate::OPERATIONS_PER_SECOND;

/// Bytes of an account with its key, and accounts a second.
const ACCOUNT_BYTES: u64 = 150;
const ACCOUNTS_PER_SECOND: f64 = 150_000.0;

pub(crate) fn estimate(options: &Pgbench, speed: &Speed, size: &Size) -> Forecast {
    let mut steps = vec![StepEstimate::new("prepare", "server", seconds(speed.prepare_seconds))];
    let accounts = if options.has_load() { ACCOUNTS * u64::from(options.scale) } else { 0 };
    if options.has_load() {
        let detail = format!("{accounts} accounts");
        steps.push(StepEstimate::new("load", &detail, seconds(accounts as f64 / ACCOUNTS_PER_SECOND)));
        steps.extend(options.settling().estimate("after the load", Duration::ZERO));
    }
    let names = options.step_names();
    let rungs = options.shared().test_steps();
    for (name, (_, connections, _)) in names[usize::from(options.has_load())..].iter().zip(rungs) {
        let detail = format!("{} of {}", numbered(connections, "connection"), options.files.join(", "));
        let guessed = options.transactions.unwrap_or(0) as f64 / OPERATIONS_PER_SECOND;
        steps.push(StepEstimate::new(name, &detail, options.length().unwrap_or_else(|| seconds(guessed))));
    }
    let loaded_bytes = accounts * ACCOUNT_BYTES;
    Forecast { steps, disk_bytes: size.log_bytes + loaded_bytes, loaded_bytes }
}
