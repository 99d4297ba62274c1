//! What the data mode of a workload changes in its forecast: loads that run once or again, stops, starts and copies.

use std::time::Duration;

use crate::estimate::{disk_bytes, seconds, step};
use crate::estimate_oltp::table_bytes;
use crate::speed::{COPIED_BYTES_PER_SECOND, Size, assumed};
use crate::{CellEstimate, Cold, DataMode, InsertBenchmark, Oltp, Plan, Workloads};

/// What the workload's data mode and its cold steps add to a cell, and what later blocks leave out.
pub(crate) fn by_data_mode(cell: &mut CellEstimate, plan: &Plan) {
    let workload = &plan.workload;
    let measured = sequence_of(workload, &cell.workload).measured;
    let Some((first, _)) = measured.first() else { return };
    let Some(variant) = plan.variants.iter().find(|variant| variant.name == cell.variant) else { return };
    let (speed, size) = assumed(&variant.kind());
    let restart_seconds = speed.restart_seconds;
    let (mode, cold) = workload.data_of(&cell.workload);
    // Start, load, and the rest after it.
    let before: Vec<_> = cell.steps.iter().take_while(|step| step.name != *first).cloned().collect();
    if mode.uses_snapshot() {
        cell.once =
            before.iter().filter(|step| step.name != "prepare").map(|step| step.name.clone()).collect();
        cell.once.push("snapshot".to_owned());
        cell.steps.push(step("snapshot", "taken once, with a stop and a start", seconds(restart_seconds)));
    }
    let again = later_groups(&measured);
    if mode == DataMode::Reset && again > 0 {
        let load: Duration = before.iter().map(|step| step.duration).sum();
        let detail = format!("{} fresh data, loaded again", times(again));
        cell.steps.push(step("reset", &detail, load.saturating_mul(again)));
    }
    let restarts = restarts(mode, &cold, &measured);
    if restarts > 0 {
        let detail = format!("{} a stop and a start", times(restarts));
        cell.steps.push(step("restart", &detail, seconds(restart_seconds * f64::from(restarts))));
    }
    let copies = copies(mode, &measured);
    if copies > 0 {
        let each = loaded_bytes(&cell.workload, workload, &size) as f64 / COPIED_BYTES_PER_SECOND;
        let detail = format!("{} a copy of the loaded data", times(copies));
        cell.steps.push(step("restore", &detail, seconds(each * f64::from(copies))));
    }
    cell.duration =
        cell.steps.iter().map(|step| step.duration).fold(Duration::ZERO, Duration::saturating_add);
}

fn times(number: u32) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// A measured step by name, and whether it begins on data of its own where the mode gives it some.
type Measured = (String, bool);

/// The steps of a workload in their order.
#[derive(Default)]
struct Sequence {
    load: Vec<String>,
    measured: Vec<Measured>,
}

impl Sequence {
    fn new(mut names: Vec<String>, load_steps: usize, begins_group: impl Fn(usize) -> bool) -> Self {
        let measured = names.split_off(load_steps.min(names.len())).into_iter().enumerate();
        Self { load: names, measured: measured.map(|(index, name)| (name, begins_group(index))).collect() }
    }
}

fn sequence_of(workload: &Workloads, name: &str) -> Sequence {
    let found = match name {
        "insert-benchmark" => workload
            .insert_benchmark
            .as_ref()
            .map(|options| Sequence::new(options.step_names(), InsertBenchmark::LOAD_STEPS, |_| true)),
        "microbenchmarks" => workload.microbenchmarks.as_ref().map(|options| {
            Sequence::new(options.step_names(), options.load_steps(), |index| options.begins_group(index))
        }),
        _ => workload.oltp.as_ref().map(|oltp| Sequence::new(oltp.step_names(), oltp.load_steps(), |_| true)),
    };
    found.unwrap_or_default()
}

/// Bytes of a data directory after the load.
fn loaded_bytes(name: &str, workload: &Workloads, size: &Size) -> u64 {
    let tables = |oltp: &Oltp| table_bytes(oltp, size, Duration::ZERO);
    let bytes = match name {
        "insert-benchmark" => workload.insert_benchmark.as_ref().map(|options| {
            let load_only = InsertBenchmark { write_rows: 0, rates: Vec::new(), ..options.clone() };
            disk_bytes(&load_only, size)
        }),
        "microbenchmarks" => workload.microbenchmarks.as_ref().map(|options| tables(&options.tables_part())),
        _ => workload.oltp.as_ref().map(tables),
    };
    bytes.unwrap_or(0)
}

/// Steps after the first that begin on data of their own.
fn later_groups(measured: &[Measured]) -> u32 {
    count(measured.iter().skip(1).filter(|(_, begins_group)| *begins_group))
}

/// Stops and starts before measured steps, but those with fresh data, which are in the time of `prepare`, and the one with the
/// snapshot.
fn restarts(mode: DataMode, cold: &Cold, measured: &[Measured]) -> u32 {
    let of_mode = |index: usize, begins_group: bool| match mode {
        DataMode::Preserve | DataMode::Restore => false,
        DataMode::Restart => begins_group,
        DataMode::Reset | DataMode::RestoreEachStep => index > 0 && begins_group,
    };
    let steps = measured.iter().enumerate();
    count(steps.filter(|(index, (name, begins_group))| match of_mode(*index, *begins_group) {
        true => mode != DataMode::Reset,
        false => cold.holds(name),
    }))
}

/// Copies of the snapshot: at the beginning of each block, and before steps.
fn copies(mode: DataMode, measured: &[Measured]) -> u32 {
    match mode {
        DataMode::Restore => 1,
        DataMode::RestoreEachStep => 1 + later_groups(measured),
        DataMode::Preserve | DataMode::Restart | DataMode::Reset => 0,
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

impl Plan {
    /// Steps of the workload `name` that run in every block and are no warm-up: those that can have a verdict.
    pub fn judged_steps(&self, name: &str) -> Vec<String> {
        let workload = &self.workload;
        let Sequence { load, measured } = sequence_of(workload, name);
        let loads_once = workload.data_of(name).0.uses_snapshot();
        let warm_ups: Vec<String> = match &workload.microbenchmarks {
            Some(options) if name == "microbenchmarks" => {
                let rungs = options.rungs().into_iter().filter(|rung| rung.step.moment.is_warm_up());
                rungs.map(|rung| rung.name).collect()
            }
            _ => Vec::new(),
        };
        let load = load.into_iter().filter(|_| !loads_once);
        let all = load.chain(measured.into_iter().map(|(name, _)| name));
        all.filter(|step| !warm_ups.contains(step)).collect()
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
        assert_eq!(restore.cells[0].once.join(" "), "load index settle snapshot");
        let of = |name: &str| {
            let steps = &restore.cells[0].steps;
            steps.iter().find(|step| step.name == name).map(|step| step.duration).unwrap()
        };
        assert_eq!(restore.duration + 2 * load, preserve.duration + of("snapshot") + 3 * of("restore"));
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
        insta::assert_snapshot!(names(&restore), @"prepare load index settle point-query.warm point-query.pre read-write_range=10 read-write_range=100 settle again scan verify snapshot restore");
        insta::assert_snapshot!(names(&each), @"prepare load index settle point-query.warm point-query.pre read-write_range=10 read-write_range=100 scan verify snapshot restart restore");
        assert_eq!(
            [&preserve, &restore, &each].map(|cell| cell.once.join(" ")),
            ["", "load index settle snapshot", "load index settle snapshot"]
        );
        // The warm-up and the step after it share their data; three more begin on fresh ones.
        let load: Duration = each.steps[..4].iter().map(|step| step.duration).sum();
        insta::assert_snapshot!(added(&reset), @"reset, 3 times fresh data, loaded again: 213.0s");
        assert_eq!(reset.steps.last().unwrap().duration, 3 * load);
        insta::assert_snapshot!(added(&restore), @r"
        snapshot, taken once, with a stop and a start: 2.0s
        restore, once a copy of the loaded data: 2.0s
        ");
        insta::assert_snapshot!(added(&each), @r"
        snapshot, taken once, with a stop and a start: 2.0s
        restart, 3 times a stop and a start: 6.0s
        restore, 4 times a copy of the loaded data: 8.1s
        ");
        insta::assert_snapshot!(added(&with("restart\"\ncold = [\"point-query.pre\"]\n#")), @"restart, 5 times a stop and a start: 10.0s");
    }

    /// What is after `verify`.
    fn added(cell: &CellEstimate) -> String {
        let steps = cell.steps.iter().skip_while(|step| step.name != "verify").skip(1);
        steps.map(|step| format!("{}, {}: {:.1?}\n", step.name, step.detail, step.duration)).collect()
    }

    #[test]
    fn the_more_a_mode_does_between_steps_the_longer_it_takes() {
        let with = |mode: &str| {
            let text = format!(
                "name = \"p\"\nblocks = 2\n[[variant]]\nname = \"a\"\nserver = \"mysql-8.0\"\n[workload.microbenchmarks]\n\
                 sequence = \"32\"\ntable_size = 20_000\nread_time = \"1s\"\nwrite_time = \"1s\"\nsettle_wait = \"0s\"\n\
                 data = \"{mode}\"\n"
            );
            estimate(&parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))).duration
        };
        let modes = ["preserve", "restart", "restore-each-step", "reset"].map(with);
        assert!(modes.is_sorted_by(|one, next| one < next), "{modes:?}");
        assert!(
            with("preserve") < with("restore") && with("restore") < with("restart"),
            "{:?}",
            with("restore")
        );
    }
}
