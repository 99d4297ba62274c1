//! Transactions that read: ten point selects and ranges, all or one kind of them.

use crate::microbenchmarks::options::MicroTest as Test;
use crate::oltp::options::OltpTest;

use crate::microbenchmarks::entry::{Entry, Shape};
use crate::oltp::mix::{Place, places};

const RANGES: &str = "ids drawn from 1 to the table's size; ranges span as many ids as the name says, a to a + R - 1. The point \
    selects of a transaction share a table, each range draws its own";
const MOSTLY_POINTS: &str = "10 of its 13 statements are point selects, in spite of its name; 1 is the range";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        test: Test::ReadOnly,
        purpose: "the classic transaction that reads: ten points, four ranges of 10, 100 or 10,000 rows",
        parameters: RANGES,
        trap: "published QPS counts statements, BEGIN and COMMIT too: 16 times the transactions/s here",
        places: read_only,
    },
    Entry {
        test: Test::ReadOnlySimple,
        purpose: "ten points and a range that is fetched",
        parameters: RANGES,
        trap: MOSTLY_POINTS,
        places: read_only,
    },
    Entry {
        test: Test::ReadOnlySum,
        purpose: "ten points and a range that is summed up",
        parameters: RANGES,
        trap: MOSTLY_POINTS,
        places: read_only,
    },
    Entry {
        test: Test::ReadOnlyOrder,
        purpose: "ten points and a range that is sorted",
        parameters: RANGES,
        trap: MOSTLY_POINTS,
        places: read_only,
    },
    Entry {
        test: Test::ReadOnlyDistinct,
        purpose: "ten points and a range that is sorted without doubles",
        parameters: RANGES,
        trap: MOSTLY_POINTS,
        places: read_only,
    },
];

fn read_only(shape: &Shape<'_>) -> Vec<Place> {
    places(OltpTest::ReadOnly, shape.oltp, shape.client_ids)
}
