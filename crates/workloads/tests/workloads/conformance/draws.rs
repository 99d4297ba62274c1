//! Tests the parameters of queries: their kinds, domains and ids.

use dbdyno_db::mysql;
use dbdyno_workloads::insert_benchmark::options::InsertBenchmarkOptions;

use super::recorded::Recorded;

fn recorded(options: &InsertBenchmarkOptions) -> Recorded {
    Recorded::new(options, mysql::capabilities("innodb", true))
}

/// Returns the first column, which tells the kind, and the parameter of each of `count` range
/// queries.
fn ranges(step: &str, count: u64) -> Vec<(String, u32)> {
    let taken_apart = |sql: &String| {
        let column = sql.strip_prefix("SELECT ")?.split(',').next()?;
        let parameter = sql.split_once(" WHERE ")?.1.split(' ').nth(2)?;
        Some((column.to_owned(), parameter.parse().ok()?))
    };
    let texts = recorded(&InsertBenchmarkOptions::default()).texts(step, "query", count);
    texts.iter().map(|sql| taken_apart(sql).unwrap_or_else(|| panic!("{sql}"))).collect()
}

#[test]
fn the_kinds_of_range_queries_have_equal_shares_and_no_order() {
    let queries = ranges("qr100", 30_000);
    let count = |column: &str| queries.iter().filter(|(name, _)| name == column).count() as f64;
    let counts = [count("productid"), count("cashregisterid"), count("price")];
    // With 2 degrees of freedom, chi-square exceeds 18.4 once in 10,000 times.
    let chi: f64 = counts.iter().map(|seen| (seen - 10_000.0).powi(2) / 10_000.0).sum();
    assert!(chi < 18.4, "{counts:?}");
    // With independent draws, a kind follows itself in a third of all cases. In a rotation it would
    // never do so.
    let repeated = queries.windows(2).filter(|pair| pair[0].0 == pair[1].0).count() as f64;
    assert!((repeated / 29_999.0 - 1.0 / 3.0).abs() < 0.012, "{repeated}");
}

#[test]
fn range_parameters_are_uniform_over_their_columns_domains() {
    let queries = ranges("qr1000", 60_000);
    for (column, domain) in [("productid", 10_000), ("cashregisterid", 1000), ("price", 500)] {
        let of_kind = queries.iter().filter(|(name, _)| name == column).map(|(_, parameter)| *parameter);
        let mut tenths = [0_u32; 10];
        for parameter in of_kind.clone() {
            assert!(parameter < domain, "{column} {parameter}");
            tenths[(parameter * 10 / domain) as usize] += 1;
        }
        let expected = of_kind.clone().count() as f64 / 10.0;
        // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 times.
        let chi: f64 = tenths.iter().map(|&seen| (f64::from(seen) - expected).powi(2) / expected).sum();
        assert!(chi < 33.7, "{column}: {tenths:?}");
        assert!(
            of_kind.clone().min() < Some(domain / 100) && of_kind.max() >= Some(domain - 1 - domain / 100)
        );
    }
}

#[test]
fn two_query_connections_of_a_client_send_different_queries() {
    let options = InsertBenchmarkOptions { query_connections: 2, ..InsertBenchmarkOptions::default() };
    let recorded = recorded(&options);
    let mut tasks = recorded.tasks("qr100");
    let first: Vec<String> = (0..20).map(|number| tasks.text(1, "query", number)).collect();
    tasks.drop_first("query");
    let second: Vec<String> = (0..20).map(|number| tasks.text(1, "query", number)).collect();
    assert_ne!(first, second);
}

fn ids(sql: &str) -> Vec<i64> {
    let (_, list) = sql.split_once(" IN (").expect("a list");
    list.trim_end_matches(')').split(',').map(|id| id.parse().unwrap()).collect()
}

#[test]
fn point_ids_are_uniform_from_the_delete_cursor_to_below_the_highest_id() {
    let recorded = recorded(&InsertBenchmarkOptions::default());
    let base = 3_000_000_000;
    recorded.journal.answer("SELECT min(transactionid) FROM pi1", base);
    recorded.journal.answer("SELECT max(transactionid) FROM pi1", base + 1050);
    let mut tasks = recorded.tasks("qp100");
    tasks.send(1, "delete", 0);
    let all: Vec<i64> = (0..2000).flat_map(|number| ids(&tasks.text(1, "query", number))).collect();
    assert_eq!(all.len(), 20_000);
    // After one DELETE of 50 rows, the cursor is 50 above the lowest id.
    assert_eq!(all.iter().min(), Some(&(base + 50)));
    assert_eq!(all.iter().max(), Some(&(base + 1049)));
    let mut tenths = [0_u32; 10];
    for id in &all {
        tenths[((id - base - 50) / 100) as usize] += 1;
    }
    let chi: f64 = tenths.iter().map(|&seen| (f64::from(seen) - 2000.0).powi(2) / 2000.0).sum();
    assert!(chi < 33.7, "{tenths:?}");
}

#[test]
fn the_ids_of_a_query_are_drawn_one_by_one() {
    let recorded = recorded(&InsertBenchmarkOptions::default());
    recorded.journal.answer("SELECT max(transactionid) FROM pi1", 21);
    let mut tasks = recorded.tasks("qp100");
    let queries: Vec<Vec<i64>> = (0..5000).map(|number| ids(&tasks.text(1, "query", number))).collect();
    // Ids are from 0 to 20, so two independent draws are equal in 1/21 of all queries.
    for (a, b) in [(0, 1), (0, 2), (4, 9)] {
        let equal = queries.iter().filter(|ids| ids[a] == ids[b]).count() as f64 / 5000.0;
        assert!((equal - 1.0 / 21.0).abs() < 0.013, "ids {a} and {b} are equal in {equal}");
    }
}
