//! The 22 queries of `queries.sql`, and how each product wants them written.

use std::sync::LazyLock;

use dbdyno_db::{Capabilities, IndexHint};
use jiff::{Span, civil::Date};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dbt3::schema::Dbt3Table;

/// How q15 has its intermediate table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Q15 {
    /// A view that is created before the query and dropped after it, both in its time.
    View,
    /// A common table expression: MariaDB from 10.2, MySQL from 8.0, PostgreSQL, SQLite.
    Cte,
}

/// The number of queries.
pub(crate) const COUNT: u8 = 22;

/// The texts of `queries.sql`, each on one line.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let lines = include_str!("queries.sql").lines().filter(|line| !line.starts_with("--"));
    let texts = lines.collect::<Vec<_>>().join(" ");
    texts.split(';').map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
});

fn text(number: u8) -> &'static str {
    &TEXTS[usize::from(number) - 1]
}

/// Returns the text that q15 reads from.
fn revenue() -> &'static str {
    &TEXTS[usize::from(COUNT)]
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// A statement before the query that is part of its time. It creates a view.
    pub(crate) before: Option<String>,
    pub(crate) select: String,
    /// A statement after the query, also when the query was ended. It drops the view.
    pub(crate) after: Option<String>,
}

/// What the optimiser is given for a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hint {
    /// The optimiser chooses.
    #[default]
    None,
    /// The outer tables are joined in this order.
    Order(Vec<String>),
    /// The outer table that has this index is read through it.
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

    pub(crate) fn query(self, number: u8, params: &[String], stream: u32, hint: &Hint) -> Query {
        let fill = |text: &str| self.filled(text, params, stream, hint);
        let select = fill(text(number));
        if number != 15 {
            return Query { before: None, select, after: None };
        }
        let revenue = revenue();
        match self.q15 {
            Q15::View => {
                let view = format!("CREATE VIEW revenue{{s}} (supplier_no, total_revenue) AS {revenue}");
                Query { before: Some(fill(&view)), select, after: Some(fill("DROP VIEW revenue{s}")) }
            }
            Q15::Cte => {
                let with = fill(&format!("WITH revenue{{s}} (supplier_no, total_revenue) AS ({revenue})"));
                Query { before: None, select: format!("{with} {select}"), after: None }
            }
        }
    }

    /// Does what [`Dialect::query`] does, but as one SELECT, so that a server can explain it.
    pub(crate) fn explained(self, number: u8, params: &[String], hint: &Hint) -> String {
        if number != 15 || self.q15 == Q15::Cte {
            return self.query(number, params, 0, hint).select;
        }
        let revenue = revenue()
            .replace("{supplier_no}", " AS supplier_no")
            .replace("{total_revenue}", " AS total_revenue");
        let text = text(15)
            .replace("FROM supplier, revenue{s}", &format!("FROM supplier, ({revenue}) AS revenue"))
            .replace("FROM revenue{s}", &format!("FROM ({revenue}) AS again"));
        self.filled(&text, params, 0, &Hint::None)
    }

    fn filled(self, text: &str, params: &[String], stream: u32, hint: &Hint) -> String {
        filled(text, |place| self.place(place, params, stream), |list| self.tables(list, hint))
    }

    fn tables(self, list: &str, hint: &Hint) -> String {
        match hint {
            Hint::None => list.to_owned(),
            Hint::Order(order) => order.join(self.ordered_join),
            Hint::Index(index) => {
                let owner = Dbt3Table::of_index(index).map_or("", Dbt3Table::name);
                let with = |table: &str| match table.split(' ').next() == Some(owner) {
                    true => table.to_owned() + &self.index_hint.words(index),
                    false => table.to_owned(),
                };
                list.split(", ").map(with).collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn place(self, place: &str, params: &[String], stream: u32) -> String {
        let param = |name| param(params, name);
        match place.split_once(':') {
            Some(("date", what)) => {
                let word = if self.typed { "DATE " } else { "" };
                format!("{word}'{}'", computed_date(what, param))
            }
            Some(("year", column)) if self.typed => format!("EXTRACT(YEAR FROM {column})"),
            Some(("year", column)) => format!("CAST(SUBSTR({column}, 1, 4) AS INTEGER)"),
            Some((_, number)) => {
                let (name, by) = number.split_at(1);
                let hundredths = |text: &str| (text.parse::<f64>().unwrap_or(0.0) * 100.0).round() as i64;
                format!("0.{:02}", hundredths(param(name)) + hundredths(by))
            }
            None if place == "s" => stream.to_string(),
            None if place.parse::<usize>().is_ok() => param(place).to_owned(),
            // These are names of columns, which the view has already.
            None => String::new(),
        }
    }
}

/// Returns a text with its places `{...}` and lists of tables `[...]` filled in.
fn filled(text: &str, place: impl Fn(&str) -> String, tables: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']) {
        filled.push_str(&rest[..start]);
        let is_list = rest[start..].starts_with('[');
        let end = start + rest[start..].find(if is_list { ']' } else { '}' }).unwrap_or(0);
        let inside = &rest[start + 1..end];
        filled.push_str(&if is_list { tables(inside) } else { place(inside) });
        rest = &rest[end + 1..];
    }
    filled + rest
}

fn param<'a>(params: &'a [String], name: &'a str) -> &'a str {
    name.parse::<usize>().map_or(name, |number| params[number - 1].as_str())
}

/// Computes a date from `2`, `2+3m`, `1998-12-01` or `1998-12-01-1d`. It is a parameter or a date,
/// moved by a number of months or (a parameter) days.
fn computed_date<'a>(what: &'a str, param: impl Fn(&'a str) -> &'a str) -> Date {
    let is_fixed = what.len() >= 10;
    let (base, by) = what.split_at(if is_fixed { 10 } else { 1 });
    let base: Date = if is_fixed { base } else { param(base) }.parse().unwrap_or_default();
    let by = match by.chars().last() {
        Some('m') => by[1..by.len() - 1].parse().ok().map(|months: i32| Span::new().months(months)),
        Some('d') => param(&by[1..by.len() - 1]).parse().ok().map(|days: i32| Span::new().days(-days)),
        _ => None,
    };
    by.and_then(|by| base.checked_add(by).ok()).unwrap_or(base)
}

/// Returns the outer tables of query `number`, which can be given an order or an index.
pub(crate) fn joined_tables(number: u8) -> Vec<&'static str> {
    let list = text(number).split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    list.map_or_else(Vec::new, |(list, _)| list.split(", ").collect())
}

/// Returns the text of query `number` with its places, for summaries and records.
pub(crate) fn shape(number: u8) -> String {
    let place = |place: &str| match place.split_once(':') {
        Some(("year", column)) => format!("EXTRACT(YEAR FROM {column})"),
        _ if place == "s" => String::new(),
        _ => "?".to_owned(),
    };
    filled(text(number), place, str::to_owned).replace("'?'", "?")
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{mysql, postgres, sqlite};

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
