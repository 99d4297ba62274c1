//! What a reader must know before any number, worst first.

mod cells;
mod client_wait;
mod control;
mod deferred_counters;
mod empty_deletes;
pub(crate) mod encryption;
pub(crate) mod invalid_runs;
mod sessions;
pub(crate) mod settling;
mod short_steps;

use std::collections::BTreeMap;

use dbdyno_record::{CellEvent, CellRecord, Run, RunEvent, StepEvent, StepRecord};

use crate::again_of;
use crate::compare::verdicts::drift_warnings;
use crate::compare::{changed, factorial, fixed_rate, targets, zero_rate};
use crate::measure::hosts::host_warnings;
use crate::measure::{debt, fsyncs, host_check, outages, reach, reads, steal};
use crate::model::runs::judged_runs;
use crate::model::{Notice, Severity, StepFindings, WorkloadFindings};
use crate::notices::encryption::unequal;
use crate::parity::Parity;
use crate::validity::client_pauses;

/// Own cost of sampling above which it disturbs what it measures, as a share of one core.
const SAMPLER_CORE_SHARE_LIMIT: f64 = 0.005;

/// What the rules look at.
pub(crate) struct Facts<'a> {
    pub(crate) run: &'a Run,
    pub(crate) workloads: &'a [WorkloadFindings],
    pub(crate) base: &'a str,
    pub(crate) parity: Option<&'a Parity>,
    /// Why a factorial design could not be analysed.
    pub(crate) design: Option<String>,
}

impl Facts<'_> {
    fn steps(&self) -> impl Iterator<Item = &StepFindings> {
        self.workloads.iter().flat_map(|workload| &workload.steps)
    }
}

/// A kind of warning.
struct Rule {
    code: &'static str,
    severity: Severity,
    /// The texts of its warnings; none where all is well.
    find: fn(&Facts<'_>) -> Vec<String>,
}

const fn invalid(code: &'static str, find: fn(&Facts<'_>) -> Vec<String>) -> Rule {
    Rule { code, severity: Severity::Invalid, find }
}

const fn caution(code: &'static str, find: fn(&Facts<'_>) -> Vec<String>) -> Rule {
    Rule { code, severity: Severity::Caution, find }
}

/// Every rule, in the order of a report.
const RULES: &[Rule] = &[
    invalid("debug-build", debug_build),
    invalid("unknown-base", unknown_base),
    invalid("cells", |facts| cells::warnings(facts.run)),
    invalid("sessions", |facts| sessions::warnings(facts.run)),
    invalid("damaged-records", |facts| facts.run.warnings.clone()),
    invalid("invalid-steps", |facts| invalid_runs::warnings(facts.workloads)),
    invalid("stalled", |facts| {
        facts.steps().flat_map(|step| zero_rate::warnings(step, facts.base)).collect()
    }),
    invalid("target-missed", |facts| facts.steps().flat_map(targets::warnings).collect()),
    invalid("schedule-missed", |facts| facts.steps().flat_map(fixed_rate::warnings).collect()),
    caution("outage", |facts| {
        steps(facts.run).filter_map(|(cell, step)| outages::warning(cell, step)).collect()
    }),
    caution("client-pause", |facts| {
        steps(facts.run).filter_map(|(cell, step)| client_pauses::warning(cell, step)).collect()
    }),
    caution("short-steps", |facts| short_steps::warnings(facts.workloads)),
    caution("empty-deletes", |facts| empty_deletes::warnings(facts.workloads)),
    caution("settling", |facts| settling::warnings(facts.run)),
    caution("deferred-work", |facts| debt::warnings(facts.workloads)),
    caution("failed-operations", |facts| failed_operations(facts.run)),
    caution("recorded", |facts| recorded_warnings(facts.run)),
    invalid("settings-changed", |facts| changed::warnings(facts.run)),
    caution("encryption", |facts| unequal(facts.run).into_iter().collect()),
    caution("configuration", |facts| facts.parity.and_then(Parity::warning).into_iter().collect()),
    caution("host", |facts| host_warnings(facts.run)),
    caution("fsyncs", |facts| fsyncs::warning(facts.run).into_iter().collect()),
    caution("deferred-counters", |facts| deferred_counters::warning(facts.run).into_iter().collect()),
    caution("client-reach", |facts| reach::warning(facts.workloads).into_iter().collect()),
    caution("sampling", |facts| sampler_cost(facts.workloads).into_iter().collect()),
    caution("host-cpu", |facts| host_check::warning(facts.workloads).into_iter().collect()),
    caution("other-reads", |facts| reads::warning(facts.workloads).into_iter().collect()),
    caution("steal", |facts| steal::warning(facts.workloads).into_iter().collect()),
    caution("client-wait", |facts| client_wait::warning(facts.workloads).into_iter().collect()),
    caution("control", |facts| {
        control::warning(facts.steps(), again_of(&facts.run.manifest, facts.base)).into_iter().collect()
    }),
    caution("drift", |facts| drift_warnings(facts.workloads)),
    caution("one-block", |facts| one_block(facts.run, facts.workloads, facts.base).into_iter().collect()),
    caution("design", |facts| facts.design.iter().map(|why| factorial::warning(why)).collect()),
];

/// The warnings of a run: those that make figures invalid first.
pub(crate) fn notices(facts: &Facts<'_>) -> Vec<Notice> {
    let of_rule = |rule: &'static Rule| {
        let texts = (rule.find)(facts).into_iter();
        texts.map(move |text| Notice { code: rule.code, severity: rule.severity, text })
    };
    let mut all: Vec<Notice> = RULES.iter().flat_map(of_rule).collect();
    all.sort_by_key(|notice| notice.severity);
    all
}

fn debug_build(facts: &Facts<'_>) -> Vec<String> {
    let build = &facts.run.manifest.tool.build;
    let text = || {
        format!(
            "This run was made by a {build} build of dbdyno: its client is slow and its numbers are not worth comparing."
        )
    };
    (build != "release").then(text).into_iter().collect()
}

fn unknown_base(facts: &Facts<'_>) -> Vec<String> {
    let manifest = &facts.run.manifest;
    let is_there = manifest.variants.iter().any(|variant| variant.name == manifest.base);
    let text =
        || format!("The base {:?} is not a variant of this run, so there are no ratios.", manifest.base);
    (!is_there).then(text).into_iter().collect()
}

/// Planned so, or measured so far: what one block shows may be chance.
fn one_block(run: &Run, workloads: &[WorkloadFindings], base: &str) -> Option<String> {
    let chance = "no significance test is possible; a difference may be chance";
    if run.manifest.blocks < 2 {
        return Some(format!("One block: {chance}. Use blocks = 5 or more."));
    }
    let most = workloads.iter().map(|workload| workload.most_ratio_blocks(base)).max();
    (most == Some(1)).then(|| format!("One block of {} was measured: {chance}.", run.manifest.blocks))
}

fn steps(run: &Run) -> impl Iterator<Item = (&CellRecord, &StepRecord)> {
    run.cells.iter().flat_map(|cell| cell.steps.iter().map(move |step| (cell, step)))
}

/// Operations of any kind that ended with an error, in the whole step: background writes that fail make the queries
/// next to them faster, deletes that fail let a table grow.
fn failed_operations(run: &Run) -> Vec<String> {
    let of_kind = |cell: &CellRecord, step: &StepRecord, kind: &str| {
        let intervals = step.intervals.iter().filter(|interval| interval.kind == kind);
        let (done, failed) = intervals.fold((0, 0), |(done, failed), i| (done + i.done, failed + i.failed));
        let share = 100.0 * failed as f64 / (done + failed) as f64;
        (failed > 0).then(|| {
            format!(
                "{failed} {kind} operations failed ({share:.3} %) in block {} {} {}.",
                cell.id.block, cell.id.variant, step.name
            )
        })
    };
    let of_step = |(cell, step)| -> Vec<String> {
        let step: &StepRecord = step;
        step.spec.kinds.iter().filter_map(|kind| of_kind(cell, step, &kind.kind)).collect()
    };
    steps(run).flat_map(of_step).collect()
}

/// Warnings that were recorded while the run went on; one that recurs is reported once, with how often and where first.
fn recorded_warnings(run: &Run) -> Vec<String> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut told: Vec<(&str, String)> = Vec::new();
    let mut tell = |text, place: String| {
        let count = seen.entry(text).or_insert(0);
        *count += 1;
        if *count == 1 {
            told.push((text, place));
        }
    };
    for event in &run.events {
        if let RunEvent::Warning { text, .. } = event
            && !is_over(run, text)
        {
            tell(text, String::new());
        }
    }
    for cell in &run.cells {
        for event in &cell.events {
            if let CellEvent::Warning { text, .. } = event {
                tell(text, cell.id.to_string());
            }
        }
    }
    for (cell, step) in steps(run) {
        for event in &step.events {
            if let StepEvent::Warning { text } = event {
                tell(text, format!("{} {}", cell.id, step.name));
            }
        }
    }
    let place = |text: &str, place: String| match (seen.get(text), place.as_str()) {
        (_, "") => text.to_owned(),
        (Some(2..), _) => format!("{text} ({} times, first in {place})", seen[text]),
        _ => format!("{text} ({place})"),
    };
    told.into_iter().map(|(text, first)| place(text, first)).collect()
}

/// Whether a resume said that it would not run the load of a cell again, and a later one had to: the load is in the cell then.
fn is_over(run: &Run, text: &str) -> bool {
    let is_of = |cell: &&CellRecord| text.starts_with(&format!("the load of {} was done before", cell.id));
    run.cells.iter().find(is_of).is_some_and(|cell| {
        let workload = run.manifest.workloads.iter().find(|workload| workload.name == cell.id.workload);
        let first = workload.and_then(|workload| workload.steps.first());
        first.is_some_and(|first| cell.steps.iter().any(|step| step.name == *first))
    })
}

/// The dearest step of those in which sampling cost more than it may.
fn sampler_cost(workloads: &[WorkloadFindings]) -> Option<String> {
    let over = judged_runs(workloads).filter_map(|found| {
        let share = found.run.cost.sampler_core_share.filter(|share| *share > SAMPLER_CORE_SHARE_LIMIT)?;
        Some((share, found.place()))
    });
    let (share, place) = over.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "Sampling used up to {:.2} % of a core ({place}); more than {:.1} % may disturb the \
         measurement.",
        100.0 * share,
        100.0 * SAMPLER_CORE_SHARE_LIMIT
    ))
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
    fn whatever_is_wrong_is_told_with_its_place() {
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
        This run was made by a debug build of dbdyno: its client is slow and its numbers are not worth comparing.
        Cell failed: block 1 b insert-benchmark: server died: see its log.
        1 of 3 cells did not run.
        events.jsonl: last line cut off
        Invalid, not used: block 1 a l.i0: clock jumped.
        a qr100: background inserts 150/s, at least 190/s of 200/s needed; its queries ran with fewer concurrent writes than planned.
        2 query operations failed (0.249 %) in block 1 a qr100.
        Sampling used up to 1.00 % of a core (block 1 a qr100); more than 0.5 % may disturb the measurement.
        One block: no significance test is possible; a difference may be chance. Use blocks = 5 or more.
        ");
    }

    #[test]
    fn failed_background_writes_are_told_too() {
        let mut failing = query_step(400, 200);
        let insert = failing.intervals.iter_mut().find(|interval| interval.kind == "insert").unwrap();
        (insert.failed, insert.due) = (1, insert.due + 1);
        let run = run(&["a"], 2, vec![cell(1, "a", vec![failing]), cell(2, "a", Vec::new())]);
        assert_snapshot!(warnings_of(&run), @"1 insert operations failed (11.111 %) in block 1 a qr100.");
    }

    #[test]
    fn a_warning_that_recurs_is_told_once() {
        let step = || {
            let mut step = load_step(1_000);
            step.events.push(StepEvent::Warning { text: "no block device".to_owned() });
            step
        };
        let mut run = run(&["a"], 2, vec![cell(1, "a", vec![step()]), cell(2, "a", vec![step()])]);
        run.events.push(RunEvent::Warning { at: String::new(), text: "swap is on".to_owned() });
        assert_snapshot!(warnings_of(&run), @r"
        swap is on
        no block device (2 times, first in block 1 a insert-benchmark l.i0)
        ");
    }

    #[test]
    fn a_load_that_was_run_again_after_all_is_not_said_to_be_elsewhere() {
        let told = |steps| {
            let mut run = run(&["a"], 2, vec![cell(1, "a", steps), cell(2, "a", Vec::new())]);
            let text = "the load of block 1 a insert-benchmark was done before the run was stopped and is not run again";
            run.events.push(RunEvent::Warning { at: String::new(), text: text.to_owned() });
            warnings_of(&run)
        };
        assert!(told(vec![query_step(400, 200)]).contains("is not run again"));
        assert_eq!(told(vec![load_step(1_000), query_step(400, 200)]), "");
    }

    #[test]
    fn a_server_that_changed_and_a_cell_that_never_ended_are_told() {
        let mut second = cell(2, "a", Vec::new());
        second.events.pop();
        if let CellEvent::Server { server, .. } = &mut second.events[1] {
            server.version_text = "a 2.0".to_owned();
        }
        let run = run(&["a"], 2, vec![cell(1, "a", Vec::new()), second]);
        assert_snapshot!(warnings_of(&run), @r#"
        Cell did not end: block 2 a insert-benchmark; dbdyno was stopped in it.
        The server of a changed during the run: "a 1.0", then "a 2.0".
        "#);
    }

    #[test]
    fn a_run_that_has_one_of_its_blocks_so_far_has_one() {
        let steps = |rate| vec![load_step(rate)];
        let mut cells = vec![cell(1, "a", steps(1_000)), cell(1, "b", steps(1_100))];
        let told = |cells: &[CellRecord]| warnings_of(&run(&["a", "b"], 2, cells.to_vec()));
        assert_snapshot!(told(&cells), @r"
        2 of 4 cells did not run.
        One block of 2 was measured: no significance test is possible; a difference may be chance.
        ");
        cells.extend([cell(2, "a", steps(1_000)), cell(2, "b", steps(1_100))]);
        assert_eq!(told(&cells), "");
    }

    #[test]
    fn a_base_that_is_no_variant_is_told() {
        let mut run = run(&["a"], 2, vec![cell(1, "a", Vec::new()), cell(2, "a", Vec::new())]);
        run.manifest.base = "gone".to_owned();
        assert_snapshot!(warnings_of(&run), @r#"The base "gone" is not a variant of this run, so there are no ratios."#);
    }
}
