//! Collects findings that are not measurements: what was compared, on which machine and in which
//! order, and where the run's time went (into measured windows, and into the work around them).

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::Design;
use dbdyno_record::{
    CellEvent, HostCalibration, Outcome, Run, RunEvent, ServerInfo, StepEvent, StepRecord, VariantInfo,
};

use crate::compare::by_machine::machines;
use crate::compare::comparability::unchecked_steps;
use crate::control_of;
use crate::model::{Budget, RunSummary, TimeBreakdown, VariantSummary};
use crate::servers::{servers, tables_engine};
use crate::statistics::describe::median;
use crate::warnings::servers::encryption;
use crate::window::covered_us;

pub(crate) fn run_summary(run: &Run, base: &str) -> RunSummary {
    let manifest = &run.manifest;
    let completed = run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Completed));
    RunSummary {
        run_id: manifest.run_id.clone(),
        name: manifest.plan.name.clone(),
        started: manifest.started.clone(),
        tool: manifest.tool.clone(),
        host: manifest.host.clone(),
        seed: manifest.plan.seed,
        base: base.to_owned(),
        margin: manifest.plan.margin,
        margins: manifest.plan.margins.clone(),
        control: control_of(manifest, base).map(str::to_owned),
        budget: manifest.plan.budget.map(|time| budget(run, time.0.as_secs_f64())),
        blocks_planned: manifest.plan.blocks,
        design: (manifest.plan.design != Design::Blocks).then(|| manifest.plan.design.name().to_owned()),
        machines: machines(run),
        calibrations: calibrations(run),
        time: time_breakdown(run),
        cells_completed: completed.count(),
        cells_planned: manifest.order.len(),
        unchecked_steps: unchecked_steps(run),
        colours: Default::default(),
        order: manifest
            .order
            .iter()
            .map(|cell| format!("{} {} {}", cell.block, cell.variant, cell.workload))
            .collect(),
    }
}

/// The calibration of each machine, as medians over its blocks.
fn calibrations(run: &Run) -> BTreeMap<String, HostCalibration> {
    let mut all: BTreeMap<String, Vec<HostCalibration>> = BTreeMap::new();
    for event in &run.events {
        if let RunEvent::BlockMeasured { machine, host, .. } = event {
            all.entry(machine.clone()).or_default().extend(host.calibration);
        }
    }
    let of_machine = |(machine, found): (String, Vec<HostCalibration>)| {
        let of = |figure: fn(&HostCalibration) -> Option<f64>| {
            median(&found.iter().filter_map(figure).collect::<Vec<_>>())
        };
        let calibration = HostCalibration {
            cpu_operations_per_second: of(|found| Some(found.cpu_operations_per_second))?,
            fsync_us: of(|found| found.fsync_us),
            client_statements_per_second: of(|found| found.client_statements_per_second),
        };
        Some((machine, calibration))
    };
    all.into_iter().filter_map(of_machine).collect()
}

fn budget(run: &Run, seconds: f64) -> Budget {
    let orders = run.events.iter().filter_map(|event| match event {
        RunEvent::Look { order, .. } => Some(order),
        _ => None,
    });
    let further: BTreeSet<u32> = orders.clone().flatten().map(|cell| cell.block).collect();
    Budget { seconds, looks: orders.count() as u32, further_blocks: further.len() as u32 }
}

pub(crate) fn variant_summary(run: &Run, variant: &VariantInfo) -> VariantSummary {
    let server = servers(run, &variant.name).next();
    VariantSummary {
        name: variant.name.clone(),
        driver: variant.driver.clone(),
        server: variant.server.clone(),
        version_text: server.map_or_else(String::new, |server| server.version_text.clone()),
        foreign: server.and_then(ServerInfo::foreign_title),
        missing: server.map(|server| server.missing.keys().cloned().collect()).unwrap_or_default(),
        engine: server.and_then(tables_engine),
        memory_limit_bytes: server.and_then(|server| server.memory_limit_bytes),
        config: variant.config.clone(),
        factors: variant.factors.clone(),
        external: variant.external,
        encryption: encryption(run, &variant.name),
    }
}

/// Name of the recorded work in which dbdyno waits for a server to come to rest.
const SETTLE: &str = "cleanup";

/// Adds up the run's time; `None` for a run in which no cell has begun.
fn time_breakdown(run: &Run) -> Option<TimeBreakdown> {
    let total_us = run.events.iter().filter_map(elapsed_us).max()?;
    let mut account = TimeBreakdown { total_seconds: seconds(total_us), ..TimeBreakdown::default() };
    // The times of alternating cells overlap, and the overlap counts once.
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
    use dbdyno_record::CellEvent;

    use super::*;
    use crate::fixtures::{cell, failed_cell, load_step, measured, run};
    use crate::simulations::close;

    #[test]
    fn cells_are_counted_as_planned_and_as_completed() {
        let cells =
            vec![cell(1, "a", vec![load_step(1_000)]), failed_cell(1, "b", Vec::new(), "server died")];
        let summary = run_summary(&run(&["a", "b"], 2, cells), "a");
        assert_eq!((summary.cells_completed, summary.cells_planned, summary.blocks_planned), (1, 4, 2));
        assert_eq!(summary.order[1], "1 b insert-benchmark");
    }

    #[test]
    fn a_machines_calibration_is_the_median_over_its_blocks() {
        let mut run = run(&["a"], 4, Vec::new());
        for (block, machine, fsync_us) in
            [(1, "one", Some(40.0)), (2, "one", Some(90.0)), (3, "one", Some(50.0)), (4, "two", None)]
        {
            let calibration =
                HostCalibration { cpu_operations_per_second: 1e9, fsync_us, ..Default::default() };
            run.events.push(measured(block, machine, Some(calibration)));
        }
        run.events.push(measured(5, "old", None));
        let found = run_summary(&run, "a").calibrations;
        let fsyncs: Vec<_> = found.iter().map(|(name, found)| (name.as_str(), found.fsync_us)).collect();
        assert_eq!(fsyncs, [("one", Some(50.0)), ("two", None)]);
    }

    #[test]
    fn steps_that_ended_without_checksums_are_counted() {
        let mut steps = vec![load_step(1_000), load_step(1_000), load_step(1_000)];
        steps[1].has_checksums = false;
        steps[2].has_checksums = false;
        steps[2].events.pop();
        let summary = run_summary(&run(&["a"], 1, vec![cell(1, "a", steps)]), "a");
        assert_eq!(summary.unchecked_steps, Some(1), "a step that was cut off never has any");
    }

    #[test]
    fn a_variant_is_described_as_its_server_reported() {
        let run = run(&["a", "b"], 1, vec![cell(1, "a", Vec::new())]);
        let summary = variant_summary(&run, &run.manifest.variants[0]);
        assert_eq!((summary.version_text.as_str(), summary.server.as_str()), ("a 1.0", "a-server"));
        assert_eq!(variant_summary(&run, &run.manifest.variants[1]).version_text, "");
    }

    #[test]
    fn the_engine_of_a_variant_is_the_engine_of_its_tables() {
        let mut run = run(&["a"], 1, vec![cell(1, "a", Vec::new())]);
        for event in &mut run.cells[0].events {
            if let CellEvent::Server { server, .. } = event {
                server.engine = Some("InnoDB 10.11.19".to_owned());
                server.tables_engine = Some("aria".to_owned());
            }
        }
        assert_eq!(variant_summary(&run, &run.manifest.variants[0]).engine.as_deref(), Some("Aria"));
    }

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
