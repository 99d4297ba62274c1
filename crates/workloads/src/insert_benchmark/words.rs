//! What each step is for, and what its parameters are, in words.

use crate::cards::Words;

const ROW: &str = "dateandtime, one value a statement, by `clock`; cash register, customer, product and price, drawn uniformly; text of \
    data_length_min to data_length_max characters; ids are the server's";
const BESIDE: &str = "queries: a start drawn uniformly over the column's values. Inserts as in l.i1, and deletes of as many of the oldest rows, at \
    the rate in the step's name for each client";

/// Of the step with this name.
pub(crate) fn words(step: &str) -> Words {
    let words = |purpose, parameters| Words { purpose, parameters, trap: "" };
    match step {
        "l.i0" => words("a load in the order of the primary key, which is the only index", ROW),
        "l.x" => words("building the secondary indexes on all rows", "none"),
        "l.i1" => words(
            "random writes to three secondary indexes in larger transactions: inserts at one end of the table, as many deletes at the \
             other",
            ROW,
        ),
        "l.i2" => words("random writes as in l.i1, in small transactions", ROW),
        name if name.starts_with("qr") => words(
            "short range queries on covering indexes with concurrent writes at a fixed rate: read \
             throughput, and whether the write rate is kept",
            BESIDE,
        ),
        _ => words(
            "point queries by primary key with concurrent writes at a fixed rate: read throughput, \
             and whether the write rate is kept",
            "queries: ids drawn uniformly from the rows of the table. Inserts as in l.i1, and deletes of as many of the oldest rows, at the rate \
             in the step's name for each client",
        ),
    }
}
