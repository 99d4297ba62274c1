//! Bench `load`: the rate of loading sbtest tables and building their indexes compared with
//! sysbench's command prepare on the same server.

mod page;

use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::sysbench::{hosts, peer};
use super::{Measured, Setting, machine, runs};
use hosts::{Host, OWN_DATABASE, PEER_DATABASE};
use page::Figure;

/// Connections of both.
const CONNECTIONS: u32 = 4;
/// Rate over sysbench's, at least.
const LEAST_RATE: f64 = 1.5;
/// Servers by the beginning of their names.
const SERVERS: [&str; 2] = ["mariadb-10.11.5", "pg-15"];

/// All data in memory, and the log so large that it does not decide.
const MY_CNF: &str = "[mysqld]
innodb_buffer_pool_size = 4G
innodb_log_file_size = 2G
skip_log_bin
";
const POSTGRESQL_CONF: &str = "shared_buffers = 4GB
max_wal_size = 8GB
maintenance_work_mem = 256MB
";

struct Case {
    tables: u32,
    method: &'static str,
}

/// Those with the same number of tables lie together: sysbench loads them in one way only, so they
/// share its rate.
const CASES: [[Case; 2]; 2] = [
    [Case { tables: 1, method: "insert" }, Case { tables: 1, method: "stream" }],
    [Case { tables: 4, method: "insert" }, Case { tables: 4, method: "stream" }],
];

/// Measures all cases, the order of the two clients changing from round to round.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let version = peer::version()?;
    let (mut figures, mut titles) = (Vec::new(), Vec::new());
    for prefix in SERVERS {
        let groups = wanted(prefix, setting.only.as_deref());
        if groups.is_empty() {
            continue;
        }
        let folder = setting.folder.join(prefix);
        let host = hosts::start_with(prefix, &folder, (MY_CNF, POSTGRESQL_CONF), machine::halves().0)?;
        for group in groups {
            let mut group: Vec<Figure> =
                group.into_iter().map(|case| Figure::new(case, &host.title)).collect();
            for round in 1..=setting.rounds {
                measure(setting, &host, &mut group, round)?;
            }
            figures.append(&mut group);
        }
        titles.push(host.title);
    }
    if figures.is_empty() {
        bail!("no case's name holds {:?}", setting.only.as_deref().unwrap_or_default());
    }
    let facts = vec![
        format!("rounds: {}; rows: {}", setting.rounds, setting.rows),
        format!("servers: {}, started by dbdyno, {}", titles.join(", "), machine::shares()),
        format!("peer: {version} of Debian"),
    ];
    Ok(Measured::of(&page::grid(&figures), facts, figures.iter().all(Figure::is_met)))
}

/// Cases on the server `prefix` whose name holds `only`, together those that share a rate of
/// sysbench.
fn wanted(prefix: &str, only: Option<&str>) -> Vec<Vec<&'static Case>> {
    let holds = |case: &&Case| only.is_none_or(|only| format!("{prefix}, {}", case.what()).contains(only));
    let groups = CASES.iter().map(|group| group.iter().filter(holds).collect::<Vec<_>>());
    groups.filter(|group| !group.is_empty()).collect()
}

/// One round of cases with the same number of tables. sysbench comes between two cases and after a
/// single one, and the order turns round each time: the second client finds a server with memory
/// and files at hand.
fn measure(setting: &Setting, host: &Host, group: &mut [Figure], round: u32) -> Result<()> {
    let mut turns: Vec<Option<usize>> = vec![Some(0), None];
    turns.extend((1..group.len()).map(Some));
    if round.is_multiple_of(2) {
        turns.reverse();
    }
    for turn in turns {
        let case = group[turn.unwrap_or(0)].case;
        let what = if turn.is_some() { case.what() } else { format!("{} by sysbench", case.tables()) };
        setting.note_round(round, &format!("{}, {what}", host.title));
        match turn {
            Some(index) => {
                let rate = loaded(setting, host, case, round)?;
                group[index].own.push(rate);
            }
            None => {
                let rate = prepared(setting, host, case)?;
                group.iter_mut().for_each(|figure| figure.peers.push(rate));
            }
        }
    }
    Ok(())
}

impl Case {
    fn tables(&self) -> String {
        format!("{} table{}", self.tables, if self.tables == 1 { "" } else { "s" })
    }

    fn what(&self) -> String {
        format!("{}, {}", self.tables(), self.method)
    }

    fn rows_per_table(&self, rows: u64) -> u64 {
        rows / u64::from(self.tables)
    }
}

/// Rows a second of sysbench's prepare: tables, rows, indexes. Its tables are gone afterwards.
fn prepared(setting: &Setting, host: &Host, case: &Case) -> Result<f64> {
    let size = format!("--table-size={}", case.rows_per_table(setting.rows));
    let tables = format!("--tables={}", case.tables);
    let threads = format!("--threads={CONNECTIONS}");
    // By default this version draws k from another distribution than dbdyno.
    let options = [tables.as_str(), &size, &threads, "--rand-type=uniform"];
    let began = Instant::now();
    peer::sysbench(host, "oltp_read_write", &options, "prepare")?;
    let seconds = began.elapsed().as_secs_f64();
    peer::sysbench(host, "oltp_read_write", &options, "cleanup")?;
    Ok(rows(setting, case) / seconds)
}

/// The same of dbdyno: its steps `load` and `index`. Its tables are gone afterwards.
fn loaded(setting: &Setting, host: &Host, case: &Case, round: u32) -> Result<f64> {
    let name = format!("t{}-{}", case.tables, case.method);
    let folder = setting.folder.join(host.title.replace(' ', "-")).join(round.to_string());
    runs::measured(&setting.dbdyno, &folder, &name, &plan(setting, host, case, &name), &[])?;
    let mut seconds = 0.0;
    for step in ["load", "index"] {
        let window = runs::record(&folder, &name, step)?.window();
        let (from_us, to_us) = window.with_context(|| format!("step {step} has no window"))?;
        seconds += (to_us - from_us) as f64 / 1e6;
    }
    // Both have tables of the same names: sysbench drops ours too.
    let (theirs, ours) = (format!("-db={PEER_DATABASE}"), format!("-db={OWN_DATABASE}"));
    let peer_options: Vec<String> =
        host.peer_options.iter().map(|option| option.replace(&theirs, &ours)).collect();
    let tables = format!("--tables={}", case.tables);
    peer::sysbench_with(&peer_options, "oltp_read_write", &[&tables], "cleanup")?;
    Ok(rows(setting, case) / seconds)
}

/// Rows of all tables.
fn rows(setting: &Setting, case: &Case) -> f64 {
    (case.rows_per_table(setting.rows) * u64::from(case.tables)) as f64
}

fn plan(setting: &Setting, host: &Host, case: &Case, name: &str) -> String {
    let (_, client_cpus) = machine::halves();
    format!(
        "name = \"{name}\"\n\n[host]\nclient_cpus = \"{cpus}\"\n\n[[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n\
         [workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntables = {tables}\ntable_size = {size}\ntime = \"1s\"\n\
         load_connections = {CONNECTIONS}\nload_method = \"{method}\"\nverify = \"off\"\n",
        cpus = machine::list(client_cpus.as_deref()),
        address = host.address,
        tables = case.tables,
        size = case.rows_per_table(setting.rows),
        method = case.method,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_taken_by_a_part_of_their_name_and_stay_with_those_that_share_a_rate() {
        let names = |only| {
            let groups = wanted("pg-15", only).into_iter();
            groups.map(|group| group.iter().map(|case| case.what()).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(names(None).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(names(Some("1 table")), [["1 table, insert", "1 table, stream"]]);
        assert_eq!(names(Some("stream")), [["1 table, stream"], ["4 tables, stream"]]);
        assert!(names(Some("mariadb")).is_empty());
    }
}
