//! The microbenchmarks' statements against the original's published script: what is sent, with
//! which parameters, how often. No test here knows how the workload is made; all look at what
//! arrives at a database.

mod existing;
mod parameters;
mod shapes;
mod steps;

use dbdyno_db::mysql;
use dbdyno_workloads::Workload;
use dbdyno_workloads::microbenchmarks::Microbenchmarks;
use dbdyno_workloads::microbenchmarks::options::{MicroSequence, MicrobenchmarksOptions};

use crate::desk::Desk;

/// All steps of a sequence on tables of 10,000 rows, over two connections.
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

/// The numbers in a statement, without those of names.
pub(crate) fn numbers(sql: &str) -> Vec<i64> {
    let sql = sql.replace("sbtest1", "").replace("sbtest2", "");
    sql.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}
