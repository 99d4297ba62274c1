//! What was compared, on which machine, in which order: the findings that are not measurements.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{Outcome, Run, RunEvent, VariantInfo};

use crate::again_of;
use crate::assemble::time_account::time_account;
use crate::compare::comparability::unchecked_steps;
use crate::compare::interim_analyses::{corrects_intervals, looks};
use crate::model::{Budget, RunSummary, VariantSummary};
use crate::notices::encryption::encryption;
use crate::servers::{servers, tables_engine};

pub(crate) fn run_summary(run: &Run, base: &str) -> RunSummary {
    let manifest = &run.manifest;
    let completed = run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Completed));
    RunSummary {
        run_id: manifest.run_id.clone(),
        name: manifest.name.clone(),
        started: manifest.started.clone(),
        tool: manifest.tool.clone(),
        host: manifest.host.clone(),
        seed: manifest.seed,
        base: base.to_owned(),
        margin: manifest.margin,
        margins: manifest.experiment.margins.clone(),
        again: again_of(manifest, base).map(str::to_owned),
        budget: manifest.experiment.budget_seconds.map(|seconds| budget(run, seconds)),
        blocks_planned: manifest.blocks,
        design: manifest.experiment.design.clone(),
        machines: machines(run),
        time: time_account(run),
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

/// By machine the blocks that it measured last.
fn machines(run: &Run) -> BTreeMap<String, BTreeSet<u32>> {
    let mut of_blocks = BTreeMap::new();
    for event in &run.events {
        if let RunEvent::BlockMeasured { block, machine, .. } = event {
            of_blocks.insert(*block, machine);
        }
    }
    let mut machines: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (block, machine) in of_blocks {
        machines.entry(machine.clone()).or_default().insert(block);
    }
    machines
}

fn budget(run: &Run, seconds: f64) -> Budget {
    let orders: Vec<bool> = run
        .events
        .iter()
        .filter_map(|event| match event {
            RunEvent::Look { order, .. } => Some(!order.is_empty()),
            _ => None,
        })
        .collect();
    let further = orders.iter().filter(|further| **further).count();
    Budget {
        seconds,
        looks: orders.len() as u32,
        corrects_intervals: corrects_intervals(&looks(run)),
        further_blocks: further as u32,
    }
}

pub(crate) fn variant_summary(run: &Run, variant: &VariantInfo) -> VariantSummary {
    let server = servers(run, &variant.name).next();
    VariantSummary {
        name: variant.name.clone(),
        driver: variant.driver.clone(),
        server: variant.server.clone(),
        version_text: server.map_or_else(String::new, |server| server.version_text.clone()),
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
    use crate::fixtures::{cell, failed_cell, load_step, run};

    #[test]
    fn cells_are_counted_as_planned_and_as_completed() {
        let cells =
            vec![cell(1, "a", vec![load_step(1_000)]), failed_cell(1, "b", Vec::new(), "server died")];
        let summary = run_summary(&run(&["a", "b"], 2, cells), "a");
        assert_eq!((summary.cells_completed, summary.cells_planned, summary.blocks_planned), (1, 4, 2));
        assert_eq!(summary.order[1], "1 b insert-benchmark");
    }

    #[test]
    fn a_block_is_of_the_machine_that_measured_it_last() {
        let mut run = run(&["a"], 2, vec![cell(1, "a", Vec::new()), cell(2, "a", Vec::new())]);
        for (block, machine) in [(2, "one"), (1, "one"), (2, "two")] {
            let (at, machine) = (String::new(), machine.to_owned());
            run.events.push(RunEvent::BlockMeasured { at, block, machine, host: Box::default() });
        }
        let of = |machine: &str, block| (machine.to_owned(), BTreeSet::from([block]));
        assert_eq!(run_summary(&run, "a").machines, BTreeMap::from([of("one", 1), of("two", 2)]));
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
