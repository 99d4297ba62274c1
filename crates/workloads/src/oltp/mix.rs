//! Which statements an operation of a test consists of, in order.

use std::collections::BTreeSet;

use crate::oltp::options::{OltpOptions, OltpTest as Test};

use crate::oltp::sql::OltpStatement;

/// One statement of an operation. Statements of the same group use the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatementSlot {
    pub(crate) kind: OltpStatement,
    pub(crate) group: u32,
}

/// Returns the statements of one operation of `test`. Its order and its groups are the original's: all
/// point selects of a transaction share a table, and so do the ranges of one kind, and DELETE and
/// INSERT.
pub(crate) fn places(test: Test, options: &OltpOptions, client_ids: bool) -> Vec<StatementSlot> {
    let mut mix = Mix::default();
    let in_transaction = test.is_transaction() && !options.skip_trx;
    if in_transaction {
        mix.group(1, &[OltpStatement::Begin]);
    }
    match test {
        Test::PointSelect => mix.group(1, &[OltpStatement::Point]),
        Test::ReadOnly => mix.reads(options),
        Test::ReadWrite => {
            mix.reads(options);
            mix.writes(options);
        }
        Test::WriteOnly => mix.writes(options),
        Test::UpdateIndex => mix.group(options.index_updates, &[OltpStatement::IndexUpdate]),
        Test::UpdateNonIndex => mix.group(options.non_index_updates, &[OltpStatement::NonIndexUpdate]),
        Test::Insert => mix.group(1, &[if client_ids { OltpStatement::NewRowWithId } else { OltpStatement::NewRow }]),
        Test::Delete => mix.group(1, &[OltpStatement::Delete]),
    }
    if in_transaction {
        mix.group(1, &[OltpStatement::Commit]);
    }
    mix.places
}

/// Returns the number of prepared statements that a connection holds open for such an operation: one
/// for each kind of statement and table, one for COMMIT, and one for BEGIN where the server prepares it
/// (`with_begin`).
pub(crate) fn prepared(places: &[StatementSlot], tables: u32, with_begin: bool) -> u64 {
    let kinds: BTreeSet<OltpStatement> = places.iter().map(|place| place.kind).collect();
    let count = |kind: OltpStatement| match kind {
        OltpStatement::Begin => with_begin.into(),
        OltpStatement::Commit => 1,
        _ => u64::from(tables),
    };
    kinds.into_iter().map(count).sum()
}

#[derive(Debug, Default)]
struct Mix {
    places: Vec<StatementSlot>,
    groups: u32,
}

impl Mix {
    fn reads(&mut self, options: &OltpOptions) {
        self.group(options.point_selects, &[OltpStatement::Point]);
        if options.range_selects {
            self.group(options.simple_ranges, &[OltpStatement::SimpleRange]);
            self.group(options.sum_ranges, &[OltpStatement::SumRange]);
            self.group(options.order_ranges, &[OltpStatement::OrderRange]);
            self.group(options.distinct_ranges, &[OltpStatement::DistinctRange]);
            self.group(options.count_ranges, &[OltpStatement::CountRange]);
        }
    }

    fn writes(&mut self, options: &OltpOptions) {
        self.group(options.index_updates, &[OltpStatement::IndexUpdate]);
        self.group(options.non_index_updates, &[OltpStatement::NonIndexUpdate]);
        self.group(options.delete_inserts, &[OltpStatement::Delete, OltpStatement::Insert]);
    }

    /// Adds `kinds`, repeated `times` times, on one table.
    fn group(&mut self, times: u32, kinds: &[OltpStatement]) {
        for _ in 0..times {
            self.places.extend(kinds.iter().map(|&kind| StatementSlot { kind, group: self.groups }));
        }
        self.groups += u32::from(times > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of statements in an operation: reads, writes, others.
    fn split(test: Test, options: &OltpOptions) -> (usize, usize, usize) {
        let places = places(test, options, false);
        let count = |wanted: fn(OltpStatement) -> bool| places.iter().filter(|place| wanted(place.kind)).count();
        let (writes, others) = (count(OltpStatement::is_write), count(OltpStatement::is_bracket));
        (places.len() - writes - others, writes, others)
    }

    #[test]
    fn operations_have_the_originals_numbers_of_statements() {
        let options = OltpOptions::default();
        assert_eq!(split(Test::PointSelect, &options), (1, 0, 0));
        assert_eq!(split(Test::ReadOnly, &options), (14, 0, 2));
        assert_eq!(split(Test::WriteOnly, &options), (0, 4, 2));
        assert_eq!(split(Test::ReadWrite, &options), (14, 4, 2));
        for test in [Test::UpdateIndex, Test::UpdateNonIndex, Test::Insert, Test::Delete] {
            assert_eq!(split(test, &options), (0, 1, 0));
        }
    }

    #[test]
    fn every_option_of_the_mix_is_heeded() {
        let one_range =
            OltpOptions { simple_ranges: 0, order_ranges: 0, distinct_ranges: 0, ..OltpOptions::default() };
        assert_eq!(split(Test::ReadOnly, &one_range), (11, 0, 2));
        let points = OltpOptions { range_selects: false, skip_trx: true, ..OltpOptions::default() };
        assert_eq!(split(Test::ReadOnly, &points), (10, 0, 0));
        assert_eq!(split(Test::PointSelect, &OltpOptions { point_selects: 3, ..OltpOptions::default() }), (1, 0, 0));
        let counted = OltpOptions { count_ranges: 3, ..OltpOptions::default() };
        assert_eq!(split(Test::ReadOnly, &counted), (17, 0, 2));
        let many =
            OltpOptions { index_updates: 2, non_index_updates: 0, delete_inserts: 3, ..OltpOptions::default() };
        assert_eq!(split(Test::WriteOnly, &many), (0, 8, 2));
        assert_eq!(split(Test::UpdateIndex, &many), (0, 2, 0));
    }

    #[test]
    fn statements_come_in_the_originals_order_and_groups() {
        let options = OltpOptions { point_selects: 2, delete_inserts: 2, ..OltpOptions::default() };
        let text: Vec<String> = places(Test::ReadWrite, &options, false)
            .iter()
            .map(|place| format!("{}{:?}", place.group, place.kind))
            .collect();
        insta::assert_snapshot!(text.join(" "), @"0Begin 1Point 1Point 2SimpleRange 3SumRange 4OrderRange 5DistinctRange 6IndexUpdate 7NonIndexUpdate 8Delete 8Insert 8Delete 8Insert 9Commit");
    }
}
