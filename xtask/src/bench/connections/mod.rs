//! Bench `connections`: memory and time that 4096 connections take, compared with sysbench on the
//! same server.

mod page;
pub(super) mod peak;
mod peer;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use dbdyno_record::{StepEvent, StepRecord};

use super::sysbench::{hosts, peer as sysbench};
use super::{Measured, Setting, machine, runs};
use hosts::Host;

const SERVER: &str = "mariadb-10.11";
const CONNECTIONS: u32 = 4096;
/// Seconds of load once all are connected.
const SECONDS: u32 = 10;
const ROWS: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Taken {
    /// Greatest resident memory of the process.
    peak_bytes: f64,
    /// From the first connection to when all are ready.
    ready_seconds: f64,
    rate_per_second: f64,
}

/// Both clients in turn on one server.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let version = sysbench::version()?;
    let host = hosts::start(SERVER, &setting.folder.join(SERVER))?;
    sysbench::prepare(&host, ROWS)?;
    let mut figures = page::Figures { own: Vec::new(), peers: Vec::new() };
    for round in 1..=setting.rounds {
        setting.note_round(round, &format!("{CONNECTIONS} connections"));
        // The second client finds a server with threads at hand: they take turns.
        for is_own in [round % 2 == 1, round % 2 == 0] {
            match is_own {
                true => figures.own.push(own(setting, &host, round)?),
                false => figures.peers.push(peer::measured(&host)?),
            }
        }
    }
    let facts = vec![
        format!("rounds: {}", setting.rounds),
        format!("server: {}, started by dbdyno, {}", host.title, machine::shares()),
        format!("peer: {version} of Debian"),
    ];
    Ok(Measured::of(&figures.grid(), facts, figures.is_met()))
}

fn own(setting: &Setting, host: &Host, round: u32) -> Result<Taken> {
    const NAME: &str = "connections";
    let folder = setting.folder.join(round.to_string()).join(NAME);
    std::fs::create_dir_all(&folder)?;
    let (file, out) = (folder.join("plan.toml"), folder.join("runs"));
    let (_, cpus) = machine::halves();
    std::fs::write(&file, plan(&host.address, cpus.as_deref()))?;
    let mut line = Command::new(&setting.dbdyno);
    line.arg("run").arg(&file).arg("--out").arg(&out);
    let child = line.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("dbdyno cannot be run")?;
    let (peak_bytes, status) = peak::watched(child)?;
    if !status.success() {
        bail!("dbdyno run ended with {status}");
    }
    let step = format!("point-select.c{CONNECTIONS}");
    let record = runs::record(&setting.folder.join(round.to_string()), NAME, &step)?;
    let rate_per_second = dbdyno_rate(&record)?;
    Ok(Taken { peak_bytes, ready_seconds: ready_seconds(&record)?, rate_per_second })
}

/// Answers in the common window over its length.
fn dbdyno_rate(record: &StepRecord) -> Result<f64> {
    if let Some(reason) = record.invalid_reasons().first() {
        bail!("the step is invalid: {reason}");
    }
    let (from_us, to_us) = record.window().context("the step has no common window")?;
    let inside = record.intervals.iter().filter(|one| one.from_us >= from_us && one.to_us <= to_us);
    let done: u64 = inside.map(|one| one.done).sum();
    Ok(done as f64 * 1e6 / (to_us - from_us) as f64)
}

fn ready_seconds(record: &StepRecord) -> Result<f64> {
    let found = record.events.iter().find_map(|event| match event {
        StepEvent::Barrier { connect_us, connections, .. } => Some((*connect_us, *connections)),
        _ => None,
    });
    match found {
        Some((connect_us, CONNECTIONS)) => Ok(connect_us as f64 / 1e6),
        Some((_, connections)) => bail!("{connections} connections came to the barrier, not {CONNECTIONS}"),
        None => bail!("the step never came to its barrier"),
    }
}

fn plan(address: &str, client_cpus: Option<&[u32]>) -> String {
    let host = client_cpus.map_or_else(String::new, |cpus| {
        format!("[host]\nclient_cpus = \"{}\"\n\n", machine::list(Some(cpus)))
    });
    format!(
        "name = \"connections\"\n\n{host}[[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n[workload.oltp]\nsettle_wait = \"0s\"\n\
         tests = [\"point-select\"]\nconnections = [{CONNECTIONS}]\ntables = 1\ntable_size = {ROWS}\ntime = \"{SECONDS}s\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_opens_all_connections_from_the_clients_cpus() {
        insta::assert_snapshot!(plan("mysql://root@localhost/dbdyno?socket=/run/s", Some(&[2, 3])), @r#"
        name = "connections"

        [host]
        client_cpus = "2,3"

        [[variant]]
        name = "server"
        address = "mysql://root@localhost/dbdyno?socket=/run/s"

        [workload.oltp]
        settle_wait = "0s"
        tests = ["point-select"]
        connections = [4096]
        tables = 1
        table_size = 10000
        time = "10s"
        "#);
    }
}
