//! Tests the parameters of each step: their values, the width of ranges, and their distribution.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_plan::WorkloadOptions;
use dbdyno_workloads::microbenchmarks::options::{MicroSequence, MicrobenchmarksOptions};
use dbdyno_workloads::oltp::options::IdType;

use super::{desk, numbers, options};

fn statements(step: &str, connection: usize, count: u64) -> Vec<String> {
    let sequence =
        if step.starts_with("read-only-") { MicroSequence::ThirtyTwo } else { MicroSequence::FortyTwo };
    desk(&options(sequence)).operations(step, connection, count).concat()
}

#[test]
fn ranges_of_the_range_steps_span_one_value_more_than_those_of_transactions() {
    for step in ["range-covered-pk", "range-notcovered-pk.pre", "range-covered-si", "range-notcovered-si"] {
        for sql in statements(step, 1, 50) {
            let [first, last] = numbers(&sql)[..] else { panic!("{sql}") };
            assert_eq!(last - first, 100, "{step}: {sql}");
        }
    }
    for (step, span) in
        [("read-only_range=10", 9), ("read-only.pre_range=10000", 9_999), ("read-only-sum", 999)]
    {
        let ranges: Vec<_> =
            statements(step, 0, 5).into_iter().filter(|sql| sql.contains("BETWEEN")).collect();
        assert_eq!(ranges.len(), if step == "read-only-sum" { 5 } else { 20 });
        for sql in ranges {
            let [first, last] = numbers(&sql)[..] else { panic!("{sql}") };
            assert_eq!(last - first, span, "{step}: {sql}");
        }
    }
    let counted = numbers(&statements("read-only-count", 0, 1)[0]);
    assert_eq!(counted[1] - counted[0], 999);
}

#[test]
fn hot_points_are_the_ids_after_the_middle_for_all_connections() {
    let expected: Vec<i64> = (5_001..=5_100).collect();
    for connection in [0, 1] {
        for sql in statements("hot-points", connection, 3) {
            assert_eq!(numbers(&sql), expected);
        }
    }
}

#[test]
fn lists_have_the_right_length_and_are_drawn_again_for_each_operation() {
    for (step, length) in [
        ("random-points_range=10", 10),
        ("random-points_range=100", 100),
        ("random-points_range=1000", 1_000),
        ("points-covered-pk", 100),
        ("points-notcovered-si", 100),
    ] {
        let lists: Vec<Vec<i64>> = statements(step, 0, 3).iter().map(|sql| numbers(sql)).collect();
        for list in &lists {
            assert_eq!(list.len(), length, "{step}");
            assert!(list.iter().all(|value| (1..=10_000).contains(value)), "{step}");
        }
        assert_ne!(lists[0], lists[1], "{step}");
    }
    let update = &statements("update-inlist", 0, 1)[0];
    assert_eq!(numbers(&update[update.find("IN").unwrap()..]).len(), 10);
    let longer = MicrobenchmarksOptions { update_inlist_ids: 25, ..options(MicroSequence::FortyTwo) };
    let update = desk(&longer).operations("update-inlist", 0, 1).concat().remove(0);
    assert_eq!(numbers(&update[update.find("IN").unwrap()..]).len(), 25);
}

#[test]
fn update_one_changes_row_1_of_every_table_and_zipf_prefers_the_first_rows() {
    let id = |sql: &String| numbers(&sql[sql.find("WHERE").unwrap()..])[0];
    let ones = statements("update-one", 1, 50);
    assert!(ones.iter().all(|sql| id(sql) == 1));
    assert_eq!(ones.iter().map(|sql| &sql[7..14]).collect::<BTreeSet<_>>().len(), 2, "both tables");
    let mut counts: BTreeMap<i64, u32> = BTreeMap::new();
    statements("update-zipf", 0, 4_000).iter().for_each(|sql| *counts.entry(id(sql)).or_default() += 1);
    // With 10,000 ids and exponent 0.8, id 1 gets 1 / sum(1 / i^0.8) = 3.7 % of the draws, which is
    // 148 of 4,000.
    assert!(counts[&1].abs_diff(148) < 50, "{}", counts[&1]);
    let first_hundred: u32 = counts.range(..=100).map(|(_, count)| count).sum();
    assert!(first_hundred > 1_000, "{first_hundred}");
}

#[test]
fn each_group_of_statements_draws_its_own_table_and_each_scan_stays_on_one() {
    let table = |sql: &str| sql.find("sbtest").map(|at| sql[at..at + 7].to_owned());
    let transaction = statements("read-write_range=10", 0, 1);
    let points: BTreeSet<_> = transaction[1..11].iter().map(|sql| table(sql)).collect();
    assert_eq!(points.len(), 1, "point selects share a table");
    assert_eq!(table(&transaction[17]), table(&transaction[18]), "DELETE and INSERT share a table");
    let ids: Vec<i64> = [&transaction[17], &transaction[18]].map(|sql| numbers(sql)[0]).to_vec();
    assert_eq!(ids[0], ids[1], "and a row");
    let all = statements("read-write_range=10", 0, 40);
    let sums: BTreeSet<_> = all.iter().filter(|sql| sql.contains("SUM")).map(|sql| table(sql)).collect();
    assert_eq!(sums.len(), 2);
    for connection in [0, 1] {
        let scanned: BTreeSet<_> = statements("scan", connection, 5).iter().map(|sql| table(sql)).collect();
        assert_eq!(scanned, BTreeSet::from([Some(format!("sbtest{}", connection + 1))]));
    }
}

#[test]
fn steps_before_and_after_the_writes_draw_different_numbers_and_a_seed_repeats_them() {
    assert_ne!(statements("point-query", 0, 5), statements("point-query.pre", 0, 5));
    assert_ne!(statements("point-query", 0, 5), statements("point-query", 1, 5));
    assert_eq!(statements("point-query", 0, 5), statements("point-query", 0, 5));
}

/// Returns a statement without its text values, because they consist of digits.
fn without_texts(sql: &str) -> String {
    sql.split('\'').step_by(2).collect()
}

#[test]
fn ids_and_k_of_every_statement_begin_at_the_first_id_of_the_plan() {
    const SHIFT: i64 = 5_000_000_000;
    for sequence in [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo] {
        let mut near = desk(&options(sequence));
        let mut far = desk(&MicrobenchmarksOptions {
            first_id: 1 + SHIFT as u64,
            id: IdType::Bigint,
            ..options(sequence)
        });
        for step in &options(sequence).step_names()[2..] {
            let pairs =
                near.operations(step, 0, 2).concat().into_iter().zip(far.operations(step, 0, 2).concat());
            for (near, far) in pairs {
                let (one, other) = (without_texts(&near), without_texts(&far));
                // Numbers that belong to the statement itself do not move: those in `k=k+1` and in
                // `LENGTH(c) < 0`, and the 0 for which the server gives an id.
                let fixed = usize::from(one.contains("k+1") || one.contains("LENGTH") || one.contains("(0,"));
                let moved: Vec<i64> = numbers(&other)
                    .into_iter()
                    .zip(numbers(&one))
                    .map(|(far, near)| far - near)
                    .filter(|&moved| moved != 0)
                    .collect();
                assert!(moved.iter().all(|&moved| moved == SHIFT), "{step}: {near} {far}");
                assert_eq!(moved.len() + fixed, numbers(&one).len(), "{step}: {near} {far}");
            }
        }
    }
}
