//! Bench `load` compares the rate of loading sbtest tables and building their indexes with
//! sysbench's command `prepare` on the same server.

use std::time::Instant;

use anyhow::{Context, Result};

use super::hosts::{self, Host, Settings, SysbenchLoad};
use super::{Bound, Setting, Table, in_turn};

/// Connections of both programs.
const CONNECTIONS: u32 = 4;
/// Lowest ratio of dbdyno's rate to sysbench's.
const MIN_RATE: f64 = 1.5;
const SERVERS: [&str; 2] = ["mariadb-10.11.5", "pg-15"];
/// Number of tables, and the method by which dbdyno loads them. sysbench has only one method.
const CASES: [(u32, &str); 4] = [(1, "insert"), (1, "stream"), (4, "insert"), (4, "stream")];

/// Settings that keep all data in memory, with a log so large that it does not limit the load.
const SETTINGS: Settings = [
    "[mysqld]
innodb_buffer_pool_size = 4G
innodb_log_file_size = 2G
skip_log_bin
",
    "shared_buffers = 4GB
max_wal_size = 8GB
maintenance_work_mem = 256MB
",
];

pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    let version = hosts::sysbench_version()?;
    let mut titles = Vec::new();
    for prefix in SERVERS {
        let host = Host::start(setting, prefix, SETTINGS)?;
        for round in 1..=setting.rounds {
            for (tables, method) in CASES {
                let plural = if tables == 1 { "" } else { "s" };
                let what = format!("{}, {tables} table{plural}, {method}", host.title);
                if !setting.wants(&what) {
                    continue;
                }
                setting.note_round(round, &what);
                let rows = setting.rows / u64::from(tables);
                let load = SysbenchLoad { tables, rows, threads: CONNECTIONS, seconds: 1 };
                let seconds = in_turn(round, |is_own| match is_own {
                    true => loaded(setting, &host, load, method),
                    false => prepared(&host, load),
                })?;
                let rates = seconds.map(|seconds| (rows * u64::from(tables)) as f64 / seconds);
                table.add(&what, "rows per second", Bound::AtLeast(MIN_RATE), rates);
            }
        }
        titles.push(host.title);
    }
    Ok(vec![format!("rows: {}", setting.rows), hosts::servers(&titles), version])
}

/// Returns the seconds that sysbench's command `prepare` takes to make tables, rows and indexes.
/// Its tables are dropped afterwards.
fn prepared(host: &Host, load: SysbenchLoad) -> Result<f64> {
    let began = Instant::now();
    host.sysbench("oltp_read_write", &load, &[], "prepare")?;
    let seconds = began.elapsed().as_secs_f64();
    host.sysbench("oltp_read_write", &load, &[], "cleanup")?;
    Ok(seconds)
}

/// Returns the seconds that dbdyno's steps `load` and `index` take. Its tables are dropped
/// afterwards.
fn loaded(setting: &Setting, host: &Host, load: SysbenchLoad, method: &str) -> Result<f64> {
    let SysbenchLoad { tables, rows, .. } = load;
    let oltp = format!(
        "settle_wait = \"0s\"\ntests = [\"point-select\"]\ntables = {tables}\ntable_size = {rows}\ntime = \"1s\"\n\
         load_connections = {CONNECTIONS}\nload_method = \"{method}\"\nverify = \"off\""
    );
    let ran = hosts::run_plan(setting, &hosts::plan_text(&host.address, "", &oltp))?;
    let mut seconds = 0.0;
    for step in ["load", "index"] {
        let window = ran.record(step)?.window();
        let (from_us, to_us) = window.with_context(|| format!("step {step} has no window"))?;
        seconds += (to_us - from_us) as f64 / 1e6;
    }
    host.drop_own()?;
    Ok(seconds)
}
