//! Writes a calibration as a table, and as JSON.

use dbdyno_plan::grouped;
use dbdyno_record::{ClientCalibration, ClientRate, LimitedBy};
use dbdyno_report::document::{Block, Column, Table};
use serde_json::{Value, json};

/// Writes the calibration for people. `kept` says where it is stored.
pub(crate) fn blocks(calibration: &ClientCalibration, kept: &str) -> Vec<Block> {
    let host = &calibration.host;
    let cpus =
        |list: &Option<String>| list.clone().map_or("any CPU".to_owned(), |list| format!("CPUs {list}"));
    let title = format!(
        "What the client can reach: {} CPUs, {}; client on {}{}, server on {}",
        host.cpus,
        host.cpu_model,
        cpus(&host.client_cpus),
        host.client_wait.as_ref().map_or_else(String::new, |wait| format!(" ({wait}s)")),
        cpus(&host.server_cpus)
    );
    let figures = [
        ("connections", ""),
        ("rate", "1/s"),
        ("client CPU", "µs"),
        ("load thread", ""),
        ("server CPUs", ""),
    ];
    let figures = figures.map(|(name, unit)| Column::new(name, unit, ""));
    let columns = figures.into_iter().chain([Column::words("limit")]);
    let mut table = Table::new(&title, "", vec![Column::new("protocol", "", "")], columns);
    calibration.rates.iter().for_each(|rate| table.push(row(rate)));
    vec![Block::Table(table), Block::text(""), Block::text(format!("kept in {kept}"))]
}

fn row(rate: &ClientRate) -> [String; 7] {
    let or_na = |value: Option<String>| value.unwrap_or_else(|| "NA".to_owned());
    let percent = |share: Option<f64>| or_na(share.map(|share| format!("{:.0} %", 100.0 * share)));
    [
        rate.driver.clone(),
        rate.connections.to_string(),
        grouped(rate.statements_per_second.round() as u64),
        or_na(rate.client_cpu_us.map(|us| format!("{us:.2}"))),
        percent(rate.busiest_load_thread_share),
        percent(rate.server_share),
        limit(rate.limit).to_owned(),
    ]
}

pub(crate) fn limit(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Client => "client",
        LimitedBy::Server => "server (the client could do more)",
        LimitedBy::RoundTrip => "round trip",
        LimitedBy::Unknown => "not known: measured for too short a time",
    }
}

pub(crate) fn json(calibration: &ClientCalibration, kept: &str) -> Value {
    let mut value = json!(calibration);
    value["kept_in"] = kept.into();
    value
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CalibratedHost, ToolInfo};
    use dbdyno_report::document::terminal;

    use super::*;

    #[test]
    fn the_table_is_aligned_and_names_the_limit() {
        let rate = |connections, statements_per_second, limit| ClientRate {
            driver: "mysql".to_owned(),
            connections,
            statements_per_second,
            client_cpu_us: Some(5.25),
            busiest_load_thread_share: Some(0.981),
            server_share: None,
            limit,
        };
        let calibration = ClientCalibration {
            at: String::new(),
            tool: ToolInfo { version: String::new(), commit: String::new(), build: String::new() },
            host: CalibratedHost {
                cpu_model: "Xeon".to_owned(),
                cpus: 4,
                client_cpus: Some("2-3".to_owned()),
                ..CalibratedHost::default()
            },
            rates: vec![rate(1, 37_333.4, LimitedBy::RoundTrip), rate(1024, 189_760.0, LimitedBy::Server)],
        };
        insta::assert_snapshot!(terminal(&blocks(&calibration, "FILE"), 100, false), @r"
        What the client can reach: 4 CPUs, Xeon; client on CPUs 2-3, server on any CPU
                                                      load  server
        protocol  connections     rate  client CPU  thread    CPUs  limit
                                   1/s          µs
        ─────────────────────────────────────────────────────────────────────────────────────────────
        mysql               1   37,333        5.25    98 %      NA  round trip
        mysql            1024  189,760        5.25    98 %      NA  server (the client could do more)

        kept in FILE
        ");
    }
}
