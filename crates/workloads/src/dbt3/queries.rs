//! The 22 queries: their texts with places for parameters, and how each product wants them written.
//!
//! `{1}` is the first parameter, `{date:1}` a date, `{date:1+3m}` one that much later, `{number:2-0.01}` a number; the client
//! computes them. `{year:c}` is the year of a date, `{s}` the number of the stream. The tables of `[a, b]` may be joined in a
//! given order.

use std::fmt::Write as _;

use dbdyno_drivers::{Capabilities, IndexHint};
use jiff::{Span, civil::Date};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dbt3::schema::Table;

/// How q15 has its intermediate table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Q15 {
    /// A view that is created before the query and dropped after it, both in its time.
    View,
    /// A common table expression: MariaDB from 10.2, MySQL from 8.0, PostgreSQL, SQLite.
    Cte,
}

/// Queries there are.
pub(crate) const COUNT: u8 = 22;

const TEXTS: [&str; COUNT as usize] = [
    "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price, \
     SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, \
     SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty, \
     AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order FROM [lineitem] \
     WHERE l_shipdate <= {date:1998-12-01-1d} GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
    "SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment \
     FROM [part, supplier, partsupp, nation, region] WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey \
     AND p_size = {1} AND p_type LIKE '%{2}' AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = '{3}' \
     AND ps_supplycost = (SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region WHERE p_partkey = ps_partkey \
     AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = '{3}') \
     ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100",
    "SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority \
     FROM [customer, orders, lineitem] WHERE c_mktsegment = '{1}' AND c_custkey = o_custkey AND l_orderkey = o_orderkey \
     AND o_orderdate < {date:2} AND l_shipdate > {date:2} GROUP BY l_orderkey, o_orderdate, o_shippriority \
     ORDER BY revenue DESC, o_orderdate LIMIT 10",
    "SELECT o_orderpriority, COUNT(*) AS order_count FROM [orders] WHERE o_orderdate >= {date:1} \
     AND o_orderdate < {date:1+3m} AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey \
     AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority",
    "SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue \
     FROM [customer, orders, lineitem, supplier, nation, region] WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey \
     AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey \
     AND r_name = '{1}' AND o_orderdate >= {date:2} AND o_orderdate < {date:2+12m} GROUP BY n_name ORDER BY revenue DESC",
    "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM [lineitem] WHERE l_shipdate >= {date:1} \
     AND l_shipdate < {date:1+12m} AND l_discount BETWEEN {number:2-0.01} AND {number:2+0.01} AND l_quantity < {3}",
    "SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (SELECT n1.n_name AS supp_nation, \
     n2.n_name AS cust_nation, {year:l_shipdate} AS l_year, l_extendedprice * (1 - l_discount) AS volume \
     FROM [supplier, lineitem, orders, customer, nation n1, nation n2] WHERE s_suppkey = l_suppkey \
     AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey \
     AND c_nationkey = n2.n_nationkey AND ((n1.n_name = '{1}' AND n2.n_name = '{2}') \
     OR (n1.n_name = '{2}' AND n2.n_name = '{1}')) AND l_shipdate BETWEEN {date:1995-01-01} AND {date:1996-12-31}) \
     AS shipping GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year",
    "SELECT o_year, SUM(CASE WHEN nation = '{1}' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share FROM \
     (SELECT {year:o_orderdate} AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation \
     FROM [part, supplier, lineitem, orders, customer, nation n1, nation n2, region] WHERE p_partkey = l_partkey \
     AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey \
     AND n1.n_regionkey = r_regionkey AND r_name = '{2}' AND s_nationkey = n2.n_nationkey \
     AND o_orderdate BETWEEN {date:1995-01-01} AND {date:1996-12-31} AND p_type = '{3}') AS all_nations \
     GROUP BY o_year ORDER BY o_year",
    "SELECT nation, o_year, SUM(amount) AS sum_profit FROM (SELECT n_name AS nation, {year:o_orderdate} AS o_year, \
     l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount \
     FROM [part, supplier, lineitem, partsupp, orders, nation] WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey \
     AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey \
     AND p_name LIKE '%{1}%') AS profit GROUP BY nation, o_year ORDER BY nation, o_year DESC",
    "SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone, \
     c_comment FROM [customer, orders, lineitem, nation] WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey \
     AND o_orderdate >= {date:1} AND o_orderdate < {date:1+3m} AND l_returnflag = 'R' AND c_nationkey = n_nationkey \
     GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC LIMIT 20",
    "SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM [partsupp, supplier, nation] \
     WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = '{1}' GROUP BY ps_partkey \
     HAVING SUM(ps_supplycost * ps_availqty) > (SELECT SUM(ps_supplycost * ps_availqty) * {2} \
     FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = '{1}') \
     ORDER BY value DESC",
    "SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) \
     AS high_line_count, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) \
     AS low_line_count FROM [orders, lineitem] WHERE o_orderkey = l_orderkey AND l_shipmode IN ('{1}', '{2}') \
     AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= {date:3} \
     AND l_receiptdate < {date:3+12m} GROUP BY l_shipmode ORDER BY l_shipmode",
    "SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer \
     LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%{1}%{2}%' GROUP BY c_custkey) AS c_orders \
     GROUP BY c_count ORDER BY custdist DESC, c_count DESC",
    "SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) \
     / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue FROM [lineitem, part] WHERE l_partkey = p_partkey \
     AND l_shipdate >= {date:1} AND l_shipdate < {date:1+1m}",
    "SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue{s} \
     WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue{s}) ORDER BY s_suppkey",
    "SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM [partsupp, part] \
     WHERE p_partkey = ps_partkey AND p_brand <> '{1}' AND p_type NOT LIKE '{2}%' \
     AND p_size IN ({3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}) AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier \
     WHERE s_comment LIKE '%Customer%Complaints%') GROUP BY p_brand, p_type, p_size \
     ORDER BY supplier_cnt DESC, p_brand, p_type, p_size",
    "SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM [lineitem, part] WHERE p_partkey = l_partkey \
     AND p_brand = '{1}' AND p_container = '{2}' AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem \
     WHERE l_partkey = p_partkey)",
    "SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) FROM [customer, orders, lineitem] \
     WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > {1}) \
     AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, \
     o_totalprice ORDER BY o_totalprice DESC, o_orderdate LIMIT 100",
    "SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM [lineitem, part] WHERE (p_partkey = l_partkey \
     AND p_brand = '{1}' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity >= {4} \
     AND l_quantity <= {4} + 10 AND p_size BETWEEN 1 AND 5 AND l_shipmode IN ('AIR', 'AIR REG') \
     AND l_shipinstruct = 'DELIVER IN PERSON') OR (p_partkey = l_partkey AND p_brand = '{2}' \
     AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') AND l_quantity >= {5} AND l_quantity <= {5} + 10 \
     AND p_size BETWEEN 1 AND 10 AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON') \
     OR (p_partkey = l_partkey AND p_brand = '{3}' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG') \
     AND l_quantity >= {6} AND l_quantity <= {6} + 10 AND p_size BETWEEN 1 AND 15 \
     AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')",
    "SELECT s_name, s_address FROM [supplier, nation] WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp \
     WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '{1}%') AND ps_availqty > \
     (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey \
     AND l_shipdate >= {date:2} AND l_shipdate < {date:2+12m})) AND s_nationkey = n_nationkey AND n_name = '{3}' \
     ORDER BY s_name",
    "SELECT s_name, COUNT(*) AS numwait FROM [supplier, lineitem l1, orders, nation] WHERE s_suppkey = l1.l_suppkey \
     AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > l1.l_commitdate \
     AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey) \
     AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey \
     AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey AND n_name = '{1}' GROUP BY s_name \
     ORDER BY numwait DESC, s_name LIMIT 100",
    "SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (SELECT SUBSTR(c_phone, 1, 2) AS cntrycode, \
     c_acctbal FROM customer WHERE SUBSTR(c_phone, 1, 2) IN ('{1}', '{2}', '{3}', '{4}', '{5}', '{6}', '{7}') \
     AND c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00 \
     AND SUBSTR(c_phone, 1, 2) IN ('{1}', '{2}', '{3}', '{4}', '{5}', '{6}', '{7}')) \
     AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale GROUP BY cntrycode ORDER BY cntrycode",
];

/// What q15 looks into.
const REVENUE: &str = "SELECT l_suppkey{supplier_no}, SUM(l_extendedprice * (1 - l_discount)){total_revenue} FROM lineitem \
     WHERE l_shipdate >= {date:1} AND l_shipdate < {date:1+3m} GROUP BY l_suppkey";

/// A query ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// Before it, part of its time: a view.
    pub(crate) before: Option<String>,
    pub(crate) select: String,
    /// After it, also when it was ended: the view goes.
    pub(crate) after: Option<String>,
}

/// What the optimiser is given for a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Hint {
    /// It chooses.
    #[default]
    None,
    /// The outer tables are joined in this order.
    Order(Vec<String>),
    /// The outer table that has this index is read by it.
    Index(String),
}

/// How queries are written for a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    typed: bool,
    ordered_join: &'static str,
    index_hint: IndexHint,
    q15: Q15,
}

impl Dialect {
    pub(crate) fn new(capabilities: &Capabilities, q15: Q15) -> Self {
        Self {
            typed: capabilities.typed_values,
            ordered_join: capabilities.ordered_join.0,
            index_hint: capabilities.index_hint,
            q15,
        }
    }

    /// Query `number` of stream `stream` with its parameters.
    pub(crate) fn query(self, number: u8, params: &[String], stream: u32, hint: &Hint) -> Query {
        let fill = |text: &str| self.filled(text, params, stream, hint);
        let select = fill(TEXTS[usize::from(number) - 1]);
        if number != 15 {
            return Query { before: None, select, after: None };
        }
        match self.q15 {
            Q15::View => Query {
                before: Some(fill(&format!(
                    "CREATE VIEW revenue{{s}} (supplier_no, total_revenue) AS {REVENUE}"
                ))),
                select,
                after: Some(fill("DROP VIEW revenue{s}")),
            },
            Q15::Cte => {
                let with = fill(&format!("WITH revenue{{s}} (supplier_no, total_revenue) AS ({REVENUE})"));
                Query { before: None, select: format!("{with} {select}"), after: None }
            }
        }
    }

    /// As [`Dialect::query`], as one SELECT, so that a server can explain it.
    pub(crate) fn explained(self, number: u8, params: &[String], hint: &Hint) -> String {
        if number != 15 || self.q15 == Q15::Cte {
            return self.query(number, params, 0, hint).select;
        }
        let revenue = REVENUE
            .replace("{supplier_no}", " AS supplier_no")
            .replace("{total_revenue}", " AS total_revenue");
        let text = TEXTS[14]
            .replace("FROM supplier, revenue{s}", &format!("FROM supplier, ({revenue}) AS revenue"))
            .replace("FROM revenue{s}", &format!("FROM ({revenue}) AS again"));
        self.filled(&text, params, 0, &Hint::None)
    }

    fn filled(self, text: &str, params: &[String], stream: u32, hint: &Hint) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(['{', '[']) {
            filled.push_str(&rest[..start]);
            let is_list = rest[start..].starts_with('[');
            let end = start + rest[start..].find(if is_list { ']' } else { '}' }).unwrap_or(0);
            let inside = &rest[start + 1..end];
            if is_list {
                filled.push_str(&self.tables(inside, hint));
            } else {
                self.place(inside, params, stream, &mut filled);
            }
            rest = &rest[end + 1..];
        }
        filled + rest
    }

    fn tables(self, list: &str, hint: &Hint) -> String {
        match hint {
            Hint::None => list.to_owned(),
            Hint::Order(order) => order.join(self.ordered_join),
            Hint::Index(index) => {
                let owner = Table::of_index(index).map_or("", Table::name);
                let with = |table: &str| match table.split(' ').next() == Some(owner) {
                    true => table.to_owned() + &self.index_hint.words(index),
                    false => table.to_owned(),
                };
                list.split(", ").map(with).collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn place(self, place: &str, params: &[String], stream: u32, out: &mut String) {
        // The text and what is done to it are written by us.
        const OURS: &str = "a place of a query";
        let param = |name| param(params, name);
        match place.split_once(':') {
            Some(("date", what)) => {
                let date = computed_date(what, param);
                let word = if self.typed { "DATE " } else { "" };
                write!(out, "{word}'{date}'").expect(OURS);
            }
            Some(("year", column)) if self.typed => write!(out, "EXTRACT(YEAR FROM {column})").expect(OURS),
            Some(("year", column)) => write!(out, "CAST(SUBSTR({column}, 1, 4) AS INTEGER)").expect(OURS),
            Some((_, number)) => {
                let (name, by) = number.split_at(1);
                let hundredths = |text: &str| (text.parse::<f64>().unwrap_or(0.0) * 100.0).round() as i64;
                write!(out, "0.{:02}", hundredths(param(name)) + hundredths(by)).expect(OURS);
            }
            None if place == "s" => write!(out, "{stream}").expect(OURS),
            None if place.parse::<usize>().is_ok() => out.push_str(param(place)),
            // Names of columns, which the view has already.
            None => {}
        }
    }
}

/// The parameter of this number.
fn param<'a>(params: &'a [String], name: &'a str) -> &'a str {
    name.parse::<usize>().map_or(name, |number| params[number - 1].as_str())
}

/// `2`, `2+3m`, `1998-12-01`, `1998-12-01-1d`: a parameter or a date, and by how many months or (a parameter) days it is moved.
fn computed_date<'a>(what: &'a str, param: impl Fn(&'a str) -> &'a str) -> Date {
    let is_fixed = what.len() >= 10;
    let (base, by) = what.split_at(if is_fixed { 10 } else { 1 });
    let base: Date = if is_fixed { base } else { param(base) }.parse().unwrap_or_default();
    let moved = match by.chars().last() {
        Some('m') => by[1..by.len() - 1]
            .parse()
            .ok()
            .and_then(|months: i32| base.checked_add(Span::new().months(months)).ok()),
        Some('d') => param(&by[1..by.len() - 1])
            .parse()
            .ok()
            .and_then(|days: i32| base.checked_sub(Span::new().days(days)).ok()),
        _ => None,
    };
    moved.unwrap_or(base)
}

/// The outer tables of query `number`, which can be given an order or an index.
pub(crate) fn joined_tables(number: u8) -> Vec<&'static str> {
    let text = TEXTS[usize::from(number) - 1];
    let list = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    list.map_or_else(Vec::new, |(list, _)| list.split(", ").collect())
}

/// The text of query `number` with its places, for cards and records.
pub(crate) fn shape(number: u8) -> String {
    let text = TEXTS[usize::from(number) - 1].replace(['[', ']'], "");
    let mut shape = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) = after.split_once('}').unwrap_or(("", after));
        shape.push_str(before);
        match place.split_once(':') {
            Some(("year", column)) => shape.push_str(&format!("EXTRACT(YEAR FROM {column})")),
            _ if place == "s" => {}
            _ => shape.push('?'),
        }
        rest = after;
    }
    (shape + rest).replace("'?'", "?")
}

#[cfg(test)]
mod tests {
    use dbdyno_drivers::{mysql, postgres, sqlite};

    use super::*;
    use crate::dbt3::parameters::validation;

    fn text(number: u8, capabilities: &Capabilities) -> String {
        Dialect::new(capabilities, Q15::View).query(number, &validation(number, 1.0), 0, &Hint::None).select
    }

    #[test]
    fn each_product_has_its_dates_and_years() {
        let q8 = text(8, &mysql::capabilities("InnoDB", true));
        assert!(q8.contains("EXTRACT(YEAR FROM o_orderdate)") && q8.contains("BETWEEN DATE '1995-01-01'"));
        assert_eq!(q8, text(8, &postgres::capabilities()));
        let q8 = text(8, &sqlite::capabilities());
        assert!(
            q8.contains("CAST(SUBSTR(o_orderdate, 1, 4) AS INTEGER)") && q8.contains("BETWEEN '1995-01-01'")
        );
    }

    #[test]
    fn dates_and_numbers_are_computed_by_the_client() {
        let postgres = postgres::capabilities();
        assert!(text(1, &postgres).contains("l_shipdate <= DATE '1998-09-02'"));
        assert!(text(4, &postgres).contains(">= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'"));
        assert!(text(6, &postgres).contains("BETWEEN 0.05 AND 0.07 AND l_quantity < 24"));
        assert!(text(14, &postgres).contains("< DATE '1995-10-01'"));
        for number in 1..=COUNT {
            let text = text(number, &postgres);
            assert!(!text.contains(['{', '[', '}', ']']), "{text}");
        }
    }

    #[test]
    fn q15_has_a_view_or_is_one_statement() {
        let capabilities = mysql::capabilities("InnoDB", true);
        let params = validation(15, 1.0);
        let query = |q15| Dialect::new(&capabilities, q15).query(15, &params, 3, &Hint::None);
        let view = query(Q15::View);
        assert!(
            view.before
                .unwrap()
                .starts_with("CREATE VIEW revenue3 (supplier_no, total_revenue) AS SELECT l_suppkey, SUM(")
        );
        assert_eq!(view.after.as_deref(), Some("DROP VIEW revenue3"));
        let cte = query(Q15::Cte);
        assert!(
            cte.before.is_none()
                && cte.select.starts_with("WITH revenue3 (supplier_no, total_revenue) AS (SELECT")
        );
        let explained = Dialect::new(&capabilities, Q15::View).explained(15, &params, &Hint::None);
        assert!(explained.contains("AS supplier_no") && !explained.contains("revenue0"), "{explained}");
    }

    #[test]
    fn tables_are_joined_in_the_order_that_was_asked_for() {
        let order = Hint::Order(["lineitem", "customer", "orders"].map(str::to_owned).to_vec());
        let ordered = |capabilities: &Capabilities| {
            Dialect::new(capabilities, Q15::View).query(3, &validation(3, 1.0), 0, &order).select
        };
        assert!(
            ordered(&mysql::capabilities("InnoDB", true))
                .contains("FROM lineitem STRAIGHT_JOIN customer STRAIGHT_JOIN orders WHERE")
        );
        assert!(
            ordered(&postgres::capabilities())
                .contains("FROM lineitem CROSS JOIN customer CROSS JOIN orders WHERE")
        );
        assert_eq!(joined_tables(3), ["customer", "orders", "lineitem"]);
        assert_eq!(joined_tables(1), ["lineitem"]);
        let by_index = |number, capabilities: &Capabilities| {
            let hint = Hint::Index("i_l_suppkey".to_owned());
            Dialect::new(capabilities, Q15::View).query(number, &validation(number, 1.0), 0, &hint).select
        };
        let forced = by_index(21, &mysql::capabilities("InnoDB", true));
        assert!(
            forced.contains("FROM supplier, lineitem l1 FORCE INDEX (i_l_suppkey), orders, nation WHERE")
        );
        assert!(by_index(1, &sqlite::capabilities()).contains("FROM lineitem INDEXED BY i_l_suppkey WHERE"));
    }

    #[test]
    fn a_shape_shows_places_as_question_marks() {
        insta::assert_snapshot!(shape(4), @"SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= ? AND o_orderdate < ? AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority");
    }
}
