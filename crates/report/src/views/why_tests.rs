use dbdyno_analyse::{FunctionContribution, NamedWait, SettingContribution};
use dbdyno_record::Profiled;

use super::*;
use crate::document::{html, terminal};

fn contribution(name: &str, [base_us, variant_us]: [f64; 2], q: f64) -> Contribution {
    let difference_us = variant_us - base_us;
    let presence = match (base_us > 0.0, variant_us > 0.0) {
        (false, _) => Presence::New,
        (_, false) => Presence::Gone,
        _ => Presence::Both,
    };
    let interval = Some(Interval { low: difference_us - 0.5, high: difference_us + 0.5 });
    Contribution { name: name.to_owned(), base_us, variant_us, difference_us, interval, q: Some(q), presence }
}

fn profile(variant: &str, stacks: &[(&str, u64)], cpu_us: f64) -> VariantProfile {
    VariantProfile {
        variant: variant.to_owned(),
        blocks: 5,
        profiler: Some(Profiled {
            event_sampled: "cpu-clock".to_owned(),
            samples_per_second: 499,
            call_chains: "frame-pointer".to_owned(),
            profiler: "perf version 6.1".to_owned(),
            merged: 0,
        }),
        samples: stacks.iter().map(|(_, count)| count).sum(),
        cpu_us,
        sampled_share: 0.997,
        rate_share: Some(0.991),
        cpu_share: Some(1.008),
        fault: None,
        unnamed: BTreeMap::from([("libfast.so".to_owned(), 0.12), ("libc.so.6".to_owned(), 0.002)]),
        functions: Vec::new(),
        allocations: Vec::new(),
        time: Some(TimePerOperation {
            service_us: 200.0,
            cpu_us,
            run_queue_us: Some(3.0),
            io_us: None,
            waits: vec![NamedWait { name: "Lock: transactionid".to_owned(), us: 40.0 }],
            rest_us: 157.0 - cpu_us,
        }),
        stacks: stacks.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect(),
    }
}

fn example() -> Why {
    let function = |area: &str, own| FunctionContribution { area: area.to_owned(), own };
    let found = ProfileDifference {
        base: "ma10.2".to_owned(),
        variant: "ma11.4".to_owned(),
        blocks: 5,
        base_us: 70.7,
        variant_us: 80.8,
        functions: vec![
            function("adaptive hash index", contribution("btr_search_guess_on_hash", [1.73, 0.0], 0.001)),
            function("B-tree", contribution("btr_cur_t::search_leaf", [0.0, 0.79], 0.001)),
        ],
        rest_us: 11.04,
        explained: 0.87,
        areas: vec![contribution("B-tree", [2.0, 9.0], 0.01), contribution("parse", [5.0, 5.1], 0.6)],
        settings: vec![SettingContribution {
            base: "on".to_owned(),
            variant: "off".to_owned(),
            own: contribution("adaptive hash index", [1.7, 4.6], 0.001),
        }],
    };
    let stacks = [("mariadbd;do_command;row_search_mvcc", 700), ("mariadbd;do_command;schedule_[k]", 300)];
    Why {
        steps: vec![StepProfile {
            workload: "oltp".to_owned(),
            step: "point-select".to_owned(),
            unit: "queries/s".to_owned(),
            variants: vec![profile("ma10.2", &stacks, 70.7), profile("ma11.4", &stacks, 80.8)],
            differences: vec![found],
        }],
    }
}

#[test]
fn a_sentence_names_settings_before_functions() {
    insta::assert_snapshot!(sentences(Some(&example()), "oltp").join("\n"));
    assert!(sentences(Some(&example()), "dbt3").is_empty() && sentences(None, "oltp").is_empty());
}

#[test]
fn the_tables_add_up_and_only_decided_rows_have_a_colour() {
    let blocks = blocks(Some(&example()));
    insta::assert_snapshot!(terminal(&blocks, 100, false));
    let tables: Vec<&Table> = crate::document::tests::tables(&blocks);
    let areas = tables.iter().find(|table| table.title.starts_with("The difference by area")).unwrap();
    let tone = |row: usize| areas.cell(&areas.rows[row], "difference").unwrap().tone;
    assert_eq!([tone(0), tone(1)], [Tone::Worse, Tone::Plain]);
}

#[test]
fn a_page_has_the_flame_graph_of_both_variants_without_the_network() {
    let page = html(&blocks(Some(&example())));
    assert!(page.contains("srcdoc=") && page.contains("row_search_mvcc"));
    assert!(!page.contains("src=\"http"), "{page}");
}

#[test]
fn a_profile_that_is_not_used_says_why() {
    let mut why = example();
    why.steps[0].variants[1].fault = Some(ProfileFault::Incomplete { share: 0.8, accepted: 0.03 });
    let said = why.steps[0].variants.iter().filter_map(fault_text).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(said);
    why.steps[0].variants[1].fault = Some(ProfileFault::NotProfiled("perf is not installed".to_owned()));
    assert_eq!(fault_text(&why.steps[0].variants[1]).unwrap(), "ma11.4 has no profile: perf is not installed.");
}

#[test]
fn a_unit_of_a_rate_is_named_in_the_singular() {
    let names = ["queries/s", "inserts/s", "rows/s", "seconds", ""].map(one_of);
    assert_eq!(names, ["query", "insert", "row", "second", "operation"]);
}
