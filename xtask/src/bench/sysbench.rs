//! Bench `sysbench` runs OLTP transactions and scripts with dbdyno and with sysbench or pgbench on
//! the same server, and compares client CPU and rate. It also compares client CPU with that of a
//! bare epoll loop, which does nothing but send queries and wait for their answers.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::hosts::{self, FOR_CLIENTS, Host, PEER_DATABASE, SysbenchLoad, ended, number, on_client_cpus};
use super::{Bound, Setting, Table, in_turn};
use crate::workspace::output;

const SECONDS: u32 = 5;
const LOAD: SysbenchLoad = SysbenchLoad { tables: 1, rows: 10_000, threads: 1, seconds: SECONDS };
const SERVERS: [&str; 2] = ["mariadb-10.11", "pg-15"];
/// Highest ratio of client CPU to that of the bare loop.
const MOST_OVER_BARE_LOOP: f64 = 1.25;
/// Number of connections at which [`MOST_OVER_BARE_LOOP`] must hold.
const BARE_LOOP_CONNECTIONS: u32 = 16;

/// One kind of transaction at one concurrency.
struct Case {
    /// dbdyno's test. It is `None` for a script, which dbdyno runs with the other program's command
    /// line.
    own: Option<&'static str>,
    /// The other program.
    program: &'static str,
    /// The other program's test or script.
    peer: &'static str,
    /// Options of the plan's workload, and the same options for sysbench.
    options: &'static str,
    peer_options: &'static [&'static str],
    connections: u32,
    /// Highest ratio of client CPU to the other program's.
    most_cpu: f64,
    /// Lowest ratio of the rate to the other program's.
    lowest_rate: Option<f64>,
}

/// Returns a case for which dbdyno runs a plan, and sysbench runs its own test.
const fn oltp_case(own: &'static str, peer: &'static str, connections: u32) -> Case {
    let (program, options, peer_options) = ("sysbench", "", &[] as &[&str]);
    let (own, most_cpu, lowest_rate) = (Some(own), 0.70, None);
    Case { own, program, peer, options, peer_options, connections, most_cpu, lowest_rate }
}

/// Returns a case of point selects.
const fn point_select_case(connections: u32, most_cpu: f64, lowest_rate: Option<f64>) -> Case {
    Case { most_cpu, lowest_rate, ..oltp_case("point-select", "oltp_point_select", connections) }
}

/// Returns a case in which dbdyno runs the other program's script.
const fn script_case(peer: &'static str) -> Case {
    Case { own: None, most_cpu: 0.80, lowest_rate: Some(1.0), ..oltp_case("", peer, 16) }
}

const CASES: &[Case] = &[
    point_select_case(1, 0.75, None),
    point_select_case(16, 0.60, Some(1.10)),
    point_select_case(64, 0.60, Some(1.10)),
    oltp_case("read-write", "oltp_read_write", 1),
    oltp_case("read-write", "oltp_read_write", 16),
    oltp_case("read-write", "oltp_read_write", 64),
    // This case has only simple ranges of 100 rows, each in a transaction of its own.
    Case {
        options: "point_selects = 0\nsum_ranges = 0\norder_ranges = 0\ndistinct_ranges = 0\nskip_trx = true\n",
        peer_options: &[
            "--point-selects=0",
            "--sum-ranges=0",
            "--order-ranges=0",
            "--distinct-ranges=0",
            "--skip-trx=on",
        ],
        ..oltp_case("read-only", "oltp_read_only", 16)
    },
    oltp_case("update-index", "oltp_update_index", 16),
    oltp_case("update-non-index", "oltp_update_non_index", 16),
    oltp_case("insert", "oltp_insert", 16),
    script_case("oltp_point_select"),
    script_case("oltp_read_write"),
    Case { program: "pgbench", most_cpu: 0.90, ..script_case("select-only") },
];

impl Case {
    fn what(&self, host: &Host) -> String {
        let Self { program, peer, connections, .. } = self;
        let own = self.own.map_or_else(|| format!("{program} script {peer}"), str::to_owned);
        let ranges = if self.options.is_empty() { "" } else { " of simple ranges" };
        format!("{}, {own}{ranges}, {connections} connections", host.title)
    }

    fn runs_on(&self, host: &Host) -> bool {
        self.program != "pgbench" || !host.is_mysql
    }

    fn load(&self) -> SysbenchLoad {
        SysbenchLoad { threads: self.connections, ..LOAD }
    }
}

pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    let version = hosts::sysbench_version()?;
    let bare_loop = hosts::built_example("epoll_floor")?;
    let mut titles = Vec::new();
    for prefix in SERVERS {
        let host = Host::start(setting, prefix, FOR_CLIENTS)?;
        let cases = CASES.iter().filter(|case| case.runs_on(&host) && setting.wants(&case.what(&host)));
        let cases: Vec<&Case> = cases.collect();
        for round in 1..=setting.rounds {
            for case in &cases {
                let what = case.what(&host);
                setting.note_round(round, &what);
                let [own, peer] = in_turn(round, |is_own| measured(setting, &host, case, is_own))?;
                table.add(&what, "client CPU, µs", Bound::AtMost(case.most_cpu), [own[0], peer[0]]);
                let min = case.lowest_rate.map_or(Bound::Shown, Bound::AtLeast);
                table.add(&what, "rate, per second", min, [own[1], peer[1]]);
                if host.is_mysql && case.peer == "oltp_point_select" && case.own.is_some() {
                    let has_bound = case.connections == BARE_LOOP_CONNECTIONS;
                    let max = if has_bound { Bound::AtMost(MOST_OVER_BARE_LOOP) } else { Bound::Shown };
                    let bare = bare_loop_cpu(&bare_loop, &host, case.connections)?;
                    table.add(&what, "client CPU, over that of a bare loop, µs", max, [own[0], bare]);
                }
            }
        }
        titles.push(host.title);
    }
    Ok(vec![hosts::servers(&titles), version])
}

/// Returns client CPU in µs per transaction, and transactions per second. `is_own` selects dbdyno,
/// and otherwise the other program is measured.
fn measured(setting: &Setting, host: &Host, case: &Case, is_own: bool) -> Result<[f64; 2]> {
    if case.program == "pgbench" {
        let line = format!("-i -q -s 1 -h {} -U postgres {PEER_DATABASE}", host.socket);
        ended(Command::new("pgbench").args(line.split(' ')))?;
    } else {
        host.prepare(&LOAD)?;
    }
    if let (true, Some(test)) = (is_own, case.own) {
        let step = by_plan(setting, host, case, test)?;
        return Ok([number(&step, "/metrics/client_cpu_us")?, number(&step, "/metrics/rate")?]);
    }
    let mut command = on_client_cpus(if is_own { setting.dbdyno.as_os_str() } else { case.program.as_ref() });
    if is_own {
        command.args(["--quiet", case.program]);
    }
    if case.program == "pgbench" {
        let Case { connections, peer, .. } = case;
        let options = format!("-n -h {} -U postgres -M prepared -b {peer}", host.socket);
        let load = format!("-c {connections} -j 4 -T {SECONDS} {PEER_DATABASE}");
        command.args(options.split(' ')).args(load.split(' '));
    } else {
        command.args(host.words(case.peer, &case.load(), case.peer_options, "run"));
    }
    let ended = ended(&command)?;
    let (count, rate) = ended.transactions()?;
    Ok([ended.cpu_us / count, rate])
}

/// Runs a plan on the table that sysbench has made, and returns its step in the report.
fn by_plan(setting: &Setting, host: &Host, case: &Case, test: &str) -> Result<Value> {
    let Case { connections, options, .. } = case;
    let oltp = format!(
        "tests = [\"{test}\"]\nconnections = [{connections}]\nuse_existing = true\ntables = 1\n\
         table_size = {}\ntime = \"{SECONDS}s\"\ndistribution = \"uniform\"\n{options}",
        LOAD.rows
    );
    let ran = hosts::run_plan(setting, &hosts::plan_text(&host.peer_address, "", &oltp))?;
    Ok(ran.step(&format!("{test}.c{connections}"))?.clone())
}

/// Runs the bare loop with `connections` connections on the CPUs of the other clients. Returns its
/// CPU in µs per query.
fn bare_loop_cpu(bare_loop: &Path, host: &Host, connections: u32) -> Result<f64> {
    let mut command = on_client_cpus(bare_loop);
    command.args([&host.socket, PEER_DATABASE]).args([connections, SECONDS].map(|number| number.to_string()));
    let figures: Value = serde_json::from_str(&output(&mut command)?)?;
    Ok(number(&figures, "/cpu_us")? / number(&figures, "/queries")?)
}
