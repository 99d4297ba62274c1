//! `cargo xtask bench` measures what the load client costs and whether its figures are true,
//! against the project's targets.

mod client_effect;
mod connections;
mod forecast;
mod hosts;
mod load;
mod machine;
mod runs;
mod sysbench;
mod table;
mod truth;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use jiff::Timestamp;

use crate::marked::with_part;
use crate::{command, places, terminal};
use table::Table;

/// Measure the load client against the project's targets and against other load generators.
///
/// Builds dbdyno in release and runs it on this machine, interleaved with what it is compared with,
/// several times over. The figures come from the runs' own reports. Without a name all of them run,
/// which takes a while; nothing else should run on the machine meanwhile. Exit status 1 when a
/// target is missed.
#[derive(Debug, Parser)]
#[command(after_help = help())]
pub(crate) struct Args {
    /// Which of them; all when left out.
    #[arg(value_name = "NAME", value_parser = names())]
    names: Vec<String>,
    /// How often each is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows that bench load loads.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    rows: u64,
    /// Cases whose name holds this, as "1 table", "script" or "MariaDB"; all when left out.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Keep the run directories, in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write each table to its bench's page under docs/benchmarks too.
    #[arg(long)]
    save: bool,
}

/// One bench. Each has a file of its own and an entry in [`ALL`].
struct Bench {
    name: &'static str,
    /// Page under docs/benchmarks that has its table and its facts.
    page: &'static str,
    about: &'static str,
    /// What dbdyno's figures are compared with.
    other: &'static str,
    /// Fills the table, and returns lines on how it was measured.
    run: fn(&Setting, &mut Table) -> Result<Vec<String>>,
}

const ALL: &[Bench] = &[
    Bench {
        name: "client-effect",
        page: "client-cost",
        about: "ratios of six servers by sysbench and by dbdyno asleep, spinning and slowed down (seven minutes per round)",
        other: "÷",
        run: client_effect::run,
    },
    Bench {
        name: "connections",
        page: "client-cost",
        about: "memory and time that 4096 connections take (half a minute per round)",
        other: "sysbench",
        run: connections::run,
    },
    Bench {
        name: "forecast",
        page: "accuracy",
        about: "time that `dbdyno plan` forecasts for one block of each small plan after published reports, and time that it takes (an hour per round)",
        other: "measured",
        run: forecast::run,
    },
    Bench {
        name: "load",
        page: "client-cost",
        about: "rate of loading sbtest tables and building their indexes (half an hour per round)",
        other: "sysbench",
        run: load::run,
    },
    Bench {
        name: "sysbench",
        page: "client-cost",
        about: "client CPU and rate of OLTP transactions and of sysbench's and pgbench's scripts, and CPU above a bare epoll loop (five minutes per round)",
        other: "sysbench or pgbench",
        run: sysbench::run,
    },
    Bench {
        name: "truth",
        page: "accuracy",
        about: "what is reported of a server whose delays, freezes and CPU use are programmed, whether schedules are kept, and what recording costs (six minutes per round)",
        other: "truth or limit",
        run: truth::run,
    },
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
    /// Text that the names of the selected cases hold.
    only: Option<String>,
}

impl Setting {
    fn note_round(&self, round: u32, what: &str) {
        terminal::note(&format!("round {round} of {}: {what}", self.rounds));
    }

    fn wants(&self, case: &str) -> bool {
        self.only.as_deref().is_none_or(|only| case.contains(only))
    }
}

/// Measures dbdyno (`true`) and the other program. The second one finds warmer caches, so they take
/// turns from round to round.
fn in_turn<T>(round: u32, mut measure: impl FnMut(bool) -> Result<T>) -> Result<[T; 2]> {
    let ours_is_first = !round.is_multiple_of(2);
    let first = measure(ours_is_first)?;
    let second = measure(!ours_is_first)?;
    Ok(if ours_is_first { [first, second] } else { [second, first] })
}

/// Measures and prints. It returns whether all targets are met.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let facts = facts(args);
    let dbdyno = command::built_dbdyno()?;
    // The folder is below the build output, because the system's temporary folder may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(places::target())?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    let (mut is_met, mut is_measured) = (true, false);
    for bench in ALL.iter().filter(|bench| is_wanted(&args.names, bench.name)) {
        let setting = Setting {
            dbdyno: dbdyno.clone(),
            folder: folder.join(bench.name),
            rounds: args.rounds,
            rows: args.rows,
            only: args.only.clone(),
        };
        std::fs::create_dir_all(&setting.folder)
            .with_context(|| format!("cannot make {}", setting.folder.display()))?;
        let setting = Setting { folder: setting.folder.canonicalize()?, ..setting };
        let mut table = Table::default();
        let own = (bench.run)(&setting, &mut table).with_context(|| format!("bench {}", bench.name))?;
        if table.is_empty() {
            continue;
        }
        is_measured = true;
        terminal::out(&format!("\n{}", table.text(bench.other)));
        is_met &= table.is_met();
        if args.save {
            save(bench, &table.markdown(bench.other), &[&facts[..], &own].concat())?;
        }
    }
    if !is_measured {
        bail!("no case's name holds {:?}", args.only.as_deref().unwrap_or_default());
    }
    Ok(is_met)
}

/// Says how it was measured, as far as all benches share it.
fn facts(args: &Args) -> Vec<String> {
    let date = Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|first| !first.is_empty()).unwrap_or("unknown");
    let mut facts = vec![format!("date: {date}; load average of the minute before: {load}")];
    facts.push(format!("rounds: {}", args.rounds));
    facts.extend(args.only.iter().map(|only| format!("only cases whose name holds \"{only}\" (`--only`)")));
    facts
}

fn page(bench: &Bench) -> PathBuf {
    places::root().join(format!("docs/benchmarks/{}.md", bench.page))
}

/// Returns the markers of a bench's table and facts on its page, which other benches share.
fn parts(bench: &Bench) -> [String; 2] {
    ["table", "facts"].map(|part| format!("{} {part}", bench.name))
}

/// Writes table and facts to the bench's page.
fn save(bench: &Bench, table: &str, facts: &[String]) -> Result<()> {
    let path = page(bench);
    let facts: Vec<String> = facts.iter().map(|fact| format!("* {fact}")).collect();
    let [table_part, facts_part] = parts(bench);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = with_part(&page, &table_part, table)
        .and_then(|page| with_part(&page, &facts_part, &facts.join("\n")));
    let page = page.with_context(|| format!("{} lacks {table_part} or {facts_part}", path.display()))?;
    std::fs::write(&path, page)?;
    terminal::note(&format!("written: {}", path.display()));
    Ok(())
}

fn is_wanted(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|wanted| wanted == name)
}

fn names() -> clap::builder::PossibleValuesParser {
    ALL.iter().map(|bench| bench.name).collect::<Vec<_>>().into()
}

/// Writes the list of benches for `--help`.
fn help() -> String {
    let line = |bench: &Bench| format!("  {}: {}", bench.name, bench.about);
    let lines = ALL.iter().map(line).collect::<Vec<_>>();
    format!(
        "Benches (all but forecast and truth need Debian's sysbench, and sysbench pgbench too):\n{}",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_take_turns_and_ours_is_always_the_first_of_the_pair() {
        let mut order = Vec::new();
        for round in 1..=2 {
            let pair = in_turn(round, |is_own| {
                order.push(is_own);
                Ok(is_own)
            });
            assert_eq!(pair.unwrap(), [true, false]);
        }
        assert_eq!(order, [true, false, false, true]);
    }

    #[test]
    fn every_page_has_places_for_its_table_and_its_facts_and_the_rest_stays() {
        for bench in ALL {
            let page = std::fs::read_to_string(page(bench)).unwrap();
            for part in parts(bench) {
                let written = with_part(&page, &part, "| new |\n").unwrap();
                let (before, after) = written.split_once("| new |").unwrap();
                assert!(page.starts_with(before) && page.ends_with(after), "{}: {part}", bench.name);
            }
        }
        assert!(with_part("<!-- table -->\nno end", "table", "x").is_none());
    }
}
