//! What the record of a fleet run says about its blocks.

use std::collections::BTreeSet;
use std::path::Path;

use dbdyno_record::{CellId, Outcome, Run, RunEvent};

use crate::support::{faults, findings};

/// Each measured block with its machine. A block appears once for each time that it was measured.
pub(crate) fn measured(run: &Run) -> Vec<(u32, String)> {
    let machine = |event: &RunEvent| match event {
        RunEvent::BlockMeasured { block, machine, .. } => Some((*block, machine.clone())),
        _ => None,
    };
    let mut measured: Vec<_> = run.events.iter().filter_map(machine).collect();
    measured.sort();
    measured
}

/// Checks that every cell of the run is complete and valid, and that no data are left.
pub(crate) fn whole(dir: &Path) -> Run {
    let run = Run::open(dir).unwrap();
    assert_eq!(run.warnings, [""; 0]);
    assert_eq!(
        run.cells.iter().map(|cell| &cell.id).collect::<Vec<_>>(),
        Vec::from_iter(&run.manifest.order)
    );
    assert!(run.cells.iter().all(|cell| cell.outcome() == Some(Outcome::Completed)));
    assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Completed, .. })));
    assert_eq!(faults(&findings(dir)), [""; 0]);
    no_data_are_left(dir);
    run
}

pub(crate) fn no_data_are_left(dir: &Path) {
    for entry in std::fs::read_dir(dir.join("fleet")).unwrap() {
        assert!(!entry.unwrap().path().join("data").exists(), "data are left");
    }
}

/// The blocks whose cells are all in the run and complete.
pub(crate) fn complete(dir: &Path) -> BTreeSet<u32> {
    let Ok(run) = Run::open(dir) else { return BTreeSet::new() };
    let is_complete = |id: &CellId| {
        let found = run.cells.iter().find(|cell| cell.id == *id);
        found.is_some_and(|cell| cell.outcome() == Some(Outcome::Completed))
    };
    let blocks = 1..=run.manifest.plan.blocks;
    blocks
        .filter(|block| run.manifest.order.iter().filter(|cell| cell.block == *block).all(is_complete))
        .collect()
}
