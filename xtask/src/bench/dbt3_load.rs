//! Bench `dbt3-load`: loading DBT3 straight into a server, compared with files by tpchgen's own
//! command and the server's own statement for files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use dbdyno_record::CellEvent;

use super::grid::{Grid, met};
use super::spread::Spread;
use super::sysbench::hosts::{self, Host};
use super::{Measured, Setting, runs};
use crate::command::{output, run as run_command};
use crate::{places, terminal};

/// The package of PyPI that brings tpchgen's command, of the version of the crate.
const GENERATOR: &str = "tpchgen-cli==4.0.0";
/// Time of files and LOAD DATA or COPY over ours, at least.
const LEAST_RATE: f64 = 1.3;
/// CPU time of making rows over the time of the load, at most.
const MOST_GENERATION: f64 = 0.15;
const SCALE_FACTOR: u32 = 1;
/// The workload's own tables.
const SCHEMA: &str = include_str!("../../../crates/workloads/src/dbt3/schema.toml");
/// The largest ones first. The first takes longer than the others together.
const TABLES: [&str; 8] =
    ["lineitem", "orders", "partsupp", "customer", "part", "supplier", "nation", "region"];
const SERVERS: [&str; 2] = ["mariadb-10.11.5", "pg-15"];

/// All data in memory, and the log so large that it does not decide. The server may read the files.
const MY_CNF: &str = "[mysqld]
innodb_buffer_pool_size = 3G
innodb_log_file_size = 2G
secure_file_priv =
skip_log_bin
";
const POSTGRESQL_CONF: &str = "shared_buffers = 2GB
max_wal_size = 8GB
";

/// Seconds of one round on one server.
struct Round {
    /// Making the files, and loading them.
    files: [f64; 2],
    /// Making the text of comments, and the load.
    own: [f64; 2],
}

impl Round {
    fn ratio(&self) -> f64 {
        self.files.iter().sum::<f64>() / self.own.iter().sum::<f64>()
    }
}

struct Figure {
    server: String,
    rounds: Vec<Round>,
    /// CPU seconds of making all rows.
    generation_seconds: f64,
}

impl Figure {
    fn ratio(&self) -> Spread {
        Spread::of(self.rounds.iter().map(Round::ratio))
    }

    fn generation(&self) -> f64 {
        self.generation_seconds / Spread::of(self.rounds.iter().map(|round| round.own[1])).median
    }

    fn is_met(&self) -> bool {
        self.ratio().median >= LEAST_RATE && self.generation() <= MOST_GENERATION
    }

    fn row(&self) -> Vec<String> {
        let median = |part: fn(&Round) -> f64| Spread::of(self.rounds.iter().map(part)).median;
        let ratio = self.ratio();
        let generation = self.generation();
        vec![
            self.server.clone(),
            format!("{:.1} + {:.1}", median(|round| round.files[0]), median(|round| round.files[1])),
            format!("{:.1} + {:.1}", median(|round| round.own[0]), median(|round| round.own[1])),
            ratio.shown(2),
            format!("≥ {LEAST_RATE:.2} {}", met(ratio.median >= LEAST_RATE)),
            format!("{:.2}", median(|round| (round.files[0] + round.files[1]) / round.files[1])),
            format!("{:.1} s, {generation:.2}", self.generation_seconds),
            format!("≤ {MOST_GENERATION:.2} {}", met(generation <= MOST_GENERATION)),
        ]
    }
}

const HEADER: [&str; 8] = [
    "server",
    "files: make + load, s",
    "dbdyno: text + load, s",
    "rate, ratio (range)",
    "target",
    "if making files took no time",
    "CPU of making rows, share of the load's time",
    "target",
];

/// Measures both ways on each server, their order changing from round to round.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let generator = installed()?;
    let mut figures = Vec::new();
    let generation_seconds = generation(setting)?;
    for prefix in
        SERVERS.into_iter().filter(|name| setting.only.as_ref().is_none_or(|only| name.contains(only)))
    {
        let folder = setting.folder.join(prefix);
        let host = hosts::start_with(prefix, &folder, (MY_CNF, POSTGRESQL_CONF), None)?;
        let mut rounds = Vec::new();
        for round in 1..=setting.rounds {
            let mut seconds = Round { files: [0.0; 2], own: [0.0; 2] };
            // The second finds a server with memory and files at hand: they take turns.
            for is_own in [round % 2 == 1, round % 2 == 0] {
                let client = if is_own { "dbdyno" } else { "files" };
                setting.note_round(round, &format!("{}, {client}", host.title));
                match is_own {
                    true => seconds.own = own(setting, &host, round)?,
                    false => {
                        let folder = setting.folder.join("files");
                        seconds.files = host.runtime.block_on(files(&generator, &host, &folder))?;
                    }
                }
            }
            rounds.push(seconds);
        }
        figures.push(Figure { server: host.title.clone(), rounds, generation_seconds });
    }
    let grid = Grid { header: HEADER.to_vec(), rows: figures.iter().map(Figure::row).collect() };
    let facts =
        vec![format!("rounds: {}; scale factor {SCALE_FACTOR}; files by {GENERATOR}", setting.rounds)];
    Ok(Measured::of(&grid, facts, figures.iter().all(Figure::is_met)))
}

/// tpchgen's command, installed below the build output where it is missing.
fn installed() -> Result<PathBuf> {
    let folder = places::target().join("tpchgen-cli");
    let command = folder.join("bin/tpchgen-cli");
    if !command.exists() {
        run_command(
            Command::new("pip3").args(["install", "--quiet", "--target"]).arg(&folder).arg(GENERATOR),
        )?;
    }
    Ok(command)
}

/// CPU seconds in which dbdyno makes all rows and throws them away.
fn generation(setting: &Setting) -> Result<f64> {
    terminal::note("making rows alone");
    let text = plan("null", "server = \"null\"");
    let report = runs::measured(&setting.dbdyno, &setting.folder, "null", &text, &[])?;
    let load = runs::any_step(&report, "load")?;
    let cpu_us = runs::number(load, "/cost/client_cpu_us")?;
    let seconds = runs::number(load, "/window_seconds")?;
    Ok(cpu_us * runs::number(load, "/rate")? * seconds / 1e6)
}

fn own(setting: &Setting, host: &Host, round: u32) -> Result<[f64; 2]> {
    let folder = setting.folder.join(host.title.replace(' ', "-"));
    let name = format!("round{round}");
    let text = plan(&name, &format!("address = \"{}\"", host.address));
    runs::measured(&setting.dbdyno, &folder, &name, &text, &[])?;
    let window = runs::record(&folder, &name, "load")?.window();
    let (from_us, to_us) = window.context("step load has no window")?;
    let texts = runs::cell(&folder, &name)?.events.into_iter().find_map(|event| match event {
        CellEvent::Work { name, duration_us, .. } if name == "make texts" => Some(duration_us),
        _ => None,
    });
    let texts_us = texts.context("the run did not say how long making texts took")?;
    Ok([texts_us as f64 / 1e6, (to_us - from_us) as f64 / 1e6])
}

/// The rows of tables that are there, from files.
async fn files(generator: &Path, host: &Host, folder: &Path) -> Result<[f64; 2]> {
    let schema: toml::Table = SCHEMA.parse()?;
    let tables = TABLES.iter().map(|table| made_anew(host, table, &schema)).collect::<Option<Vec<_>>>();
    let tables = tables.context("the schema of DBT3 lacks a table's columns or key")?;
    host.query(tables.into_iter().flatten().collect()).await?;
    let began = Instant::now();
    let scale = SCALE_FACTOR.to_string();
    output(Command::new(generator).args(["csv", "-s", &scale, "-o"]).arg(folder))?;
    let made = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let load = |tables: &[&str]| {
        let file = |table: &&str| host.load_file(table, &folder.join(format!("{table}.csv")));
        host.query(tables.iter().map(file).collect())
    };
    tokio::try_join!(load(&TABLES[..1]), load(&TABLES[1..2]), load(&TABLES[2..3]), load(&TABLES[3..]))?;
    let loaded = began.elapsed().as_secs_f64();
    std::fs::remove_dir_all(folder)?;
    Ok([made, loaded])
}

/// As dbdyno makes them: rows of InnoDB lie in the order of the primary key, which is there from
/// the beginning; PostgreSQL's is made after the load, and is no part of it.
fn made_anew(host: &Host, table: &str, schema: &toml::Table) -> Option<[String; 2]> {
    let own = schema.get(table)?;
    let columns =
        own.get("columns")?.as_array()?.iter().map(toml::Value::as_str).collect::<Option<Vec<_>>>()?;
    let columns = format!("{} NOT NULL", columns.join(" NOT NULL, ")).replace(" KEY ", " INTEGER ");
    let key = own.get("key")?.as_str().filter(|_| host.is_mysql);
    let key = key.map_or(String::new(), |key| format!(", PRIMARY KEY ({key})"));
    Some([format!("DROP TABLE IF EXISTS {table}"), format!("CREATE TABLE {table} ({columns}{key})")])
}

fn plan(name: &str, server: &str) -> String {
    format!(
        "name = \"{name}\"\n\n[host]\ncpus = \"shared\"\n\n[[variant]]\nname = \"server\"\n{server}\n\n[workload.dbt3]\n\
         scale_factor = {SCALE_FACTOR}.0\nqueries = [6]\nload_connections = 4\nsettle = {{ by = \"none\" }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_have_the_time_of_making_rows_in_their_ratio() {
        let round = Round { files: [4.0, 61.0], own: [1.0, 49.0] };
        assert_eq!(round.ratio(), 1.3);
        let figure = Figure { server: "MariaDB".to_owned(), rounds: vec![round], generation_seconds: 9.8 };
        assert!(!figure.is_met());
        assert_eq!(
            figure.row()[1..],
            [
                "4.0 + 61.0",
                "1.0 + 49.0",
                "1.30 (1.30 to 1.30)",
                "≥ 1.30 met",
                "1.07",
                "9.8 s, 0.20",
                "≤ 0.15 MISSED"
            ]
        );
    }
}
