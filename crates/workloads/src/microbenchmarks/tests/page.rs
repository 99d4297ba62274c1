//! The reference page of the microbenchmarks, which is made from the catalogue and the sequences.

use std::fmt::Write;

use crate::microbenchmarks::options::{
    MicroConnections, MicroLength, MicroLevel, MicroSequence, MicroStep, MicroTest, MicrobenchmarksOptions,
};
use dbdyno_record::Deviation;

use crate::deviations::{Surroundings, of_surroundings};
use crate::microbenchmarks::options::QueryFamily;
use crate::microbenchmarks::steps::ReadyStep;
use crate::microbenchmarks::{Microbenchmarks, deviations};
use crate::summaries::{StepDescription, context, shortened, step_description};
use crate::{Context, Workload, oltp};

#[path = "../../../../../xtask/src/filled.rs"]
mod filled;

const INTRODUCTION: &str = include_str!("page_introduction.txt");
const GROUPS: &str = include_str!("page_groups.txt");

/// Returns the text of `docs/reference/microbenchmarks.md`.
fn page() -> String {
    let mut out = INTRODUCTION.to_owned();
    for (title, sequence) in [("The 42", MicroSequence::FortyTwo), ("The 32", MicroSequence::ThirtyTwo)] {
        write_sequence(&mut out, title, sequence);
    }
    out.push_str(GROUPS);
    for family in MicroTest::ALL.chunk_by(|one, next| title(one.family()) == title(next.family())) {
        let _ = writeln!(out, "\n## {}", title(family[0].family()));
        let mut before = StepDescription::default();
        for test in family {
            let description = step_description(Microbenchmarks::WORDS, test.name());
            write_test(&mut out, *test, &description, &before);
            before = description;
        }
    }
    write_deviations(&mut out);
    filled::filled(&out)
}

fn title(family: QueryFamily) -> &'static str {
    match family {
        QueryFamily::Points => "Points",
        QueryFamily::Ranges => "Ranges",
        QueryFamily::Transactions => "Transactions that read",
        QueryFamily::Writes(_) => "Writes",
    }
}

/// Returns each statement of the test's operation once, with its number, on a database that has no
/// special configuration.
fn statements(options: &MicrobenchmarksOptions, level: &MicroLevel, context: &Context) -> String {
    let step = ReadyStep::new(options, level, context);
    let text = oltp::steps::statements(&step.statement_slots(), &step.setup);
    text.replace("sbtest?", "sbtestN")
}

/// Returns the statements of one operation of `test`, with lists cut short and with the first range
/// of its sequence.
fn statement(test: MicroTest) -> String {
    let both = [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo].map(MicroSequence::steps).concat();
    let step = both
        .into_iter()
        .find(|step| step.test == test)
        .expect("a test of the sequences holds that it is there");
    let level = MicroLevel { name: step.name(), step, place: 0, connections: 1 };
    shortened(&statements(&MicrobenchmarksOptions::default(), &level, &context()))
}

fn write_sequence(out: &mut String, title: &str, sequence: MicroSequence) {
    let _ = writeln!(out, "\n## {title}\n\n{}\n", heading(sequence));
    let steps = sequence.steps();
    let first = steps.iter().position(|step| step.test.writes()).unwrap_or(steps.len());
    let is_last = |step: &MicroStep| step.test.writes() && step.settles;
    let last = steps.iter().position(is_last).map_or(steps.len(), |last| last + 1);
    let parts = [("Reads", &steps[..first]), ("Writes", &steps[first..last]), ("Then", &steps[last..])];
    for (part, steps) in parts {
        let _ = writeln!(out, "* {part}: {}", steps.iter().map(shown_step).collect::<Vec<_>>().join(", "));
    }
}

/// Returns the step's name, followed by the properties that the name does not say.
fn shown_step(step: &MicroStep) -> String {
    let connections = match step.connections {
        MicroConnections::Each => "",
        MicroConnections::Tables => "one connection per table",
    };
    let settles = if step.settles { "then rest" } else { "" };
    let published = published(step);
    let notes = [published.as_str(), length(step), connections, settles];
    let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
    let name = step.name();
    if notes.is_empty() { format!("`{name}`") } else { format!("`{name}` ({})", notes.join(", ")) }
}

/// Returns the published name, where it is neither the step's name nor the one that the
/// introduction gives as the rule.
fn published(step: &MicroStep) -> String {
    let (name, published) = (step.name(), step.published_name());
    let range = if name.starts_with("read-only-") { 1000 } else { 100 };
    let is_rule = published == name || published == format!("{name}_range={range}");
    if is_rule { String::new() } else { format!("published as `{published}`") }
}

fn heading(sequence: MicroSequence) -> &'static str {
    match sequence {
        MicroSequence::FortyTwo => "`sequence = \"42\"`, after `load` and `index`:",
        MicroSequence::ThirtyTwo => {
            "`sequence = \"32\"`, after `load` and `index`. Published tables leave out the two steps before the\nwrites:"
        }
    }
}

/// Returns the length, where it is not `read_time` for a step that reads or `write_time` for a step
/// that writes.
fn length(step: &MicroStep) -> &'static str {
    match step.length {
        MicroLength::Read if step.test.writes() => "for `read_time`",
        MicroLength::Read | MicroLength::Write => "",
        MicroLength::WarmScan => "for `warm_scan_time`",
        MicroLength::OneScan => "one scan",
    }
}

/// Writes a test. What it has in common with the one `before` it is not repeated.
fn write_test(out: &mut String, test: MicroTest, description: &StepDescription, before: &StepDescription) {
    let (first, rest) = description.purpose.split_at(1);
    let _ = writeln!(out, "\n### {}\n\n{}{rest}.\n\n```sql", test.name(), first.to_uppercase());
    for statement in statement(test).split("; ") {
        let _ = writeln!(out, "{statement}");
    }
    let _ = writeln!(out, "```");
    if before.parameters != description.parameters {
        let _ = writeln!(out, "\nParameters: {}.", description.parameters);
    }
    if !description.pitfall.is_empty() {
        let _ = writeln!(
            out,
            "\nPitfall: {}.",
            if before.pitfall == description.pitfall { "as above" } else { &description.pitfall }
        );
    }
}

/// Writes what the record says about a plan with the default options.
fn write_deviations(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Deviations from the original\n\nEach run records those that hold for it. Options with other values than the original's \
         are recorded\ntoo. With the defaults:\n\n| topic | the original | here |\n|---|---|---|"
    );
    let around = Surroundings { on_socket: Some("PostgreSQL".to_owned()), ..Surroundings::default() };
    let of_host = of_surroundings(&Microbenchmarks::ORIGINAL, &around);
    for Deviation { topic, original, here } in
        deviations(&MicrobenchmarksOptions::default()).into_iter().chain(of_host)
    {
        let _ = writeln!(out, "| {topic} | {original} | {here} |");
    }
}

/// Run the tests with `DBDYNO_UPDATE=1` to write the page again.
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
    assert_eq!(shortened("VALUES (?, ?, ?, ?)"), "VALUES (?, ?, ?, ?)");
}
