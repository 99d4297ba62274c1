//! Bench `client-effect`: does a comparison of servers depend on the client? The same servers,
//! asked by sysbench, by dbdyno asleep and spinning, and by a spinning dbdyno with more work of its
//! own.

mod page;
mod samples;

use anyhow::Result;

use super::sysbench::hosts::{self, Host};
use super::sysbench::peer;
use super::{Measured, Setting, machine, runs};
use crate::terminal;
use samples::{Sample, Samples};

/// Servers by the beginning of their names; the first is the base of all ratios.
const SERVERS: [&str; 6] = ["mysql-5.6", "mysql-5.7", "mysql-8.0", "mariadb-10.2", "mariadb-11.4", "pg-15"];
const SECONDS: u32 = 2;

/// A kind of operation: dbdyno's test, sysbench's, the connections that ask, and the rows of the
/// table it runs on.
struct Test {
    own: &'static str,
    peer: &'static str,
    connections: u32,
    rows: u32,
    /// It changes the table, which is therefore made anew before each measurement.
    writes: bool,
}

const TESTS: [Test; 4] = [
    Test { own: "point-select", peer: "oltp_point_select", connections: 4, rows: 200_000, writes: false },
    Test { own: "point-select", peer: "oltp_point_select", connections: 16, rows: 200_000, writes: false },
    Test { own: "read-only", peer: "oltp_read_only", connections: 4, rows: 200_000, writes: false },
    Test { own: "insert", peer: "oltp_insert", connections: 4, rows: 10_000, writes: true },
];

impl Test {
    fn title(&self) -> String {
        format!("{}, {} connections", self.own, self.connections)
    }
}

/// Who asks.
struct Client {
    title: &'static str,
    /// `[host]` lines of dbdyno's plan; `None` for sysbench.
    host: Option<&'static str>,
}

const CLIENTS: [Client; 5] = [
    Client { title: "sysbench", host: None },
    Client { title: "sleep", host: Some("client_wait = \"sleep\"") },
    Client { title: "spin", host: Some("client_wait = \"spin\"") },
    Client { title: "spin + 2 µs", host: Some("client_wait = \"spin\"\nclient_work = \"2us\"") },
    Client { title: "spin + 5 µs", host: Some("client_wait = \"spin\"\nclient_work = \"5us\"") },
];
/// Places in [`CLIENTS`] that the page compares with each other.
const SLEEP: usize = 1;
const SPIN: usize = 2;

/// All servers run side by side; in each round every server is asked by every client, in another
/// order.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let version = peer::version()?;
    let start = |prefix: &&str| hosts::start(prefix, &setting.folder.join(prefix));
    let hosts = SERVERS.iter().map(start).collect::<Result<Vec<Host>>>()?;
    let mut samples = Samples::new(hosts.iter().map(|host| host.title.clone()).collect());
    for round in 1..=setting.rounds {
        for (number, test) in TESTS.iter().enumerate() {
            setting.note_round(round, &test.title());
            // Tests that only read share a table.
            for host in hosts.iter().filter(|_| number == 0) {
                // The first table of all is not there to be removed.
                let _ = peer::cleanup(host);
                peer::prepare(host, test.rows)?;
                host.tidy_up()?;
            }
            for (server, client) in order(round) {
                let host = &hosts[server];
                if test.writes {
                    peer::prepare_anew(host, test.rows)?;
                }
                let sample = match CLIENTS[client].host {
                    None => by_sysbench(host, test)?,
                    Some(lines) => undisturbed(|attempt| {
                        by_dbdyno(setting, host, test, lines, &format!("{round}-{client}-{attempt}"))
                    })?,
                };
                samples.add(number, server, client, sample);
            }
        }
    }
    Ok(Measured {
        table: page::tables(&samples, super::grid::Grid::text),
        markdown: page::markdown(&samples),
        facts: vec![
            format!("rounds: {}", setting.rounds),
            format!("servers: {}, started by dbdyno, {}", samples.titles.join(", "), machine::shares()),
            format!("peer: {version} of Debian"),
        ],
        is_met: samples.is_met(),
    })
}

/// Every server with every client, begun elsewhere and turned round from round to round.
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

/// sysbench's rate, and the CPU time of the server over its whole run by the kernel's account.
fn by_sysbench(host: &Host, test: &Test) -> Result<Sample> {
    let before = host.cpu_time()?;
    let done = peer::done(host, test.peer, &[], test.connections, SECONDS, test.rows)?;
    let used = host.cpu_time()?.saturating_sub(before);
    let server_cpu_us = used.as_secs_f64() * 1e6 / done.count;
    Ok(Sample { rate_per_second: done.used.rate_per_second, server_cpu_us })
}

/// Measures again what came out invalid, as when another program took the client's CPU.
fn undisturbed(measure: impl Fn(u32) -> Result<Sample>) -> Result<Sample> {
    const ATTEMPTS: u32 = 5;
    let mut attempt = 1;
    loop {
        match measure(attempt) {
            Err(error) if attempt < ATTEMPTS => terminal::note(&format!("measured again: {error:#}")),
            sample => return sample,
        }
        attempt += 1;
    }
}

fn by_dbdyno(setting: &Setting, host: &Host, test: &Test, lines: &str, name: &str) -> Result<Sample> {
    let folder = setting.folder.join(host.title.replace(' ', "-")).join(test.title());
    let text = plan(&host.peer_address, test, lines);
    let report = runs::measured(&setting.dbdyno, &folder, name, &text, &[])?;
    let run = runs::step(&report, &format!("{}.c{}", test.own, test.connections))?;
    Ok(Sample {
        rate_per_second: runs::number(run, "/rate")?,
        server_cpu_us: runs::number(run, "/cost/server_cpu_us")?,
    })
}

fn plan(address: &str, test: &Test, lines: &str) -> String {
    let (server, client) = machine::halves();
    let (server, client) = (machine::list(server.as_deref()), machine::list(client.as_deref()));
    let Test { own, connections, rows, .. } = test;
    format!(
        "name = \"client-effect\"\n\n[host]\nserver_cpus = \"{server}\"\nclient_cpus = \"{client}\"\n{lines}\n\n\
         [[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n[workload.oltp]\ntests = [\"{own}\"]\n\
         connections = [{connections}]\nuse_existing = true\ntables = 1\ntable_size = {rows}\ntime = \"{SECONDS}s\"\n\
         distribution = \"uniform\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_asks_every_server_by_every_client_in_another_order() {
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
