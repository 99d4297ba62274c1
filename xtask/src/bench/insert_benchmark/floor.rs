//! What l.i1 would cost a client that does nothing: a bare loop with as large statements at as long
//! distances.

use std::path::Path;

use anyhow::Result;

use crate::bench::{machine, runs};
use crate::command::output;

/// Bytes of an INSERT before its first row and for each row, and of a DELETE: those that the
/// workload sends, rounded.
const INSERT_BYTES: u32 = 95;
const ROW_BYTES: u32 = 65;
const DELETE_BYTES: u32 = 80;
const SECONDS: u32 = 3;

/// The bare loop's CPU for a row, in microseconds, where INSERTs of `rows` rows, each with a DELETE
/// on a connection next to it, make `rows_per_second`. The loop is on the client's CPUs, who
/// answers it on the server's.
pub(super) fn measured(program: &Path, rows: u32, rows_per_second: f64) -> Result<f64> {
    let mut line = machine::on_client_cpus(program);
    line.arg(spacing_us(rows, rows_per_second).to_string()).arg(SECONDS.to_string());
    line.arg(machine::list(machine::halves().0.as_deref()));
    line.args([(INSERT_BYTES + ROW_BYTES * rows).to_string(), DELETE_BYTES.to_string()]);
    let said: serde_json::Value = serde_json::from_str(&output(&mut line)?)?;
    // Half of the round trips are those of the DELETEs.
    let inserts = runs::number(&said, "/round_trips")? / 2.0;
    Ok(runs::number(&said, "/cpu_us")? / (inserts * f64::from(rows)))
}

/// Microseconds from an INSERT to the next.
fn spacing_us(rows: u32, rows_per_second: f64) -> u64 {
    (f64::from(rows) * 1e6 / rows_per_second).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_fifty_rows_at_twenty_five_thousand_rows_a_second_are_two_milliseconds_apart() {
        assert_eq!(spacing_us(50, 25_000.0), 2_000);
    }
}
