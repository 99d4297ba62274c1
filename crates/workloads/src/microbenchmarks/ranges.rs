//! Tests that read ranges, over the primary key or the secondary index, and the scan of a whole table.

use crate::microbenchmarks::options::MicroTest as Test;

use crate::microbenchmarks::entry::{Entry, Shape};
use crate::microbenchmarks::points::one;
use crate::oltp::mix::Place;
use crate::oltp::sql::{Fetch, Kind};

const BY_ID: &str = "a and a + 100, a drawn from 1 to the table's size";
const BY_K: &str = "a and a + 100, a drawn from 1 to the table's size; about 101 rows, as k is uniform";
const SPAN: &str =
    "BETWEEN a AND a + 100 spans 101 values, not 100; near the end of the table there are fewer";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        test: Test::RangeCoveredPk,
        purpose: "a short range of the primary key that fetches only the key",
        parameters: BY_ID,
        trap: SPAN,
        places: |shape| range("id", "id", shape),
    },
    Entry {
        test: Test::RangeNotcoveredPk,
        purpose: "a short range of the primary key with its rows",
        parameters: BY_ID,
        trap: SPAN,
        places: |shape| range("id, c", "id", shape),
    },
    Entry {
        test: Test::RangeCoveredSi,
        purpose: "a short range of a covering secondary index",
        parameters: BY_K,
        trap: SPAN,
        places: |shape| range("k", "k", shape),
    },
    Entry {
        test: Test::RangeNotcoveredSi,
        purpose: "a short range of the secondary index, and a descent to the row for each of its entries",
        parameters: BY_K,
        trap: SPAN,
        places: |shape| range("k, c", "k", shape),
    },
    Entry {
        test: Test::ReadOnlyCount,
        purpose: "a range of the primary key that is counted in the server: reading rows without sending them",
        parameters: "a and a + 999, a drawn from 1 to the table's size",
        trap: "in spite of its name there is no transaction around it, and no point select",
        places: |_| one(Kind::CountRange),
    },
    Entry {
        test: Test::Scan,
        purpose: "reading and filtering every row of a table",
        parameters: "none; each connection has one table, connection n table 1 + n mod tables",
        trap: "its rate is rows of the table a second, all connections together, by mean service time where a step ends with \
               its time and not with its scans. The original's unit has changed four times \
               (million rows, thousand rows, of one or all connections, with too many for several tables); the step of the \
               42 is one scan of each table",
        places: |_| one(Kind::Scan),
    },
];

fn range(columns: &'static str, by: &'static str, shape: &Shape<'_>) -> Vec<Place> {
    one(Kind::Range(Fetch { columns, by }, shape.step.range))
}
