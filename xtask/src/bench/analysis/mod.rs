//! Bench `analysis`: how long the findings and the report of a large run take, and how large the report is.

mod records;

use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use super::spread::Spread;
use super::{Measured, Setting};
use crate::command::output;
use crate::terminal;
use records::Size;

/// As large as a published comparison.
const SIZE: Size = Size { steps: 42, variants: 5, blocks: 5, seconds: 60 };

/// What is timed: name, format of the report, longest time in seconds.
const TIMED: [(&str, &str, f64); 2] = [("findings, as JSON", "json", 1.0), ("report, as HTML", "html", 2.0)];
/// Largest HTML report, in MB.
const MOST_MEGABYTES: f64 = 5.0;

pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let Size { steps, variants, blocks, .. } = SIZE;
    terminal::note(&format!("writing a run of {steps} steps x {variants} variants x {blocks} blocks"));
    let run = records::write(&setting.folder.join("runs"), SIZE)?;
    let mut rows = Vec::new();
    let mut is_met = true;
    for (what, format, most) in TIMED {
        let target = setting.folder.join(format!("report.{format}"));
        let mut seconds = Vec::new();
        for _ in 0..setting.rounds {
            let began = Instant::now();
            let mut report = Command::new(&setting.dbdyno);
            output(report.arg("report").arg(&run).args(["--format", format, "--output"]).arg(&target))?;
            seconds.push(began.elapsed().as_secs_f64());
        }
        let spread = Spread::of(seconds);
        is_met &= spread.median <= most;
        rows.push([format!("{what}, s"), format!("{:.2}", spread.median), format!("{most}")]);
    }
    let megabytes = std::fs::metadata(setting.folder.join("report.html"))?.len() as f64 / 1e6;
    is_met &= megabytes <= MOST_MEGABYTES;
    rows.push(["HTML report, MB".to_owned(), format!("{megabytes:.2}"), format!("{MOST_MEGABYTES}")]);
    Ok(Measured { table: text(&rows), page: page(&rows, setting), is_met })
}

fn text(rows: &[[String; 3]]) -> String {
    let mut text = format!("{:<22}  {:>8}  {:>8}\n", "figure", "median", "at most");
    for [what, found, most] in rows {
        text.push_str(&format!("{what:<22}  {found:>8}  {most:>8}\n"));
    }
    text
}

fn page(rows: &[[String; 3]], setting: &Setting) -> String {
    let rows: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    let Size { steps, variants, blocks, seconds } = SIZE;
    format!(
        "# How long a large run takes to analyse\n\nMeasured with `cargo xtask bench analysis --save`, which writes this page: {} \
         rounds of `dbdyno report` over a\nrun of {steps} steps, {variants} variants and {blocks} blocks, {seconds} seconds a step, with the samples \
         that a MariaDB gives (529 status\ncounters), from start to end of the process: reading the\nrecords, all findings and the report. Medians.\n\n| figure | median | at most |\n\
         |---|---|---|\n{}\n\n* date: {}; load average of the minute before: {}\n",
        setting.rounds,
        rows.join("\n"),
        setting.started.date,
        setting.started.load
    )
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Verdict, analyse};
    use dbdyno_record::Run;

    use super::*;

    #[test]
    fn what_is_timed_is_a_whole_valid_run_with_verdicts() {
        let folder = tempfile::tempdir().unwrap();
        let size = Size { steps: 2, variants: 5, blocks: 5, seconds: 12 };
        let findings = analyse(&Run::open(&records::write(folder.path(), size).unwrap()).unwrap());
        for step in &findings.workloads[0].steps {
            let verdicts: Vec<_> = step.variants.iter().map(|variant| variant.verdict).collect();
            let (same, faster) = (Some(Verdict::Same), Some(Verdict::Faster));
            assert_eq!(verdicts, [None, same, same, faster, faster], "{}", step.name);
            assert!(step.variants[1].cost_breakdown.is_some(), "{}", step.name);
        }
    }
}
