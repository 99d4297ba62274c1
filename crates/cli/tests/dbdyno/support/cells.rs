//! What the record of a cell says: its steps, the work between them, and the numbers of rows that
//! checks found.

use dbdyno_record::{CellEvent, CellRecord, Run, StepEvent, StepRecord};

use super::{Desk, faults, findings};

/// Runs a plan to its end without a fault, and opens its record.
pub(crate) fn run_of(desk: &Desk, plan: &str) -> Run {
    desk.write("p.toml", plan);
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    assert!(!dir.join("data").exists(), "data are left");
    Run::open(&dir).unwrap()
}

pub(crate) fn step<'a>(cell: &'a CellRecord, name: &str) -> &'a StepRecord {
    cell.steps.iter().find(|step| step.name == name).unwrap()
}

/// The number of rows that the check after step `name` found in all tables.
pub(crate) fn rows_after(cell: &CellRecord, name: &str) -> i128 {
    let parts = step(cell, name).checks().into_iter().flat_map(|check| &check.parts);
    parts.filter(|part| part.name == "rows").map(|part| part.actual).sum()
}

/// The names of the recorded work without cleanup and table creation, in order.
pub(crate) fn works(cell: &CellRecord) -> String {
    let names = cell.events.iter().filter_map(|event| match event {
        CellEvent::Work { name, .. } if !["cleanup", "create tables"].contains(&name.as_str()) => {
            Some(name.as_str())
        }
        _ => None,
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The cell's steps by name and the work between them in brackets, in order.
pub(crate) fn recorded(cell: &CellRecord) -> String {
    let work = |event: &CellEvent| match event {
        CellEvent::Work { at, name, .. } if name != "create tables" => {
            Some((at.clone(), format!("({name})")))
        }
        _ => None,
    };
    let start = |step: &StepRecord| match &step.events[0] {
        StepEvent::Started { at, .. } => (at.clone(), step.name.clone()),
        other => panic!("{other:?}"),
    };
    let mut recorded: Vec<_> =
        cell.events.iter().filter_map(work).chain(cell.steps.iter().map(start)).collect();
    // The sort is stable, so work in the same millisecond keeps its order and stays before the step
    // that it prepares.
    recorded.sort_by(|one, other| one.0.cmp(&other.0));
    recorded.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}
