//! Makes the tables' rows as lines of text, in batches, with the crate `tpchgen`, and the rows of the
//! refresh functions.

use std::fmt::Display;
use std::io::Write as _;
use std::ops::Range;

use dbdyno_db::RowStream;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, PartGenerator,
    PartSupp, PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::dbt3::Dbt3Setup;
use crate::dbt3::comments::{self, Comments};
use crate::dbt3::schema::Dbt3Table;

/// Separates two columns. No text holds it.
pub(crate) const SEPARATOR: char = '|';
/// About this many bytes are sent with one statement. Compared with so many rows, a commit costs
/// nothing.
pub(crate) const BATCH_BYTES: u64 = 4 << 20;
/// Number of sets of refresh functions. Each set has a thousandth of the orders.
pub(crate) const REFRESH_SETS: i32 = 1_000;
/// Distance of a new order's key from that of the loaded order that it resembles. The load takes 8 of
/// each 32 keys.
const NEW_KEYS: i64 = 8;

/// Rows of one table that go with one statement: part `part` (from 1) of `parts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dbt3RowBatch {
    pub(crate) table: Dbt3Table,
    pub(crate) part: i32,
    pub(crate) parts: i32,
}

/// Returns the approximate bytes of all rows of `table`.
pub(crate) fn about_bytes(table: Dbt3Table, scale_factor: f64) -> u64 {
    table.definition().row_bytes * table.about_rows(scale_factor)
}

/// Returns the table whose rows are counted. Line items come with their order, and suppliers of parts
/// with their part.
fn units(table: Dbt3Table) -> Dbt3Table {
    match table {
        Dbt3Table::LineItem => Dbt3Table::Orders,
        Dbt3Table::PartSupp => Dbt3Table::Part,
        table => table,
    }
}

pub(crate) fn batches(table: Dbt3Table, scale_factor: f64) -> Vec<Dbt3RowBatch> {
    let wanted = about_bytes(table, scale_factor).div_ceil(BATCH_BYTES).max(1);
    let units = units(table).about_rows(scale_factor).max(1);
    let parts = i32::try_from(wanted.min(units)).unwrap_or(i32::MAX);
    (1..=parts).map(|part| Dbt3RowBatch { table, part, parts }).collect()
}

/// Returns the batches of each connection. Where rows stay in the order in which they came, each table
/// has one connection.
pub(crate) fn assigned(setup: &Dbt3Setup) -> Vec<Vec<Dbt3RowBatch>> {
    let capabilities = &setup.context.database_server.capabilities;
    let scale_factor = setup.options.scale_factor;
    let wanted = if capabilities.parallel_writers { setup.options.load_connections as usize } else { 1 };
    let mut largest_first = Dbt3Table::ALL;
    largest_first.sort_by_key(|table| std::cmp::Reverse(about_bytes(*table, scale_factor)));
    if capabilities.keeps_arrival_order {
        let mut shares: Vec<(u64, Vec<Dbt3RowBatch>)> = vec![(0, Vec::new()); wanted.min(Dbt3Table::ALL.len())];
        for table in largest_first {
            let least = shares.iter_mut().min_by_key(|(bytes, _)| *bytes).expect("one connection at least");
            least.0 += about_bytes(table, scale_factor);
            least.1.extend(batches(table, scale_factor));
        }
        return shares.into_iter().map(|(_, batches)| batches).collect();
    }
    let all: Vec<Dbt3RowBatch> =
        largest_first.into_iter().flat_map(|table| batches(table, scale_factor)).collect();
    let count = wanted.min(all.len());
    (0..count).map(|at| all[all.len() * at / count..all.len() * (at + 1) / count].to_vec()).collect()
}

/// Writes the rows of `batch` as lines into `out`. The result is how many there are.
pub(crate) fn write(batch: Dbt3RowBatch, scale_factor: f64, out: &mut Vec<u8>) -> u64 {
    out.clear();
    let mut count = 0;
    each_row(batch, scale_factor, 0, |row| {
        out.extend_from_slice(row);
        out.push(b'\n');
        count += 1;
    });
    count
}

/// Hands the rows of `batch` to `take`, with columns divided by separators. Keys of orders are moved by
/// `moved`.
fn each_row(batch: Dbt3RowBatch, scale_factor: f64, moved: i64, take: impl FnMut(&[u8])) {
    let Dbt3RowBatch { table, part, parts } = batch;
    let (all, text) = (Distributions::static_default(), comments::small_text());
    let before = units(table).generated_rows(scale_factor, parts) * i64::from(part - 1);
    let comments = Comments::new(table.definition().comments, before);
    macro_rules! rows {
        ($generator:ident) => {
            $generator::new_with_distributions_and_text_pool(scale_factor, part, parts, all, text).iter()
        };
    }
    match table {
        Dbt3Table::Region => {
            let rows = RegionGenerator::new_with_distributions_and_text_pool(all, text).iter();
            lines(rows, comments, |_| true, take);
        }
        Dbt3Table::Nation => {
            let rows = NationGenerator::new_with_distributions_and_text_pool(all, text).iter();
            lines(rows, comments, |_| true, take);
        }
        Dbt3Table::Supplier => {
            lines(rows!(SupplierGenerator), comments.around_what_is_said(), |_| true, take);
        }
        Dbt3Table::Part => lines(rows!(PartGenerator), comments, |_| true, take),
        Dbt3Table::PartSupp => {
            let rows = PartSuppGenerator::new_with_text_pool(scale_factor, part, parts, text).iter();
            let mut part = 0;
            let is_of_next_part = |row: &PartSupp<'_>| std::mem::replace(&mut part, row.ps_partkey) != part;
            lines(rows, comments, is_of_next_part, take);
        }
        Dbt3Table::Customer => lines(rows!(CustomerGenerator), comments, |_| true, take),
        Dbt3Table::Orders => {
            let rows =
                rows!(OrderGenerator).map(|order| Order { o_orderkey: order.o_orderkey + moved, ..order });
            lines(rows, comments, |_| true, take);
        }
        Dbt3Table::LineItem => {
            let rows =
                rows!(LineItemGenerator).map(|item| LineItem { l_orderkey: item.l_orderkey + moved, ..item });
            lines(rows, comments, |item| item.l_linenumber == 1, take);
        }
    }
}

/// Hands rows to `take` as `tpchgen` writes them, with a comment and a separator at the end.
/// `begins_unit` says that a row belongs to another part or order than the row before.
fn lines<R: Display>(
    rows: impl Iterator<Item = R>,
    mut comments: Comments,
    mut begins_unit: impl FnMut(&R) -> bool,
    mut take: impl FnMut(&[u8]),
) {
    let mut line = Vec::new();
    for (at, row) in rows.enumerate() {
        if begins_unit(&row) && at > 0 {
            comments.unit_ended();
        }
        line.clear();
        write!(line, "{row}").expect("memory takes all");
        line.pop();
        comments.put(&mut line);
        take(&line);
    }
}

/// Returns the statement that takes lines of `table`, or a prepared INSERT.
pub(crate) fn load_sql(table: Dbt3Table, form: RowStream) -> String {
    let name = table.name();
    match form {
        RowStream::LocalInfile => format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '{SEPARATOR}' ESCAPED BY ''"
        ),
        RowStream::CopyIn => format!("COPY {name} FROM STDIN WITH (DELIMITER '{SEPARATOR}')"),
        RowStream::PreparedRows => {
            let places = vec!["?"; table.definition().columns.len()].join(", ");
            format!("INSERT INTO {name} VALUES ({places})")
        }
    }
}

/// Orders of a refresh function that change together, in one transaction.
const ORDERS_PER_TRANSACTION: usize = 100;

/// The statements of a refresh function, and how many rows it inserts or deletes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refresh {
    pub(crate) statements: Vec<String>,
    pub(crate) rows: u64,
}

/// The orders of a set and their line items. Each row comes with the key of its order.
struct Set {
    orders: Vec<(i64, String)>,
    items: Vec<(i64, String)>,
}

impl Set {
    /// Returns the loaded orders of set `number` (from 1), with their keys moved by `moved`.
    fn new(number: u32, scale_factor: f64, moved: i64) -> Self {
        let part = i32::try_from(number).unwrap_or(REFRESH_SETS);
        // The last set also has what the division leaves, so it is not used.
        let parts =
            REFRESH_SETS.min(i32::try_from(Dbt3Table::Orders.about_rows(scale_factor)).unwrap_or(REFRESH_SETS));
        let rows = |table| {
            let mut rows = Vec::new();
            each_row(Dbt3RowBatch { table, part, parts }, scale_factor, moved, |row| {
                let row = String::from_utf8_lossy(row).into_owned();
                let key = row.split(SEPARATOR).next().and_then(|key| key.parse().ok()).unwrap_or(0);
                rows.push((key, row));
            });
            rows
        };
        Self { orders: rows(Dbt3Table::Orders), items: rows(Dbt3Table::LineItem) }
    }

    /// Returns the ranges of the orders, and of their items, that go together.
    fn transactions(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let mut first_item = 0;
        let starts = (0..self.orders.len()).step_by(ORDERS_PER_TRANSACTION);
        let transaction = |start: usize| {
            let end = (start + ORDERS_PER_TRANSACTION).min(self.orders.len());
            let last_key = self.orders[end - 1].0;
            let count = self.items[first_item..].iter().take_while(|(key, _)| *key <= last_key).count();
            let items = first_item..first_item + count;
            first_item += count;
            (start..end, items)
        };
        starts.map(transaction).collect()
    }

    /// Changes the orders of each transaction, and their items, with two statements.
    fn changed(
        &self,
        begin: &str,
        change: impl Fn(&[(i64, String)], &[(i64, String)]) -> [String; 2],
    ) -> Refresh {
        let of = |(orders, items): (Range<usize>, Range<usize>)| {
            let [first, second] = change(&self.orders[orders], &self.items[items]);
            [begin.to_owned(), first, second, "COMMIT".to_owned()]
        };
        let rows = (self.orders.len() + self.items.len()) as u64;
        Refresh { statements: self.transactions().into_iter().flat_map(of).collect(), rows }
    }
}

/// Returns the first refresh function of set `number`, which inserts new orders with their line items.
/// They resemble those of the loaded set, under keys that the load leaves free for them.
pub(crate) fn insert_orders(number: u32, scale_factor: f64, begin: &str) -> Refresh {
    let set = Set::new(number, scale_factor, NEW_KEYS);
    let insert = |table: Dbt3Table, rows: &[(i64, String)]| {
        let values: Vec<String> = rows.iter().map(|(_, row)| values(table, row)).collect();
        format!("INSERT INTO {} VALUES {}", table.name(), values.join(", "))
    };
    set.changed(begin, |orders, items| [insert(Dbt3Table::Orders, orders), insert(Dbt3Table::LineItem, items)])
}

/// Returns the second refresh function of set `number`, which deletes loaded orders with their line
/// items.
pub(crate) fn delete_orders(number: u32, scale_factor: f64, begin: &str) -> Refresh {
    let set = Set::new(number, scale_factor, 0);
    set.changed(begin, |orders, _| {
        let keys: Vec<String> = orders.iter().map(|(key, _)| key.to_string()).collect();
        let keys = keys.join(", ");
        [
            format!("DELETE FROM lineitem WHERE l_orderkey IN ({keys})"),
            format!("DELETE FROM orders WHERE o_orderkey IN ({keys})"),
        ]
    })
}

/// Returns a row as values of an INSERT.
fn values(table: Dbt3Table, row: &str) -> String {
    let cells = row.split(SEPARATOR).zip(&table.definition().columns).map(|(cell, column)| {
        if column.is_whole { cell.to_owned() } else { format!("'{}'", cell.replace('\'', "''")) }
    });
    format!("({})", cells.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{Capabilities, DatabaseAddress, DatabaseServer, mysql, null, postgres, sqlite};

    use super::*;
    use crate::Context;
    use crate::dbt3::options::Dbt3Options;

    fn shares(capabilities: Capabilities) -> Vec<Vec<Dbt3RowBatch>> {
        let database_server =
            DatabaseServer { address: DatabaseAddress::Null(null::Options::default()), capabilities };
        let options = Dbt3Options { scale_factor: 0.1, ..Dbt3Options::default() };
        assigned(&Dbt3Setup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
        })
    }

    #[test]
    fn every_portion_has_one_connection_and_a_heap_is_filled_by_one() {
        let expected: usize = Dbt3Table::ALL.iter().map(|table| batches(*table, 0.1).len()).sum();
        for (capabilities, connections) in [
            (mysql::capabilities("InnoDB", true), 4),
            (mysql::capabilities("MyISAM", true), 4),
            (postgres::capabilities(), 4),
            (sqlite::capabilities(), 1),
        ] {
            let is_heap = capabilities.keeps_arrival_order;
            let shares = shares(capabilities);
            assert_eq!(shares.len(), connections);
            let all: Vec<Dbt3RowBatch> = shares.concat();
            assert_eq!(all.len(), expected);
            assert!(all.iter().all(|batch| all.iter().filter(|other| *other == batch).count() == 1));
            let with_items =
                shares.iter().filter(|share| share.iter().any(|one| one.table == Dbt3Table::LineItem)).count();
            assert_eq!(with_items == 1, is_heap || connections == 1);
        }
    }

    #[test]
    fn portions_together_are_the_table() {
        for table in Dbt3Table::ALL {
            let mut all = Vec::new();
            let mut text = Vec::new();
            let rows: u64 = batches(table, 0.05)
                .into_iter()
                .map(|batch| {
                    let rows = write(batch, 0.05, &mut text);
                    all.extend_from_slice(&text);
                    rows
                })
                .sum();
            assert_eq!(rows, table.rows(0.05), "{table:?}");
            let whole = write(Dbt3RowBatch { table, part: 1, parts: 1 }, 0.05, &mut text);
            assert_eq!((rows, &all), (whole, &text), "{table:?}");
            let columns = table.definition().columns.len();
            let text = String::from_utf8(all).unwrap();
            assert!(text.lines().all(|line| line.split(SEPARATOR).count() == columns), "{table:?}");
        }
        assert!(batches(Dbt3Table::LineItem, 0.05).len() > 5);
    }

    #[test]
    fn rows_are_those_of_the_generator_with_its_whole_text() {
        let whole = |table| -> Vec<String> {
            macro_rules! lines {
                ($generator:ident) => {
                    $generator::new(0.01, 1, 1)
                        .iter()
                        .map(|row| format!("{row}\n").replace("|\n", "\n"))
                        .collect()
                };
            }
            match table {
                Dbt3Table::Region => lines!(RegionGenerator),
                Dbt3Table::Nation => lines!(NationGenerator),
                Dbt3Table::Supplier => lines!(SupplierGenerator),
                Dbt3Table::Part => lines!(PartGenerator),
                Dbt3Table::PartSupp => lines!(PartSuppGenerator),
                Dbt3Table::Customer => lines!(CustomerGenerator),
                Dbt3Table::Orders => lines!(OrderGenerator),
                Dbt3Table::LineItem => lines!(LineItemGenerator),
            }
        };
        for table in Dbt3Table::ALL {
            let (mut text, mut all) = (Vec::new(), Vec::new());
            // Region and nation come as a whole.
            let parts = if matches!(table, Dbt3Table::Region | Dbt3Table::Nation) { 1 } else { 3 };
            for part in 1..=parts {
                write(Dbt3RowBatch { table, part, parts }, 0.01, &mut text);
                all.extend_from_slice(&text);
            }
            assert!(String::from_utf8(all).unwrap() == whole(table).concat(), "{table:?}");
        }
    }

    #[test]
    fn refresh_functions_put_in_as_many_rows_as_they_take_out_under_keys_of_their_own() {
        let inserted = insert_orders(2, 0.1, "BEGIN");
        let deleted = delete_orders(2, 0.1, "BEGIN");
        assert_eq!((inserted.rows, inserted.statements.len()), (deleted.rows, 8));
        // There are 150,000 orders at this scale factor, and a set has 150 of them.
        let keys =
            deleted.statements[2].matches(',').count() + 1 + deleted.statements[6].matches(',').count() + 1;
        assert_eq!(keys, 150);
        let first = OrderGenerator::make_order_key(151);
        assert!(deleted.statements[2].contains(&format!("({first}, ")));
        assert!(inserted.statements[1].starts_with(&format!("INSERT INTO orders VALUES ({}, ", first + 8)));
        let items = inserted.statements[2].matches("), (").count()
            + inserted.statements[6].matches("), (").count()
            + 2;
        assert_eq!(inserted.rows, 150 + items as u64);
    }

    #[test]
    fn keys_of_new_orders_are_those_of_no_loaded_order() {
        let loaded: std::collections::BTreeSet<i64> =
            (1..=100_000).map(OrderGenerator::make_order_key).collect();
        assert!(
            (1..=100_000).all(|index| !loaded.contains(&(OrderGenerator::make_order_key(index) + NEW_KEYS)))
        );
    }
}
