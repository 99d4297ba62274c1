//! Runs steps through the load engine, and tests how they end and what is counted.

use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_record::{StepEvent, Unit};
use dbdyno_workloads::microbenchmarks::options::{MicroSequence, MicrobenchmarksOptions};
use dbdyno_workloads::settle::SettleWait;
use dbdyno_workloads::{AnyWorkload, Steps};

use super::{desk, options};

/// Returns each statement with the numbers of its executions, of executions without rows, and of
/// rows.
fn counted(events: &[StepEvent]) -> Vec<(String, u64, u64, u64)> {
    let of = |event: &StepEvent| match event {
        StepEvent::Statement { statement, done, empty, rows, .. } => {
            Some((statement.clone(), *done, *empty, *rows))
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn a_step_may_end_with_its_operations_and_counts_its_statements_by_kind() {
    let mut desk =
        desk(&MicrobenchmarksOptions { operations: Some(101), ..options(MicroSequence::FortyTwo) });
    let (end, record) = desk.run("read-write_range=100");
    let started: Vec<u64> = end.tasks.iter().map(|task| task.started).collect();
    assert_eq!(started.iter().sum::<u64>(), 101);
    assert_eq!((started.iter().max(), started.iter().min()), (Some(&51), Some(&50)));
    let found = counted(&record.events);
    let counts: Vec<String> = found.iter().map(|(name, done, ..)| format!("{name} {done}")).collect();
    insta::assert_snapshot!(counts.join(", "), @"begin 101, point-select 1010, simple-range 101, sum-range 101, order-range 101, distinct-range 101, index-update 101, non-index-update 101, delete 101, insert 101, commit 101");
    let delete = record.histograms.iter().find(|span| span.kind == "transaction:delete").unwrap();
    assert_eq!(delete.histogram().unwrap().len(), 101);
    let (from_us, to_us) = record.window().unwrap();
    assert_eq!((delete.from_us, delete.to_us), (from_us, to_us));
}

#[test]
fn statements_of_the_warm_up_are_not_counted() {
    let second = PlanDuration::from_secs(1);
    let mut desk = desk(&MicrobenchmarksOptions {
        read_time: second,
        warmup: second,
        ..options(MicroSequence::FortyTwo)
    });
    let (_, record) = desk.run("point-query");
    let (from_us, to_us) = record.window().unwrap();
    assert_eq!((from_us, to_us), (1_000_000, 2_000_000));
    let inside =
        record.intervals.iter().filter(|interval| interval.from_us >= from_us && interval.to_us <= to_us);
    let done: u64 = inside.map(|interval| interval.done).sum();
    let found: Vec<u64> = counted(&record.events).iter().map(|(_, done, ..)| *done).collect();
    assert_eq!(found, [done]);
}

#[test]
fn a_scan_counts_the_rows_of_its_table_and_ends_when_each_table_was_read() {
    let mut desk = desk(&options(MicroSequence::FortyTwo));
    let spec = desk.workload.spec(desk.index("scan"));
    assert_eq!((spec.headline.unit, spec.headline.label.as_str()), (Unit::Rows, "rows/s"));
    let (end, _) = desk.run("scan");
    let tasks: Vec<(u64, u64)> = end.tasks.iter().map(|task| (task.started, task.rows)).collect();
    assert_eq!(tasks, [(1, 10_000), (1, 10_000)]);
}

#[test]
fn a_step_records_its_published_name_its_groups_and_the_state_of_its_tables() {
    let desk = desk(&options(MicroSequence::FortyTwo));
    let line = |name: &str| {
        let spec = desk.workload.spec(desk.index(name));
        let option =
            |key: &str| spec.options.get(key).and_then(|value| value.as_str()).unwrap_or("-").to_owned();
        let groups: Vec<String> = spec.groups.iter().map(|(key, group)| format!("{key} {group}")).collect();
        let warm = if spec.is_warm_up { " (warm-up)" } else { "" };
        format!(
            "{name}{warm} | {} | {} | {}",
            option("published_name"),
            option("table_state"),
            groups.join(", ")
        )
        .trim_end()
        .to_owned()
    };
    let names = [
        "load",
        "index",
        "point-query.warm",
        "point-query.pre",
        "update-inlist",
        "update-index",
        "scan",
        "insert",
    ];
    insta::assert_snapshot!(names.map(line).join("\n"), @r"
    load | - | - | 2021 load
    index | - | - | 2021 load
    point-query.warm (warm-up) | point-query.warm_range=100 | loaded |
    point-query.pre | point-query.pre_range=100 | loaded | 2021 read-only before write-heavy, 2024 point, part 1
    update-inlist | update-inlist_range=100 | loaded | 2021 write-heavy, 2024 writes, 2025 writes
    update-index | update-index_range=100 | written | 2021 write-heavy, 2024 writes, 2025 writes
    scan | scan_range=100 | written | 2021 read-only after write-heavy, 2024 range, part 1, 2025 range without aggregation
    insert | insert_range=100 | written | 2021 insert and delete, 2024 writes, 2025 writes
    ");
}

#[test]
fn time_caps_and_warm_ups_follow_from_the_lengths_in_the_plan() {
    let second = |seconds| PlanDuration::from_secs(seconds);
    let options = MicrobenchmarksOptions {
        read_time: second(7),
        write_time: second(9),
        warm_scan_time: second(3),
        settle_wait: Some(SettleWait::Fixed(second(0))),
        ..options(MicroSequence::ThirtyTwo)
    };
    let desk = desk(&options);
    let outline = |name: &str| desk.workload.outlines()[desk.index(name)].clone();
    let cap = |name: &str| outline(name).time_cap;
    // The cap is four times the length with its warm-up of 5 s, and 10 s more.
    assert_eq!(cap("point-query"), Some(Duration::from_secs(58)));
    assert_eq!(cap("write-only"), Some(Duration::from_secs(66)));
    assert_eq!(cap("scan.warm"), Some(Duration::from_secs(42)));
    assert_eq!(outline("scan").warmup, Duration::from_secs(5));
    assert_eq!((cap("load"), outline("load").warmup), (None, Duration::ZERO));
}
