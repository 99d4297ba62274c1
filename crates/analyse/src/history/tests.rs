//! Tests of series over runs: where changes are found, what is refused, what is noted.

use dbdyno_record::Run;

use super::*;
use crate::fixtures::{cell, load_step, open_loop, run, shown_all, shown_differences};
use crate::model::{BlockShare, Verdict};
use crate::simulations::{chance, normal};

/// A run of `a` and `b` that have these rates in `l.i0`.
fn night(number: usize, rates: [f64; 2]) -> Run {
    let rate = |at: usize| load_step(rates[at].round() as u64);
    let mut run = run(&["a", "b"], 1, vec![cell(1, "a", vec![rate(0)]), cell(1, "b", vec![rate(1)])]);
    run.manifest.run_id = format!("night-{number}");
    run
}

fn nights(rates: &[[f64; 2]]) -> Vec<Run> {
    rates.iter().enumerate().map(|(number, rates)| night(number, *rates)).collect()
}

fn tried(runs: &[Run], choices: HistoryChoices<'_>) -> Result<History, Error> {
    let values: Vec<RunValues> = runs.iter().map(RunValues::of).collect();
    history(&values.iter().collect::<Vec<_>>(), choices)
}

fn found(runs: &[Run], choices: HistoryChoices<'_>) -> History {
    tried(runs, choices).unwrap()
}

fn not_comparable(error: Error) -> String {
    let Error::NotComparable { differences } = error else { panic!("{error}") };
    shown_differences(&differences)
}

/// Twelve nights with 1 % of noise. From the eighth on, `b` has 90 % of its rate.
fn slower_from_the_eighth() -> Vec<Run> {
    let rates = (0..12).map(|n| {
        let noise = |side| 1.0 + 0.01 * normal(21_u64 + side, n);
        [1e6 * noise(0), 1e6 * noise(1) * if n < 7 { 1.0 } else { 0.9 }]
    });
    nights(&rates.collect::<Vec<_>>())
}

#[test]
fn a_change_is_found_at_its_run_with_its_ratio() {
    let found = found(&slower_from_the_eighth(), HistoryChoices::default());
    let names: Vec<&str> = found.series.iter().map(|series| series.variant.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(found.series[0].changes.is_empty(), "{:?}", found.series[0]);
    let [change] = found.series[1].changes.as_slice() else { panic!("{:?}", found.series[1]) };
    assert_eq!((change.run_id.as_str(), change.verdict), ("night-7", Verdict::Slower));
    assert!((change.ratio - 0.9).abs() < 0.01, "{change:?}");
    assert!(found.series[1].is_worse_now());
}

#[test]
fn a_ratio_does_not_show_a_change_in_the_whole_machine() {
    let mut rates = [[1e6, 9e5]; 12];
    for (n, rates) in rates.iter_mut().enumerate() {
        let machine = if n < 6 { 1.0 } else { 0.8 };
        *rates = [rates[0] * machine, rates[1] * machine * (1.0 + 0.005 * normal(9, n as u64))];
    }
    let runs = nights(&rates);
    let of = |measure| found(&runs, HistoryChoices { measure, ..HistoryChoices::default() });
    assert!(of(Measure::Rate).series.iter().all(Series::is_worse_now));
    let ratio = of(Measure::Ratio);
    assert_eq!(ratio.series.len(), 1);
    assert!(ratio.series[0].changes.is_empty(), "{:?}", ratio.series[0]);
}

#[test]
fn a_run_without_the_step_leaves_a_gap_and_the_change_keeps_its_run() {
    let mut runs = slower_from_the_eighth();
    runs[3].cells.pop();
    let found = found(&runs, HistoryChoices { variant: Some("b"), ..HistoryChoices::default() });
    assert_eq!(found.series[0].values[3], None);
    assert_eq!(found.series[0].changes[0].run_id, "night-7");
}

#[test]
fn a_certain_change_within_the_margin_is_the_same() {
    let choices = HistoryChoices { margin: Some(0.2), ..HistoryChoices::default() };
    let found = found(&slower_from_the_eighth(), choices);
    assert_eq!(found.series[1].changes[0].verdict, Verdict::Same);
    assert!(!found.series[1].is_worse_now());
}

#[test]
fn a_step_has_the_margin_of_the_plan_unless_the_caller_sets_another() {
    let mut runs = slower_from_the_eighth();
    let last = runs.last_mut().unwrap();
    last.manifest.plan.margins.insert("l.*".to_owned(), 0.2);
    let planned = found(&runs, HistoryChoices::default());
    assert_eq!((planned.margin, planned.series[1].margin), (0.02, 0.2));
    assert_eq!(planned.series[1].changes[0].verdict, Verdict::Same);
    let asked = found(&runs, HistoryChoices { margin: Some(0.05), ..HistoryChoices::default() });
    assert_eq!((asked.margin, asked.series[1].margin), (0.05, 0.05));
    assert_eq!(asked.series[1].changes[0].verdict, Verdict::Slower);
}

#[test]
fn ratios_to_another_base_are_no_series() {
    let mut runs = slower_from_the_eighth();
    runs[5].manifest.plan.base = Some("b".to_owned());
    let choices = HistoryChoices { measure: Measure::Ratio, ..HistoryChoices::default() };
    let refused = tried(&runs, choices).unwrap_err();
    insta::assert_snapshot!(not_comparable(refused), @"RatioBase a and b");
    let anyway = found(&runs, HistoryChoices { anyway: true, ..choices });
    insta::assert_snapshot!(shown_all(&anyway.notes), @"unlike-first difference: RatioBase a and b, run: night-5");
    assert_eq!(found(&runs, HistoryChoices::default()).notes, [], "rates have no base");
}

/// A run of `a` and `b` in three blocks. `a` always has the same rate, and `b` has these.
fn night_of_blocks(number: usize, rates: [u64; 3]) -> Run {
    let of_block = |(block, rate)| {
        [cell(block, "a", vec![load_step(1_000_000)]), cell(block, "b", vec![load_step(rate)])]
    };
    let mut run = run(&["a", "b"], 3, (1..).zip(rates).flat_map(of_block).collect());
    run.manifest.run_id = format!("night-{number}");
    run
}

/// Nine nights with rates of about a million, then the nights given.
fn nights_then(newest: &[[u64; 3]]) -> Vec<Run> {
    let rate = |n: u64| (1e6 * (0.01 * normal(5, n)).exp()) as u64;
    let nights = (0..9).map(|n| [rate(n); 3]).chain(newest.iter().copied());
    nights.enumerate().map(|(number, rates)| night_of_blocks(number, rates)).collect()
}

#[test]
fn a_newest_run_that_stands_still_is_reported_and_is_worse() {
    let runs = nights_then(&[[1_000_000, 0, 0]]);
    for measure in [Measure::Rate, Measure::Ratio] {
        let found = found(&runs, HistoryChoices { measure, variant: Some("b"), ..HistoryChoices::default() });
        let share = BlockShare { place: "b l.i0".to_owned(), blocks: 2, of: 3 };
        let note = Warning::new(Code::DroppedToZero).with("run", "night-9").with("steps", vec![share]);
        assert_eq!(found.notes, [note]);
        let series = &found.series[0];
        assert_eq!((series.values[9], series.newest), (Some(0.0), Some(Lapse::ZeroRate)));
        assert!(series.changes.is_empty() && series.is_worse_now(), "{series:?}");
    }
}

#[test]
fn nights_at_rate_zero_are_a_level_of_their_own() {
    let nights = [[1_000_000, 0, 0]; 5].into_iter().chain([[960_000; 3]]).collect::<Vec<_>>();
    let found = found(&nights_then(&nights), HistoryChoices::default());
    let [change] = found.series[1].changes.as_slice() else { panic!("{:?}", found.series[1]) };
    assert_eq!((change.at, change.after, change.ratio, change.verdict), (9, 0.0, 0.0, Verdict::Slower));
    assert_eq!((found.notes.len(), found.series[1].newest), (5, None), "{:?}", found.notes);
}

#[test]
fn one_night_at_rate_zero_hides_no_change_of_the_others() {
    let mut rates = [[900_000; 3]; 12];
    for (n, rates) in rates.iter_mut().enumerate() {
        *rates = [(9e5 * (0.01 * normal(6, n as u64)).exp()) as u64; 3];
    }
    rates[5][1] = 0;
    let found =
        found(&nights_then(&rates), HistoryChoices { variant: Some("b"), ..HistoryChoices::default() });
    let [change] = found.series[0].changes.as_slice() else { panic!("{:?}", found.series[0]) };
    assert_eq!((change.at, change.verdict), (9, Verdict::Slower));
    assert!((change.ratio - 0.9).abs() < 0.01, "{change:?}");
}

#[test]
fn a_newest_run_without_a_valid_value_is_worse_where_its_plan_has_the_step() {
    let mut runs = nights_then(&[[1_000_000; 3]]);
    for cell in runs[9].cells.iter_mut().filter(|cell| cell.id.variant == "b") {
        cell.steps.clear();
    }
    let of = |runs: &[Run]| found(runs, HistoryChoices { anyway: true, ..HistoryChoices::default() }).series;
    let series = of(&runs);
    assert_eq!([series[0].newest, series[1].newest], [None, Some(Lapse::NoValue)]);
    assert!(!series[0].is_worse_now() && series[1].is_worse_now());
    runs[9].manifest.workloads[0].steps.clear();
    assert_eq!(of(&runs)[1].newest, None);
}

#[test]
fn noise_has_a_change_in_5_percent_of_histories_at_most() {
    // A history has two series, as one family: a false change in either counts.
    let runs = nights(&[[1e6, 1e6]; 15]);
    let choices = HistoryChoices::default();
    let template = found(&runs, choices);
    let studies = 2_000;
    let with_change = (0..studies).filter(|study| {
        let mut series = template.series.clone();
        for (side, series) in series.iter_mut().enumerate() {
            let noise = |n| Some(1e6 * (0.01 * normal(1_000 + 2 * study + side as u64, n)).exp());
            series.values = (0..15).map(noise).collect();
            series.margin = 0.0;
        }
        judge(&mut series.iter_mut().collect::<Vec<_>>(), &template.runs, 7 + study);
        series.iter().any(|series| !series.changes.is_empty())
    });
    let share = with_change.count() as f64 / studies as f64;
    assert!(share <= 0.05 + chance(0.05, studies), "{share} of {studies}");
}

#[test]
fn too_few_runs_unknown_variants_and_unlike_runs_are_refused() {
    let mut runs = slower_from_the_eighth();
    let fail = |runs: &[Run], choices| tried(runs, choices).unwrap_err();
    insta::assert_snapshot!(fail(&runs[..1], HistoryChoices::default()), @"a history has two runs or more, not 1: name more runs");
    let other = HistoryChoices { variant: Some("c"), ..HistoryChoices::default() };
    insta::assert_snapshot!(fail(&runs, other), @r#"run night-11 has no variant named "c"; its variants are: a, b"#);
    runs[4].manifest.plan.seed = 8;
    insta::assert_snapshot!(not_comparable(fail(&runs, HistoryChoices::default())), @"Seed 7 and 8");
    let anyway = found(&runs, HistoryChoices { anyway: true, ..HistoryChoices::default() });
    insta::assert_snapshot!(shown_all(&anyway.notes), @"unlike-first difference: Seed 7 and 8, run: night-4");
}

#[test]
fn a_new_kernel_or_dbdyno_is_reported_with_the_run_that_it_came_with() {
    let mut runs = slower_from_the_eighth();
    for run in &mut runs[7..] {
        run.manifest.host.kernel = "6.12.0".to_owned();
    }
    runs[9].manifest.tool.version = "0.2.0".to_owned();
    let notes = found(&runs, HistoryChoices::default()).notes;
    insta::assert_snapshot!(shown_all(&notes), @r"
    changed-with-run changes: Kernel 6.1.0 and 6.12.0, run: night-7
    changed-with-run changes: Dbdyno 0.1.0 (abc) and 0.2.0 (abc), run: night-9
    changed-with-run changes: Dbdyno 0.2.0 (abc) and 0.1.0 (abc), run: night-10
    ");
}

#[test]
fn too_few_runs_to_find_any_change_are_reported_with_the_smallest_number_that_can() {
    let runs = slower_from_the_eighth();
    let few = found(&runs[..4], HistoryChoices::default());
    insta::assert_snapshot!(shown_all(&few.notes), @"too-few-runs min_runs: 9, min_runs_of_all: 8, runs: 4, series: 2");
    let one = HistoryChoices { variant: Some("b"), ..HistoryChoices::default() };
    insta::assert_snapshot!(shown_all(&found(&runs[..7], one).notes), @"too-few-runs min_runs: 8, runs: 7, series: 1");
    let all = found(&runs, HistoryChoices::default());
    assert_eq!((all.notes, all.detectable.min_newest), (Vec::new(), Some(3)));
}

/// Nights of an open loop that `a` answers in about 1 ms. `b` answers it in 500 ms from the eighth
/// night on.
fn nights_with_a_schedule() -> Vec<Run> {
    let night = |n: u64| {
        let p99_us = |side: u64, level: f64| (level * (0.01 * normal(30 + side, n)).exp()) as u64;
        let of_b = p99_us(1, if n < 7 { 1e3 } else { 500e3 });
        let cells = (1..=2).flat_map(|block| {
            let of = |name, p99_us| cell(block, name, vec![open_loop(1_000, false, p99_us)]);
            [of("a", p99_us(0, 1e3)), of("b", of_b)]
        });
        let mut run = run(&["a", "b"], 2, cells.collect());
        run.manifest.run_id = format!("night-{n}");
        run
    };
    (0..12).map(night).collect()
}

#[test]
fn where_the_rate_is_the_plans_response_times_are_followed() {
    let runs = nights_with_a_schedule();
    let of = |measure| found(&runs, HistoryChoices { measure, ..HistoryChoices::default() });
    let rates = of(Measure::Rate);
    assert_eq!(shown_all(&rates.notes), "times-followed [a l.i0, b l.i0]");
    let [a, b] = rates.series.as_slice() else { panic!("{:?}", rates.series) };
    assert_eq!(
        (a.follows, a.rate_label.as_str(), a.is_worse_now()),
        (Followed::ResponseP99, "p99 µs", false)
    );
    let [change] = b.changes.as_slice() else { panic!("{b:?}") };
    assert_eq!((change.run_id.as_str(), change.verdict), ("night-7", Verdict::Slower));
    assert!((change.ratio / 500.0 - 1.0).abs() < 0.02 && b.is_worse_now(), "{change:?}");
    // The ratio of the response times to the base's in the same block.
    let ratios = of(Measure::Ratio);
    let [b] = ratios.series.as_slice() else { panic!("{:?}", ratios.series) };
    let [change] = b.changes.as_slice() else { panic!("{b:?}") };
    assert!((change.after - 500.0).abs() < 15.0 && change.verdict == Verdict::Slower, "{change:?}");
}

#[test]
fn p99_is_followed_next_to_the_rate_and_changes_by_itself() {
    // The loops answer half of what is due and drop the rest. From the eighth night on they answer
    // later.
    let mut runs = nights_with_a_schedule();
    for (number, run) in (0_u64..).zip(&mut runs) {
        let wait_us = if number < 7 { 900_000 } else { 990_000 } + 500 * (number % 3);
        run.cells.iter_mut().for_each(|cell| cell.steps = vec![open_loop(500, true, wait_us)]);
    }
    let found = found(&runs, HistoryChoices { variant: Some("b"), ..HistoryChoices::default() });
    let [rate, p99] = found.series.as_slice() else { panic!("{:?}", found.series) };
    assert_eq!((rate.follows, rate.is_secondary, rate.is_worse_now()), (Followed::Rate, false, false));
    assert_eq!((p99.follows, p99.is_secondary), (Followed::ResponseP99, true));
    let [change] = p99.changes.as_slice() else { panic!("{p99:?}") };
    assert_eq!((change.run_id.as_str(), change.verdict), ("night-7", Verdict::Slower));
    assert!(p99.is_worse_now() && (change.ratio - 1.1).abs() < 0.01, "{change:?}");
    assert_eq!(found.detectable.series, 1, "each family by itself");
}

#[test]
fn nights_that_miss_the_schedule_and_stand_still_are_slower_in_response_times_too() {
    let mut runs = nights_with_a_schedule();
    for run in &mut runs[7..] {
        for cell in run.cells.iter_mut().filter(|cell| cell.id.variant == "b") {
            cell.steps = vec![open_loop(if cell.id.block == 1 { 0 } else { 500 }, true, 900_000)];
        }
    }
    let found = found(&runs, HistoryChoices { variant: Some("b"), ..HistoryChoices::default() });
    let series = &found.series[0];
    assert_eq!((series.values[11], series.newest), (Some(0.0), Some(Lapse::ZeroRate)));
    for run in &mut runs[7..] {
        for cell in run.cells.iter_mut().filter(|cell| cell.id.variant == "b") {
            cell.steps = vec![open_loop(500, true, 900_000)];
        }
    }
    let found = self::found(&runs, HistoryChoices { variant: Some("b"), ..HistoryChoices::default() });
    assert_eq!(found.series[0].changes[0].verdict, Verdict::Slower);
    // A loop that never kept its schedule shows what the server can do.
    for run in &mut runs {
        run.cells.iter_mut().for_each(|cell| cell.steps = vec![open_loop(500, true, 900_000)]);
    }
    let saturated = self::found(&runs, HistoryChoices::default());
    assert!(
        saturated.series.iter().all(|series| (series.follows == Followed::Rate) != series.is_secondary)
            && saturated.notes.is_empty()
    );
}

#[test]
fn a_run_that_is_still_going_on_is_left_out_with_a_note() {
    let mut runs = nights_then(&[[1_000_000; 3]]);
    let newest = runs.last_mut().unwrap();
    for cell in newest.cells.iter_mut().filter(|cell| cell.id.variant == "b") {
        cell.steps.clear();
    }
    newest.is_going_on = true;
    let reported = found(&runs, HistoryChoices::default());
    assert_eq!((reported.runs.len(), reported.series[1].values.len()), (9, 9));
    assert!(!reported.series.iter().any(Series::is_worse_now), "{:?}", reported.series);
    assert_eq!(shown_all(&reported.notes), "left-out-going-on run: night-9");
    insta::assert_snapshot!(tried(&runs[8..], HistoryChoices::default()).unwrap_err(), @"a history has two runs or more, not 1 (and 1 still going on, left out until it has ended): name more runs");
}

/// The test uses the smallest number of runs that `Detectable` gives, and one run fewer. The two
/// levels are as far apart as they can be.
#[test]
fn a_slower_newest_level_is_found_from_the_smallest_number_of_runs_on() {
    let with = |fast: usize, slow: usize| {
        let rate = |n: usize| (if n < fast { 1e6 } else { 1e5 }) + (n * n) as f64;
        let runs = nights(&(0..fast + slow).map(|n| [rate(n), 1e6 + n as f64]).collect::<Vec<_>>());
        let choices = HistoryChoices { variant: Some("a"), ..HistoryChoices::default() };
        let found = found(&runs, choices);
        (found.detectable.min_newest, found.series[0].is_worse_now())
    };
    assert_eq!(with(7, 2), (Some(3), false));
    assert_eq!(with(7, 3), (Some(2), true));
    assert_eq!(with(12, 2), (Some(2), true));
    assert_eq!(with(12, 1), (Some(2), false));
}

#[test]
fn ratios_need_a_variant_other_than_the_base() {
    let ratios = HistoryChoices { measure: Measure::Ratio, ..HistoryChoices::default() };
    let refused = |runs: &[Run], choices| tried(runs, choices).unwrap_err();
    let mut runs = slower_from_the_eighth();
    let of_base = HistoryChoices { variant: Some("a"), ..ratios };
    insta::assert_snapshot!(refused(&runs, of_base), @"a is the base of the ratios and has none itself: name another variant, or leave out --ratio");
    for run in &mut runs {
        run.manifest.variants.truncate(1);
        run.cells.truncate(1);
    }
    insta::assert_snapshot!(refused(&runs, ratios), @"the runs have no variant other than the base a, so there are no ratios: leave out --ratio");
}

#[test]
fn only_a_step_that_had_a_rate_before_can_lapse() {
    let of = |values: &[Option<f64>]| Lapse::of_newest(values, true);
    assert_eq!(of(&[Some(9.0), Some(8.0), Some(0.0)]), Some(Lapse::ZeroRate));
    assert_eq!(of(&[Some(9.0), None, None]), Some(Lapse::NoValue));
    assert_eq!(
        [of(&[Some(9.0), None, Some(1.0)]), of(&[Some(0.0), Some(0.0)]), of(&[None, None])],
        [None; 3]
    );
    assert_eq!(Lapse::of_newest(&[Some(9.0), None], false), None, "its plan no longer has the step");
}

#[test]
fn a_note_does_not_name_hundreds_of_steps() {
    let zero_rates = (0..12).map(|step| BlockShare { place: format!("b s{step}"), blocks: 1, of: 1 });
    let zero_rates: Vec<BlockShare> = zero_rates.collect();
    let note = Warning::new(Code::DroppedToZero).with("run", "night-3").with("more", 2_u32);
    let note = note.with("steps", zero_rates[..MAX_NAMED_STEPS].to_vec());
    assert_eq!(zero_rate_warning("night-3", zero_rates), Some(note));
    assert_eq!(zero_rate_warning("night-3", Vec::new()), None);
}
