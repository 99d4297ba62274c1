//! Runs steps of a sweep through the load engine, and tests their length, connections and rate.

use dbdyno_db::null;
use dbdyno_model::PlanDuration;
use dbdyno_record::Interval;
use dbdyno_workloads::oltp::options::{OltpArrivals, OltpOptions, OltpTest};

use crate::desk::Desk;

fn options() -> OltpOptions {
    OltpOptions {
        tests: vec![OltpTest::PointSelect, OltpTest::ReadWrite],
        connections: vec![1, 8],
        time: PlanDuration::from_secs(1),
        ..OltpOptions::default()
    }
}

#[test]
fn a_step_lasts_its_time_after_its_warm_up() {
    let options = OltpOptions { warmup: PlanDuration::from_secs(1), ..options() };
    let mut desk = Desk::new(&options, null::capabilities());
    let (end, record) = desk.run("read-write.c8");
    assert_eq!(end.tasks.len(), 8);
    assert_eq!(record.window(), Some((1_000_000, 2_000_000)));
    let done: u64 = end.tasks.iter().map(|task| task.done).sum();
    assert_eq!(desk.journal.take().len() as u64, 20 * done, "20 statements per transaction");
    let kind = &record.spec.kinds[0];
    assert_eq!((kind.statements_per_operation, kind.kind.as_str()), (20, "transaction"));
    assert_eq!(record.spec.headline.label, "transactions/s");
}

#[test]
fn a_rate_is_over_all_connections_and_an_operation_is_the_same_on_each() {
    for arrivals in [OltpArrivals::Constant, OltpArrivals::Poisson] {
        let options = OltpOptions { arrivals, rates: vec![400], ..options() };
        let mut desk = Desk::new(&options, null::capabilities());
        let (end, record) = desk.run("point-select.c8.r400");
        let done: u64 = end.tasks.iter().map(|task| task.done).sum();
        // A Poisson process has 400 arrivals in one second, with a standard deviation of 20. The
        // seed makes the number the same in each run.
        let expected = if arrivals == OltpArrivals::Constant { 400..=400 } else { 300..=480 };
        let sum = |field: fn(&Interval) -> u64| record.intervals.iter().map(field).sum::<u64>();
        let (due, dropped) = (sum(|interval| interval.due), sum(|interval| interval.dropped));
        assert!(expected.contains(&due), "{arrivals:?}: {due}");
        // On a busy machine some of the last operations may be dropped.
        assert_eq!(done + dropped, due, "{arrivals:?}");
        assert_eq!(record.spec.kinds[0].connections_per_client, 8);
        assert!(
            record.spec.kinds[0].arrivals.ends_with("400/s over all connections"),
            "{:?}",
            record.spec.kinds
        );
        let mut sent: Vec<String> = desk.journal.take().iter().map(crate::desk::text).collect();
        let mut one_connection: Vec<String> =
            desk.operations("point-select.c8.r400", 0, done).into_iter().flatten().collect();
        sent.sort();
        one_connection.sort();
        assert_eq!(sent, one_connection, "who sends an operation does not change it");
    }
}

#[test]
fn thinking_slows_a_closed_loop_down() {
    let options =
        OltpOptions { think_time: PlanDuration(std::time::Duration::from_millis(100)), ..options() };
    let mut desk = Desk::new(&options, null::capabilities());
    let (end, record) = desk.run("point-select.c8");
    let done: u64 = end.tasks.iter().map(|task| task.done).sum();
    // Each connection sends its first operation at once, and then at most one per 100 ms.
    assert!((8..=88).contains(&done), "{done} operations of 8 connections in 1 s");
    assert_eq!(record.spec.kinds[0].arrivals, "closed, think time 100ms");
}
