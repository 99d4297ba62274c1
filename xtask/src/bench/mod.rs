//! `cargo xtask bench` measures what the load client costs and whether its figures are true,
//! against the project's targets. A [`Table`] has the results of a bench round by round: dbdyno's
//! figures, each next to the figure that it is compared with.

mod client_effect;
mod connections;
mod forecast;
mod hosts;
mod load;
mod planted;
mod sysbench;
mod truth;

use std::iter::once;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use jiff::Timestamp;

use crate::reports::with_part;
use crate::workspace;

/// Measure the load client against the project's targets and against other load generators.
///
/// Builds dbdyno in release and runs it on this machine, interleaved with what it is compared with,
/// several times over. The figures come from the runs' own reports. Without a name all of them run,
/// which takes a while. Each begins when the load average of the last minute is below 0.3, and
/// nothing else should run on the machine meanwhile. Exit status 1 when a
/// target is missed.
#[derive(Debug, Parser)]
#[command(after_help = help())]
pub(crate) struct BenchArgs {
    /// Names of benches; all when left out.
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
    /// Fills the table, and returns lines about how the figures were measured.
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
        name: "planted",
        page: "accuracy",
        about: "whether --profile finds a function of known cost that is planted into PostgreSQL, and nothing in A/A (two minutes per round; builds PostgreSQL)",
        other: "planted or trials",
        run: planted::run,
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
        workspace::note(&format!("round {round} of {}: {what}", self.rounds));
    }

    fn wants(&self, case: &str) -> bool {
        self.only.as_deref().is_none_or(|only| case.contains(only))
    }
}

/// Measures dbdyno (`true`) and the other program. Whichever is measured second finds warmer
/// caches, so the order changes from round to round.
fn in_turn<T>(round: u32, mut measure: impl FnMut(bool) -> Result<T>) -> Result<[T; 2]> {
    let ours_is_first = !round.is_multiple_of(2);
    let first = measure(ours_is_first)?;
    let second = measure(!ours_is_first)?;
    Ok(if ours_is_first { [first, second] } else { [second, first] })
}

/// Runs the benches, prints their tables, and returns whether all targets are met.
pub(crate) fn run(args: &BenchArgs) -> Result<bool> {
    let dbdyno = workspace::built_dbdyno()?;
    // The folder is below the build output, because the system's temporary folder may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-").tempdir_in(workspace::target())?;
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
        let facts = facts(args)?;
        let own = (bench.run)(&setting, &mut table).with_context(|| format!("bench {}", bench.name))?;
        if table.is_empty() {
            continue;
        }
        is_measured = true;
        workspace::out(&format!("\n{}", table.text(bench.other)));
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

/// Waits for a quiet machine, and says how the figures are measured, as far as this is the same for
/// all benches.
fn facts(args: &BenchArgs) -> Result<Vec<String>> {
    let load = workspace::wait_until_quiet()?;
    let date = Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string();
    let mut facts = vec![format!("date: {date}; load average of the minute before: {load}")];
    facts.push(format!("rounds: {}", args.rounds));
    facts.extend(args.only.iter().map(|only| format!("only cases whose name holds \"{only}\" (`--only`)")));
    Ok(facts)
}

fn page(bench: &Bench) -> PathBuf {
    workspace::root().join(format!("docs/benchmarks/{}.md", bench.page))
}

/// Returns the markers of a bench's table and facts on its page. Several benches may share a page.
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
    workspace::note(&format!("written: {}", path.display()));
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

/// Bound on the ratio of a figure to what it is compared with. It holds for the median of the
/// rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// The ratio is 1, with at most this deviation as a share.
    Within(f64),
    /// The ratio is at most this factor, and at least 1 divided by it.
    Factor(f64),
    /// The figure is only shown for comparison.
    Shown,
}

struct BenchRow {
    case: String,
    figure: String,
    bound: Bound,
    /// dbdyno's figures, each with the figure that it is compared with. The second is NaN if
    /// there is none.
    pairs: Vec<[f64; 2]>,
}

/// Rows in the order in which they were first measured.
#[derive(Default)]
pub(crate) struct Table(Vec<BenchRow>);

impl Table {
    /// Adds a measurement of a figure, with what it is compared with in the same round.
    pub(crate) fn add(&mut self, case: &str, figure: &str, bound: Bound, pair: [f64; 2]) {
        match self.0.iter_mut().find(|row| row.case == case && row.figure == figure) {
            Some(row) => row.pairs.push(pair),
            None => {
                let (case, figure) = (case.to_owned(), figure.to_owned());
                self.0.push(BenchRow { case, figure, bound, pairs: vec![pair] });
            }
        }
    }

    /// Adds a measurement that is only shown.
    pub(crate) fn show(&mut self, case: &str, figure: &str, value: f64) {
        self.add(case, figure, Bound::Shown, [value, f64::NAN]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_met(&self) -> bool {
        self.0.iter().all(BenchRow::is_met)
    }

    /// Returns header and rows. `other` heads the column that dbdyno is compared with.
    fn cells(&self, other: &str) -> Vec<Vec<String>> {
        let header = ["case", "figure", "dbdyno", other, "ratio (range)", "target"].map(str::to_owned);
        let mut last = "";
        let rows = self.0.iter().map(|row| {
            // A case is named only in its first row.
            let case = if row.case == last { "" } else { &row.case };
            last = &row.case;
            row.cells(case)
        });
        once(header.to_vec()).chain(rows).collect()
    }

    /// Writes the columns aligned by blanks.
    pub(crate) fn text(&self, other: &str) -> String {
        let rows = self.cells(other);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn markdown(&self, other: &str) -> String {
        let rows = self.cells(other);
        let mut lines: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
        lines.insert(1, format!("|{}", "---|".repeat(rows[0].len())));
        lines.join("\n").replace("|  |", "| |")
    }
}

impl BenchRow {
    fn ratios(&self) -> Vec<f64> {
        self.pairs.iter().map(|[own, other]| own / other).collect()
    }

    fn is_met(&self) -> bool {
        let median = median(self.ratios());
        match self.bound {
            Bound::AtMost(max) => median <= max,
            Bound::AtLeast(min) => median >= min,
            Bound::Within(share) => (median - 1.0).abs() <= share,
            Bound::Factor(max) => (1.0 / max..=max).contains(&median),
            Bound::Shown => true,
        }
    }

    fn cells(&self, case: &str) -> Vec<String> {
        let met = if self.is_met() { "met" } else { "MISSED" };
        let target = match self.bound {
            Bound::AtMost(max) => format!("≤ {max:.2} {met}"),
            Bound::AtLeast(min) => format!("≥ {min:.2} {met}"),
            Bound::Within(share) => format!("1 ± {} % {met}", share * 100.0),
            Bound::Factor(max) => format!("1 ×÷ {max} {met}"),
            Bound::Shown => "–".to_owned(),
        };
        let of = |place: usize| median(self.pairs.iter().map(|pair| pair[place]));
        let ratios = self.ratios();
        let (min, highest) =
            ratios.iter().fold((f64::MAX, f64::MIN), |(a, b), one| (a.min(*one), b.max(*one)));
        let ratio = format!("{:.3} ({min:.3} to {highest:.3})", median(ratios));
        let [other, ratio] =
            if of(1).is_nan() { ["–".to_owned(), "–".to_owned()] } else { [number(of(1)), ratio] };
        vec![case.to_owned(), self.figure.clone(), number(of(0)), other, ratio, target]
    }
}

/// Returns the median, or NaN without values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(last / 2), at(last.div_ceil(2)))
}

/// Writes a number with as many decimals as its size needs.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_take_turns_and_dbdyno_is_always_the_first_of_the_pair() {
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
    fn every_page_has_markers_for_its_table_and_facts_and_keeps_the_rest() {
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

    #[test]
    fn a_figure_is_judged_by_the_median_of_its_ratios_and_a_missed_target_is_reported() {
        let mut table = Table::default();
        for (own, other) in [(5.0, 10.0), (6.0, 10.0), (20.0, 20.0)] {
            table.add("16 connections", "client CPU, µs", Bound::AtMost(0.6), [own, other]);
        }
        table.add("16 connections", "rate", Bound::AtLeast(1.1), [1100.0, 1000.0]);
        table.show("delay", "lateness", 25.25);
        table.add("delay", "mean", Bound::Within(0.03), [102.9, 100.0]);
        assert!(table.is_met());
        table.add("delay", "p99", Bound::Within(0.03), [96.9, 100.0]);
        insta::assert_snapshot!(table.text("sysbench"), @r"
        case            figure          dbdyno  sysbench  ratio (range)           target
        16 connections  client CPU, µs  6.000   10.0      0.600 (0.500 to 1.000)  ≤ 0.60 met
                        rate            1100    1000      1.100 (1.100 to 1.100)  ≥ 1.10 met
        delay           lateness        25.2    –         –                       –
                        mean            102.9   100.0     1.029 (1.029 to 1.029)  1 ± 3 % met
                        p99             96.9    100.0     0.969 (0.969 to 0.969)  1 ± 3 % MISSED
        ");
        insta::assert_snapshot!(table.markdown("truth").lines().take(4).collect::<Vec<_>>().join("\n"), @r"
        | case | figure | dbdyno | truth | ratio (range) | target |
        |---|---|---|---|---|---|
        | 16 connections | client CPU, µs | 6.000 | 10.0 | 0.600 (0.500 to 1.000) | ≤ 0.60 met |
        | | rate | 1100 | 1000 | 1.100 (1.100 to 1.100) | ≥ 1.10 met |
        ");
        assert!(!table.is_met());
    }

    #[test]
    fn nothing_measured_has_no_median_and_meets_no_target() {
        assert!(median([]).is_nan());
        assert_eq!(median([10.0, 1.0, 2.0, 3.0]), 2.5);
        let mut table = Table::default();
        table.add("a", "b", Bound::AtMost(1.0), [f64::NAN, 1.0]);
        assert!(!table.is_met());
    }
}
