//! How many prepared statements a step holds open at once.

use crate::oltp::options::{Oltp, OltpTest};
use crate::options::Protocol;

/// What a connection prepares: `kinds` on each of `tables`, and what is around a transaction.
pub(crate) fn of_connection(kinds: u64, tables: u32, is_transaction: bool, with_begin: bool) -> u64 {
    let around = if is_transaction { 1 + u64::from(with_begin) } else { 0 };
    kinds.saturating_mul(tables.into()).saturating_add(around)
}

/// Prepared statements of the step that has the most, all connections together: one for each kind
/// of statement, table and connection, and of transactions COMMIT and BEGIN, the latter where the
/// server prepares it (`with_begin`).
pub(crate) fn most(options: &Oltp, with_begin: bool) -> u64 {
    if options.protocol == Protocol::Text {
        return 0;
    }
    let ranges = [options.simple_ranges, options.sum_ranges, options.order_ranges, options.distinct_ranges];
    let ranges = if options.range_selects { ranges } else { [0; 4] };
    let reads = [&[options.point_selects], &ranges[..]].concat();
    let writes = [options.index_updates, options.non_index_updates];
    let used = |counts: &[u32]| counts.iter().filter(|count| **count > 0).count() as u64;
    // A DELETE and the INSERT of the same row.
    let replaced = if options.delete_inserts > 0 { 2 } else { 0 };
    let kinds = |test: &OltpTest| match test {
        OltpTest::Insert if options.protocol == Protocol::Auto => 0,
        OltpTest::ReadOnly => used(&reads),
        OltpTest::WriteOnly => used(&writes) + replaced,
        OltpTest::ReadWrite => used(&reads) + used(&writes) + replaced,
        _ => 1,
    };
    let connections = options.connections.iter().copied().max().unwrap_or(0);
    let of_test = |test: &OltpTest| {
        let is_transaction = test.is_transaction() && !options.skip_trx;
        of_connection(kinds(test), options.tables, is_transaction, with_begin)
    };
    let most = options.tests.iter().map(of_test).max().unwrap_or(0);
    u64::from(connections).saturating_mul(most)
}

#[cfg(test)]
mod tests {
    use crate::plans::parse;

    fn most(workload: &str) -> u64 {
        let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n{workload}\n");
        parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}")).most_prepared_statements(true)
    }

    #[test]
    fn each_connection_has_each_kind_on_each_table() {
        let sweep = "tests = [\"read-write\"]\ntables = 4\nconnections = \"1..4096\"";
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}")), (9 * 4 + 2) * 4096);
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}\nprotocol = \"text\"")), 0);
        assert_eq!(most("[workload.oltp]\ntests = [\"point-select\"]\nconnections = [16]\ntables = 2"), 32);
        let micro = "[workload.microbenchmarks]\ntables = 2\nconnections = [8]\nsteps = ";
        assert_eq!(most(&format!("{micro}[\"point-query\", \"insert\"]")), 16);
        assert_eq!(most(&format!("{micro}[\"read-write*\"]")), (9 * 2 + 2) * 8);
        let sum = "[\"read-only-sum*\"]\nsequence = \"32\"";
        assert_eq!(most(&format!("{micro}{sum}")), (2 * 2 + 2) * 8);
        assert_eq!(most("[workload.insert-benchmark]"), 0);
    }

    #[test]
    fn what_is_around_a_transaction_counts_where_it_is_prepared() {
        let plan = |options: &str| {
            let text = format!(
                "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.oltp]\n{options}\n"
            );
            parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
        };
        let transaction = plan("tests = [\"read-write\"]\nconnections = [1000]");
        assert_eq!(transaction.most_prepared_statements(true), 11_000);
        assert_eq!(transaction.most_prepared_statements(false), 10_000);
        let without =
            plan("tests = [\"read-write\"]\nconnections = [1000]\nskip_trx = true\nrange_selects = false");
        assert_eq!(without.most_prepared_statements(true), 5_000);
    }
}
