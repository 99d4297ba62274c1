//! What the data mode of a workload changes in its forecast: loads that run once, loads that run again.

use std::time::Duration;

use crate::estimate::step;
use crate::{CellEstimate, DataMode, InsertBenchmark, Plan, StepEstimate};

/// What the workload's data mode adds to a cell, and what later blocks leave out. Copies of data are not forecast.
pub(crate) fn by_data_mode(cell: &mut CellEstimate, plan: &Plan) {
    let workload = &plan.workload;
    let loads: &[String] = match (cell.workload.as_str(), &workload.insert_benchmark, &workload.oltp) {
        ("insert-benchmark", Some(benchmark), _) => &benchmark.step_names()[..InsertBenchmark::LOAD_STEPS],
        ("oltp", _, Some(oltp)) => &oltp.step_names()[..oltp.load_steps()],
        _ => &[],
    };
    match workload.data_of(&cell.workload).0 {
        mode if mode.uses_snapshot() => cell.once = loads.to_vec(),
        DataMode::Reset => {
            let is_load = |step: &&StepEstimate| step.name == "prepare" || loads.contains(&step.name);
            let load: Duration = cell.steps.iter().filter(is_load).map(|step| step.duration).sum();
            let measured = workload.oltp.as_ref().map_or(0, |oltp| oltp.test_steps().len());
            let again = u32::try_from(measured.saturating_sub(1)).unwrap_or(u32::MAX);
            let length = load.saturating_mul(again);
            cell.steps.push(step("reset", &format!("{again} times fresh data, loaded again"), length));
            cell.duration = cell.duration.saturating_add(length);
        }
        _ => {}
    }
}

impl CellEstimate {
    /// Time of the steps that only the first block runs.
    pub fn once_duration(&self) -> Duration {
        let steps = self.steps.iter().filter(|step| self.once.contains(&step.name));
        steps.map(|step| step.duration).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{estimate, parse};

    #[test]
    fn with_snapshots_the_load_counts_once_and_resets_count_each_time() {
        let oltp = "name = \"p\"\nblocks = 3\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.oltp]\n\
            tests = [\"point-select\", \"read-only\"]\ntable_size = 1_000_000\n";
        let with = |mode: &str| {
            let text = format!("{oltp}data = \"{mode}\"\n");
            estimate(&parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}")))
        };
        let (preserve, restore, reset) = (with("preserve"), with("restore"), with("reset"));
        let load: Duration = preserve.cells[0].steps[1..3].iter().map(|step| step.duration).sum();
        assert_eq!(restore.cells[0].once.join(" "), "load index");
        assert_eq!(preserve.duration - restore.duration, 2 * load);
        assert_eq!(restore.peak_disk_bytes - preserve.peak_disk_bytes, restore.cells[0].disk_bytes);
        let prepare = preserve.cells[0].steps[0].duration;
        assert_eq!(reset.duration - preserve.duration, 3 * (load + prepare));
    }
}
