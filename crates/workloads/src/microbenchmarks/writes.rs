//! Tests that change rows: single statements, and transactions of the classic mix.

use crate::microbenchmarks::options::MicroTest as Test;
use crate::oltp::options::OltpTest;

use crate::microbenchmarks::entry::Entry;
use crate::microbenchmarks::points::one;
use crate::oltp::mix::places;
use crate::oltp::sql::Kind;

const ID: &str = "1 id, drawn from 1 to the table's size";
const NEW_C: &str = "a new c, and 1 id, drawn from 1 to the table's size";
const MIX: &str =
    "each statement draws its table and id; DELETE and INSERT share both, so that the row comes back";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        test: Test::UpdateInlist,
        purpose: "several rows changed by one statement, without touching the secondary index",
        parameters: "a new c, and update_inlist_ids ids (10), each drawn from 1 to the table's size",
        trap: "its published name says range=100, but the original's script does not get that \
               option and uses its default of 10",
        places: |shape| one(Kind::ListUpdate(shape.options.update_inlist_ids)),
    },
    Entry {
        test: Test::UpdateIndex,
        purpose: "one row changed, and its entry in the secondary index moved",
        parameters: ID,
        trap: "",
        places: |_| one(Kind::IndexUpdate),
    },
    Entry {
        test: Test::UpdateNonindex,
        purpose: "one row changed, without touching the secondary index",
        parameters: NEW_C,
        trap: "",
        places: |_| one(Kind::NonIndexUpdate),
    },
    Entry {
        test: Test::UpdateOne,
        purpose: "every connection changes the same row: contention on its lock and its old versions",
        parameters: "a new c, and always id 1; of several tables, row 1 of one of them",
        trap: "",
        places: |_| one(Kind::NonIndexUpdate),
    },
    Entry {
        test: Test::UpdateZipf,
        purpose: "few rows take most of the changes: contention that fades towards rare rows",
        parameters: "a new c, and 1 id by a Zipf law with exponent 0.8, id 1 the most frequent",
        trap: "the frequent ids are adjacent, because they are not scrambled",
        places: |_| one(Kind::NonIndexUpdate),
    },
    Entry {
        test: Test::WriteOnly,
        purpose: "the writes of the classic transaction: two updates, a delete and an insert",
        parameters: MIX,
        trap: "its published name says range=10000, which has no effect; in the 42 it is as long as a step that reads; published \
               QPS is 6 times the transactions/s here",
        places: |shape| places(OltpTest::WriteOnly, shape.oltp, shape.client_ids),
    },
    Entry {
        test: Test::ReadWrite,
        purpose: "the whole classic transaction: ten points, four ranges of 10 or 100 rows, two updates, a delete, an insert",
        parameters: MIX,
        trap: "published QPS is 20 times the transactions/s here",
        places: |shape| places(OltpTest::ReadWrite, shape.oltp, shape.client_ids),
    },
    Entry {
        test: Test::Delete,
        purpose: "one row deleted by its id, and its entry in the secondary index",
        parameters: ID,
        trap: "the table empties, and more and more deletes find no row: in published runs 10 % to \
               93 % of them did. Rates count both. Statements that found no row are counted \
               separately here; delete_refill puts rows back after the step",
        places: |_| one(Kind::Delete),
    },
    Entry {
        test: Test::Insert,
        purpose: "one row at the end of the table, and its entry anywhere in the secondary index",
        parameters: "k drawn from 1 to the table's size, new c and pad; the server gives the id",
        trap: "it runs after delete, on a table that has lost rows",
        places: |shape| places(OltpTest::Insert, shape.oltp, shape.client_ids),
    },
];

/// What a test does to the contents of tables, said by the classic test that does the same.
pub(super) fn effect(test: Test) -> OltpTest {
    match test {
        Test::UpdateIndex => OltpTest::UpdateIndex,
        Test::UpdateInlist | Test::UpdateNonindex | Test::UpdateOne | Test::UpdateZipf => {
            OltpTest::UpdateNonIndex
        }
        Test::WriteOnly => OltpTest::WriteOnly,
        Test::ReadWrite => OltpTest::ReadWrite,
        Test::Delete => OltpTest::Delete,
        Test::Insert => OltpTest::Insert,
        _ => OltpTest::PointSelect,
    }
}

/// What an operation is called, and the label of its rate.
pub(super) fn names(test: Test) -> (&'static str, &'static str) {
    match test {
        Test::ReadOnly
        | Test::ReadOnlySimple
        | Test::ReadOnlySum
        | Test::ReadOnlyOrder
        | Test::ReadOnlyDistinct
        | Test::ReadWrite
        | Test::WriteOnly => ("transaction", "transactions/s"),
        Test::Scan => ("scan", "rows/s"),
        Test::Delete => ("delete", "deletes/s"),
        Test::Insert => ("insert", "inserts/s"),
        _ if test.writes() => ("update", "updates/s"),
        _ => ("query", "queries/s"),
    }
}
