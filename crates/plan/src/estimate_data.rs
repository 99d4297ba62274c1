//! What the data mode of a workload changes in its forecast: loads that run once, loads that run again.

use std::time::Duration;

use crate::estimate::step;
use crate::{CellEstimate, DataMode, InsertBenchmark, Microbenchmarks, Oltp, Plan, Workloads};

/// What the workload's data mode adds to a cell, and what later blocks leave out. Copies of data are not forecast.
pub(crate) fn by_data_mode(cell: &mut CellEstimate, plan: &Plan) {
    let workload = &plan.workload;
    let (names, load_steps, groups) = sequence_of(workload, &cell.workload);
    let Some(first) = names.get(load_steps) else { return };
    // Start, load, and the rest behind it.
    let before = || cell.steps.iter().take_while(|step| step.name != *first);
    match workload.data_of(&cell.workload).0 {
        mode if mode.uses_snapshot() => {
            let once = before().filter(|step| step.name != "prepare").map(|step| step.name.clone()).collect();
            cell.once = once;
        }
        DataMode::Reset => {
            let load: Duration = before().map(|step| step.duration).sum();
            let again = u32::try_from(groups.saturating_sub(1)).unwrap_or(u32::MAX);
            let length = load.saturating_mul(again);
            cell.steps.push(step("reset", &format!("{again} times fresh data, loaded again"), length));
            cell.duration = cell.duration.saturating_add(length);
        }
        _ => {}
    }
}

/// Names of the steps, how many of them load, and how many of the others begin on data of their own where they may.
type Sequence = (Vec<String>, usize, usize);

fn sequence_of(workload: &Workloads, name: &str) -> Sequence {
    match name {
        "insert-benchmark" => {
            let names = workload.insert_benchmark.as_ref().map(InsertBenchmark::step_names);
            (names.unwrap_or_default(), InsertBenchmark::LOAD_STEPS, 1)
        }
        "microbenchmarks" => of_microbenchmarks(workload.microbenchmarks.as_ref()),
        _ => of_oltp(workload.oltp.as_ref()),
    }
}

fn of_microbenchmarks(options: Option<&Microbenchmarks>) -> Sequence {
    let Some(options) = options else { return Sequence::default() };
    let groups = (0..options.rungs().len()).filter(|&index| options.begins_group(index)).count();
    (options.step_names(), options.load_steps(), groups)
}

fn of_oltp(oltp: Option<&Oltp>) -> Sequence {
    let Some(oltp) = oltp else { return Sequence::default() };
    (oltp.step_names(), oltp.load_steps(), oltp.test_steps().len())
}

impl Plan {
    /// Steps of the workload `name` that run in every block and are no warm-up: those that can have a verdict.
    pub fn judged_steps(&self, name: &str) -> Vec<String> {
        let workload = &self.workload;
        let (names, load_steps, _) = sequence_of(workload, name);
        let loads_once = workload.data_of(name).0.uses_snapshot();
        let warm_ups: Vec<String> = match &workload.microbenchmarks {
            Some(options) if name == "microbenchmarks" => {
                let rungs = options.rungs().into_iter().filter(|rung| rung.step.moment.is_warm_up());
                rungs.map(|rung| rung.name).collect()
            }
            _ => Vec::new(),
        };
        let behind = if loads_once { load_steps } else { 0 };
        names.into_iter().skip(behind).filter(|step| !warm_ups.contains(step)).collect()
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
        let load: Duration = preserve.cells[0].steps[1..4].iter().map(|step| step.duration).sum();
        assert_eq!(restore.cells[0].once.join(" "), "load index settle");
        assert_eq!(preserve.duration - restore.duration, 2 * load);
        assert_eq!(restore.peak_disk_bytes - preserve.peak_disk_bytes, restore.cells[0].disk_bytes);
        let prepare = preserve.cells[0].steps[0].duration;
        assert_eq!(reset.duration - preserve.duration, 3 * (load + prepare));
    }

    #[test]
    fn microbenchmarks_settle_once_behind_the_load_where_its_data_come_back() {
        let plan = "name = \"p\"\nblocks = 3\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n\
            [workload.microbenchmarks]\nsteps = [\"point-query.warm\", \"point-query.pre\", \"read-write*\", \"scan\"]\n\
            table_size = 1_000_000\nsettle_wait = \"60s\"\n";
        let with = |mode: &str| {
            let text = format!("{plan}data = \"{mode}\"\n");
            estimate(&parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))).cells.remove(0)
        };
        let names = |cell: &CellEstimate| {
            cell.steps.iter().map(|step| step.name.clone()).collect::<Vec<_>>().join(" ")
        };
        let (preserve, restore, each, reset) =
            (with("preserve"), with("restore"), with("restore-each-step"), with("reset"));
        insta::assert_snapshot!(names(&preserve), @"prepare load index point-query.warm settle point-query.pre read-write_range=10 read-write_range=100 settle again scan verify");
        insta::assert_snapshot!(names(&restore), @"prepare load index settle point-query.warm point-query.pre read-write_range=10 read-write_range=100 settle again scan verify");
        insta::assert_snapshot!(names(&each), @"prepare load index settle point-query.warm point-query.pre read-write_range=10 read-write_range=100 scan verify");
        assert_eq!(
            [&preserve, &restore, &each].map(|cell| cell.once.join(" ")),
            ["", "load index settle", "load index settle"]
        );
        // The warm-up and the step behind it share their data; three more begin on fresh ones.
        let load: Duration = each.steps[..4].iter().map(|step| step.duration).sum();
        assert_eq!(reset.duration - each.duration, 3 * load);
    }
}
