//! Measures a server's state before, during and after a step. The server's deferred work is read
//! before and after the step, to find how much of it the step left to later steps. For a server
//! whose memory has a limit, there are also figures for its own memory, for the page cache of its
//! files, and for how often the limit was hit.

use crate::model::{
    Code, DeferredLevel, DeferredWork, GroupMemory, StepFindings, StepRun, Warning, WorkLeft,
    WorkloadFindings,
};
use crate::window::WindowSummary;
use crate::window::counters::{Counters, at_end, highest};

/// Each kind of deferred work has a level: the amount that waits to be done. A level in bytes, such
/// as that of dirty pages, is not reported if it grew by this or less. An idle server's levels grow
/// too.
const MIN_BYTES: i64 = 1 << 20;
/// A level that is a count, such as the history list length, is not reported if it grew by this or
/// less.
const MIN_COUNT: i64 = 1_000;
/// Smallest reported growth of a level in bytes, as a share of what was written. A smaller growth
/// hardly slows later steps.
const REPORTED_SHARE: f64 = 0.05;
/// Number of steps that a warning names. The report's tables have all of them.
const MAX_NAMED_STEPS: usize = 3;

/// Whether a level is in bytes. Only such a level can be compared with the bytes written.
pub fn is_in_bytes(level: &str) -> bool {
    level.ends_with("_bytes")
}

impl DeferredLevel {
    /// How much the step added. It is negative when the server did more deferred work in the step
    /// than the step added.
    pub fn more(&self) -> i64 {
        self.after - self.before
    }

    pub fn is_bytes(&self) -> bool {
        is_in_bytes(&self.name)
    }
}

impl DeferredWork {
    /// How much a level grew, as a share of what was written.
    pub fn share_of_written(&self, level: &DeferredLevel) -> Option<f64> {
        let written = self.written_bytes.filter(|bytes| *bytes > 0)?;
        level.is_bytes().then(|| level.more() as f64 / written as f64)
    }

    /// The part of the deferred work that was still there when the next step began. A restore, a
    /// restart or a cleanup between the two steps may have removed some of it. Where the next
    /// step's own sample is missing, all of it counts.
    fn left_to(&self, next: &StepRun) -> Self {
        let found = next.deferred_work.as_ref().map_or(&[][..], |deferred_work| &deferred_work.levels);
        let mut left = self.clone();
        for level in &mut left.levels {
            if let Some(found) = found.iter().find(|found| found.name == level.name) {
                level.after = level.after.min(found.before);
            }
        }
        left
    }

    /// The level that grew most, among those whose growth is reported. Bytes come before counts.
    fn worst(&self) -> Option<&DeferredLevel> {
        let is_reported = |level: &&DeferredLevel| {
            let share = self.share_of_written(level);
            if level.is_bytes() {
                level.more() > MIN_BYTES && share.is_none_or(|share| share > REPORTED_SHARE)
            } else {
                level.more() > MIN_COUNT
            }
        };
        self.levels.iter().filter(is_reported).max_by_key(|level| (level.is_bytes(), level.more()))
    }
}

/// Reads the two samples in the counter file `deferred_work`. The result is `None` for a step that
/// lacks one of them.
pub(crate) fn deferred_work(counters: &Counters) -> Option<DeferredWork> {
    let series = counters.get("deferred_work").filter(|series| series.len() > 1)?;
    let level = |name: &str| {
        let (before, after) = (series.value(name, 0)?, series.value(name, series.len() - 1)?);
        Some(DeferredLevel { name: name.to_owned(), before, after })
    };
    let levels = series.keys().filter_map(level).collect();
    Some(DeferredWork { levels, written_bytes: written_bytes(counters) })
}

fn written_bytes(counters: &Counters) -> Option<i64> {
    let disk = counters.get("disk").filter(|disk| !disk.is_empty())?;
    let written = disk.value("written_bytes", disk.len() - 1)? - disk.value("written_bytes", 0)?;
    Some(written).filter(|bytes| *bytes >= 0)
}

/// Returns at most one warning per variant and workload. The warning names the steps that left more
/// deferred work to later steps than they had found. The steps that left the most come first.
pub(crate) fn deferred_work_warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let variants = workloads.iter().flat_map(|workload| {
        let names = workload.steps.first().into_iter().flat_map(|step| &step.variants);
        names.map(move |variant| (workload, variant.variant.as_str()))
    });
    variants.filter_map(|(workload, variant)| warning(&workload.steps, variant)).collect()
}

fn warning(steps: &[StepFindings], variant: &str) -> Option<Warning> {
    let of_step = |(index, step): (usize, &StepFindings)| {
        let left = step.runs_of(variant).iter().filter_map(|run| {
            // A cell's last step has no later step to leave work to.
            let mut later = steps[index + 1..].iter();
            let (to, next) = later.find_map(|later| {
                let next = later.runs_of(variant).iter().find(|next| next.block == run.block)?;
                Some((later.name.as_str(), next))
            })?;
            let deferred_work = run.deferred_work.as_ref()?.left_to(next);
            let level = deferred_work.worst()?;
            Some(((level.is_bytes(), level.more()), work_left(&deferred_work, level, (&step.name, to))))
        });
        left.max_by_key(|(size, _)| *size)
    };
    let mut all: Vec<_> = steps.iter().enumerate().filter_map(of_step).collect();
    all.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    if all.is_empty() {
        return None;
    }
    let unnamed_steps = all.len().saturating_sub(MAX_NAMED_STEPS);
    let named: Vec<WorkLeft> = all.into_iter().take(MAX_NAMED_STEPS).map(|(_, left)| left).collect();
    let warning = Warning::new(Code::DeferredWork).at(variant).with("levels", named);
    Some(warning.with_some("more", Some(unnamed_steps).filter(|steps| *steps > 0)))
}

fn work_left(deferred_work: &DeferredWork, level: &DeferredLevel, (from, to): (&str, &str)) -> WorkLeft {
    WorkLeft {
        level: level.name.clone(),
        more: level.more(),
        share: deferred_work.share_of_written(level),
        written_bytes: deferred_work.written_bytes,
        from: from.to_owned(),
        to: to.to_owned(),
    }
}

/// Returns the memory of the server's control group in the step. It is `None` for a server without
/// a memory limit, because dbdyno makes a control group only to set a limit.
pub(crate) fn group_memory(step: &WindowSummary<'_>) -> Option<GroupMemory> {
    const SOURCE: &str = "cgroup";
    step.counters.get(SOURCE)?;
    let level = |key| at_end(step.counters, SOURCE, key, step.window);
    Some(GroupMemory {
        highest_bytes: highest(step.counters, SOURCE, "memory_bytes"),
        own_bytes: level("anonymous_bytes"),
        page_cache_bytes: level("file_bytes"),
        dirty_bytes: level("dirty_bytes"),
        limit_hits_per_second: step.change(SOURCE, &["limit_hits"]).map(|change| change.per_second()),
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellRecord, StepRecord};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, query_step, run, series, summary, texts, with_counters};
    use crate::window::counters::Counters;

    fn counters(after: i64, written: i64) -> Counters {
        let keys = ["dirty_bytes", "history_list_length"];
        let mut counters = series(
            "deferred_work",
            &keys,
            &[(-9_000, vec![1_000_000, 5_000]), (2_000_000, vec![after, 4_000])],
        );
        counters.extend(series(
            "disk",
            &["written_bytes"],
            &[(0, vec![0]), (1_000_000, vec![written / 2]), (2_000_000, vec![written])],
        ));
        counters
    }

    #[test]
    fn deferred_work_is_the_change_from_before_to_after_and_a_share_of_what_was_written() {
        let deferred_work = deferred_work(&counters(513_000_000, 1_024_000_000)).unwrap();
        let [dirty, history] = deferred_work.levels.as_slice() else { panic!("{deferred_work:?}") };
        assert_eq!((dirty.more(), history.more()), (512_000_000, -1_000));
        assert_eq!(
            (deferred_work.share_of_written(dirty), deferred_work.share_of_written(history)),
            (Some(0.5), None)
        );
        assert_eq!(deferred_work.written_bytes, Some(1_024_000_000));
        assert_eq!(deferred_work.worst(), Some(dirty));
    }

    #[test]
    fn one_sample_gives_no_deferred_work_and_no_disk_counters_give_no_written_bytes() {
        assert_eq!(deferred_work(&series("deferred_work", &["dirty_bytes"], &[(0, vec![1])])), None);
        let mut unseen = counters(2_000_000, 5);
        unseen.remove("disk");
        assert_eq!(deferred_work(&unseen).unwrap().written_bytes, None);
    }

    #[test]
    fn little_growth_is_not_reported() {
        let worst = |after, written| deferred_work(&counters(after, written)).unwrap().worst().cloned();
        assert_eq!(worst(2_000_000, 10_000_000), None, "no more growth than an idle server has");
        assert_eq!(worst(5_000_000, 1_000_000_000), None, "less than a twentieth of what was written");
        assert!(worst(5_000_000, 10_000_000).is_some());
    }

    /// Returns step `l.i0`, and `qr100` where `queries` is given. A pair holds the dirty bytes
    /// before and after the step.
    fn two_steps(load: (i64, i64), queries: Option<(i64, i64)>) -> Vec<StepRecord> {
        let with = |mut step: StepRecord, (before, after): (i64, i64)| {
            step.counters = counters(after, 1_024_000_000);
            step.counters.extend(series(
                "deferred_work",
                &["dirty_bytes"],
                &[(-9_000, vec![before]), (2_000_000, vec![after])],
            ));
            step
        };
        let load = with(load_step(1_000), load);
        [load].into_iter().chain(queries.map(|levels| with(query_step(100, 200), levels))).collect()
    }

    fn reported(cells: Vec<CellRecord>) -> Option<String> {
        let blocks = cells.len() as u32;
        let mut reported = texts(&analyse(&run(&["a"], blocks, cells))).into_iter();
        reported.find(|text| text.starts_with("deferred-work"))
    }

    #[test]
    fn steps_that_leave_more_deferred_work_than_they_found_are_reported_by_variant() {
        let block = |number, after| {
            let steps = two_steps((1_000_000, after), Some((after, 900_000_000)));
            cell(number, "a", steps)
        };
        let reported = reported(vec![block(1, 513_000_000), block(2, 257_000_000)]).unwrap();
        insta::assert_snapshot!(reported, @r#"deferred-work [a] levels: [{"level":"dirty_bytes","more":512000000,"share":0.5,"written_bytes":1024000000,"from":"l.i0","to":"qr100"}]"#);
    }

    #[test]
    fn the_last_step_has_no_later_step_to_leave_work_to() {
        assert_eq!(reported(vec![cell(1, "a", two_steps((1_000_000, 513_000_000), None))]), None);
    }

    #[test]
    fn work_that_was_gone_before_the_next_step_was_not_left_to_it() {
        let steps = |found| two_steps((1_000_000, 513_000_000), Some((found, found)));
        // A restore removed the work, or the cleanup did the work.
        assert_eq!(reported(vec![cell(1, "a", steps(100_000))]), None);
        assert_eq!(reported(vec![cell(1, "a", steps(2_000_000))]), None, "little is left");
        let some = reported(vec![cell(1, "a", steps(257_000_000))]).unwrap();
        assert!(some.contains(r#""more":256000000,"share":0.25,"#), "{some}");
    }

    fn group_memory_of(counters: &Counters) -> Option<GroupMemory> {
        group_memory(&summary(&with_counters(counters)))
    }

    #[test]
    fn levels_are_read_at_the_windows_end_and_hits_are_a_rate_over_the_window() {
        let keys = ["memory_bytes", "anonymous_bytes", "file_bytes", "dirty_bytes", "limit_hits"];
        let samples = [
            (0, vec![90, 60, 30, 1, 10]),
            (1_000_000, vec![100, 65, 35, 9, 40]),
            (2_500_000, vec![95, 70, 25, 2, 60]),
        ];
        let expected = GroupMemory {
            highest_bytes: Some(100),
            own_bytes: Some(70),
            page_cache_bytes: Some(25),
            dirty_bytes: Some(2),
            limit_hits_per_second: Some(20.0), // 50 in 2.5 s
        };
        assert_eq!(group_memory_of(&series("cgroup", &keys, &samples)), Some(expected));
    }

    #[test]
    fn a_server_without_a_memory_limit_has_no_group_memory() {
        assert_eq!(group_memory_of(&Counters::new()), None);
    }
}
