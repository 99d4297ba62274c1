//! The reference page of the microbenchmarks, made from the catalogue and the sequences.

use std::fmt::Write;

use dbdyno_drivers::{Endpoint, Target, null};
use dbdyno_plan::{MicroRung, MicroSequence, MicroStep, MicroTest, Microbenchmarks as Options};

use crate::Context;
use crate::microbenchmarks::catalogue::{ALL, Entry};
use crate::microbenchmarks::{groups, steps, writes};

const INTRODUCTION: &str = include_str!("page_introduction.txt");
const FAMILIES: [&str; 4] = ["Points", "Ranges", "Transactions that read", "Writes"];

/// `docs/reference/microbenchmarks.md`.
pub fn page() -> String {
    let mut out = INTRODUCTION.to_owned();
    for (title, sequence) in [("The 42", MicroSequence::FortyTwo), ("The 32", MicroSequence::ThirtyTwo)] {
        write_sequence(&mut out, title, sequence);
    }
    for (title, family) in FAMILIES.iter().zip(ALL) {
        let _ = writeln!(out, "\n## {title}");
        family.iter().for_each(|entry| write_entry(&mut out, entry));
    }
    out
}

/// The statements of one operation of `test`, lists cut short, the first range of its sequence in place.
pub fn statement(test: MicroTest) -> String {
    let both = [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo].map(MicroSequence::steps).concat();
    let step = both
        .into_iter()
        .find(|step| step.test == test)
        .expect("a test of the plan crate holds that it is there");
    let rung = MicroRung { name: step.name(), step, place: 0, connections: 1 };
    let target = Target::Null(null::Options::default());
    let endpoint = Endpoint { target, capabilities: null::capabilities() };
    let context = Context { endpoint, owned: true, seed: 1, device: None };
    steps::shown(&steps::statements(&Options::default(), &rung, &context))
}

fn write_sequence(out: &mut String, title: &str, sequence: MicroSequence) {
    let _ = writeln!(out, "\n## {title}\n\n{}\n", told(sequence));
    let _ = writeln!(
        out,
        "| # | step | published as | length | connections | groups |\n|--:|---|---|---|---|---|"
    );
    let mut number = 0;
    for step in sequence.steps() {
        let place = if step.moment.is_warm_up() {
            "–".to_owned()
        } else {
            number += 1;
            number.to_string()
        };
        let groups = groups::of_step(&step);
        let groups =
            if groups.is_empty() { "none: fills caches".to_owned() } else { steps::groups_text(&groups) };
        let _ = writeln!(
            out,
            "| {place} | `{}`{} | `{}` | {} | {} | {groups} |",
            step.name(),
            if step.settles { ", then rest" } else { "" },
            step.published_name(),
            length(&step),
            match step.connections {
                dbdyno_plan::MicroConnections::Each => "`connections`",
                dbdyno_plan::MicroConnections::Tables => "one a table",
            },
        );
    }
}

fn told(sequence: MicroSequence) -> &'static str {
    match sequence {
        MicroSequence::FortyTwo => "`sequence = \"42\"`, behind `load` and `index`:",
        MicroSequence::ThirtyTwo => {
            "`sequence = \"32\"`, behind `load` and `index`. Published tables leave the two steps before the writes out:"
        }
    }
}

fn length(step: &MicroStep) -> &'static str {
    match step.length {
        dbdyno_plan::MicroLength::Read => "`read_time`",
        dbdyno_plan::MicroLength::Write => "`write_time`",
        dbdyno_plan::MicroLength::WarmScan => "`warm_scan_time`",
        dbdyno_plan::MicroLength::OneScan => "one scan",
    }
}

fn write_entry(out: &mut String, entry: &Entry) {
    let name = entry.test.name();
    let _ = writeln!(out, "\n### {name}\n\nFor: {}.\n\n```sql", entry.purpose);
    for statement in statement(entry.test).split("; ") {
        let _ = writeln!(out, "{statement}");
    }
    let _ = writeln!(out, "```\n\nParameters: {}. Rate: {}.", entry.parameters, writes::names(entry.test).1);
    if !entry.trap.is_empty() {
        let _ = writeln!(out, "\nTrap: {}.", entry.trap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run the tests with `DBDYNO_UPDATE=1` to write the page anew.
    #[test]
    fn the_reference_page_is_made_from_the_catalogue() {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/microbenchmarks.md");
        if std::env::var_os("DBDYNO_UPDATE").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == page(),
            "{} is not what the catalogue says: run `DBDYNO_UPDATE=1 cargo test -p dbdyno-workloads page`",
            path.display()
        );
    }

    #[test]
    fn long_lists_are_cut_short() {
        assert_eq!(statement(MicroTest::HotPoints), "SELECT c FROM sbtestN WHERE id IN (?, ... 100 values)");
        assert_eq!(steps::shown("VALUES (?, ?, ?, ?)"), "VALUES (?, ?, ?, ?)");
    }
}
