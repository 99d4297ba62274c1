//! Bench `client-effect` tests whether a comparison of servers depends on the client. The same
//! servers get their load from sysbench, from a dbdyno whose threads sleep while they wait for
//! answers, from one whose threads spin, and from a spinning one with extra work of its own.

use anyhow::Result;

use super::hosts::{self, FOR_CLIENTS, Host, SysbenchLoad, number};
use super::{Bound, Setting, Table};
use crate::workspace;

/// Servers by the beginning of their names. The first is the base of all ratios.
const SERVERS: [&str; 6] = ["mysql-5.6", "mysql-5.7", "mysql-8.0", "mariadb-10.2", "mariadb-11.4", "pg-15"];
const SECONDS: u32 = 2;
/// Share by which a figure may change when the client gets slower.
const TOLERANCE: f64 = 0.03;

/// dbdyno's test, sysbench's test, the number of connections, and the rows of the table.
struct Test(&'static str, &'static str, u32, u64);

const TESTS: [Test; 4] = [
    Test("point-select", "oltp_point_select", 4, 200_000),
    Test("point-select", "oltp_point_select", 16, 200_000),
    Test("read-only", "oltp_read_only", 4, 200_000),
    Test("insert", "oltp_insert", 4, 10_000),
];

/// The title of each client, and the lines that it has in the plan's section `[host]`. sysbench has
/// no plan.
const CLIENTS: [(&str, Option<&str>); 5] = [
    ("sysbench", None),
    ("sleeping", Some("client_wait = \"sleep\"")),
    ("spinning", Some("client_wait = \"spin\"")),
    ("spinning + 2 µs", Some("client_wait = \"spin\"\nclient_work = \"2us\"")),
    ("spinning + 5 µs", Some("client_wait = \"spin\"\nclient_work = \"5us\"")),
];
// Both are indexes in `CLIENTS`.
const SLEEP: usize = 1;
const SPIN: usize = 2;

/// Server CPU in µs per operation, and operations per second.
type Sample = [f64; 2];

/// Runs all servers side by side. In each round every client measures every server, in another
/// order.
pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    let version = hosts::sysbench_version()?;
    let start = |prefix: &&str| Host::start(setting, prefix, FOR_CLIENTS);
    let hosts = SERVERS.iter().map(start).collect::<Result<Vec<Host>>>()?;
    for round in 1..=setting.rounds {
        for test in &TESTS {
            let Test(own, _, connections, rows) = *test;
            let what = format!("{own}, {connections} connections");
            if !setting.wants(&what) {
                continue;
            }
            setting.note_round(round, &what);
            let load = SysbenchLoad { tables: 1, rows, threads: connections, seconds: SECONDS };
            let mut samples = vec![[[0.0; 2]; CLIENTS.len()]; hosts.len()];
            for (at, (server, client)) in order(round).into_iter().enumerate() {
                // Tests that only read share a table.
                if own == "insert" {
                    hosts[server].prepare(&load)?;
                } else if at == 0 {
                    hosts.iter().try_for_each(|host| host.prepare(&load))?;
                }
                samples[server][client] = match CLIENTS[client].1 {
                    None => by_sysbench(&hosts[server], test, &load)?,
                    Some(lines) => by_dbdyno(setting, &hosts[server], test, lines)?,
                };
            }
            compare(table, &what, &hosts, &samples);
        }
    }
    let titles: Vec<String> = hosts.into_iter().map(|host| host.title).collect();
    Ok(vec![hosts::servers(&titles), version])
}

/// Adds one round of a test: the client's effect on a server's CPU time, and on the server's ratio
/// to the base.
fn compare(table: &mut Table, test: &str, hosts: &[Host], samples: &[[Sample; CLIENTS.len()]]) {
    for (host, of_server) in hosts.iter().zip(samples) {
        let case = format!("{test}, {}", host.title);
        let cpu = |client: usize| of_server[client][0];
        let figure = "server CPU per operation: spinning ÷ sleeping, µs";
        table.add(&case, figure, Bound::Shown, [cpu(SPIN), cpu(SLEEP)]);
        for (client, (title, _)) in CLIENTS.iter().enumerate().skip(SPIN + 1) {
            let figure = format!("the same: {title} ÷ spinning, µs");
            table.add(&case, &figure, Bound::Within(TOLERANCE), [cpu(client), cpu(SPIN)]);
        }
    }
    for (figure, index) in [("server CPU per operation, µs", 0), ("rate, per second", 1)] {
        for (client, (title, _)) in CLIENTS.iter().enumerate().take(SPIN + 1) {
            for (host, of_server) in hosts.iter().zip(samples).skip(1) {
                let case = format!("{test}, {} ÷ {}", host.title, hosts[0].title);
                let figure = format!("{figure}, client {title}");
                table.add(
                    &case,
                    &figure,
                    Bound::Shown,
                    [of_server[client][index], samples[0][client][index]],
                );
            }
        }
    }
}

/// Returns every pair of a server and a client, in the order of a round. Each round starts at
/// another pair, and every second round runs backwards.
fn order(round: u32) -> Vec<(usize, usize)> {
    let pairs = (0..CLIENTS.len()).flat_map(|client| (0..SERVERS.len()).map(move |server| (server, client)));
    let mut pairs: Vec<(usize, usize)> = pairs.collect();
    let by = round as usize * 7 % pairs.len();
    pairs.rotate_left(by);
    if round.is_multiple_of(2) {
        pairs.reverse();
    }
    pairs
}

/// Returns the server's CPU time per transaction and sysbench's rate. The kernel counts the CPU
/// time, over sysbench's whole run.
fn by_sysbench(host: &Host, test: &Test, load: &SysbenchLoad) -> Result<Sample> {
    let before = host.cpu_us()?;
    let (count, rate) = host.sysbench(test.1, load, &[], "run")?.transactions()?;
    Ok([(host.cpu_us()? - before) / count, rate])
}

/// Returns the server's CPU time per operation and dbdyno's rate. An invalid step is measured
/// again, for example when another program took the client's CPU.
fn by_dbdyno(setting: &Setting, host: &Host, test: &Test, lines: &str) -> Result<Sample> {
    const ATTEMPTS: u32 = 5;
    let Test(own, _, connections, rows) = test;
    let host_lines = format!("server_cpus = \"{}\"\n{lines}", hosts::cpu_list(hosts::halves().0.as_deref()));
    let oltp = format!(
        "tests = [\"{own}\"]\nconnections = [{connections}]\nuse_existing = true\ntables = 1\n\
         table_size = {rows}\ntime = \"{SECONDS}s\"\ndistribution = \"uniform\""
    );
    let plan = hosts::plan_text(&host.peer_address, &host_lines, &oltp);
    let measure = || {
        let ran = hosts::run_plan(setting, &plan)?;
        let step = ran.step(&format!("{own}.c{connections}"))?;
        Ok([number(step, "/metrics/server_cpu_us")?, number(step, "/metrics/rate")?])
    };
    for _ in 1..ATTEMPTS {
        match measure() {
            Err(error) => workspace::note(&format!("measured again: {error:#}")),
            sample => return sample,
        }
    }
    measure()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_measures_every_server_by_every_client_in_another_order() {
        let mut orders: Vec<_> = (1..=4).map(order).collect();
        for (at, one) in orders.iter().enumerate() {
            assert!(!orders[..at].contains(one), "round {}", at + 1);
        }
        for one in &mut orders {
            one.sort_unstable();
            one.dedup();
            assert_eq!(one.len(), SERVERS.len() * CLIENTS.len());
        }
    }
}
