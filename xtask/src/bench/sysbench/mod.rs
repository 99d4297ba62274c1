//! Bench `sysbench`: client CPU and rate of OLTP transactions compared with sysbench on the same
//! server, interleaved, and above the floor of a bare epoll loop.

mod cases;
pub(super) mod hosts;
mod page;
pub(super) mod peer;

use anyhow::{Context, Result};

use super::{Measured, Setting, machine, runs};
use crate::command::output;
use cases::{CASES, Case, Figure, SERVERS};
use hosts::Host;
use peer::Used;

/// Seconds of each measurement.
const SECONDS: u32 = 5;
/// Rows of the one table.
const ROWS: u32 = 10_000;

/// Measures all cases, the order of the two clients changing from round to round.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let version = peer::version()?;
    let floor = runs::built_example("epoll_floor")?;
    let mut figures: Vec<Figure> = Vec::new();
    let mut titles = Vec::new();
    for prefix in SERVERS {
        let host = hosts::start(prefix, &setting.folder.join(prefix))?;
        let mut measured: Vec<Figure> = CASES.iter().map(|case| Figure::new(case, &host.title)).collect();
        for round in 1..=setting.rounds {
            for figure in &mut measured {
                let case = figure.case;
                setting.note_round(round, &format!("{}, {}", host.title, case.what()));
                let fresh = || peer::prepare_anew(&host, ROWS);
                if case.has_floor && host.is_mysql {
                    fresh()?;
                    figure.floors.push(bare_loop(&floor, &host, (case.connections, SECONDS))?);
                }
                // The second client finds warmer caches: they take turns.
                for is_own in [round % 2 == 1, round % 2 == 0] {
                    fresh()?;
                    match is_own {
                        true => figure.own.push(own(setting, &host, case, round)?),
                        false => figure.peers.push(peers(&host, case)?),
                    }
                }
            }
        }
        figures.append(&mut measured);
        titles.push(host.title);
    }
    Ok(Measured {
        table: page::text(&figures),
        markdown: page::markdown(&figures),
        facts: vec![
            format!("rounds: {}", setting.rounds),
            format!("servers: {}, started by dbdyno, {}", titles.join(", "), machine::shares()),
            format!("peer: {version} of Debian"),
        ],
        is_met: figures.iter().all(Figure::is_met),
    })
}

fn peers(host: &Host, case: &Case) -> Result<Used> {
    Ok(peer::done(host, case.peer_test, case.peer_options, case.connections, SECONDS, ROWS)?.used)
}

fn own(setting: &Setting, host: &Host, case: &Case, round: u32) -> Result<Used> {
    let (_, cpus) = machine::halves();
    let name = format!("{}-c{}", case.title, case.connections);
    let folder = setting.folder.join(host.title.replace(' ', "-")).join(round.to_string());
    let text = cases::plan(&name, &host.peer_address, case, cpus.as_deref());
    let report = runs::measured(&setting.dbdyno, &folder, &name, &text, &[])?;
    let run = runs::step(&report, &format!("{}.c{}", case.test, case.connections))?;
    Ok(Used {
        cpu_us: runs::number(run, "/cost/client_cpu_us")?,
        rate_per_second: runs::number(run, "/rate")?,
    })
}

/// The bare loop on so many connections for so many seconds, pinned to the client's CPUs as the
/// other two are.
pub(super) fn bare_loop(
    floor: &std::path::Path,
    host: &Host,
    (connections, seconds): (u32, u32),
) -> Result<Used> {
    let (socket, database) = host.socket.as_ref().context("the floor speaks MySQL only")?;
    let mut line = machine::on_client_cpus(floor);
    line.args([socket, database]).arg(connections.to_string()).arg(seconds.to_string());
    let said: serde_json::Value = serde_json::from_str(&output(&mut line)?)?;
    let queries = runs::number(&said, "/queries")?;
    Ok(Used {
        cpu_us: runs::number(&said, "/cpu_us")? / queries,
        rate_per_second: queries / runs::number(&said, "/seconds")?,
    })
}
