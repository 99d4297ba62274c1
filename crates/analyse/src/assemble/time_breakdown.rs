//! Where a run's time went: into measured windows, and into the work around them.

use dbdyno_record::{CellEvent, Run, RunEvent, StepEvent, StepRecord};

use crate::model::TimeBreakdown;
use crate::window::covered_us;

/// Name of the work that brings a server to rest.
const SETTLE: &str = "cleanup";

/// Adds up the run's time; `None` for a run in which no cell has begun.
pub(crate) fn time_breakdown(run: &Run) -> Option<TimeBreakdown> {
    let total_us = run.events.iter().filter_map(elapsed_us).max()?;
    let mut account = TimeBreakdown { total_seconds: seconds(total_us), ..TimeBreakdown::default() };
    // Cells that alternate share their time.
    let mut spans = Vec::new();
    for cell in &run.cells {
        let Some(span) = run.cell_span_us(&cell.id) else { continue };
        spans.push(span);
        let of_run = run.manifest.workloads.iter().find(|workload| workload.name == cell.id.workload);
        let loads = of_run
            .map_or(&[][..], |workload| &workload.steps[..workload.load_steps.min(workload.steps.len())]);
        for step in &cell.steps {
            add_step(&mut account, step, loads.contains(&step.name));
        }
        for event in &cell.events {
            if let CellEvent::Work { name, duration_us, .. } = event
                && name == SETTLE
            {
                account.settle_seconds += seconds(*duration_us);
            }
        }
    }
    account.servers_seconds = (seconds(covered_us(spans)) - account.within_cells()).max(0.0);
    for event in &run.events {
        if let RunEvent::Rested { duration_us, .. } = event {
            account.rest_seconds += seconds(*duration_us);
        }
    }
    let known = account.within_cells() + account.rest_seconds;
    account.other_seconds = (account.total_seconds - known).max(0.0);
    Some(account)
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn elapsed_us(event: &RunEvent) -> Option<u64> {
    match event {
        RunEvent::CellStarted { elapsed_us, .. }
        | RunEvent::CellEnded { elapsed_us, .. }
        | RunEvent::Look { elapsed_us, .. }
        | RunEvent::Rested { elapsed_us, .. } => Some(*elapsed_us),
        _ => None,
    }
}

fn add_step(account: &mut TimeBreakdown, step: &StepRecord, loads: bool) {
    let (mut connect_us, mut end_us, mut checks_us) = (0, 0, 0);
    for event in &step.events {
        match event {
            StepEvent::Barrier { connect_us: took, .. } => connect_us = *took,
            StepEvent::Check(check) => checks_us += check.duration_us,
            StepEvent::Ended { at_us, .. } => end_us = *at_us,
            _ => {}
        }
    }
    account.checks_seconds += seconds(connect_us + checks_us);
    match step.window() {
        _ if loads => account.load_seconds += seconds(end_us),
        Some((from_us, to_us)) if !step.spec.is_warm_up => {
            account.warm_up_seconds += seconds(from_us);
            account.windows_seconds += seconds(to_us.saturating_sub(from_us));
            account.checks_seconds += seconds(end_us.saturating_sub(to_us));
        }
        _ => account.warm_up_seconds += seconds(end_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, run};
    use crate::simulations::close;

    #[test]
    fn the_parts_of_a_run_add_up_to_its_time() {
        let mut step = load_step(1_000);
        let (from_us, to_us) = step.window().unwrap();
        let window = (to_us - from_us) as f64 / 1e6;
        step.events.retain(|event| !matches!(event, StepEvent::Barrier { .. }));
        step.events.push(StepEvent::Barrier { at: String::new(), connections: 1, connect_us: 250_000 });
        let mut run = run(&["a"], 1, vec![cell(1, "a", vec![step])]);
        assert!(time_breakdown(&run).is_none(), "no time is known");
        let id = run.cells[0].id.clone();
        run.cells[0].events.push(CellEvent::Work {
            at: String::new(),
            name: SETTLE.to_owned(),
            duration_us: 3_000_000,
            details: serde_json::Map::new(),
        });
        run.events = vec![
            RunEvent::CellStarted { at: String::new(), cell: id.clone(), elapsed_us: 1_000_000 },
            RunEvent::CellEnded {
                at: String::new(),
                cell: id,
                outcome: dbdyno_record::Outcome::Completed,
                message: None,
                elapsed_us: 500_000_000,
            },
            RunEvent::Rested { at: String::new(), duration_us: 5_000_000, elapsed_us: 505_000_000 },
        ];
        let account = time_breakdown(&run).unwrap();
        close(account.windows_seconds, window, 1e-9);
        close(account.settle_seconds, 3.0, 1e-9);
        close(account.rest_seconds, 5.0, 1e-9);
        close(account.other_seconds, 1.0, 1e-9);
        close(account.within_cells() + 5.0 + 1.0, account.total_seconds, 1e-9);
        assert!(account.checks_seconds >= 0.25 && account.servers_seconds > 0.0, "{account:?}");
    }
}
