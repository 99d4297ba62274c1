//! Bench `connections` measures the memory and the time that 4096 connections take, compared with
//! sysbench on the same server.

use anyhow::{Context, Result, bail};
use dbdyno_record::{StepEvent, StepRecord};

use super::hosts::{self, FOR_CLIENTS, Host, SysbenchLoad, ended, on_client_cpus};
use super::{Bound, Setting, Table, in_turn};

const CONNECTIONS: u32 = 4096;
/// Seconds of load once all are connected.
const SECONDS: u32 = 10;
const LOAD: SysbenchLoad = SysbenchLoad { tables: 1, rows: 10_000, threads: CONNECTIONS, seconds: SECONDS };
/// The figures of both programs, each with its bound on the ratio of dbdyno's to sysbench's.
const FIGURES: [(&str, Bound); 3] = [
    ("peak resident memory, MiB", Bound::AtMost(0.15)),
    ("all connected and ready, s", Bound::AtMost(0.25)),
    ("queries per second", Bound::Shown),
];

pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    let version = hosts::sysbench_version()?;
    let host = Host::start(setting, "mariadb-10.11", FOR_CLIENTS)?;
    host.prepare(&LOAD)?;
    let what = format!("{}, {CONNECTIONS} connections", host.title);
    for round in 1..=setting.rounds {
        setting.note_round(round, &what);
        let [own, peer] =
            in_turn(round, |is_own| if is_own { by_dbdyno(setting, &host) } else { by_sysbench(&host) })?;
        for (place, (figure, bound)) in FIGURES.into_iter().enumerate() {
            table.add(&what, figure, bound, [own[place], peer[place]]);
        }
    }
    Ok(vec![hosts::servers(&[host.title]), version])
}

/// Returns dbdyno's figures.
fn by_dbdyno(setting: &Setting, host: &Host) -> Result<[f64; 3]> {
    let oltp = format!(
        "settle_wait = \"0s\"\ntests = [\"point-select\"]\nconnections = [{CONNECTIONS}]\ntables = 1\n\
         table_size = {}\ntime = \"{SECONDS}s\"",
        LOAD.rows
    );
    let ran = hosts::run_plan(setting, &hosts::plan_text(&host.address, "", &oltp))?;
    let step = format!("point-select.c{CONNECTIONS}");
    let record = ran.record(&step)?;
    if let Some(reason) = record.invalid_reasons().first() {
        bail!("the step is invalid: {reason}");
    }
    // A step that the client limited is taken too, because the rate is only shown.
    let rate = hosts::number(ran.any_step(&step)?, "/metrics/rate")?;
    Ok([ran.peak_bytes / f64::from(1 << 20), ready_seconds(&record)?, rate])
}

/// Returns the seconds from the first connection until all are ready.
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

/// Returns sysbench's figures. sysbench prints the first of the two lines before it opens a
/// connection, and the second when all threads have a connection and prepared statements.
fn by_sysbench(host: &Host) -> Result<[f64; 3]> {
    let line = host.words("oltp_point_select", &LOAD, &[], "run");
    let ended = ended(on_client_cpus("sysbench").args(line))?;
    let ready = ended.seconds_between("Initializing worker threads", "Threads started!");
    let ready = ready.context("sysbench did not say when its threads started")?;
    Ok([ended.peak_bytes / f64::from(1 << 20), ready, ended.transactions()?.1])
}
