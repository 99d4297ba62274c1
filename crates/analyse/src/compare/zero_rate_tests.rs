//! Tests of runs in which one side answers nothing in some blocks.

use dbdyno_record::Run;
use insta::assert_snapshot;

use crate::analyse;
use crate::compare::comparison::{CompareChoices, compare};
use crate::compare::rates::*;
use crate::fixtures::{cell, load_step, run, run_of_pairs, shown_all};
use crate::model::{Comparison, Findings, Side, VariantStep, Verdict};

fn found(blocks: &[(u64, u64)]) -> Findings {
    analyse(&run_of_pairs("x", blocks))
}

fn step(findings: &Findings) -> &VariantStep {
    &findings.workloads[0].steps[0].variants[1]
}

fn compared(base: &Run, new: &Run) -> Comparison {
    let choices = CompareChoices { anyway: true, ..CompareChoices::default() };
    compare(Side { run: base, variant: "a" }, Side { run: new, variant: "b" }, choices).unwrap()
}

const STILL: [(u64, u64); 5] =
    [(100_000, 100_100), (100_000, 0), (100_000, 100_000), (100_000, 100_050), (100_000, 0)];

#[test]
fn a_variant_that_stood_still_in_blocks_is_stalled_whatever_the_others_say() {
    for rate in [100_000, 190_000, 50_000] {
        let blocks: Vec<(u64, u64)> =
            (0..5).map(|n| (100_000 + n, if n == 3 { 0 } else { rate + n })).collect();
        let findings = found(&blocks);
        let step = step(&findings);
        assert_eq!(
            (step.to_base.verdict, step.to_base.zero_rates.stalled.as_slice()),
            (Some(Verdict::Stalled), &[4][..])
        );
        assert_eq!(step.to_base.ratio.as_ref().unwrap().blocks.len(), 4);
    }
    let findings = found(&STILL);
    assert_snapshot!(shown_all(&zero_rate_warnings(&findings.workloads[0].steps[0], "a")), @"stalled [b l.i0] blocks: [2,5], of: 5");
}

#[test]
fn a_variant_that_never_answered_is_stalled_and_not_invalid() {
    let findings = found(&[(100_000, 0), (100_000, 0), (100_000, 0)]);
    let step = step(&findings);
    assert_eq!(
        (step.to_base.verdict, step.to_base.ratio.is_none(), step.rate),
        (Some(Verdict::Stalled), true, Some(0.0))
    );
    assert_eq!(
        self::step(&found(&[(100_000, 0)])).to_base.verdict,
        Some(Verdict::Stalled),
        "one block is enough"
    );
}

#[test]
fn against_a_base_that_stood_still_nothing_is_faster_or_the_same() {
    let blocks = |rate: u64| {
        (0..6).map(|n| (if n == 2 { 0 } else { 100_000 + n }, rate + n)).collect::<Vec<(u64, u64)>>()
    };
    assert_eq!(step(&found(&blocks(200_000))).to_base.verdict, Some(Verdict::Undecided));
    assert_eq!(step(&found(&blocks(100_000))).to_base.verdict, Some(Verdict::Undecided));
    assert_eq!(step(&found(&blocks(50_000))).to_base.verdict, Some(Verdict::Slower));
    let findings = found(&blocks(100_000));
    assert_snapshot!(shown_all(&zero_rate_warnings(&findings.workloads[0].steps[0], "a")), @"base-stalled [a l.i0] blocks: [3], of: 6");
    assert_eq!(step(&found(&[(0, 0), (0, 0)])).to_base.verdict, Some(Verdict::Undecided));
}

#[test]
fn a_comparison_of_pairs_has_a_note_on_it_above_its_table() {
    let run = run_of_pairs("x", &STILL);
    let found = compared(&run, &run);
    assert_eq!(found.steps[0].to_base.verdict, Some(Verdict::Stalled));
    let note = shown_all(&found.notes);
    assert!(note.starts_with("new-answered-nothing [l.i0] blocks: [2,5], of: 5, ratio: 1."), "{note}");
    assert!(found.ratios.is_none(), "a mean over steps would leave out the blocks with a rate of zero");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["steps"][0]["zero_rates"]["stalled"], serde_json::json!([2, 5]));
    assert_eq!(json["steps"][0]["verdict"], "stalled");
}

#[test]
fn between_two_runs_the_one_that_stood_still_in_more_of_its_blocks_is_stalled() {
    let word = |base: &[(u64, u64)], new: &[(u64, u64)]| {
        compared(&run_of_pairs("x", base), &run_of_pairs("y", new)).steps[0].to_base.verdict
    };
    let calm = [(100_000, 100_000), (100_100, 100_100), (99_900, 99_900), (100_000, 100_050)];
    assert_eq!(word(&calm, &calm), Some(Verdict::Same));
    assert_eq!(word(&calm, &STILL), Some(Verdict::Stalled));
    let base = [(100_000, 1), (0, 1), (100_100, 1), (100_050, 1)];
    assert_eq!(word(&base, &calm), Some(Verdict::Undecided));
    assert_eq!(word(&base, &STILL), Some(Verdict::Stalled), "two of five are more than one of four");
}

#[test]
fn a_step_with_a_standstill_is_not_counted_among_others() {
    let is_counted = |in_block_2: u64| {
        let findings = analyse(&run_of_pairs("r", &[(100, 300), (100, in_block_2), (100, 300)]));
        let step = &findings.workloads[0].steps[0];
        step.is_counted("b", &step.variants[1].to_base)
    };
    assert_eq!((is_counted(0), is_counted(300)), (false, true));
}

#[test]
fn an_effect_that_lacks_a_block_is_undecided() {
    let effects = |last: u64| {
        let cells = (1..=5).flat_map(|block| {
            let rate = |rate: u64| vec![load_step(if block == 5 { last.min(rate) } else { rate })];
            [cell(block, "a", vec![load_step(100_000)]), cell(block, "b", rate(80_000))]
        });
        let mut run = run(&["a", "b"], 5, cells.collect());
        for (variant, level) in run.manifest.variants.iter_mut().zip(["off", "on"]) {
            variant.factors = [("binlog".to_owned(), level.to_owned())].into();
        }
        analyse(&run).workloads[0].steps[0].effects.clone()
    };
    assert_eq!(effects(80_000)[0].verdict, Some(Verdict::Slower));
    let undecided = &effects(0)[0];
    assert_eq!((undecided.verdict, undecided.stalled.as_slice()), (Some(Verdict::Undecided), &[5][..]));
    assert_eq!(undecided.ratio.blocks.len(), 4);
}
