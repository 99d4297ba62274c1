//! The original's metric row: its 21 columns, their units, decimals and meaning.

use dbdyno_analyse::{MetricRow, StepFindings};

use super::{Column, Grid, run_columns, run_labels, runs};
use crate::number::fixed;

/// One column of the metric row.
#[derive(Debug, Clone, Copy)]
pub struct MetricColumn {
    /// The original's name.
    pub name: &'static str,
    pub unit: &'static str,
    /// Decimals in which the original prints it.
    pub decimals: usize,
    pub meaning: &'static str,
    pub value: fn(&MetricRow) -> Option<f64>,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    decimals: usize,
    value: fn(&MetricRow) -> Option<f64>,
    meaning: &'static str,
) -> MetricColumn {
    MetricColumn { name, unit, decimals, meaning, value }
}

/// The numeric columns in the original's order; `tag` follows them. Names with `q` mean "per insert" in l.* steps,
/// as in the original.
pub const METRICS: &[MetricColumn] = &[
    column("ips", "rows/s", 0, |m| m.ips, "Inserts per second; in l.x indexed rows per second."),
    column("qps", "1/s", 0, |m| m.qps, "Queries per second."),
    column("rps", "1/s", 0, |m| m.rps, "Reads per second of the block device."),
    column("rmbps", "MiB/s", 1, |m| m.rmbps, "MiB read per second from the block device."),
    column("wps", "1/s", 0, |m| m.wps, "Writes per second of the block device."),
    column("wmbps", "MiB/s", 1, |m| m.wmbps, "MiB written per second to the block device."),
    column("rpq", "1/op", 3, |m| m.rpq, "Device reads per query (per insert in l.* steps)."),
    column("rkbpq", "KiB/op", 3, |m| m.rkbpq, "KiB read per query (per insert in l.* steps)."),
    column("wpi", "1/row", 3, |m| m.wpi, "Device writes per insert, in query steps too."),
    column("wkbpi", "KiB/row", 3, |m| m.wkbpi, "KiB written per insert, in query steps too."),
    column("csps", "1/s", 0, |m| m.csps, "Context switches per second of the whole host."),
    column("cpups", "%", 1, |m| m.cpups, "User and kernel CPU of the whole host, in percent of all cores."),
    column(
        "cspq",
        "1/op",
        3,
        |m| m.cspq,
        "Context switches of the host per query (per insert in l.* steps).",
    ),
    column(
        "cpupq",
        "µs/op",
        0,
        |m| m.cpupq,
        "CPU of the whole host, client included, per query (per insert in l.* steps).",
    ),
    column("dbgb1", "GiB", 3, |m| m.dbgb1, "Size of the database's tables and indexes."),
    column("dbgb2", "GiB", 3, |m| m.dbgb2, "Size of the whole data directory with its logs."),
    column("rss", "GiB", 3, |m| m.rss, "Greatest resident memory of the server process."),
    column("maxop", "s", 3, |m| m.maxop, "Longest service time of an insert (l.*) or a query (q*)."),
    column(
        "p50",
        "1/s",
        0,
        |m| m.p50,
        "Rate of client 1 in its median second: it was at least this fast in half of the seconds. Not a response time.",
    ),
    column(
        "p99",
        "1/s",
        0,
        |m| m.p99,
        "Rate of client 1 in a slow second: it was at least this fast in 99 % of them. Not a response time.",
    ),
];

pub(super) fn grid(step: &StepFindings) -> Grid {
    let figures = METRICS
        .iter()
        .map(|metric| Column::new(metric.name, metric.unit, metric.meaning))
        .chain([Column::new("tag", "", "Name of the variant as the original would tag it.")]);
    let note =
        "The original's columns under its names. Averages over the window; NA where nothing was measured.";
    let mut grid = Grid::new("Metrics", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let mut row = run_labels(step, variant, run);
        row.extend(METRICS.iter().map(|metric| fixed((metric.value)(&run.metrics), metric.decimals)));
        row.push(run.metrics.tag.clone());
        grid.rows.push(row);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_have_the_originals_names_in_its_order() {
        let names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(
            names.join(" "),
            "ips qps rps rmbps wps wmbps rpq rkbpq wpi wkbpi csps cpups cspq cpupq dbgb1 dbgb2 rss maxop p50 p99"
        );
    }

    #[test]
    fn each_column_reads_its_own_field() {
        let json = serde_json::to_value(MetricRow::default()).expect("plain data");
        for metric in METRICS {
            let mut row = MetricRow::default();
            assert!((metric.value)(&row).is_none(), "{}", metric.name);
            assert!(json.get(metric.name).is_some(), "{} is a field", metric.name);
            fill(&mut row, metric.name);
            assert_eq!((metric.value)(&row), Some(7.0), "{}", metric.name);
        }
    }

    fn fill(row: &mut MetricRow, name: &str) {
        let field = match name {
            "ips" => &mut row.ips,
            "qps" => &mut row.qps,
            "rps" => &mut row.rps,
            "rmbps" => &mut row.rmbps,
            "wps" => &mut row.wps,
            "wmbps" => &mut row.wmbps,
            "rpq" => &mut row.rpq,
            "rkbpq" => &mut row.rkbpq,
            "wpi" => &mut row.wpi,
            "wkbpi" => &mut row.wkbpi,
            "csps" => &mut row.csps,
            "cpups" => &mut row.cpups,
            "cspq" => &mut row.cspq,
            "cpupq" => &mut row.cpupq,
            "dbgb1" => &mut row.dbgb1,
            "dbgb2" => &mut row.dbgb2,
            "rss" => &mut row.rss,
            "maxop" => &mut row.maxop,
            "p50" => &mut row.p50,
            "p99" => &mut row.p99,
            other => panic!("no field {other}"),
        };
        *field = Some(7.0);
    }
}
