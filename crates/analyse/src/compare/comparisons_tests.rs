//! Tests that a comparison has one verdict, wherever it is looked up.

use dbdyno_record::{Run, StepRecord};

use crate::compare::comparison::{CompareChoices, compare};
use crate::fixtures::{cell, load_step, query_seconds_step, run, run_of_pairs, scan_step};
use crate::model::{Findings, Side, StepFindings, Undecided, VariantStep, Verdict};
use crate::{Choices, analyse, analyse_only, analyse_with};

/// A run whose `a` and `b` have these rates in `l.i0`, one pair per block.
fn found(blocks: &[(u64, u64)]) -> Findings {
    analyse(&run_of_pairs("r", blocks))
}

fn step(findings: &Findings) -> &VariantStep {
    &findings.workloads[0].steps[0].variants[1]
}

#[test]
fn several_blocks_have_an_interval_and_a_verdict_and_the_base_has_none() {
    let findings = found(&[(100_000, 108_000), (90_000, 97_000), (110_000, 119_000), (100_000, 108_500)]);
    let step = step(&findings);
    assert_eq!(step.to_base.verdict, Some(Verdict::Faster));
    let interval = step.to_base.ratio.as_ref().unwrap().inference.as_ref().unwrap().interval;
    assert!(1.07 < interval.low && interval.high < 1.09, "{interval:?}");
    let base = &findings.workloads[0].steps[0].variants[0];
    assert_eq!(
        (base.to_base.verdict, base.to_base.ratio.as_ref().unwrap().inference.is_none()),
        (None, true)
    );
}

#[test]
fn one_block_has_a_ratio_and_nothing_more() {
    let findings = found(&[(100_000, 150_000)]);
    let step = step(&findings);
    assert_eq!((step.to_base.verdict, step.to_base.ratio.as_ref().unwrap().value), (None, 1.5));
    assert!(step.to_base.ratio.as_ref().unwrap().inference.is_none());
}

#[test]
fn without_a_block_valid_for_both_the_verdict_is_invalid_and_a_step_that_did_not_run_has_none() {
    let cells = vec![cell(1, "a", vec![load_step(1_000)]), cell(2, "b", vec![load_step(1_000)])];
    let findings = analyse(&run(&["a", "b"], 2, cells));
    let verdicts = |step: usize| findings.workloads[0].steps[step].variants[1].to_base.verdict;
    assert_eq!((verdicts(0), verdicts(1)), (Some(Verdict::Invalid), None));
}

/// Five variants in ten steps over three blocks. Some differ and some do not, and they scatter so
/// much that the verdicts depend on the size of the family.
fn five(plan: &str) -> Run {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    let rate = |variant: u64, step: u64, block: u64| {
        let scatter = (variant * 37 + step * 101 + block * 59) % 23 * (1 + step % 4);
        100_000 - 1_500 * variant * (step % 3) + 100 * scatter
    };
    let named = |name: String, rate| {
        let mut step: StepRecord = load_step(rate);
        step.spec.name.clone_from(&name);
        StepRecord { name, ..step }
    };
    let cells = (1..=3).flat_map(|block| {
        NAMES.iter().zip(0..).map(move |(name, variant)| {
            let steps = (0..10).map(|step| named(format!("s{step}"), rate(variant, step, block.into())));
            cell(block, name, steps.collect())
        })
    });
    let mut run = run(&NAMES, 3, cells.collect());
    run.manifest.plan = crate::fixtures::plan(plan);
    run
}

const SECTIONS: &str = "[[section]]\ntitle = 'all'\nbase = 'e'\n[[section]]\ntitle = 'two'\nvariants = ['b', 'c']\nsteps = ['s1', 's2']";

/// Base and variant, and then ratio, interval, adjusted p and verdict as text.
type Said = ([String; 2], String);

fn said(base: &str, step: &StepFindings, found: &VariantStep) -> Option<(String, Said)> {
    let ratio = found.to_base.ratio.as_ref().filter(|_| found.variant != base)?;
    let inference = ratio.inference.as_ref()?;
    let figures = [ratio.value, inference.interval.low, inference.interval.high, inference.q_difference];
    let figures = figures.map(|figure| format!("{figure:.9}")).join(" ");
    let pair = [base.to_owned(), found.variant.clone()];
    Some((step.name.clone(), (pair, format!("{figures} {:?}", found.to_base.verdict))))
}

/// All comparisons that any part of a run's findings shows.
fn all_said(findings: &Findings) -> Vec<(String, Said)> {
    let own = findings.workloads.iter().map(|workload| (findings.run.base.as_str(), workload));
    let of_sections = findings
        .sections
        .iter()
        .flat_map(|section| section.workloads.iter().map(|workload| (section.base.as_str(), workload)));
    own.chain(of_sections)
        .flat_map(|(base, workload)| workload.judged_steps().map(move |step| (base, step)))
        .flat_map(|(base, step)| step.variants.iter().filter_map(move |found| said(base, step, found)))
        .collect()
}

#[test]
fn a_comparison_says_the_same_in_every_section_under_any_base_and_in_compare() {
    let run = five(SECTIONS);
    let planned = all_said(&analyse(&run));
    // Four pairs are with the base, four with e, and one is of two others. a and e occur twice.
    assert_eq!(planned.len(), 10 * 4 + 10 * 4 + 2);
    let known = |step: &str, pair: &[String; 2]| {
        planned.iter().find(|(name, (other, _))| name == step && other == pair).map(|(_, (_, text))| text)
    };
    let mut met = 0;
    for base in ["a", "b", "e"] {
        let findings = analyse_with(&run, &Choices { base: Some(base.to_owned()) }).unwrap();
        for (name, (pair, text)) in all_said(&findings) {
            met += known(&name, &pair).map_or(0, |known| {
                assert_eq!(*known, text, "{name} {pair:?} under base {base}");
                1
            });
        }
    }
    assert!(met > 150, "{met}");
    let side = |variant| Side { run: &run, variant };
    for (base, variant) in [("a", "b"), ("e", "c"), ("b", "c")] {
        for step in compare(side(base), side(variant), CompareChoices::default()).unwrap().steps {
            let Some(text) = known(&step.step, &[base.to_owned(), variant.to_owned()]) else { continue };
            let word = format!("{:?}", step.to_base.verdict);
            assert!(text.ends_with(&word), "{} {base} {variant}: {word}, {text}", step.step);
        }
    }
}

#[test]
fn the_other_direction_is_the_mirror_image_and_no_test_of_its_own() {
    let of = |run: &Run, base: &str, variant: &str| -> Vec<(f64, f64, Option<Verdict>)> {
        let findings = analyse_with(run, &Choices { base: Some(base.to_owned()) }).unwrap();
        let steps = findings.workloads[0].judged_steps();
        let found = steps.filter_map(|step| {
            let found = step.variant(variant)?;
            let ratio = found.to_base.ratio.as_ref()?;
            Some((ratio.value, ratio.inference.as_ref()?.q_difference, found.to_base.verdict))
        });
        found.collect()
    };
    let run = five("[[section]]\ntitle = 'turned'\nbase = 'b'\nvariants = ['a', 'b']");
    let (own, turned) = (of(&run, "a", "b"), of(&run, "b", "a"));
    assert_eq!((own.len(), turned.len()), (10, 10));
    for ((ratio, q, word), (turned_ratio, turned_q, turned_word)) in own.iter().zip(turned) {
        assert!((ratio * turned_ratio - 1.0).abs() < 1e-9 && *q == turned_q);
        assert_eq!(word.map(Verdict::of_time), turned_word);
    }
    assert_eq!(of(&five(""), "a", "b"), own, "the section adds nothing to the family");
}

#[test]
fn leaving_variants_out_of_a_report_does_not_change_the_other_comparisons() {
    let whole = all_said(&analyse(&five(SECTIONS)));
    let names = ["a", "c", "e"].map(str::to_owned);
    let some = all_said(&analyse_only(&mut five(SECTIONS), &names, &Choices::default()).unwrap());
    assert_eq!(some.len(), 10 * 2 + 10 * 2);
    assert!(some.iter().all(|said| whole.contains(said)));
    let another = Choices { base: Some("b".to_owned()) };
    assert!(analyse_only(&mut five(""), &names, &another).is_err(), "a base that is left out");
}

#[test]
fn every_section_adds_to_the_family_once() {
    let q = |plan: &str| {
        let findings = analyse(&five(plan));
        let found: Vec<f64> = findings.workloads[0]
            .judged_steps()
            .filter_map(|step| {
                Some(step.variant("b")?.to_base.ratio.as_ref()?.inference.as_ref()?.q_difference)
            })
            .collect();
        found
    };
    let (alone, with_sections) = (q(""), q(SECTIONS));
    assert_ne!(alone, with_sections, "a greater family");
    assert_eq!(q(&format!("{SECTIONS}\n[[section]]\ntitle = 'again'\nbase = 'e'")), with_sections);
}

#[test]
fn times_below_the_clock_have_no_ratio_and_are_undecided_for_that_reason() {
    let of = |seconds: f64| {
        let cells = (1..=3).flat_map(|block| {
            [("a", 0.004), ("b", seconds)]
                .map(|(name, time)| cell(block, name, vec![query_seconds_step("q1", &[(time, false)])]))
        });
        let findings = analyse(&run(&["a", "b"], 3, cells.collect()));
        let step = findings.workloads[0].steps.iter().find(|step| step.name == "q1").unwrap();
        let found = step.variant("b").unwrap();
        (found.to_base.ratio.is_some(), found.to_base.verdict, found.to_base.undecided.clone())
    };
    assert_eq!(of(0.000_03), (false, Some(Verdict::Undecided), Some(Undecided::BelowClock)));
    let (has_ratio, _, undecided) = of(0.000_3);
    assert_eq!((has_ratio, undecided), (true, None));
}

#[test]
fn too_few_operations_decide_nothing_however_well_the_blocks_agree() {
    // Two connections run for five seconds, twice as slow as the base, or as fast.
    let of = |base_us: u64, cycle_us: u64| {
        let cells = (1..=5).flat_map(|block| {
            [("a", base_us), ("b", cycle_us)].map(|(name, cycle_us)| {
                // Blocks differ by a thousandth, because a clock has no more digits.
                let cycle_us = cycle_us + u64::from(block) * cycle_us / 1_000;
                cell(block, name, vec![scan_step(&[(cycle_us, 1); 2], (0, 5_000_000))])
            })
        });
        let findings = analyse(&run(&["a", "b"], 5, cells.collect()));
        let step = findings.workloads[0].steps.iter().find(|step| step.name == "scan").unwrap();
        let found = step.variant("b").unwrap();
        (found.to_base.verdict.unwrap(), found.to_base.undecided.clone())
    };
    assert_eq!(of(20_000, 40_000), (Verdict::Slower, None));
    for (base_us, cycle_us) in [(400_000, 800_000), (600_000, 600_000)] {
        let (verdict, why) = of(base_us, cycle_us);
        let Some(Undecided::TooFewOperations(few)) = why else { panic!("{why:?}") };
        assert_eq!(verdict, Verdict::Undecided);
        assert!(few.operations < 20.0 && few.enough_seconds > 5.0, "{few:?}");
    }
}
