//! The eight tables and their indexes, and how the empty tables are made.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Instant;

use dbdyno_db::{AnySession, Capabilities, RowStream, Session};
use dbdyno_model::named;
use serde::Deserialize;
use serde_json::json;
use tpchgen::generators::{CustomerGenerator, OrderGenerator, PartGenerator, SupplierGenerator};

use crate::dbt3::queries::ORDERS;
use crate::dbt3::{Dbt3Setup, rows};
use crate::engine::allow_local_infile;
use crate::engine::create_tables;
use crate::engine::{add_indexes, after_columns};
use crate::{Error, Result, Work};

/// From this scale factor on, keys of orders have 64 bits. The keys are sparse and go up to 6
/// million at scale factor 1, so they would exceed 31 bits at 358.
const BIG_KEYS_FROM: f64 = 300.0;

named! {
    /// The tables, in the order in which they are made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub(crate) enum Dbt3Table {
        Region = "region",
        Nation = "nation",
        Supplier = "supplier",
        Part = "part",
        PartSupp = "partsupp",
        Customer = "customer",
        Orders = "orders",
        LineItem = "lineitem",
    }
}

/// The entry of a table in `schema.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// The columns in their order.
    pub(crate) columns: Vec<Column>,
    /// Approximate bytes of a row as a line of text.
    pub(crate) row_bytes: u64,
    pub(crate) comments: CommentDraws,
    /// The columns of its primary key.
    key: String,
    /// Name and columns of each secondary index.
    #[serde(default)]
    indexes: Vec<(String, String)>,
    /// Columns and the table that they refer to.
    #[serde(default)]
    references: Vec<(String, Dbt3Table)>,
}

/// How the comments of a table are drawn, by the specification.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct CommentDraws {
    pub(crate) seed: i64,
    pub(crate) average_length: i32,
    /// The most rows that belong to one unit, such as the line items of an order.
    pub(crate) per_unit: i32,
}

#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Column {
    name: String,
    kind: String,
    /// Whether the column holds whole numbers.
    pub(crate) is_whole: bool,
}

impl From<String> for Column {
    fn from(text: String) -> Self {
        let (name, kind) = text.split_once(' ').unwrap_or((&text, ""));
        let is_whole = matches!(kind, "INTEGER" | "KEY");
        Self { name: name.to_owned(), kind: kind.to_owned(), is_whole }
    }
}

impl Column {
    fn sql(&self, capabilities: &Capabilities, scale_factor: f64) -> String {
        let kind = match self.kind.as_str() {
            "KEY" if scale_factor >= BIG_KEYS_FROM => capabilities.big_int,
            "KEY" => "INTEGER",
            "DECIMAL(15,2)" if !capabilities.typed_values => "REAL",
            "DATE" if !capabilities.typed_values => "TEXT",
            kind => kind,
        };
        format!("{} {kind} NOT NULL", self.name)
    }
}

impl Dbt3Table {
    pub(crate) fn definition(self) -> &'static Definition {
        static ALL: LazyLock<BTreeMap<String, Definition>> =
            LazyLock::new(|| toml::from_str(include_str!("schema.toml")).expect("tests read it"));
        &ALL[self.name()]
    }

    /// Returns the table that has the secondary index of this name.
    pub(crate) fn of_index(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.definition().indexes.iter().any(|(index, _)| *index == name))
    }

    /// Returns the rows at `scale_factor`. For `lineitem`, which has 1 to 7 rows for each order, the
    /// number is approximate.
    pub(crate) fn about_rows(self, scale_factor: f64) -> u64 {
        u64::try_from(self.generated_rows(scale_factor, 1)).unwrap_or(0)
    }

    /// Returns the rows of one of `parts` equal parts, as [`Dbt3Table::about_rows`] returns those
    /// of the whole table.
    pub(crate) fn generated_rows(self, scale_factor: f64, parts: i32) -> i64 {
        match self {
            Self::Region => 5,
            Self::Nation => 25,
            Self::Supplier => SupplierGenerator::calculate_row_count(scale_factor, 1, parts),
            Self::Part => PartGenerator::calculate_row_count(scale_factor, 1, parts),
            Self::PartSupp => 4 * PartGenerator::calculate_row_count(scale_factor, 1, parts),
            Self::Customer => CustomerGenerator::calculate_row_count(scale_factor, 1, parts),
            Self::Orders => OrderGenerator::calculate_row_count(scale_factor, 1, parts),
            Self::LineItem => 4 * OrderGenerator::calculate_row_count(scale_factor, 1, parts),
        }
    }

    /// Returns the exact number of rows at `scale_factor`.
    pub(crate) fn rows(self, scale_factor: f64) -> u64 {
        if self != Self::LineItem {
            return self.about_rows(scale_factor);
        }
        let mut lines = OrderGenerator::create_line_count_random();
        let of_order = |_| {
            let count = lines.next_value();
            lines.row_finished();
            u64::try_from(count).unwrap_or(0)
        };
        (0..Self::Orders.about_rows(scale_factor)).map(of_order).sum()
    }
}

/// Returns the statement that makes a table. The table has its primary key from the beginning,
/// unless the server stores rows in the order in which they come, apart from the key.
pub(crate) fn create(
    table: Dbt3Table,
    (scale_factor, more): (f64, &str),
    capabilities: &Capabilities,
) -> String {
    let definition = table.definition();
    let columns = definition.columns.iter();
    let mut parts: Vec<String> = columns.map(|column| column.sql(capabilities, scale_factor)).collect();
    if !capabilities.keeps_arrival_order {
        parts.push(format!("PRIMARY KEY ({})", definition.key));
    }
    let more = after_columns(more);
    format!("CREATE TABLE {} ({}){}{more}", table.name(), parts.join(", "), capabilities.table_suffix)
}

/// Returns statements that add the keys and indexes that `table` lacks after the load, without
/// foreign keys.
pub(crate) fn index(table: Dbt3Table, capabilities: &Capabilities) -> Vec<String> {
    let Definition { key, indexes, .. } = table.definition();
    let key = capabilities.keeps_arrival_order.then_some(key.as_str());
    let indexes = indexes.iter().map(|(name, columns)| (name.as_str(), columns.as_str()));
    add_indexes(table.name(), key, indexes, capabilities.index_ddl)
}

/// Returns statements that add the foreign keys of `table`, once all primary keys exist.
pub(crate) fn foreign_keys(table: Dbt3Table) -> Vec<String> {
    let add = |(columns, to): &(String, Dbt3Table)| {
        format!(
            "ALTER TABLE {} ADD FOREIGN KEY ({columns}) REFERENCES {} ({})",
            table.name(),
            to.name(),
            to.definition().key
        )
    };
    table.definition().references.iter().map(add).collect()
}

/// Makes all tables, and makes sure that the server takes streamed rows.
pub(crate) async fn make(setup: &Dbt3Setup, session: &mut AnySession) -> Result<Vec<Work>> {
    let capabilities = &setup.context.database_server.capabilities;
    let mut works = Vec::new();
    if capabilities.row_stream == RowStream::LocalInfile {
        works.extend(allow_local_infile(&setup.context, session).await?);
    }
    // The text that comments are cut from is made here. It is the same for every table and scale
    // factor, so making it is no part of the load.
    let began = Instant::now();
    let bytes = rows::make_text();
    works.push(Work::new("make texts", began.elapsed(), [("bytes", json!(bytes))]));
    let began = Instant::now();
    // An earlier cell, or a run that was killed, may have left these views on the server.
    for stream in 0..ORDERS.len() {
        let dropping = Error::during("dropping the views of q15");
        session.query(format!("DROP VIEW IF EXISTS revenue{stream}").as_bytes()).await.map_err(dropping)?;
    }
    for table in Dbt3Table::ALL.into_iter().rev() {
        let dropping = Error::during(format!("dropping table {}", table.name()));
        let drop = format!("DROP TABLE IF EXISTS {}", table.name());
        session.query(drop.as_bytes()).await.map_err(dropping)?;
    }
    let dropped = began.elapsed();
    let of_plan = (setup.options.scale_factor, setup.options.create_table_options.as_str());
    let tables = Dbt3Table::ALL.into_iter();
    let tables = tables.map(|table| (table.name().to_owned(), vec![create(table, of_plan, capabilities)]));
    let mut created = create_tables(&setup.context, session, tables).await?;
    created.duration += dropped;
    if setup.options.foreign_keys && !capabilities.foreign_keys {
        let text =
            "foreign_keys = true, but this engine takes none after the load: the tables have no foreign keys";
        created.warning = Some(text.to_owned());
    }
    works.push(created);
    Ok(works)
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{mysql, postgres, sqlite};

    use super::*;

    #[test]
    fn each_engine_makes_tables_and_indexes_in_its_own_words() {
        let all = [
            mysql::capabilities("InnoDB", true),
            mysql::capabilities("MyISAM", true),
            mysql::capabilities("ROCKSDB", true),
            postgres::capabilities(),
            sqlite::capabilities(),
        ];
        let texts: Vec<String> = all
            .iter()
            .flat_map(|capabilities| {
                [create(Dbt3Table::PartSupp, (1.0, ""), capabilities)]
                    .into_iter()
                    .chain(index(Dbt3Table::PartSupp, capabilities))
            })
            .collect();
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn row_counts_are_the_specifications() {
        let at_1 = Dbt3Table::ALL.map(|table| table.rows(1.0));
        assert_eq!(at_1, [5, 25, 10_000, 200_000, 800_000, 150_000, 1_500_000, 6_001_215]);
        assert_eq!(Dbt3Table::LineItem.rows(0.01), 60_175);
    }

    #[test]
    fn keys_of_orders_get_64_bits_before_they_need_them() {
        let capabilities = mysql::capabilities("InnoDB", true);
        let of = |scale_factor| create(Dbt3Table::Orders, (scale_factor, ""), &capabilities);
        assert!(of(100.0).contains("o_orderkey INTEGER") && of(300.0).contains("o_orderkey BIGINT"));
        assert!(OrderGenerator::make_order_key(1_500_000 * 300) < i64::from(i32::MAX));
    }

    #[test]
    fn foreign_keys_name_the_keys_that_they_refer_to() {
        insta::assert_snapshot!(foreign_keys(Dbt3Table::LineItem).join("\n"), @r"
        ALTER TABLE lineitem ADD FOREIGN KEY (l_orderkey) REFERENCES orders (o_orderkey)
        ALTER TABLE lineitem ADD FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp (ps_partkey, ps_suppkey)
        ");
    }
}
