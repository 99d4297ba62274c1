//! What each step is for, and what its parameters are, in words.

use crate::cards::Words;

const DRAWN: &str = "those with which answers are published, or drawn by the specification's rules from the plan's seed and the stream";

/// Of the step with this name.
pub(crate) fn words(step: &str) -> Words {
    let words = |purpose, parameters, trap| Words { purpose, parameters, trap };
    let query = step.split('.').next().unwrap_or(step);
    match query {
        "load" => {
            words("all rows of the eight tables, streamed", "rows of the generator at the scale factor", "")
        }
        "index" => words("primary keys where they come after the load, and secondary indexes", "none", ""),
        "statistics" => words("the optimiser's statistics of each table", "none", ""),
        "power" => words(
            "a refresh function, each query once, the other refresh function, on one connection",
            DRAWN,
            "",
        ),
        "throughput" => words(
            "streams of queries at the same time, each in an order of its own, and one of refresh functions",
            DRAWN,
            "",
        ),
        _ => words(purpose(query), DRAWN, ""),
    }
}

fn purpose(query: &str) -> &'static str {
    match query {
        "q1" => "sums over nearly all line items",
        "q2" => "the cheapest supplier of parts of one kind: a subquery for each part",
        "q3" => "unshipped orders of the greatest value: three tables, sorted",
        "q4" => "late orders by priority: a semi-join",
        "q5" => "revenue within the nations of a region: six tables",
        "q6" => "one sum over a range of dates",
        "q7" => "trade between two nations: six tables",
        "q8" => "a nation's share of a market: eight tables",
        "q9" => "profit by nation and year: six tables and a search in texts",
        "q10" => "customers who returned most: four tables, many groups",
        "q11" => "parts of great value in a nation's stock: groups compared with a total",
        "q12" => "late line items by way of shipping: two large tables",
        "q13" => "customers by number of orders: an outer join",
        "q14" => "share of parts on promotion in a month",
        "q15" => "the supplier of the greatest revenue: a view that is used twice",
        "q16" => "suppliers of parts by kind: a count of distinct ones, an anti-join",
        "q17" => "small orders of a part: a correlated average",
        "q18" => "customers with very large orders: a subquery with groups",
        "q19" => "three alternatives with conditions of their own",
        "q20" => "suppliers with too much in stock: nested subqueries",
        "q21" => {
            "suppliers who kept orders waiting: a semi-join and an anti-join of the largest table with itself"
        }
        _ => "customers without orders and with money: an anti-join",
    }
}
