//! Bench `analysis`: how long the findings and the report of a large run take and how large the
//! report is, and how long many small runs take.

mod records;

use std::ffi::OsStr;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use super::grid::Grid;
use super::spread::Spread;
use super::{Measured, Setting};
use crate::command::output;
use crate::terminal;
use records::Size;

/// As large as a published comparison.
const SIZE: Size = Size { steps: 42, variants: 5, blocks: 5, seconds: 60 };

/// What is timed: name, format of the report, longest time in seconds.
const TIMED: [(&str, &str, f64); 2] = [("findings, as JSON", "json", 1.0), ("report, as HTML", "html", 2.0)];
/// Many runs: the ten steps of an Insert Benchmark on two servers.
const SMALL: Size = Size { steps: 10, variants: 2, blocks: 1, seconds: 5 };
const RUNS: u32 = 2_000;
/// What is timed of them: name, command, format.
const TIMED_OF_MANY: [(&str, &str, Option<&str>); 3] = [
    ("2,000 runs: history, as JSON", "history", Some("json")),
    ("2,000 runs: index and history, as HTML", "report", None),
    ("2,000 runs: Parquet files", "report", Some("parquet")),
];
const MOST_SECONDS_OF_MANY: f64 = 10.0;
/// Largest HTML report, in MB.
const MOST_MEGABYTES: f64 = 5.0;

pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let Size { steps, variants, blocks, .. } = SIZE;
    terminal::note(&format!("writing a run of {steps} steps x {variants} variants x {blocks} blocks"));
    let run = records::write(&setting.folder.join("runs"), SIZE, 0, 10_000)?;
    let mut rows = Vec::new();
    let mut is_met = true;
    for (what, format, most) in TIMED {
        let target = setting.folder.join(format!("report.{format}"));
        let seconds = median_seconds(setting, |report| {
            report.arg("report").arg(&run).args(["--format", format, "--output"]).arg(&target)
        })?;
        is_met &= seconds <= most;
        rows.push(vec![format!("{what}, s"), format!("{seconds:.2}"), format!("{most}")]);
    }
    let megabytes = std::fs::metadata(setting.folder.join("report.html"))?.len() as f64 / 1e6;
    is_met &= megabytes <= MOST_MEGABYTES;
    rows.push(vec!["HTML report, MB".to_owned(), format!("{megabytes:.2}"), format!("{MOST_MEGABYTES}")]);
    terminal::note(&format!("writing {RUNS} small runs"));
    let many = setting.folder.join("many");
    records::write_many(&many, SMALL, RUNS)?;
    // Runs have a page from their end on.
    output(Command::new(&setting.dbdyno).arg("report").arg(&many))?;
    for (what, command, format) in TIMED_OF_MANY {
        let target = setting.folder.join(format!("many.{}", format.unwrap_or_default()));
        let asked: Vec<&OsStr> = match format {
            Some(format) => vec!["--format".as_ref(), format.as_ref(), "--output".as_ref(), target.as_ref()],
            None => Vec::new(),
        };
        let seconds = median_seconds(setting, |dbdyno| dbdyno.arg(command).arg(&many).args(&asked))?;
        is_met &= seconds <= MOST_SECONDS_OF_MANY;
        rows.push(vec![format!("{what}, s"), format!("{seconds:.2}"), format!("{MOST_SECONDS_OF_MANY}")]);
    }
    let facts = vec![format!("rounds: {}", setting.rounds)];
    let grid = Grid { header: vec!["figure", "median", "at most"], rows };
    Ok(Measured::of(&grid, facts, is_met))
}

/// Of dbdyno with the words that `arguments` adds, from start to end of the process.
fn median_seconds(setting: &Setting, arguments: impl Fn(&mut Command) -> &mut Command) -> Result<f64> {
    let mut seconds = Vec::new();
    for _ in 0..setting.rounds {
        let began = Instant::now();
        output(arguments(&mut Command::new(&setting.dbdyno)))?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    Ok(Spread::of(seconds).median)
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Followed, HistoryChoices, RunValues, Verdict, analyse, history};
    use dbdyno_record::Run;

    use super::*;

    #[test]
    fn what_is_timed_is_a_whole_valid_run_with_verdicts() {
        let folder = tempfile::tempdir().unwrap();
        let size = Size { steps: 2, variants: 5, blocks: 5, seconds: 12 };
        let findings = analyse(&Run::open(&records::write(folder.path(), size, 0, 10_000).unwrap()).unwrap());
        for step in &findings.workloads[0].steps {
            let verdicts: Vec<_> = step.variants.iter().map(|variant| variant.verdict).collect();
            let (same, faster) = (Some(Verdict::Same), Some(Verdict::Faster));
            assert_eq!(verdicts, [None, same, same, faster, faster], "{}", step.name);
            assert!(step.variants[1].cost_breakdown.is_some(), "{}", step.name);
        }
    }

    #[test]
    fn many_runs_are_of_one_plan_and_slower_from_the_middle_on() {
        let folder = tempfile::tempdir().unwrap();
        let size = Size { steps: 1, variants: 2, blocks: 1, seconds: 2 };
        records::write_many(folder.path(), size, 32).unwrap();
        let mut dirs: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        dirs.sort();
        let values: Vec<_> = dirs.iter().map(|dir| RunValues::of(&Run::open(dir).unwrap())).collect();
        let found = history(&values.iter().collect::<Vec<_>>(), HistoryChoices::default()).unwrap();
        let rates = found.series.iter().filter(|series| series.follows == Followed::Rate);
        let changes: Vec<Vec<_>> =
            rates.map(|series| series.changes.iter().map(|change| change.at).collect()).collect();
        assert_eq!(changes, [[16], [16]]);
    }
}
