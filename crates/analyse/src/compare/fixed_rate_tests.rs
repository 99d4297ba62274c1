//! Tests of open loops that kept their schedule, or did not.

use dbdyno_record::{Interval, Run, StepRecord};
use insta::assert_snapshot;

use crate::analyse;
use crate::compare::comparison::{CompareChoices, compare};
use crate::compare::noise::noise;
use crate::compare::rates::*;
use crate::fixtures::{cell, open_loop, run, shown_all, texts};
use crate::model::{Comparison, Findings, KindResult, Latency, Schedule, Side, VariantStep, Verdict};

/// An open loop of 1,000 operations per second. Operations that are not answered wait, and are
/// given up only after the window.
fn overloaded(reached: u64) -> StepRecord {
    let mut step = open_loop(reached, true, 1_000);
    for (interval, second) in step.intervals.iter_mut().zip(1..) {
        (interval.backlog, interval.dropped) = (second * interval.dropped, 0);
    }
    let last = step.intervals.last().unwrap().clone();
    let after = Interval { from_us: 2_000_000, to_us: 2_000_001, due: 0, done: 0, rows: 0, ..last };
    step.intervals.push(Interval { backlog: 0, dropped: after.backlog, ..after });
    step
}

/// A run of `a` and `b` over five blocks.
fn run_of(id: &str, a: &StepRecord, b: &StepRecord) -> Run {
    let cells = (1..=5)
        .flat_map(|block| [cell(block, "a", vec![a.clone()]), cell(block, "b", vec![b.clone()])])
        .collect();
    let mut run = run(&["a", "b"], 5, cells);
    run.manifest.run_id = id.to_owned();
    run
}

fn found(a: &StepRecord, b: &StepRecord) -> Findings {
    analyse(&run_of("x", a, b))
}

fn verdict_of(findings: &Findings) -> Option<Verdict> {
    findings.workloads[0].steps[0].variants[1].to_base.verdict
}

fn compared(base: &Run, new: &Run) -> Comparison {
    let choices = CompareChoices { anyway: true, ..CompareChoices::default() };
    compare(Side { run: base, variant: "a" }, Side { run: new, variant: "b" }, choices).unwrap()
}

#[test]
fn rates_that_the_plan_sets_give_no_verdict_on_speed() {
    let findings = found(&open_loop(1_000, false, 1_000), &open_loop(1_000, false, 1_000_000));
    let step = &findings.workloads[0].steps[0];
    let b = &step.variants[1];
    assert_eq!(b.to_base.verdict, Some(Verdict::OnSchedule));
    assert!(b.to_base.ratio.as_ref().unwrap().inference.is_none(), "it is no comparison among the others");
    let p99_us = |variant: &VariantStep| variant.median(|run| step.response_p99_us_in(run));
    assert!(p99_us(b) > p99_us(&step.variants[0]).map(|p99_us| 900.0 * p99_us));
    assert!(findings.warnings.is_empty(), "{:?}", findings.warnings);
    assert!(noise(&findings).is_empty(), "rates of a plan do not scatter as those of a server");
}

#[test]
fn a_schedule_that_only_the_base_kept_is_missed() {
    for (reached, dropped) in [(476, true), (940, false), (985, true)] {
        let findings = found(&open_loop(1_000, false, 1_000), &open_loop(reached, dropped, 1_000));
        assert_eq!(verdict_of(&findings), Some(Verdict::Missed), "{reached}");
    }
    let findings = found(&open_loop(1_000, false, 1_000), &open_loop(476, true, 1_000));
    assert_snapshot!(texts(&findings).join("\n"), @"schedule-missed [b l.i0] asked: 1000.0, dropped: 0.524, reached: 476.0");
    assert_eq!(
        verdict_of(&found(&open_loop(1_000, false, 1), &open_loop(992, false, 1))),
        Some(Verdict::OnSchedule)
    );
}

#[test]
fn a_server_whose_queue_grows_does_not_keep_the_schedule_however_small_the_shortfall() {
    let base = open_loop(1_000, false, 1_000);
    let findings = found(&base, &overloaded(970));
    assert_eq!(verdict_of(&findings), Some(Verdict::Missed));
    assert_snapshot!(texts(&findings).join("\n"), @"schedule-missed [b l.i0] asked: 1000.0, queued: 0.03, reached: 970.0");
    assert_eq!(verdict_of(&found(&base, &overloaded(992))), Some(Verdict::OnSchedule), "0.8 %");
    // The base does not keep the schedule either, so its rate is the highest that it can reach.
    assert_eq!(verdict_of(&found(&overloaded(700), &overloaded(950))), Some(Verdict::Faster));
}

#[test]
fn rates_below_the_plans_show_what_the_servers_can_reach() {
    let base = open_loop(500, true, 1_000);
    assert_eq!(verdict_of(&found(&base, &open_loop(700, true, 1_000))), Some(Verdict::Faster));
    assert_eq!(verdict_of(&found(&base, &open_loop(300, true, 1_000))), Some(Verdict::Slower));
    assert_eq!(verdict_of(&found(&base, &open_loop(1_000, false, 1_000))), Some(Verdict::Faster));
    let schedules = texts(&found(&base, &base));
    assert_eq!(schedules.iter().filter(|warning| warning.starts_with("schedule-missed")).count(), 2);
}

#[test]
fn one_block_is_enough_for_a_schedule_and_a_standstill_comes_first() {
    let (a, b) = (open_loop(1_000, false, 1_000), open_loop(1_000, false, 1_000));
    let mut run = run_of("x", &a, &b);
    run.cells.truncate(2);
    assert_eq!(verdict_of(&analyse(&run)), Some(Verdict::OnSchedule));
    assert_eq!(verdict_of(&found(&a, &open_loop(0, true, 1_000))), Some(Verdict::Stalled));
}

/// The share of operations that an open loop left undone. The loop had `asked` arrivals per second.
/// `due` operations came due, and `queue_growth` more waited at the window's end than at its
/// beginning.
fn left_share(asked: f64, due: u64, queue_growth: i64, service_mean_us: f64) -> f64 {
    let schedule = Schedule {
        process: "constant".to_owned(),
        asked_per_second: asked,
        due,
        backlog_max: 0,
        queue_growth,
        lag: Default::default(),
    };
    let service = Latency { mean_us: service_mean_us, ..Latency::default() };
    // All allowed connections are open, and an overloaded server keeps all of them busy.
    let kind = KindResult { connections: 64, schedule: Some(schedule), service, ..KindResult::default() };
    of_run(&kind).unwrap()[2]
}

#[test]
fn operations_under_way_at_the_windows_end_are_not_left_undone_if_service_times_explain_them() {
    assert_eq!(
        [left_share(2.0, 20, 3, 1_000.0), left_share(2.0, 20, 0, 1_000.0), left_share(2.0, 20, -9, 1_000.0)],
        [0.0; 3]
    );
    assert_eq!(left_share(2.0, 20, 4, 1_000.0), 0.05);
    // 1,000 operations/s of 50 ms have 50 under way, and 21 more by chance.
    assert_eq!(left_share(1_000.0, 10_000, 71, 50_000.0), 0.0);
    assert!((left_share(1_000.0, 10_000, 371, 50_000.0) - 0.03).abs() < 0.000_1);
    // 64 connections answer 955 of 1,000 operations per second, for a minute.
    assert!(left_share(1_000.0, 60_000, 2_700, 64e6 / 955.0) > 0.04);
}

#[test]
fn a_single_answer_among_as_many_operations_as_connections_keeps_no_schedule() {
    for service_us in [1_000.0, 9e6] {
        assert!(left_share(5.0, 50, 49, service_us) > 0.4, "{service_us}");
    }
}

#[test]
fn comparisons_count_paced_steps_separately() {
    let kept = run_of("x", &open_loop(1_000, false, 1_000), &open_loop(1_000, false, 9_000));
    let late = run_of("y", &open_loop(1_000, false, 1_000), &open_loop(476, true, 9_000));
    for (new, verdict) in [(&kept, Verdict::OnSchedule), (&late, Verdict::Missed)] {
        for base in [&kept, new] {
            let found = compared(base, new);
            let step = &found.steps[0];
            assert_eq!((step.to_base.verdict, step.to_base.inference().is_none()), (Some(verdict), true));
            assert_eq!((step.is_fixed_rate, step.schedule_missed), (true, verdict == Verdict::Missed));
            assert!(found.ratios.is_none(), "rates of a plan are no mean of anything");
        }
    }
    assert_snapshot!(shown_all(&compared(&kept, &kept).notes), @"both-on-schedule [l.i0]");
    assert_snapshot!(shown_all(&compared(&late, &late).notes), @"new-missed-schedule [l.i0]");
}
