//! Tests that compare small runs whose ratios are known.

use dbdyno_record::{CellEvent, Run, RunEvent};
use insta::assert_snapshot;

use super::*;
use crate::fixtures::{cell, query_step, run, run_of_pairs, shown, shown_all, shown_differences};
use crate::model::{Side, Verdict};

fn side<'a>(run: &'a Run, variant: &'a str) -> Side<'a> {
    Side { run, variant }
}

const STEADY: [(u64, u64); 4] = [(100_000, 92_000), (80_000, 73_800), (120_000, 110_100), (100_000, 92_300)];

#[test]
fn two_variants_of_one_run_are_compared_in_pairs() {
    let run = run_of_pairs("x", &STEADY);
    let found = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
    let step = &found.steps[0];
    assert!(found.paired && found.notes.is_empty(), "{:?}", found.notes);
    assert_eq!((step.to_base.verdict, step.base_blocks), (Some(Verdict::Slower), 4));
    assert_eq!(
        found.ratios.map(|ratios| (ratios.count, Some(ratios.average))),
        Some((1, step.to_base.value()))
    );
    assert_eq!(found.steps[1].to_base.verdict, None, "qr100 did not run");
    let turned = compare(side(&run, "b"), side(&run, "a"), CompareChoices::default()).unwrap();
    assert_eq!(turned.steps[0].to_base.verdict, Some(Verdict::Faster));
}

#[test]
fn a_warm_up_is_not_compared() {
    let mut run = run_of_pairs("x", &STEADY);
    for cell in &mut run.cells {
        cell.steps[0].spec.is_warm_up = true;
    }
    let found = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
    let names: Vec<&str> = found.steps.iter().map(|step| step.step.as_str()).collect();
    assert!(!names.is_empty() && !names.contains(&"l.i0"), "{names:?}");
    assert!(found.ratios.is_none());
}

/// A run of `a` and `b` in `qr100`, each given as queries and written rows per second.
fn run_with_target(id: &str, a: (u64, u64), b: (u64, u64)) -> Run {
    let cells = (1..=3).flat_map(|block| {
        let step = |(queries, rows): (u64, u64)| vec![query_step(queries + u64::from(block), rows)];
        [cell(block, "a", step(a)), cell(block, "b", step(b))]
    });
    let mut run = run(&["a", "b"], 3, cells.collect());
    run.manifest.run_id = id.to_owned();
    run
}

#[test]
fn a_background_rate_that_only_the_base_kept_is_noted_and_is_no_faster() {
    let (run, other) =
        (run_with_target("x", (400, 200), (600, 150)), run_with_target("y", (9, 9), (600, 150)));
    let in_pairs = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
    let anyway = CompareChoices { anyway: true, ..CompareChoices::default() };
    let unpaired = compare(side(&run, "a"), side(&other, "b"), anyway).unwrap();
    for found in [&in_pairs, &unpaired] {
        let step = found.steps.iter().find(|step| step.step == "qr100").unwrap();
        assert_eq!((step.target_missed, step.to_base.verdict), (true, Some(Verdict::Missed)));
        assert_eq!(shown(found.notes.last().unwrap()), "new-missed-target [qr100]");
        assert!(
            step.to_base.ratio.is_some() && found.ratios.is_none(),
            "a ratio with fewer writes is in no mean"
        );
    }
    let turned = compare(side(&run, "b"), side(&run, "a"), CompareChoices::default()).unwrap();
    assert!(turned.steps.iter().all(|step| !step.target_missed));
    assert!(turned.notes.is_empty(), "{:?}", turned.notes);
}

#[test]
fn changes_during_a_run_are_noted() {
    let mut run = run_of_pairs("x", &STEADY);
    let mut tool = run.manifest.tool.clone();
    run.events.push(RunEvent::Started { at: String::new(), resumed: false, tool: tool.clone() });
    let notes = |run: &Run| compare(side(run, "a"), side(run, "b"), CompareChoices::default()).unwrap().notes;
    assert!(notes(&run).is_empty());
    tool.commit = "fedcba9".to_owned();
    run.events.push(RunEvent::Started { at: String::new(), resumed: true, tool });
    let first_of_b = run.cells.iter_mut().find(|cell| cell.id.variant == "b").unwrap();
    for event in &mut first_of_b.events {
        if let CellEvent::Server { server, .. } = event {
            server.version_text = "another".to_owned();
        }
    }
    assert_snapshot!(shown_all(&notes(&run)), @r"
    several-tools first: 0.1.0 (abc), other: 0.1.0 (fedcba9), run: x
    server-changed [b] first: another, other: b 1.0
    ");
}

#[test]
fn settings_that_are_not_alike_are_noted() {
    let set = |run: &mut Run, variant: &str, name: &str, value: &str| {
        for cell in run.cells.iter_mut().filter(|cell| cell.id.variant == variant) {
            for event in &mut cell.events {
                if let CellEvent::Server { server, .. } = event {
                    server.product = "SQLite".to_owned();
                    server.settings.insert(name.to_owned(), value.to_owned());
                }
            }
        }
    };
    let mut run = run_of_pairs("x", &STEADY);
    set(&mut run, "a", "page_size", "4096");
    set(&mut run, "b", "page_size", "8192");
    let notes = |run: &Run| compare(side(run, "a"), side(run, "b"), CompareChoices::default()).unwrap().notes;
    assert_snapshot!(shown_all(&notes(&run)), @r#"settings-differ difference: {"title":"page size","values":[{"value":{"text":"4 KiB","is_default":true},"variants":["a"]},{"value":{"text":"8 KiB","is_default":true},"variants":["b"]}]}"#);
    run.manifest.plan.differs = vec!["page-size".to_owned()];
    assert!(notes(&run).is_empty());
    let mut other = run_of_pairs("y", &STEADY);
    set(&mut other, "a", "page_size", "8192");
    run.manifest.plan.differs.clear();
    let found = compare(side(&run, "a"), side(&other, "a"), CompareChoices::default()).unwrap();
    assert_snapshot!(shown(found.notes.last().unwrap()), @r#"settings-differ difference: {"title":"page size","values":[{"value":{"text":"4 KiB","is_default":true},"variants":["a"]},{"value":{"text":"8 KiB","is_default":true},"variants":["a"]}]}"#);
}

#[test]
fn a_wider_margin_is_more_lenient() {
    let run = run_of_pairs("x", &STEADY);
    let choices = CompareChoices { margin: Some(0.15), anyway: false };
    let found = compare(side(&run, "a"), side(&run, "b"), choices).unwrap();
    assert_eq!((found.margin, found.steps[0].to_base.verdict), (0.15, Some(Verdict::Same)));
}

#[test]
fn a_step_has_the_margin_of_its_pattern_unless_the_caller_sets_one_for_all() {
    let mut run = run_of_pairs("x", &STEADY);
    run.manifest.plan.margins.insert("l.*".to_owned(), 0.15);
    let of = |choices| compare(side(&run, "a"), side(&run, "b"), choices).unwrap();
    let planned = of(CompareChoices::default());
    assert_eq!((planned.margin, planned.steps[0].margin), (0.02, 0.15));
    assert_eq!(planned.steps[0].to_base.verdict, Some(Verdict::Same));
    let chosen = of(CompareChoices { margin: Some(0.01), anyway: false });
    assert_eq!((chosen.steps[0].margin, chosen.steps[0].to_base.verdict), (0.01, Some(Verdict::Slower)));
}

#[test]
fn variants_of_a_run_with_a_budget_are_judged_at_its_looks() {
    let mut run = run_of_pairs("x", &STEADY);
    run.manifest.plan.budget = Some(dbdyno_model::PlanDuration::from_secs(100));
    let look = |blocks, seconds: u64| dbdyno_record::RunEvent::Look {
        at: String::new(),
        blocks,
        elapsed_us: seconds * 1_000_000,
        last: blocks == 4,
        order: Vec::new(),
        steps: std::collections::BTreeMap::new(),
    };
    run.events = vec![look(3, 10), look(4, 50)];
    let found = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
    let step = &found.steps[0];
    assert_eq!(
        (step.to_base.verdict, step.to_base.decided.map(|at| at.of)),
        (Some(Verdict::Slower), Some(2))
    );
    assert_eq!(shown(&found.notes[0]), "interim-analyses looks: 2");
    // A comparison with another run corrects nothing, whichever of the two had interim analyses.
    let other = run_of_pairs("y", &STEADY);
    let notes = |base: &Run, new: &Run| -> Vec<String> {
        let found = compare(side(base, "a"), side(new, "b"), CompareChoices { anyway: true, margin: None });
        let notes = found.unwrap().notes;
        notes.iter().filter(|note| note.code == Code::AnalysedWhileGoingOn).map(shown).collect()
    };
    assert_snapshot!(notes(&run, &other).join("\n"), @"analysed-while-going-on looks: 2, run: x");
    assert_eq!(notes(&run, &other), notes(&other, &run));
    assert!(notes(&other, &run_of_pairs("z", &STEADY)).is_empty());
}

#[test]
fn two_runs_are_compared_without_pairs_so_that_changes_common_to_a_pair_are_noise() {
    let (one, two) = (run_of_pairs("x", &STEADY), run_of_pairs("y", &STEADY));
    let found = compare(side(&one, "a"), side(&two, "b"), CompareChoices::default()).unwrap();
    assert_eq!((found.paired, found.steps[0].to_base.verdict), (false, Some(Verdict::Undecided)));
    assert_eq!(found.steps[0].to_base.inference().unwrap().paired, None);
    assert_eq!(found.notes[0].code, Code::TwoRuns);
}

#[test]
fn runs_that_are_not_alike_are_refused_unless_anyway() {
    let (one, mut two) = (run_of_pairs("x", &STEADY), run_of_pairs("y", &STEADY));
    two.manifest.plan.seed = 8;
    let error = compare(side(&one, "a"), side(&two, "a"), CompareChoices::default()).unwrap_err();
    let Error::NotComparable { differences } = error else { panic!("{error}") };
    assert_snapshot!(shown_differences(&differences), @"Seed 7 and 8");
    let choices = CompareChoices { anyway: true, ..CompareChoices::default() };
    let found = compare(side(&one, "a"), side(&two, "a"), choices).unwrap();
    assert_snapshot!(shown(&found.notes[0]), @"not-comparable difference: Seed 7 and 8");
}

#[test]
fn one_block_is_a_ratio_without_a_verdict() {
    let run = run_of_pairs("x", &STEADY[..1]);
    let found = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
    assert_eq!((found.steps[0].to_base.value(), found.steps[0].to_base.verdict), (Some(0.92), None));
    assert_eq!(found.notes[0].code, Code::OneBlockCompared);
}

#[test]
fn unknown_variants_and_a_comparison_with_itself_are_errors() {
    let run = run_of_pairs("x", &STEADY);
    let fail = |base, new| compare(side(&run, base), side(&run, new), CompareChoices::default()).unwrap_err();
    assert_snapshot!(fail("a", "c"), @r#"run x has no variant named "c"; its variants are: a, b"#);
    assert_snapshot!(fail("a", "a"), @"a would be compared with itself: name two variants, or two runs");
}
