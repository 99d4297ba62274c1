//! The 22 queries in the SQL of each product, and their parameters.

use std::sync::LazyLock;

use dbdyno_db::{Capabilities, IndexHint};
use jiff::Span;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::generators::NationGenerator;

use crate::Philox;
use crate::dbt3::schema::Dbt3Table;
use crate::oltp::operation::OltpDraws;

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

/// Returns the query whose rows q15 reads. A view or a common table expression holds it.
fn revenue() -> &'static str {
    &TEXTS[usize::from(COUNT)]
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// A statement before the query that is part of its time. It creates a view.
    pub(crate) before: Option<String>,
    pub(crate) select: String,
    /// A statement after the query, which is sent even when the query was ended. It drops the view.
    pub(crate) after: Option<String>,
}

/// A hint to the optimiser.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hint {
    /// The optimiser chooses.
    #[default]
    None,
    /// The tables that `queries.sql` has in brackets are joined in this order.
    Order(Vec<String>),
    /// Of the tables in brackets, the one that has this index is read through it.
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
        filled(
            text,
            |placeholder| self.replacement(placeholder, params, stream),
            |list| self.tables(list, hint),
        )
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

    fn replacement(self, placeholder: &str, params: &[String], stream: u32) -> String {
        let param = |name| param(params, name);
        match placeholder.split_once(':') {
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
            None if placeholder == "s" => stream.to_string(),
            None if placeholder.parse::<usize>().is_ok() => param(placeholder).to_owned(),
            // The remaining placeholders are names of columns, which the view defines already.
            None => String::new(),
        }
    }
}

/// Returns a text with its placeholders `{...}` and lists of tables `[...]` replaced.
fn filled(text: &str, replacement: impl Fn(&str) -> String, tables: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']) {
        filled.push_str(&rest[..start]);
        let is_list = rest[start..].starts_with('[');
        let end = start + rest[start..].find(if is_list { ']' } else { '}' }).unwrap_or(0);
        let inside = &rest[start + 1..end];
        filled.push_str(&if is_list { tables(inside) } else { replacement(inside) });
        rest = &rest[end + 1..];
    }
    filled + rest
}

fn param<'a>(params: &'a [String], name: &'a str) -> &'a str {
    name.parse::<usize>().map_or(name, |number| params[number - 1].as_str())
}

/// Computes a date from `2`, `2+3m`, `1998-12-01` or `1998-12-01-1d`. It begins with the number of
/// a parameter or with a date. `+3m` adds three months, and `-1d` takes away as many days as
/// parameter 1 says.
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

/// Returns the tables that query `number` has in brackets. They can be given an order or an index.
pub(crate) fn joined_tables(number: u8) -> Vec<&'static str> {
    let list = text(number).split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    list.map_or_else(Vec::new, |(list, _)| list.split(", ").collect())
}

/// Returns the text of query `number` with `?` for its parameters, for summaries and records.
pub(crate) fn shape(number: u8) -> String {
    let replacement = |placeholder: &str| match placeholder.split_once(':') {
        Some(("year", column)) => format!("EXTRACT(YEAR FROM {column})"),
        _ if placeholder == "s" => String::new(),
        _ => "?".to_owned(),
    };
    filled(text(number), replacement, str::to_owned).replace("'?'", "?")
}

/// Stream of random numbers for parameters. Only dbt3 uses it.
const STREAM: u32 = 0x6462_7433;
/// Fraction of q11 at scale factor 1.
const FRACTION: f64 = 0.0001;
const Q13_FIRST: [&str; 4] = ["special", "pending", "unusual", "express"];
const Q13_SECOND: [&str; 4] = ["packages", "requests", "accounts", "deposits"];

/// The order of the queries in each stream. The first is that of the power test. The orders are from
/// the specification's appendix A.
pub(crate) const ORDERS: [[u8; 22]; 11] = [
    [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12],
    [21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4],
    [6, 17, 14, 16, 19, 10, 9, 2, 15, 8, 5, 22, 12, 7, 13, 18, 1, 4, 20, 3, 11, 21],
    [8, 5, 4, 6, 17, 7, 1, 18, 22, 14, 9, 10, 15, 11, 20, 2, 21, 19, 13, 16, 12, 3],
    [5, 21, 14, 19, 15, 17, 12, 6, 4, 9, 8, 16, 11, 2, 10, 18, 1, 13, 7, 22, 3, 20],
    [21, 15, 4, 6, 7, 16, 19, 18, 14, 22, 11, 13, 3, 1, 2, 5, 8, 20, 12, 17, 10, 9],
    [10, 3, 15, 13, 6, 8, 9, 7, 4, 11, 22, 18, 12, 1, 5, 16, 2, 14, 19, 20, 17, 21],
    [18, 8, 20, 21, 2, 4, 22, 17, 1, 11, 9, 19, 3, 13, 5, 7, 10, 16, 6, 14, 15, 12],
    [19, 1, 15, 17, 5, 8, 9, 12, 14, 7, 4, 3, 20, 16, 6, 22, 10, 13, 2, 21, 18, 11],
    [8, 13, 2, 20, 17, 3, 6, 21, 18, 11, 19, 10, 15, 4, 22, 1, 7, 12, 9, 14, 5, 16],
    [6, 15, 18, 17, 12, 1, 7, 2, 22, 13, 21, 10, 14, 9, 3, 16, 20, 19, 11, 4, 8, 5],
];

/// Returns the parameters of query `number` with which answers are published.
pub(crate) fn validation(number: u8, scale_factor: f64) -> Vec<String> {
    let fraction = fraction(scale_factor);
    let params: &[&str] = match number {
        1 => &["90"],
        2 => &["15", "BRASS", "EUROPE"],
        3 => &["BUILDING", "1995-03-15"],
        4 => &["1993-07-01"],
        5 => &["ASIA", "1994-01-01"],
        6 => &["1994-01-01", "0.06", "24"],
        7 => &["FRANCE", "GERMANY"],
        8 => &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
        9 => &["green"],
        10 => &["1993-10-01"],
        11 => &["GERMANY", &fraction],
        12 => &["MAIL", "SHIP", "1994-01-01"],
        13 => &["special", "requests"],
        14 => &["1995-09-01"],
        15 => &["1996-01-01"],
        16 => &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
        17 => &["Brand#23", "MED BOX"],
        18 => &["300"],
        19 => &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
        20 => &["forest", "1994-01-01", "CANADA"],
        21 => &["SAUDI ARABIA"],
        _ => &["13", "31", "23", "29", "30", "18", "17"],
    };
    params.iter().map(|param| (*param).to_owned()).collect()
}

fn fraction(scale_factor: f64) -> String {
    format!("{:.10}", FRACTION / scale_factor)
}

/// Returns the parameters of query `number` in stream `stream`, drawn with `seed`. They are the
/// same for every variant.
pub(crate) fn drawn(number: u8, scale_factor: f64, seed: u64, stream: u32) -> Vec<String> {
    let philox = Philox::new(seed, STREAM);
    Rules { draws: OltpDraws::new(&philox, stream, number.into()), lists: Distributions::static_default() }
        .of(number, scale_factor)
}

/// Draws the parameters of a query by the specification's rules.
struct Rules {
    draws: OltpDraws,
    lists: &'static Distributions,
}

impl Rules {
    fn of(&mut self, number: u8, scale_factor: f64) -> Vec<String> {
        match number {
            1 => vec![self.between(60, 120).to_string()],
            2 => {
                let size = self.between(1, 50).to_string();
                let kind = self.word(self.lists.part_types());
                vec![size, last_word(&kind), self.word(self.lists.regions())]
            }
            3 => {
                let segment = self.word(self.lists.market_segments());
                vec![segment, format!("1995-03-{:02}", self.between(1, 31))]
            }
            4 | 15 => vec![self.month(57)],
            5 => vec![self.word(self.lists.regions()), self.year()],
            6 => vec![self.year(), format!("0.0{}", self.between(2, 9)), self.between(24, 25).to_string()],
            7 => {
                let [a, b] = self.two(25).map(|nation| self.lists.nations().get_values()[nation].to_owned());
                vec![a, b]
            }
            8 => {
                let nations = NationGenerator::default();
                let at = self.below(25);
                let nation = nations.iter().nth(at).expect("25 nations");
                let regions = self.lists.regions().get_values();
                let region = regions[usize::try_from(nation.n_regionkey).unwrap_or(0)].to_owned();
                vec![nation.n_name.to_owned(), region, self.word(self.lists.part_types())]
            }
            9 => vec![self.word(self.lists.part_colors())],
            10 => {
                let month = 1 + self.below(24) as u64;
                vec![month_after_1993(month)]
            }
            11 => vec![self.word(self.lists.nations()), fraction(scale_factor)],
            12 => {
                let modes = self.lists.ship_modes().get_values();
                let [a, b] = self.two(modes.len()).map(|mode| modes[mode].to_owned());
                vec![a, b, self.year()]
            }
            13 => vec![self.pick(&Q13_FIRST), self.pick(&Q13_SECOND)],
            _ => self.of_later(number),
        }
    }

    /// Returns the parameters of the queries from q14 on.
    fn of_later(&mut self, number: u8) -> Vec<String> {
        match number {
            14 => vec![self.month(59)],
            16 => {
                let brand = self.brand();
                let kind = self.word(self.lists.part_types());
                let words = kind.rsplit_once(' ').map_or(kind.as_str(), |(words, _)| words).to_owned();
                let sizes = self.some_of(50, 8).into_iter().map(|size| (1 + size).to_string());
                [brand, words].into_iter().chain(sizes).collect()
            }
            17 => vec![self.brand(), self.word(self.lists.part_containers())],
            18 => vec![self.between(312, 315).to_string()],
            19 => {
                let brands = [self.brand(), self.brand(), self.brand()];
                let quantities =
                    [(1, 10), (10, 20), (20, 30)].map(|(min, max)| self.between(min, max).to_string());
                brands.into_iter().chain(quantities).collect()
            }
            20 => vec![self.word(self.lists.part_colors()), self.year(), self.word(self.lists.nations())],
            21 => vec![self.word(self.lists.nations())],
            _ => self.some_of(25, 7).into_iter().map(|code| (10 + code).to_string()).collect(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.draws.below(bound as u64) as usize
    }

    fn between(&mut self, lowest: u64, highest: u64) -> u64 {
        lowest + self.draws.below(highest - lowest + 1)
    }

    fn pick(&mut self, list: &[&str]) -> String {
        list[self.below(list.len())].to_owned()
    }

    fn word(&mut self, list: &Distribution) -> String {
        self.pick(list.get_values())
    }

    /// Returns `count` different numbers of `0..bound`.
    fn some_of(&mut self, bound: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bound).collect();
        for at in 0..count {
            let other = at + self.below(bound - at);
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }

    fn two(&mut self, bound: usize) -> [usize; 2] {
        let some = self.some_of(bound, 2);
        [some[0], some[1]]
    }

    fn brand(&mut self) -> String {
        format!("Brand#{}{}", self.between(1, 5), self.between(1, 5))
    }

    fn year(&mut self) -> String {
        format!("{}-01-01", self.between(1993, 1997))
    }

    /// Returns the first day of a month, from January 1993 to `last` months later.
    fn month(&mut self, last: u64) -> String {
        month_after_1993(self.between(0, last))
    }
}

fn month_after_1993(months: u64) -> String {
    format!("{}-{:02}-01", 1993 + months / 12, 1 + months % 12)
}

fn last_word(text: &str) -> String {
    text.rsplit(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{mysql, postgres, sqlite};

    use super::*;

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
    fn a_shape_has_question_marks_for_parameters() {
        insta::assert_snapshot!(shape(4), @"SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= ? AND o_orderdate < ? AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority");
    }

    #[test]
    fn every_stream_has_every_query_once() {
        for order in ORDERS {
            let mut sorted = order;
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(1..=22), "{order:?}");
        }
    }

    #[test]
    fn parameters_depend_on_seed_stream_and_query_alone() {
        let all = |seed, stream| (1..=22).map(|number| drawn(number, 1.0, seed, stream)).collect::<Vec<_>>();
        assert_eq!(all(1, 2), all(1, 2));
        assert_ne!(all(1, 2), all(1, 3));
        assert_ne!(all(1, 2), all(2, 2));
        for number in 1..=22 {
            assert_eq!(drawn(number, 1.0, 7, 0).len(), validation(number, 1.0).len(), "q{number}");
        }
    }

    #[test]
    fn q8_has_the_region_of_its_nation() {
        let asked: Vec<(String, String)> = (0..50)
            .map(|stream| drawn(8, 1.0, 1, stream))
            .map(|params| (params[0].clone(), params[1].clone()))
            .collect();
        let known =
            [("FRANCE", "EUROPE"), ("KENYA", "AFRICA"), ("IRAN", "MIDDLE EAST"), ("CANADA", "AMERICA")];
        let region =
            |nation: &str| asked.iter().find(|(name, _)| name == nation).map(|(_, region)| region.as_str());
        for (nation, wanted) in known {
            assert!(region(nation).is_none_or(|region| region == wanted), "{nation} {asked:?}");
        }
        assert!(known.iter().filter(|(nation, _)| region(nation).is_some()).count() > 1, "{asked:?}");
    }

    #[test]
    fn lists_of_sizes_and_codes_hold_nothing_twice() {
        for stream in 0..20 {
            for (number, from) in [(16, 2), (22, 0)] {
                let mut values = drawn(number, 1.0, 3, stream).split_off(from);
                let count = values.len();
                values.sort();
                values.dedup();
                assert_eq!(values.len(), count);
            }
        }
    }

    #[test]
    fn the_share_of_q11_follows_the_scale_factor() {
        assert_eq!(validation(11, 1.0)[1], "0.0001000000");
        assert_eq!(validation(11, 30.0)[1], "0.0000033333");
        assert_eq!(validation(11, 0.01)[1], "0.0100000000");
    }
}
