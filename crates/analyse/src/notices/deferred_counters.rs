//! Steps whose fsyncs the server reported too late to be counted.

use dbdyno_record::{CellRecord, Run, StepRecord};

use crate::measure::counters::{Counters, STATUS, greatest};
use crate::measure::deferred_counters::{LOAD_SESSIONS, is_reported_late};
use crate::measure::fsyncs;
use crate::measure::span::Span;
use crate::model::{Code, Notice};
use crate::words::numbered;

/// Variants with steps that wrote and whose fsyncs were not all counted at the end.
pub(crate) fn notice(run: &Run) -> Option<Notice> {
    let unreported = |cell: &CellRecord| {
        let is_counted = fsyncs::syncs_of(cell).is_some();
        cell.steps.iter().filter(|step| is_counted && is_unreported(step)).count()
    };
    let of_variant = |name: &str| {
        let cells = run.cells.iter().filter(|cell| cell.id.variant == name);
        let count: usize = cells.map(unreported).sum();
        (count > 0).then(|| format!("{name}, {}", numbered(count, "step")))
    };
    let names: Vec<String> =
        run.manifest.variants.iter().filter_map(|variant| of_variant(&variant.name)).collect();
    (!names.is_empty()).then(|| Notice::new(Code::DeferredCounters).with("steps", names.join("; ")))
}

fn is_unreported(step: &StepRecord) -> bool {
    let Some((from_us, to_us)) = step.window() else { return false };
    let has_commits = fsyncs::has_commits(&step.spec, &step.intervals, Span::new(from_us, to_us));
    has_commits && counts_fsyncs(&step.counters) && {
        let left = step.counters.get(STATUS).and_then(|status| status.values(LOAD_SESSIONS).last());
        left.is_none_or(|(_, left)| left > 0)
    }
}

fn counts_fsyncs(counters: &Counters) -> bool {
    fsyncs::keys().filter(|key| is_reported_late(key)).any(|key| greatest(counters, STATUS, key).is_some())
}
