//! Tests that look up single values: one, or a list of them, over the primary key or the secondary index.

use crate::microbenchmarks::options::MicroTest as Test;

use crate::microbenchmarks::entry::{Entry, Shape};
use crate::oltp::mix::Place;
use crate::oltp::sql::{Fetch, Kind};

const IDS: &str = "100 ids, each drawn from 1 to the table's size; one may come twice";
const KS: &str = "100 values of k, each drawn from 1 to the table's size; as k is random, none, one or several rows have it";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        test: Test::PointQuery,
        purpose: "the cost of one statement: parse or bind, one descent of the primary key, one row",
        parameters: "1 id, drawn from 1 to the table's size",
        trap: "",
        places: |_| one(Kind::Point),
    },
    Entry {
        test: Test::RandomPoints,
        purpose: "many descents of the primary key in one statement, so that the statement's own cost fades",
        parameters: "10, 100 or 1,000 ids as its name says, each drawn from 1 to the table's size; one may come twice",
        trap: "",
        places: |shape| points("c", "id", shape),
    },
    Entry {
        test: Test::HotPoints,
        purpose: "the same 100 rows read by every connection: contention on a few pages",
        parameters: "always the same 100 ids, from size / 2 + 1 on",
        trap: "it needs tables of at least 200 rows",
        places: |shape| one(Kind::HotPoints(shape.step.range)),
    },
    Entry {
        test: Test::PointsCoveredPk,
        purpose: "many descents of the primary key that fetch only the key",
        parameters: IDS,
        trap: "in an engine whose rows lie in the primary key it reads the same pages as points-notcovered-pk",
        places: |shape| points("id", "id", shape),
    },
    Entry {
        test: Test::PointsNotcoveredPk,
        purpose: "many descents of the primary key that fetch the row",
        parameters: IDS,
        trap: "",
        places: |shape| points("id, c", "id", shape),
    },
    Entry {
        test: Test::PointsCoveredSi,
        purpose: "many descents of a covering secondary index",
        parameters: KS,
        trap: "",
        places: |shape| points("k", "k", shape),
    },
    Entry {
        test: Test::PointsNotcoveredSi,
        purpose: "many descents of the secondary index, each followed by one to the row",
        parameters: KS,
        trap: "",
        places: |shape| points("k, c", "k", shape),
    },
];

/// An operation of one statement.
pub(super) fn one(kind: Kind) -> Vec<Place> {
    vec![Place { kind, group: 0 }]
}

fn points(columns: &'static str, by: &'static str, shape: &Shape<'_>) -> Vec<Place> {
    one(Kind::Points(Fetch { columns, by }, shape.step.range))
}
