//! Tests the delete cursor, and the look-ups of the lowest and the highest id.

use dbdyno_db::mysql;
use dbdyno_db::null::Request;
use dbdyno_workloads::insert_benchmark::options::InsertBenchmarkOptions;

use super::recorded::{Recorded, Tasks, number_between};

const MIN: &str = "SELECT min(transactionid) FROM pi1";
const MAX: &str = "SELECT max(transactionid) FROM pi1";

fn recorded(options: &InsertBenchmarkOptions) -> Recorded {
    Recorded::new(options, mysql::capabilities("innodb", true))
}

/// Returns the id at which delete `number` begins, and whether the lowest id was looked up before
/// it.
fn delete(tasks: &mut Tasks<'_>, number: u64) -> (i64, bool) {
    let requests = tasks.send(1, "delete", number);
    let Some(Request::Query(sql)) = requests.last() else { panic!("{requests:?}") };
    let looked_up = requests.len() == 2 && requests[0] == Request::Rows(MIN.to_owned());
    assert_eq!(requests.len(), if looked_up { 2 } else { 1 }, "{requests:?}");
    let from = number_between(
        sql,
        "DELETE FROM pi1 WHERE transactionid >= ",
        " ORDER BY transactionid ASC LIMIT 50",
    );
    (from, looked_up)
}

#[test]
fn the_lowest_id_is_looked_up_every_1001_rounds_and_the_cursor_advances_between_look_ups() {
    let recorded = recorded(&InsertBenchmarkOptions::default());
    let mut tasks = recorded.tasks("l.i1");
    let base = 5_000_000_000;
    for round in 0..3100 {
        // The lowest id rises by 49 per round, and the cursor by 50. The cursor is therefore ahead
        // of the lowest id between look-ups.
        let since = i64::try_from(round % 1001).unwrap();
        recorded.journal.answer(MIN, base + i64::try_from(round).unwrap() * 49);
        let (from, looked_up) = delete(&mut tasks, round);
        assert_eq!(looked_up, round % 1001 == 0, "round {round}");
        let of_lookup = base + (i64::try_from(round).unwrap() - since) * 49;
        assert_eq!(from, of_lookup + since * 50, "round {round}");
    }
}

#[test]
fn each_step_begins_with_its_own_look_up() {
    let recorded = recorded(&InsertBenchmarkOptions::default());
    recorded.journal.answer(MIN, 400);
    for step in ["l.i1", "qr100", "qp1000"] {
        assert_eq!(delete(&mut recorded.tasks(step), 0), (400, true), "{step}");
    }
}

#[test]
fn an_interval_of_0_rounds_means_one_look_up() {
    let recorded =
        recorded(&InsertBenchmarkOptions { resync_rounds: 0, ..InsertBenchmarkOptions::default() });
    recorded.journal.answer(MIN, 1);
    let mut tasks = recorded.tasks("l.i1");
    let look_ups = (0..2100).filter(|&round| delete(&mut tasks, round).1).count();
    assert_eq!(look_ups, 1);
}

fn ids(requests: &[Request]) -> Vec<i64> {
    let Some(Request::Query(sql)) = requests.last() else { panic!("{requests:?}") };
    let (_, list) = sql.split_once(" IN (").expect("a list");
    list.trim_end_matches(')').split(',').map(|id| id.parse().unwrap()).collect()
}

#[test]
fn the_highest_id_is_looked_up_before_the_first_and_after_every_100th_point_query() {
    let recorded = recorded(&InsertBenchmarkOptions::default());
    recorded.journal.answer(MIN, 900);
    let mut tasks = recorded.tasks("qp500");
    tasks.send(1, "delete", 0);
    for number in 0..350 {
        let highest = 1000 + i64::try_from(number).unwrap();
        recorded.journal.answer(MAX, highest);
        let requests = tasks.send(1, "query", number);
        let looked_up = requests[0] == Request::Rows(MAX.to_owned());
        assert_eq!(looked_up, number % 100 == 0, "query {number}");
        let known = highest - i64::try_from(number % 100).unwrap();
        assert!(ids(&requests).iter().all(|id| (950..known).contains(id)), "{requests:?}");
    }
}

#[test]
fn point_queries_reach_down_to_0_until_the_first_delete_and_follow_the_cursor_after_it() {
    let recorded = recorded(&InsertBenchmarkOptions::default());
    recorded.journal.answer(MIN, 100_000);
    recorded.journal.answer(MAX, 200_000);
    let mut tasks = recorded.tasks("qp500");
    let lowest = |tasks: &mut Tasks<'_>| (0..50).flat_map(|n| ids(&tasks.send(1, "query", n))).min().unwrap();
    assert!(lowest(&mut tasks) < 5000);
    let mut round = 0;
    for (rounds, cursor) in [(1, 100_050), (2, 100_100), (100, 105_000)] {
        while round < rounds {
            delete(&mut tasks, round);
            round += 1;
        }
        let lowest = lowest(&mut tasks);
        assert!((cursor..cursor + 3000).contains(&lowest), "{lowest} is not just above {cursor}");
    }
}

#[test]
fn without_deletes_point_queries_begin_at_0() {
    let recorded = recorded(&InsertBenchmarkOptions { deletes: false, ..InsertBenchmarkOptions::default() });
    recorded.journal.answer(MAX, 1000);
    let mut tasks = recorded.tasks("qp500");
    assert!(tasks.specs().all(|(_, kind)| kind != "delete"));
    assert!((0..100).flat_map(|n| ids(&tasks.send(1, "query", n))).any(|id| id < 10));
}
