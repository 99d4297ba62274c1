//! Tests how data modes change forecasts.

use std::time::Duration;

use dbdyno_plan::CellEstimate;
use dbdyno_workloads::plans::parse;

use super::estimate::estimate;

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
fn microbenchmarks_settle_after_the_load_where_the_loaded_data_are_restored() {
    let plan = "name = \"p\"\nblocks = 3\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n\
        [workload.microbenchmarks]\nsteps = [\"point-query.warm\", \"point-query.pre\", \"read-write*\", \"scan\"]\n\
        table_size = 1_000_000\nsettle_wait = \"60s\"\n";
    let with = |mode: &str| {
        let text = format!("{plan}data = \"{mode}\"\n");
        estimate(&parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))).cells.remove(0)
    };
    let names =
        |cell: &CellEstimate| cell.steps.iter().map(|step| step.name.clone()).collect::<Vec<_>>().join(" ");
    let (preserve, restore, each, reset) =
        (with("preserve"), with("restore"), with("restore-each-step"), with("reset"));
    insta::assert_snapshot!(names(&preserve), @"prepare load index point-query.warm settle point-query.pre read-write_range=10 read-write_range=100 settle again scan verify");
    insta::assert_snapshot!(names(&restore), @"prepare load index settle point-query.warm point-query.pre read-write_range=10 read-write_range=100 settle again scan verify snapshot restore");
    insta::assert_snapshot!(names(&each), @"prepare load index settle point-query.warm point-query.pre read-write_range=10 read-write_range=100 scan verify snapshot restart restore");
    assert_eq!(
        [&preserve, &restore, &each].map(|cell| cell.once.join(" ")),
        ["", "load index settle snapshot", "load index settle snapshot"]
    );
    // The warm-up step and the step after it share their data. Each of the three other steps begins
    // on fresh data.
    let load: Duration = each.steps[..4].iter().map(|step| step.duration).sum();
    insta::assert_snapshot!(added(&reset), @"reset, 3 times fresh data, loaded again: 197.7s");
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
    insta::assert_snapshot!(added(&with("restart\"\ncold = [\"point-query.pre\"]\n#")), @"restart, 5 times a stop and a start: 10.7s");
}

/// Returns the parts of the forecast after `verify`.
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
    assert!(with("preserve") < with("restore") && with("restore") < with("restart"), "{:?}", with("restore"));
}
