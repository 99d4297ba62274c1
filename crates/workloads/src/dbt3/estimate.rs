//! Forecasts DBT3. All of it is guessed from assumed speeds; a query with a bad plan takes any
//! time.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, Speed, StepEstimate, grouped, numbered, seconds};

use crate::dbt3::options::Dbt3;
use crate::dbt3::parameters::ORDERS;
use crate::dbt3::rows::about_bytes;
use crate::dbt3::schema::Table;
use crate::dbt3::steps::{self, StepKind, scripts};

/// What a row costs that is streamed in, compared with one of a multi-row INSERT.
const STREAM_FACTOR: f64 = 1.2;
/// Secondary indexes of the largest table.
const INDEXES: f64 = 8.0;
/// Of rows and their indexes, compared with the text of the rows. The report of 2012 had 48 GB for
/// 30.
const DISK_FACTOR: f64 = 1.9;
/// What a query does with a row of the largest table, on average over all queries.
const QUERY_ROW_US: f64 = 0.5;

pub(crate) fn estimate(options: &Dbt3, speed: &Speed, size: &Size) -> Forecast {
    let scale = options.scale_factor;
    let rows: u64 = Table::ALL.iter().map(|table| table.about_rows(scale)).sum();
    let text = text_bytes(options);
    let lanes = options.load_connections.min(speed.parallel_clients).max(1);
    let each = |row_us: f64| seconds(rows as f64 * row_us / 1e6);
    let detail = format!("{} rows", grouped(rows));
    let query = each(if size.row_bytes > 0.0 { QUERY_ROW_US } else { 0.0 });
    let query = options.time_limit.map_or(query, |limit| query.min(limit.0));
    let mut all = vec![StepEstimate::new("prepare", "server and tables", seconds(speed.prepare_seconds))];
    for step in steps::plan(options) {
        let (what, length) = match &step.kind {
            StepKind::Load => (detail.clone(), each(speed.load_row_us * STREAM_FACTOR) / lanes),
            StepKind::Index => (format!("indexes on {detail}"), each(speed.index_row_us * INDEXES)),
            StepKind::Statistics => ("all tables".to_owned(), Duration::from_secs(1)),
            StepKind::Query { .. } => {
                (numbered(options.repetitions, "execution"), query.saturating_mul(options.repetitions))
            }
            StepKind::Power => ("all queries".to_owned(), query.saturating_mul(ORDERS[0].len() as u32)),
            StepKind::Throughput => {
                let queries = scripts(&step.kind, options).iter().map(Vec::len).sum::<usize>() as u32;
                let length = query.saturating_mul(queries) / speed.parallel_clients.max(1);
                (numbered(options.streams, "stream"), length)
            }
        };
        all.push(StepEstimate::new(&step.name, &what, length));
        if step.kind == StepKind::Statistics {
            all.extend(options.settling().estimate("after the load", Duration::ZERO));
        }
    }
    let is_kept = size.row_bytes > 0.0;
    let data = if is_kept { table_bytes(options) } else { 0 };
    let binlog = if size.binlog_row_bytes > 0 { text } else { 0 };
    let loaded_bytes = data.saturating_add(size.log_bytes);
    Forecast { steps: all, disk_bytes: loaded_bytes.saturating_add(binlog), loaded_bytes }
}

fn text_bytes(options: &Dbt3) -> u64 {
    Table::ALL.iter().map(|table| about_bytes(*table, options.scale_factor)).sum()
}

/// All tables with their indexes.
pub(crate) fn table_bytes(options: &Dbt3) -> u64 {
    (text_bytes(options) as f64 * DISK_FACTOR) as u64
}
