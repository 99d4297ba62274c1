//! Steps of a sweep as the load engine runs them: how long, with how many connections, at which
//! rate.

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
fn rates_are_of_all_connections_together_and_keep_their_operations() {
    for arrivals in [OltpArrivals::Constant, OltpArrivals::Poisson] {
        let options = OltpOptions { arrivals, rates: vec![400], ..options() };
        let mut desk = Desk::new(&options, null::capabilities());
        let (end, record) = desk.run("point-select.c8.r400");
        let done: u64 = end.tasks.iter().map(|task| task.done).sum();
        // Of a Poisson process in one second: 400 with a deviation of 20, and always the same ones.
        let expected = if arrivals == OltpArrivals::Constant { 400..=400 } else { 300..=480 };
        let sum = |field: fn(&Interval) -> u64| record.intervals.iter().map(field).sum::<u64>();
        let (due, dropped) = (sum(|interval| interval.due), sum(|interval| interval.dropped));
        assert!(expected.contains(&due), "{arrivals:?}: {due}");
        // A machine that is busy with other things may leave some of the last to be done.
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
    // Each begins at once and then every 100 ms at most.
    assert!((8..=88).contains(&done), "{done} operations of 8 connections in 1 s");
    assert_eq!(record.spec.kinds[0].arrivals, "closed, think time 100ms");
}
