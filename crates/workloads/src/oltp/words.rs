//! What each step is for, and what its parameters are, in words.

use crate::oltp::options::OltpTest as Test;

use crate::cards::Words;

const DRAWN: &str = "ids drawn from 1 to the table's size by `distribution`; the point selects of a transaction share a table, all \
    else draws its own";
const RANGES: &str = "ids drawn from 1 to the table's size by `distribution`; a range goes from a to a + range_size - 1. The point \
    selects of a transaction share a table, each kind of range draws its own";
const ID: &str = "1 id, drawn from 1 to the table's size by `distribution`, in a table that is drawn";

/// Of the step with this name, beginning with that of its test.
pub(crate) fn words(step: &str) -> Words {
    let test = step.split('.').next().unwrap_or(step);
    match (test, Test::ALL.into_iter().find(|known| known.name() == test)) {
        ("load", _) => Words {
            purpose: "all rows of all tables, in the order of ids",
            parameters: "k drawn uniformly from 1 to the table's size; c of 119 and pad of 59 random digits and hyphens; all of them a \
                function of (seed, table, row)",
            trap: "",
        },
        ("index", _) => {
            Words { purpose: "the secondary index on k, after the load", parameters: "none", trap: "" }
        }
        (_, Some(test)) => of_test(test),
        (_, None) => Words { purpose: "", parameters: "", trap: "" },
    }
}

fn of_test(test: Test) -> Words {
    let words = |purpose, parameters, trap| Words { purpose, parameters, trap };
    match test {
        Test::PointSelect => {
            words("the cost of one statement: one descent of the primary key, one row", ID, "")
        }
        Test::ReadOnly => words(
            "the classic transaction that reads: ten points, and four ranges that are fetched, summed up, sorted, and sorted without \
             doubles",
            RANGES,
            "published QPS counts statements, BEGIN and COMMIT too: 16 times the transactions/s here",
        ),
        Test::ReadWrite => words(
            "the whole classic transaction: the reads, then two updates, a delete and an insert",
            RANGES,
            "published QPS is 20 times the transactions/s here",
        ),
        Test::WriteOnly => words(
            "the writes of the classic transaction; the row that is deleted comes back",
            DRAWN,
            "published QPS is 6 times the transactions/s here",
        ),
        Test::UpdateIndex => words("one row changed, and its entry in the secondary index moved", ID, ""),
        Test::UpdateNonIndex => words(
            "one row changed, without touching the secondary index",
            "a new c, and 1 id by `distribution`",
            "",
        ),
        Test::Insert => words(
            "one row at the end of the table, and its entry anywhere in the secondary index",
            "k drawn from 1 to the table's size by `distribution`, new c and pad; the server gives the id unless auto_inc = false",
            "",
        ),
        Test::Delete => words(
            "one row deleted by its id, and its entry in the secondary index",
            ID,
            "the table empties, and more and more deletes find no row; rates count both",
        ),
    }
}
