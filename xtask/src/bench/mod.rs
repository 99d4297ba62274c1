//! `cargo xtask bench`: what the load client costs and whether what it says is true, against the
//! project's targets.

mod analysis;
mod client_effect;
mod connections;
mod dbt3_load;
mod grid;
mod information;
mod insert_benchmark;
mod kills;
mod load;
mod machine;
mod runs;
mod scripts;
mod spread;
mod sysbench;
mod truth;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::marked::with_part;
use crate::{command, places, terminal};
use grid::Grid;
use machine::Moment;

/// Measure the load client against the project's targets and against other load generators.
///
/// Builds dbdyno in release and runs it on this machine, interleaved with what it is compared with,
/// several times over. The figures come from the runs' own reports. Without a name all of them run,
/// which takes a while; nothing else should run on the machine meanwhile. Exit status 1 when a
/// target is missed.
///
/// analysis: time that findings and report of a large run take (half a minute). client-effect:
/// ratios of six servers by sysbench and by dbdyno asleep, spinning and slowed down (seven minutes
/// a round); needs Debian's sysbench. connections: memory and time that 4096 connections take,
/// compared with sysbench (half a minute a round); needs Debian's sysbench. dbt3-load: rate of
/// loading DBT3 compared with files by tpchgen's command and LOAD DATA or COPY (four minutes a
/// round); gets that command from PyPI. information: a budget of time against a fixed number of
/// blocks on the 42 microbenchmarks (two hours, once). insert-benchmark: client CPU a row and a
/// query (two and a half minutes a round). kills: 200 times `kill -9` of dbdyno at random moments,
/// with --resume: what was lost and what was left (ten minutes, once). load: rate of loading sbtest
/// tables and building their indexes compared with sysbench (twenty minutes a round with ten
/// million rows, a quarter of an hour with --only "1 table"); needs Debian's sysbench. scripts:
/// client CPU, rate and memory of sysbench's and pgbench's scripts run by dbdyno and by them (six
/// minutes a round); needs Debian's sysbench and pgbench. sysbench: client CPU and rate of OLTP
/// transactions compared with sysbench, and above the floor of a bare epoll loop (three minutes a
/// round); needs Debian's sysbench. truth: what is reported of a server whose delays, freezes and
/// CPU use are programmed, whether schedules are kept, and what recording costs (six minutes a
/// round).
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Which of them; all when left out.
    #[arg(value_name = "NAME", value_parser = names())]
    names: Vec<String>,
    /// How often each is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows that bench load loads; ten million when left out.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: Option<u64>,
    /// Cases of bench load or scripts whose name holds this, as "1 table" or "point_select", or
    /// servers of bench dbt3-load; all when left out.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Keep the run directories, in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write each table to its page under docs/benchmarks too.
    #[arg(long)]
    save: bool,
}

/// Rows that bench `load` loads by default.
const ROWS: u64 = 10_000_000;

/// One bench: a file of its own and a line in [`ALL`].
struct Bench {
    name: &'static str,
    run: fn(&Setting) -> Result<Measured>,
}

const LOAD: &str = "load";
const DBT3_LOAD: &str = "dbt3-load";
const SCRIPTS: &str = "scripts";

const ALL: &[Bench] = &[
    Bench { name: "analysis", run: analysis::run },
    Bench { name: "client-effect", run: client_effect::run },
    Bench { name: "connections", run: connections::run },
    Bench { name: DBT3_LOAD, run: dbt3_load::run },
    Bench { name: "information", run: information::run },
    Bench { name: "insert-benchmark", run: insert_benchmark::run },
    Bench { name: "kills", run: kills::run },
    Bench { name: LOAD, run: load::run },
    Bench { name: SCRIPTS, run: scripts::run },
    Bench { name: "sysbench", run: sysbench::run },
    Bench { name: "truth", run: truth::run },
];

/// What every bench is given.
struct Setting {
    /// The command, built in release.
    dbdyno: PathBuf,
    /// Folder for runs and data.
    folder: PathBuf,
    rounds: u32,
    /// Rows of bench `load`.
    rows: u64,
    /// What the names of its cases hold.
    only: Option<String>,
    started: Moment,
}

impl Setting {
    fn note_round(&self, round: u32, what: &str) {
        terminal::note(&format!("round {round} of {}: {what}", self.rounds));
    }
}

/// What every bench gives back.
struct Measured {
    /// The table, for the terminal.
    table: String,
    /// The table, for its page of the documentation.
    markdown: String,
    /// Lines on how it was measured, for the same.
    facts: Vec<String>,
    is_met: bool,
}

impl Measured {
    /// What is said by one table.
    fn of(grid: &Grid, facts: Vec<String>, is_met: bool) -> Self {
        Self { table: grid.text(), markdown: grid.markdown(), facts, is_met }
    }
}

/// Measures and prints. Returns whether all targets are met.
pub(crate) fn run(args: &Args) -> Result<bool> {
    check(args)?;
    let started = machine::now();
    let dbdyno = command::built_dbdyno()?;
    // Below the build output and not in the system's temporary folder, which may be memory.
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(places::target())?;
    let folder = args.keep.clone().unwrap_or_else(|| scratch.path().to_owned());
    let mut is_met = true;
    for bench in ALL.iter().filter(|bench| is_wanted(&args.names, bench.name)) {
        let folder = folder.join(bench.name);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let setting = Setting {
            dbdyno: dbdyno.clone(),
            folder,
            rounds: args.rounds,
            rows: args.rows.unwrap_or(ROWS),
            only: args.only.clone(),
            started: started.clone(),
        };
        let measured = (bench.run)(&setting).with_context(|| format!("bench {}", bench.name))?;
        terminal::out(&format!("\n{}", measured.table));
        is_met &= measured.is_met;
        if args.save {
            save(bench.name, &setting, &measured)?;
        }
    }
    Ok(is_met)
}

/// Writes table and facts to the bench's page.
fn save(name: &str, setting: &Setting, measured: &Measured) -> Result<()> {
    let Moment { date, load } = &setting.started;
    let mut facts = vec![format!("date: {date}; load average of the minute before: {load}")];
    facts
        .extend(setting.only.iter().map(|only| format!("only cases whose name holds \"{only}\" (`--only`)")));
    facts.extend_from_slice(&measured.facts);
    let facts: Vec<String> = facts.iter().map(|fact| format!("* {fact}")).collect();
    let path = places::root().join(format!("docs/benchmarks/{name}.md"));
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = with_part(&page, "table", &measured.markdown)
        .and_then(|page| with_part(&page, "facts", &facts.join("\n")));
    let page = page.with_context(|| format!("{} lacks marks of table or facts", path.display()))?;
    std::fs::write(&path, page)?;
    terminal::note(&format!("written: docs/benchmarks/{name}.md"));
    Ok(())
}

/// Refuses what none of the wanted benches would heed.
fn check(args: &Args) -> Result<()> {
    let given = [
        ("--rows", args.rows.is_some(), &[LOAD][..]),
        ("--only", args.only.is_some(), &[LOAD, SCRIPTS, DBT3_LOAD]),
    ];
    let heeds = |benches: &[&str]| benches.iter().any(|name| is_wanted(&args.names, name));
    match given.into_iter().find(|(_, is_given, benches)| *is_given && !heeds(benches)) {
        Some((option, _, benches)) => bail!(
            "{option} is for bench {}; leave it out, or run `cargo xtask bench {} {option} ...`",
            benches.join(", "),
            benches[0]
        ),
        None => Ok(()),
    }
}

fn is_wanted(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

fn names() -> clap::builder::PossibleValuesParser {
    ALL.iter().map(|bench| bench.name).collect::<Vec<_>>().into()
}

/// The one of `there` that begins with `prefix` and has the greatest last number.
fn newest_of(there: &[String], prefix: &str) -> Result<String> {
    let patch = |name: &str| name.rsplit('.').next().and_then(|last| last.parse::<u32>().ok());
    let newest = there.iter().filter(|name| name.starts_with(prefix)).max_by_key(|name| patch(name));
    match newest {
        Some(name) => Ok(name.clone()),
        None => bail!("no {prefix}* in the servers folder; get one with `cargo xtask servers`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_server_of_the_series_is_taken_and_none_is_an_error() {
        let names = ["mariadb-10.11.5", "mariadb-10.11.19", "mariadb-10.11-debian", "mysql-8.0.31"];
        let names = names.map(str::to_owned);
        assert_eq!(newest_of(&names, "mariadb-10.11").unwrap(), "mariadb-10.11.19");
        assert_eq!(newest_of(&names[2..], "mariadb-10.11").unwrap(), "mariadb-10.11-debian");
        let error = newest_of(&names[3..], "mariadb-10.11").unwrap_err().to_string();
        assert!(error.contains("cargo xtask servers"), "{error}");
    }

    #[test]
    fn what_only_the_bench_of_loads_heeds_is_refused_for_others() {
        let said = |words: &[&str]| {
            let args = Args::try_parse_from([&["bench"][..], words].concat()).unwrap();
            check(&args).map_err(|error| error.to_string())
        };
        let refusal = "--rows is for bench load; leave it out, or run `cargo xtask bench load --rows ...`";
        assert_eq!(said(&["sysbench", "--rows", "1000"]), Err(refusal.to_owned()));
        assert!(
            said(&["truth", "--only", "1 table"])
                .unwrap_err()
                .starts_with("--only is for bench load, scripts")
        );
        for heeded in
            [&["load", "--rows", "1000"][..], &["truth", "load", "--only", "x"], &["--only", "x"], &["truth"]]
        {
            assert_eq!(said(heeded), Ok(()), "{heeded:?}");
        }
    }

    #[test]
    fn without_a_name_every_bench_runs() {
        assert!(is_wanted(&[], "sysbench"));
        assert!(!is_wanted(&["truth".to_owned()], "sysbench"));
    }

    #[test]
    fn every_page_has_places_for_its_table_and_its_facts_and_the_rest_stays() {
        for bench in ALL {
            let page = places::root().join(format!("docs/benchmarks/{}.md", bench.name));
            let page = std::fs::read_to_string(page).unwrap();
            for part in ["table", "facts"] {
                let written = with_part(&page, part, "| anew |\n").unwrap();
                let (before, after) = written.split_once("| anew |").unwrap();
                assert!(page.starts_with(before) && page.ends_with(after), "{}: {part}", bench.name);
            }
        }
        assert!(with_part("<!-- table -->\nno end", "table", "x").is_none());
    }
}
