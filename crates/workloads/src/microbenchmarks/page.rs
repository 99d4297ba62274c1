//! The reference page of the microbenchmarks, made from the catalogue and the sequences.

use std::fmt::Write;

use crate::microbenchmarks::options::{
    MicroConnections, MicroLength, MicroRung, MicroSequence, MicroStep, MicroTest, Microbenchmarks as Options,
};
use crate::oltp::options::{IdType, LoadMethod, OltpProfile};
use crate::options::Protocol;
use crate::settle::{Settle, SettleAfter, SettleWait};
use dbdyno_plan::{Cold, DataMode, PlanDuration};
use dbdyno_record::Deviation;

use crate::Workload;
use crate::cards::{context, shown};
use crate::deviations::{Surroundings, of_surroundings};
use crate::microbenchmarks::catalogue::ALL;
use crate::microbenchmarks::entry::Entry;
use crate::microbenchmarks::{Microbenchmarks, deviations, steps};

const INTRODUCTION: &str = include_str!("page_introduction.txt");
const GROUPS: &str = "
## Groups

Published reports give averages over groups of steps; warm-ups are in none.

| reports of | group | steps |
|---|---|---|
| 2021 | read-only before write-heavy | all `.pre` |
| 2021 | write-heavy | all that write, except `delete` and `insert` |
| 2021 | read-only after write-heavy | all that read, except `.pre` |
| 2021 | insert and delete | `delete`, `insert` |
| 2024 | point, part 1 | `point-query`, `hot-points`, `points-*`, also `.pre` |
| 2024 | point, part 2 | `random-points`, also `.pre` |
| 2024 | range, part 1 | `range-*`, also `.pre`, and `scan` |
| 2024 | range, part 2 | `read-only`, also `.pre` |
| 2024 | writes | all that write |
| 2025 | point | both point parts of 2024, without `.pre` |
| 2025 | range without aggregation | `range-*` and `scan`, without `.pre` |
| 2025 | range with aggregation | `read-only` and `read-only-*` (`read-only-simple` too), without `.pre` |
| 2025 | writes | all that write |
";
const FAMILIES: [&str; 4] = ["Points", "Ranges", "Transactions that read", "Writes"];

/// `docs/reference/microbenchmarks.md`.
pub fn page() -> String {
    let mut out = INTRODUCTION.to_owned();
    for (title, sequence) in [("The 42", MicroSequence::FortyTwo), ("The 32", MicroSequence::ThirtyTwo)] {
        write_sequence(&mut out, title, sequence);
    }
    out.push_str(GROUPS);
    for (title, family) in FAMILIES.iter().zip(ALL) {
        let _ = writeln!(out, "\n## {title}");
        for (place, entry) in family.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| &family[before]);
            write_entry(&mut out, entry, before);
        }
    }
    write_deviations(&mut out);
    out
}

/// The statements of one operation of `test`, lists cut short, the first range of its sequence in place.
pub fn statement(test: MicroTest) -> String {
    let both = [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo].map(MicroSequence::steps).concat();
    let step = both
        .into_iter()
        .find(|step| step.test == test)
        .expect("a test of the sequences holds that it is there");
    let rung = MicroRung { name: step.name(), step, place: 0, connections: 1 };
    shown(&steps::statements(&Options::default(), &rung, &context()))
}

fn write_sequence(out: &mut String, title: &str, sequence: MicroSequence) {
    let _ = writeln!(out, "\n## {title}\n\n{}\n", heading(sequence));
    let mut number = 0;
    for step in sequence.steps() {
        let place = if step.moment.is_warm_up() {
            "*".to_owned()
        } else {
            number += 1;
            format!("{number}.")
        };
        let connections = match step.connections {
            MicroConnections::Each => "",
            MicroConnections::Tables => ", one connection a table",
        };
        let settles = if step.settles { ", then rest" } else { "" };
        let _ = writeln!(
            out,
            "{place} `{}`{}{}{connections}{settles}",
            step.name(),
            published(&step),
            length(&step),
        );
    }
}

/// The published name, where it is not the rule.
fn published(step: &MicroStep) -> String {
    let (name, published) = (step.name(), step.published_name());
    let is_rule = published == name || published == format!("{name}_range=100");
    if is_rule { String::new() } else { format!(" (published as `{published}`)") }
}

fn heading(sequence: MicroSequence) -> &'static str {
    match sequence {
        MicroSequence::FortyTwo => "`sequence = \"42\"`, after `load` and `index`:",
        MicroSequence::ThirtyTwo => {
            "`sequence = \"32\"`, after `load` and `index`. Published tables leave out the two steps before the\nwrites:"
        }
    }
}

/// The length, where it is not `read_time` of a step that reads and `write_time` of one that writes.
fn length(step: &MicroStep) -> &'static str {
    match step.length {
        MicroLength::Read if step.test.writes() => ", for `read_time`",
        MicroLength::Read | MicroLength::Write => "",
        MicroLength::WarmScan => ", for `warm_scan_time`",
        MicroLength::OneScan => ", one scan",
    }
}

/// What an entry has in common with the one `before` it is not said twice.
fn write_entry(out: &mut String, entry: &Entry, before: Option<&Entry>) {
    let name = entry.test.name();
    let _ = writeln!(out, "\n### {name}\n\nFor: {}.\n\n```sql", entry.purpose);
    for statement in statement(entry.test).split("; ") {
        let _ = writeln!(out, "{statement}");
    }
    let _ = writeln!(out, "```");
    if before.is_none_or(|before| before.parameters != entry.parameters) {
        let _ = writeln!(out, "\nParameters: {}.", entry.parameters);
    }
    if !entry.trap.is_empty() {
        let is_known = before.is_some_and(|before| before.trap == entry.trap);
        let _ = writeln!(out, "\nTrap: {}.", if is_known { "as above" } else { entry.trap });
    }
}

/// What the record says of a plan that says nothing, then what certain options add to it or put in its place.
fn write_deviations(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Deviations from the original\n\nEach run records those that hold for it. With the defaults:\n\n| topic | the original | here \
         |\n|---|---|---|"
    );
    let default = deviations::deviations(&Options::default());
    default.iter().for_each(|found| write_deviation(out, "", found));
    let around = |has_postgres_socket| {
        let around = Surroundings { has_postgres_socket, ..Surroundings::default() };
        of_surroundings(&Microbenchmarks::ORIGINAL, &around)
    };
    around(false).iter().for_each(|found| write_deviation(out, "", found));
    let _ =
        writeln!(out, "\nWith single options:\n\n| with | topic | the original | here |\n|---|---|---|---|");
    let of_socket = around(true).into_iter().filter(|found| !around(false).contains(found));
    of_socket
        .for_each(|found| write_deviation(out, "a PostgreSQL that dbdyno starts, without TLS | ", &found));
    for (with, options) in variations() {
        let more = deviations::deviations(&options);
        let more = more.iter().filter(|found| !default.contains(found));
        more.for_each(|found| write_deviation(out, &format!("{with} | "), found));
    }
}

/// A row; `first` is the cells before the topic.
fn write_deviation(out: &mut String, first: &str, found: &Deviation) {
    let _ = writeln!(out, "| {first}{} | {} | {} |", found.topic, found.original, found.here);
}

/// Options whose deviations are not those of the defaults.
fn variations() -> Vec<(&'static str, Options)> {
    let options = Options::default;
    let each_write = Settle { after: SettleAfter::EachWrite, ..options().settling() };
    vec![
        ("`load_method = \"stream\"`", Options { load_method: LoadMethod::Stream, ..options() }),
        ("`index_before_load = true`", Options { index_before_load: true, ..options() }),
        ("`id = \"bigint\"`", Options { id: IdType::Bigint, ..options() }),
        ("`first_id = 1001`", Options { first_id: 1001, ..options() }),
        ("`use_existing = true`", Options { use_existing: true, ..options() }),
        ("`profile = \"sysbench-0.5\"`", Options { profile: OltpProfile::Sysbench05, ..options() }),
        ("`protocol = \"text\"`", Options { protocol: Protocol::Text, ..options() }),
        ("`protocol = \"prepared\"`", Options { protocol: Protocol::Prepared, ..options() }),
        ("`update_inlist_ids = 100`", Options { update_inlist_ids: 100, ..options() }),
        ("`zipfian_exponent = 1.2`", Options { zipfian_exponent: 1.2, ..options() }),
        ("`operations = 1000`", Options { operations: Some(1000), ..options() }),
        ("`delete_refill = true`", Options { delete_refill: true, ..options() }),
        ("`data = \"restart\"`", Options { data: DataMode::Restart, ..options() }),
        ("`data = \"reset\"`", Options { data: DataMode::Reset, ..options() }),
        ("`data = \"restore\"`", Options { data: DataMode::Restore, ..options() }),
        ("`data = \"restore-each-step\"`", Options { data: DataMode::RestoreEachStep, ..options() }),
        ("`cold = true`", Options { cold: Cold::All(true), ..options() }),
        ("`settle = { after = \"each-write\" }`", Options { settle: Some(each_write), ..options() }),
        (
            "`settle_wait = \"60s\"`",
            Options { settle_wait: Some(SettleWait::Fixed(PlanDuration::from_secs(60))), ..options() },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A topic that is new must get a variation that shows it.
    #[test]
    fn every_deviation_that_can_be_recorded_is_on_the_page() {
        let page = page();
        let mut all = variations();
        all.push(("", Options::default()));
        for (with, options) in &all {
            for found in deviations::deviations(options) {
                assert!(
                    page.contains(&format!("| {} | {} |", found.original, found.here)),
                    "{with} {found:?}"
                );
            }
        }
        // By their source, so that none is forgotten above.
        let source = include_str!("deviations.rs");
        let added = source
            .split("add(")
            .skip(1)
            .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split_once('"'));
        let topics: Vec<&str> = added.map(|(topic, _)| topic).chain(deviations::SHARED).collect();
        assert!(topics.len() > 20, "{topics:?}");
        for topic in topics {
            assert!(page.contains(&format!("| {topic} | ")), "{topic} is on no line of the page");
        }
    }

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
        assert_eq!(shown("VALUES (?, ?, ?, ?)"), "VALUES (?, ?, ?, ?)");
    }
}
