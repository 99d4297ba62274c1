//! Finds all warnings that a reader needs before any number, worst first. Each rule is a function.
//! Most rules are in the files of this folder, by subject.

mod cells;
mod host;
pub(crate) mod servers;
pub(crate) mod steps;

use std::collections::BTreeMap;

use dbdyno_record::{CellEvent, CellRecord, Run, RunEvent, StepEvent, StepRecord, is_load_kept};

use crate::compare::{by_machine, comparability, noise, rates, verdicts};
use crate::control_of;
use crate::measure::{hosts, outages, server_state};
use crate::model::Severity::{Caution, Invalid};
use crate::model::steps::judged_runs;
use crate::model::{Code, DesignFault, Severity, StepFindings, Warning, WorkloadFindings};
use crate::parity::Parity;
use crate::validity::{client, throttled};

/// Cost of dbdyno's own sampling, as a share of one core, above which it disturbs what it measures.
const SAMPLER_CORE_SHARE_LIMIT: f64 = 0.005;

pub(crate) struct Facts<'a> {
    pub(crate) run: &'a Run,
    pub(crate) workloads: &'a [WorkloadFindings],
    pub(crate) base: &'a str,
    pub(crate) parity: Option<&'a Parity>,
    /// Why a factorial design could not be analysed.
    pub(crate) design: Option<DesignFault>,
}

impl Facts<'_> {
    fn steps(&self) -> impl Iterator<Item = &StepFindings> {
        self.workloads.iter().flat_map(|workload| &workload.steps)
    }
}

/// A rule: what its warnings do to the figures, and the function that finds them. It finds none
/// where all is well.
type Rule = (Severity, fn(&Facts<'_>) -> Vec<Warning>);

/// Every rule, in the order of a report.
const RULES: &[Rule] = &[
    (Invalid, debug_build),
    (Invalid, unknown_base),
    (Invalid, |facts| cells::cell_warnings(facts.run)),
    (Invalid, |facts| cells::session_warnings(facts.run)),
    (Invalid, damaged_records),
    (Invalid, |facts| steps::invalid_run_warnings(facts.workloads)),
    (Invalid, |facts| facts.steps().flat_map(|step| rates::zero_rate_warnings(step, facts.base)).collect()),
    (Invalid, |facts| facts.steps().flat_map(rates::target_warnings).collect()),
    (Invalid, |facts| facts.steps().flat_map(rates::fixed_rate_warnings).collect()),
    (Caution, |facts| steps(facts.run).filter_map(|(cell, step)| outages::warning(cell, step)).collect()),
    (Caution, |facts| {
        steps(facts.run).filter_map(|(cell, step)| client::pause_warning(cell, step)).collect()
    }),
    (Caution, |facts| servers::cache_warnings(facts.run, facts.workloads, |_| true)),
    (Caution, |facts| steps(facts.run).filter_map(|(cell, step)| throttled::warning(cell, step)).collect()),
    (Caution, |facts| verdicts::foreign_load_warning(facts.steps()).into_iter().collect()),
    (Caution, |facts| host::clock_step_warning(facts.run).into_iter().collect()),
    (Caution, |facts| steps::short_step_warnings(facts.workloads)),
    (Caution, |facts| steps::empty_write_warnings(facts.workloads)),
    (Caution, |facts| servers::cold_warnings(facts.run, facts.workloads)),
    (Caution, |facts| servers::settling_warnings(facts.run)),
    (Caution, |facts| server_state::deferred_work_warnings(facts.workloads)),
    (Caution, |facts| failed_operations(facts.run)),
    (Caution, |facts| recorded(facts.run)),
    (Invalid, |facts| comparability::change_warnings(facts.run)),
    (Caution, |facts| servers::encryption_warning(facts.run).into_iter().collect()),
    (Caution, configuration),
    (Caution, |facts| hosts::warnings(facts.run)),
    (Caution, |facts| servers::uncounted_syncs_warning(facts.run).into_iter().collect()),
    (Caution, |facts| client::headroom_warning(facts.workloads).into_iter().collect()),
    (Caution, |facts| sampler_cost(facts.workloads).into_iter().collect()),
    (Caution, |facts| host::host_check_warning(facts.workloads).into_iter().collect()),
    (Caution, |facts| host::share_warnings(facts.workloads)),
    (Caution, |facts| {
        steps::control_warning(facts.steps(), control_of(&facts.run.manifest, facts.base))
            .into_iter()
            .collect()
    }),
    (Caution, |facts| noise::drift_warnings(facts.workloads)),
    (Caution, |facts| by_machine::warnings(facts.workloads)),
    (Caution, |facts| one_block(facts.run, facts.workloads, facts.base).into_iter().collect()),
    (Caution, |facts| {
        facts.design.iter().map(|why| Warning::new(Code::NoDesign).with("reason", why.clone())).collect()
    }),
];

/// The warnings of a run. Those that make figures invalid come first.
pub(crate) fn warnings(facts: &Facts<'_>) -> Vec<Warning> {
    let of_rule = |(severity, find): &Rule| {
        let severity = *severity;
        find(facts).into_iter().map(move |warning| Warning { severity, ..warning })
    };
    let mut all: Vec<Warning> = RULES.iter().flat_map(of_rule).collect();
    all.sort_by_key(|warning| warning.severity);
    all
}

fn debug_build(facts: &Facts<'_>) -> Vec<Warning> {
    let build = facts.run.manifest.tool.build.as_str();
    let warning = || Warning::new(Code::DebugBuild).with("build", build);
    (build != "release").then(warning).into_iter().collect()
}

fn unknown_base(facts: &Facts<'_>) -> Vec<Warning> {
    let manifest = &facts.run.manifest;
    let is_there = manifest.variants.iter().any(|variant| variant.name == manifest.base());
    let warning = || Warning::new(Code::UnknownBase).at(manifest.base());
    (!is_there).then(warning).into_iter().collect()
}

fn damaged_records(facts: &Facts<'_>) -> Vec<Warning> {
    let texts = facts.run.warnings.iter();
    texts.map(|text| Warning::new(Code::DamagedRecord).with("quoted", text.as_str())).collect()
}

fn configuration(facts: &Facts<'_>) -> Vec<Warning> {
    let classes = facts.parity.map_or_else(Vec::new, Parity::unlike);
    let warning = || Warning::new(Code::Configuration).with("classes", classes.join(", "));
    (!classes.is_empty()).then(warning).into_iter().collect()
}

/// A warning where only one block was planned, or measured so far, because what one block shows may
/// be chance.
fn one_block(run: &Run, workloads: &[WorkloadFindings], base: &str) -> Option<Warning> {
    if run.manifest.plan.blocks < 2 {
        return Some(Warning::new(Code::OneBlock));
    }
    let most = workloads.iter().map(|workload| workload.max_ratio_blocks(base)).max();
    (most == Some(1)).then(|| Warning::new(Code::OneBlockMeasured).with("planned", run.manifest.plan.blocks))
}

fn steps(run: &Run) -> impl Iterator<Item = (&CellRecord, &StepRecord)> {
    run.cells.iter().flat_map(|cell| cell.steps.iter().map(move |step| (cell, step)))
}

/// Operations of any kind that ended with an error, in the whole step. Background writes that fail
/// make the queries next to them faster, and deletes that fail let a table grow.
fn failed_operations(run: &Run) -> Vec<Warning> {
    let of_kind = |cell: &CellRecord, step: &StepRecord, kind: &str| {
        let intervals = step.intervals.iter().filter(|interval| interval.kind == kind);
        let (done, failed) = intervals.fold((0, 0), |(done, failed), i| (done + i.done, failed + i.failed));
        (failed > 0).then(|| {
            Warning::new(Code::FailedOperations)
                .at(format!("block {} {} {}", cell.id.block, cell.id.variant, step.name))
                .with("kind", kind)
                .with("failed", failed)
                .with("share", failed as f64 / (done + failed) as f64)
        })
    };
    let of_step = |(cell, step)| -> Vec<Warning> {
        let step: &StepRecord = step;
        step.spec.kinds.iter().filter_map(|kind| of_kind(cell, step, &kind.kind)).collect()
    };
    steps(run).flat_map(of_step).collect()
}

/// Warnings that were recorded during the run. A warning that recurs is reported once, with its
/// count and with the place where it first occurred.
fn recorded(run: &Run) -> Vec<Warning> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reported: Vec<(&str, String)> = Vec::new();
    let mut add = |text, place: String| {
        let count = seen.entry(text).or_insert(0);
        *count += 1;
        if *count == 1 {
            reported.push((text, place));
        }
    };
    for event in &run.events {
        if let RunEvent::Warning { text, .. } = event
            && !is_over(run, text)
        {
            add(text, String::new());
        }
    }
    for cell in &run.cells {
        for event in &cell.events {
            if let CellEvent::Warning { text, .. } = event {
                add(text, cell.id.to_string());
            }
        }
    }
    for (cell, step) in steps(run) {
        for event in &step.events {
            if let StepEvent::Warning { text } = event {
                add(text, format!("{} {}", cell.id, step.name));
            }
        }
    }
    let warning = |(text, place): (&str, String)| {
        let warning = match seen.get(text) {
            Some(&times @ 2..) => Warning::new(Code::RecordedOften).with("times", times),
            _ => Warning::new(Code::Recorded),
        };
        let warning = warning.with("quoted", text);
        if place.is_empty() { warning } else { warning.at(place) }
    };
    reported.into_iter().map(warning).collect()
}

/// Whether a warning no longer holds. The warning says that a resumed run does not repeat the load
/// of a cell, whose records are therefore elsewhere. It is wrong where a later session had to
/// repeat the load after all.
fn is_over(run: &Run, text: &str) -> bool {
    run.cells.iter().find(|cell| is_load_kept(text, &cell.id)).is_some_and(|cell| {
        let workload = run.manifest.workloads.iter().find(|workload| workload.name == cell.id.workload);
        let first = workload.and_then(|workload| workload.steps.first());
        first.is_some_and(|first| cell.steps.iter().any(|step| step.name == *first))
    })
}

/// A warning with the step in which sampling cost most, among the steps in which it cost more than
/// the limit.
fn sampler_cost(workloads: &[WorkloadFindings]) -> Option<Warning> {
    let over = judged_runs(workloads).filter_map(|found| {
        let share = found.run.cost.sampler_core_share.filter(|share| *share > SAMPLER_CORE_SHARE_LIMIT)?;
        Some((share, found.place()))
    });
    let (share, place) = over.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let warning = Warning::new(Code::Sampling).at(place).with("share", share);
    Some(warning.with("limit", SAMPLER_CORE_SHARE_LIMIT))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, failed_cell, load_step, query_step, run, series, texts};

    fn warnings_of(run: &Run) -> String {
        texts(&analyse(run)).join("\n")
    }

    #[test]
    fn a_sound_run_of_several_blocks_has_nothing_to_warn_of() {
        let steps = || vec![load_step(1_000), query_step(400, 200)];
        assert_eq!(warnings_of(&run(&["a"], 2, vec![cell(1, "a", steps()), cell(2, "a", steps())])), "");
    }

    #[test]
    fn each_problem_is_reported() {
        let mut invalid = load_step(1_000);
        invalid.events.push(StepEvent::Invalid { reason: "clock jumped.".to_owned() });
        let mut failing = query_step(400, 150);
        failing.intervals[0].failed = 2;
        failing.intervals[0].due += 2;
        failing.counters = series("sampler", &["cpu_us"], &[(0, vec![0]), (2_000_000, vec![20_000])]);
        let cells = vec![
            cell(1, "a", vec![invalid, failing]),
            failed_cell(1, "b", vec![load_step(900)], "server died: see its log."),
        ];
        let mut run = run(&["a", "b", "c"], 1, cells);
        run.manifest.tool.build = "debug".to_owned();
        run.warnings.push("events.jsonl: last line cut off".to_owned());
        assert_snapshot!(warnings_of(&run), @r"
        debug-build build: debug
        cell-failed [block 1 b insert-benchmark] message: server died: see its log
        cells-missing missing: 1, planned: 3
        damaged-record quoted: events.jsonl: last line cut off
        invalid-step [block 1 a l.i0] reasons: (quoted text: clock jumped)
        target-missed [a qr100] needed: 190.0, rate: 150.0, target: 200.0
        short-steps [block 1 b l.i0] needed: 20.0, operations: 18.0, runs: 1, seconds: 2.2222222222222223
        failed-operations [block 1 a qr100] failed: 2, kind: query, share: 0.0024937655860349127
        sampling [block 1 a qr100] limit: 0.005, share: 0.01
        one-block
        ");
    }

    #[test]
    fn failed_background_writes_are_reported_too() {
        let mut failing = query_step(400, 200);
        let insert = failing.intervals.iter_mut().find(|interval| interval.kind == "insert").unwrap();
        (insert.failed, insert.due) = (1, insert.due + 1);
        let run = run(&["a"], 2, vec![cell(1, "a", vec![failing]), cell(2, "a", Vec::new())]);
        assert_snapshot!(warnings_of(&run), @"failed-operations [block 1 a qr100] failed: 1, kind: insert, share: 0.1111111111111111");
    }

    #[test]
    fn a_warning_that_recurs_is_reported_once() {
        let step = || {
            let mut step = load_step(1_000);
            step.events.push(StepEvent::Warning { text: "no block device".to_owned() });
            step
        };
        let mut run = run(&["a"], 2, vec![cell(1, "a", vec![step()]), cell(2, "a", vec![step()])]);
        run.events.push(RunEvent::Warning { at: String::new(), text: "swap is on".to_owned() });
        assert_snapshot!(warnings_of(&run), @r"
        recorded quoted: swap is on
        recorded-often [block 1 a insert-benchmark l.i0] quoted: no block device, times: 2
        ");
    }

    #[test]
    fn a_load_that_was_repeated_is_not_reported_as_recorded_elsewhere() {
        let reported = |steps, text: &str| {
            let mut run = run(&["a"], 2, vec![cell(1, "a", steps), cell(2, "a", Vec::new())]);
            run.events.push(RunEvent::Warning { at: String::new(), text: text.to_owned() });
            warnings_of(&run)
        };
        let text = dbdyno_record::load_kept(&cell(1, "a", Vec::new()).id, "x");
        assert!(reported(vec![query_step(400, 200)], &text).contains("are only in x"));
        assert_eq!(reported(vec![load_step(1_000), query_step(400, 200)], &text), "");
    }

    #[test]
    fn a_server_that_changed_and_a_cell_that_never_ended_are_reported() {
        let mut second = cell(2, "a", Vec::new());
        second.events.pop();
        if let CellEvent::Server { server, .. } = &mut second.events[1] {
            server.version_text = "a 2.0".to_owned();
        }
        let run = run(&["a"], 2, vec![cell(1, "a", Vec::new()), second]);
        assert_snapshot!(warnings_of(&run), @r"
        cell-unfinished [block 2 a insert-benchmark]
        server-changed [a] first: a 1.0, other: a 2.0
        ");
    }

    #[test]
    fn a_run_of_which_one_block_is_measured_so_far_has_a_warning() {
        let steps = |rate| vec![load_step(rate)];
        let mut cells = vec![cell(1, "a", steps(1_000)), cell(1, "b", steps(1_100))];
        let reported = |cells: &[CellRecord]| warnings_of(&run(&["a", "b"], 2, cells.to_vec()));
        assert_snapshot!(reported(&cells), @r"
        cells-missing missing: 2, planned: 4
        one-block-measured planned: 2
        ");
        cells.extend([cell(2, "a", steps(1_000)), cell(2, "b", steps(1_100))]);
        assert_eq!(reported(&cells), "");
    }

    #[test]
    fn a_base_that_is_no_variant_is_reported() {
        let mut run = run(&["a"], 2, vec![cell(1, "a", Vec::new()), cell(2, "a", Vec::new())]);
        run.manifest.plan.base = Some("gone".to_owned());
        assert_snapshot!(warnings_of(&run), @"unknown-base [gone]");
    }
}
