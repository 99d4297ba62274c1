//! Forecasts DBT3. All of it is guessed from figures by query; a query with a bad plan takes any time.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, StepEstimate, grouped, numbered};

use crate::dbt3::options::Dbt3;
use crate::dbt3::parameters::ORDERS;
use crate::dbt3::rows::about_bytes;
use crate::dbt3::schema::Table;
use crate::dbt3::steps::{self, Operation, StepKind, scripts};

/// Of rows and their indexes, compared with the text of the rows. The report of 2012 had 48 GB for
/// 30.
const DISK_FACTOR: f64 = 1.9;

pub(crate) fn estimate(options: &Dbt3, size: &Size) -> Forecast {
    let is_kept = size.row_bytes > 0.0;
    let data = if is_kept { table_bytes(options) } else { 0 };
    let binlog = if size.binlog_row_bytes > 0 { text_bytes(options) } else { 0 };
    let loaded_bytes = data.saturating_add(size.log_bytes);
    Forecast { steps: steps(options, data), disk_bytes: loaded_bytes.saturating_add(binlog), loaded_bytes }
}

fn steps(options: &Dbt3, data_bytes: u64) -> Vec<StepEstimate> {
    let rows: u64 = Table::ALL.iter().map(|table| table.about_rows(options.scale_factor)).sum();
    let detail = format!("{} rows", grouped(rows));
    let rows = rows as f64;
    let mut all = vec![StepEstimate::of_work("prepare", "server and tables", "server started", 1.0)];
    for step in steps::plan(options) {
        let of = |what: &str| StepEstimate::new(&step.name, what, Duration::ZERO);
        all.push(match &step.kind {
            StepKind::Load => of(&detail).and("dbt3 row loaded", rows, options.load_connections),
            StepKind::Index => of(&format!("indexes on {detail}")).and("dbt3 row indexed", rows, 1),
            StepKind::Statistics => of("all tables").and("dbt3 row analysed", rows, 1),
            StepKind::Query { number, .. } => {
                let repetitions = options.repetitions;
                let what = numbered(repetitions, "execution");
                queries(options, of(&what), &[(*number, f64::from(repetitions))], 1)
            }
            StepKind::Power => {
                let once: Vec<_> = ORDERS[0].iter().map(|number| (*number, 1.0)).collect();
                queries(options, of("all queries"), &once, 1)
            }
            StepKind::Throughput => {
                let operations = scripts(&step.kind, options).into_iter().flatten();
                let sent: Vec<_> = operations
                    .filter_map(|operation| match operation {
                        Operation::Query { number, .. } => Some((number, 1.0)),
                        _ => None,
                    })
                    .collect();
                queries(options, of(&numbered(options.streams, "stream")), &sent, options.streams)
            }
        });
        if step.kind == StepKind::Statistics {
            all.extend(options.settling().estimate("after the load", Duration::ZERO, data_bytes));
        }
    }
    all
}

/// Queries by number, each so many times, on so many connections.
fn queries(options: &Dbt3, step: StepEstimate, sent: &[(u8, f64)], connections: u32) -> StepEstimate {
    let times: f64 = sent.iter().map(|(_, times)| times).sum();
    let limit = options.time_limit.map(|limit| limit.0.mul_f64(times / f64::from(connections.max(1))));
    let with = |step: StepEstimate, (number, times): &(u8, f64)| {
        step.and(&format!("dbt3 q{number}"), times * options.scale_factor, connections)
    };
    sent.iter().fold(step, with).at_most(limit)
}

fn text_bytes(options: &Dbt3) -> u64 {
    Table::ALL.iter().map(|table| about_bytes(*table, options.scale_factor)).sum()
}

/// All tables with their indexes.
pub(crate) fn table_bytes(options: &Dbt3) -> u64 {
    (text_bytes(options) as f64 * DISK_FACTOR) as u64
}
