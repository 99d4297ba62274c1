//! What the cells of a run took: steps, settling, and all of it.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_plan::MeasuredCell;
use dbdyno_record::{CellEvent, CellRecord, Outcome, Run, RunEvent, StepEvent, StepRecord};

/// Work that brings a server to rest.
const SETTLE: &str = "cleanup";

pub(super) fn is_of_a_fleet(event: &RunEvent) -> bool {
    matches!(event, RunEvent::BlockMeasured { .. })
}

/// The completed cells of a variant and workload, in the order of their blocks.
pub(super) fn cells(run: &Run, variant: &str, workload: &str) -> Vec<MeasuredCell> {
    let is_wanted = |cell: &&CellRecord| cell.id.variant == variant && cell.id.workload == workload;
    let completed = |cell: &&CellRecord| cell.outcome() == Some(Outcome::Completed);
    run.cells.iter().filter(is_wanted).filter(completed).filter_map(|cell| measured(run, cell)).collect()
}

fn measured(run: &Run, cell: &CellRecord) -> Option<MeasuredCell> {
    let (started, ended) = run.cell_span_us(&cell.id)?;
    let mut steps: BTreeMap<String, Duration> = BTreeMap::new();
    for step in &cell.steps {
        *steps.entry(step.name.clone()).or_default() += took(step);
    }
    let settling = cell.events.iter().filter_map(|event| match event {
        CellEvent::Work { name, duration_us, .. } if name == SETTLE => {
            Some(Duration::from_micros(*duration_us))
        }
        _ => None,
    });
    let settling = settling.sum();
    Some(MeasuredCell { total: Duration::from_micros(ended.saturating_sub(started)), steps, settling })
}

/// From connecting to the end of the last operation.
fn took(step: &StepRecord) -> Duration {
    let of_event = |event: &StepEvent| match event {
        StepEvent::Barrier { connect_us, .. } => *connect_us,
        StepEvent::Ended { at_us, .. } => *at_us,
        _ => 0,
    };
    Duration::from_micros(step.events.iter().map(of_event).sum())
}
