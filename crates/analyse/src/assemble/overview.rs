//! What was compared, on which machine and in which order: the findings that are not measurements.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::Design;
use dbdyno_record::{HostCalibration, Outcome, Run, RunEvent, ServerInfo, VariantInfo};

use crate::assemble::time_breakdown::time_breakdown;
use crate::compare::by_machine::machines;
use crate::compare::comparability::unchecked_steps;
use crate::control_of;
use crate::model::{Budget, RunSummary, VariantSummary};
use crate::servers::{servers, tables_engine};
use crate::statistics::describe::median;
use crate::warnings::encryption::encryption;

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

#[cfg(test)]
mod tests {
    use dbdyno_record::CellEvent;

    use super::*;
    use crate::fixtures::{cell, failed_cell, load_step, measured, run};

    #[test]
    fn cells_are_counted_as_planned_and_as_completed() {
        let cells =
            vec![cell(1, "a", vec![load_step(1_000)]), failed_cell(1, "b", Vec::new(), "server died")];
        let summary = run_summary(&run(&["a", "b"], 2, cells), "a");
        assert_eq!((summary.cells_completed, summary.cells_planned, summary.blocks_planned), (1, 4, 2));
        assert_eq!(summary.order[1], "1 b insert-benchmark");
    }

    #[test]
    fn a_machine_is_as_fast_as_the_median_of_its_blocks() {
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
    fn a_variant_is_what_its_server_said_it_is() {
        let run = run(&["a", "b"], 1, vec![cell(1, "a", Vec::new())]);
        let summary = variant_summary(&run, &run.manifest.variants[0]);
        assert_eq!((summary.version_text.as_str(), summary.server.as_str()), ("a 1.0", "a-server"));
        assert_eq!(variant_summary(&run, &run.manifest.variants[1]).version_text, "");
    }

    #[test]
    fn the_engine_of_a_variant_is_that_of_its_tables() {
        let mut run = run(&["a"], 1, vec![cell(1, "a", Vec::new())]);
        for event in &mut run.cells[0].events {
            if let CellEvent::Server { server, .. } = event {
                server.engine = Some("InnoDB 10.11.19".to_owned());
                server.tables_engine = Some("aria".to_owned());
            }
        }
        assert_eq!(variant_summary(&run, &run.manifest.variants[0]).engine.as_deref(), Some("Aria"));
    }
}
