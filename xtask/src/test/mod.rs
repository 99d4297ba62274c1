//! `cargo xtask test`: everything that must hold, stage by stage, and a summary.

mod licences;
mod programs;
mod side_by_side;
mod stages;
mod summary;

use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;

use crate::terminal;
use stages::{ALL, Stage};
use summary::{Outcome, Row};

/// Check everything that must hold: installs and fetches what the tests need, then format, lints,
/// licences, documentation and all tests.
#[derive(Debug, Parser)]
#[command(after_help = stages::help())]
pub(crate) struct Args {
    /// Only these stages, in the order of the list below.
    #[arg(value_name = "STAGE")]
    stages: Vec<String>,
}

/// Runs the stages and prints the summary. Returns whether all of them passed.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let begun = Instant::now();
    let stages = chosen(&args.stages)?;
    let rows = std::thread::scope(|scope| {
        let mut rows: Vec<Row> = Vec::new();
        let mut background = Vec::new();
        for (at, stage) in stages.iter().enumerate() {
            if at + 1 == stages.len() {
                rows.extend(background.drain(..).map(joined));
            }
            let failed_need = stage.needs.filter(|need| rows.iter().any(|row| row.is_failure_of(need)));
            match failed_need {
                Some(need) => {
                    rows.push(Row { name: stage.name, outcome: Outcome::Skipped { need }, seconds: 0.0 });
                }
                None if stage.in_background => background.push(scope.spawn(|| timed(stage))),
                None => rows.push(timed(stage)),
            }
        }
        rows.extend(background.into_iter().map(joined));
        rows
    });
    terminal::out(&format!("\n{}", summary::text(&rows, begun.elapsed())));
    Ok(rows.iter().all(|row| matches!(row.outcome, Outcome::Passed)))
}

/// The row of a stage in the background, when it has ended.
fn joined(stage: ScopedJoinHandle<'_, Row>) -> Row {
    stage.join().expect("a stage does not panic")
}

fn chosen(names: &[String]) -> Result<Vec<&'static Stage>> {
    if let Some(unknown) = names.iter().find(|name| !ALL.iter().any(|stage| stage.name == **name)) {
        let known: Vec<&str> = ALL.iter().map(|stage| stage.name).collect();
        bail!("no stage is called {unknown}; the stages are: {}", known.join(", "));
    }
    Ok(ALL.iter().filter(|stage| names.is_empty() || names.iter().any(|name| name == stage.name)).collect())
}

fn timed(stage: &Stage) -> Row {
    terminal::note(&format!("\n== {}: {}", stage.name, stage.job));
    let started = Instant::now();
    let outcome = match (stage.run)() {
        Ok(()) => Outcome::Passed,
        Err(error) => {
            let reason = format!("{error:#}");
            terminal::note(&format!("{}: {reason}", stage.name));
            Outcome::Failed { reason }
        }
    };
    Row { name: stage.name, outcome, seconds: started.elapsed().as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_stages_run_in_their_own_order_and_none_means_all() {
        let names = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
            chosen(&asked).map(|stages| stages.iter().map(|stage| stage.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["clippy", "fmt"]).unwrap(), ["fmt", "clippy"]);
        assert_eq!(names(&[]).unwrap().len(), ALL.len());
        let error = names(&["fmt", "lint"]).unwrap_err().to_string();
        assert!(error.starts_with("no stage is called lint; the stages are: packages, "), "{error}");
    }

    #[test]
    fn what_a_stage_needs_comes_before_it() {
        for (at, stage) in ALL.iter().enumerate() {
            let before = |need: &str| ALL[..at].iter().any(|earlier| earlier.name == need);
            assert!(stage.needs.is_none_or(before), "{}", stage.name);
            // What needs it would begin before it has ended.
            let is_needed = ALL.iter().any(|other| other.needs == Some(stage.name));
            assert!(!stage.in_background || !is_needed, "{}", stage.name);
        }
    }
}
