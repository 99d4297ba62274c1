//! Compares the statements of the microbenchmarks, with their parameters and their number, with the
//! original's published script. These tests see only the statements that arrive at a database, so
//! they do not depend on the workload's code.

mod existing;
mod parameters;
mod shapes;
mod steps;

use dbdyno_db::mysql;
use dbdyno_workloads::Workload;
use dbdyno_workloads::microbenchmarks::Microbenchmarks;
use dbdyno_workloads::microbenchmarks::options::{MicroSequence, MicrobenchmarksOptions};

use crate::desk::Desk;

/// Returns the options for all steps of a sequence on two tables of 10,000 rows, over two
/// connections.
pub(crate) fn options(sequence: MicroSequence) -> MicrobenchmarksOptions {
    MicrobenchmarksOptions {
        sequence,
        tables: 2,
        table_size: 10_000,
        connections: vec![2],
        ..MicrobenchmarksOptions::default()
    }
}

pub(crate) fn desk(options: &MicrobenchmarksOptions) -> Desk<Microbenchmarks> {
    Desk::of(|context| Microbenchmarks::new(options, context), mysql::capabilities("innodb", true))
}

/// Returns the numbers in a statement, without those in table names.
pub(crate) fn numbers(sql: &str) -> Vec<i64> {
    let sql = sql.replace("sbtest1", "").replace("sbtest2", "");
    sql.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}
