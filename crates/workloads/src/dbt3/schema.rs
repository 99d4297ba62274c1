//! The eight tables: columns, keys, and DBT3's secondary indexes.

use dbdyno_drivers::{Capabilities, IndexDdl};
use dbdyno_plan::named;
use tpchgen::generators::{CustomerGenerator, OrderGenerator, PartGenerator, SupplierGenerator};

/// Scale factor from which on keys of orders need 64 bits: they are sparse, and go up to 6 million
/// at scale factor 1.
const BIG_KEYS_FROM: f64 = 300.0;

named! {
    /// A table, in the order in which they are made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Table {
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

impl Table {
    /// Columns in their order: name and type. `KEY` is the type of an order's key.
    pub(crate) const fn columns(self) -> &'static [(&'static str, Type)] {
        use Type::{Char, Int, Number, Text};
        match self {
            Self::Region => &[("r_regionkey", Int), ("r_name", Char(25)), ("r_comment", Text(152))],
            Self::Nation => {
                &[("n_nationkey", Int), ("n_name", Char(25)), ("n_regionkey", Int), ("n_comment", Text(152))]
            }
            Self::Supplier => &[
                ("s_suppkey", Int),
                ("s_name", Char(25)),
                ("s_address", Text(40)),
                ("s_nationkey", Int),
                ("s_phone", Char(15)),
                ("s_acctbal", Number),
                ("s_comment", Text(101)),
            ],
            Self::Part => &[
                ("p_partkey", Int),
                ("p_name", Text(55)),
                ("p_mfgr", Char(25)),
                ("p_brand", Char(10)),
                ("p_type", Text(25)),
                ("p_size", Int),
                ("p_container", Char(10)),
                ("p_retailprice", Number),
                ("p_comment", Text(23)),
            ],
            Self::PartSupp => &[
                ("ps_partkey", Int),
                ("ps_suppkey", Int),
                ("ps_availqty", Int),
                ("ps_supplycost", Number),
                ("ps_comment", Text(199)),
            ],
            Self::Customer => &[
                ("c_custkey", Int),
                ("c_name", Text(25)),
                ("c_address", Text(40)),
                ("c_nationkey", Int),
                ("c_phone", Char(15)),
                ("c_acctbal", Number),
                ("c_mktsegment", Char(10)),
                ("c_comment", Text(117)),
            ],
            Self::Orders => ORDERS,
            Self::LineItem => LINE_ITEM,
        }
    }

    const fn primary_key(self) -> &'static str {
        match self {
            Self::Region => "r_regionkey",
            Self::Nation => "n_nationkey",
            Self::Supplier => "s_suppkey",
            Self::Part => "p_partkey",
            Self::PartSupp => "ps_partkey, ps_suppkey",
            Self::Customer => "c_custkey",
            Self::Orders => "o_orderkey",
            Self::LineItem => "l_orderkey, l_linenumber",
        }
    }

    /// The table that has the secondary index of this name.
    pub(crate) fn of_index(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.indexes().iter().any(|(index, _)| *index == name))
    }

    /// Name and columns of each secondary index.
    const fn indexes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Region | Self::Part => &[],
            Self::Nation => &[("i_n_regionkey", "n_regionkey")],
            Self::Supplier => &[("i_s_nationkey", "s_nationkey")],
            Self::PartSupp => &[("i_ps_partkey", "ps_partkey"), ("i_ps_suppkey", "ps_suppkey")],
            Self::Customer => &[("i_c_nationkey", "c_nationkey")],
            Self::Orders => &[("i_o_orderdate", "o_orderdate"), ("i_o_custkey", "o_custkey")],
            Self::LineItem => &[
                ("i_l_shipdate", "l_shipdate"),
                ("i_l_suppkey_partkey", "l_partkey, l_suppkey"),
                ("i_l_partkey", "l_partkey"),
                ("i_l_suppkey", "l_suppkey"),
                ("i_l_receiptdate", "l_receiptdate"),
                ("i_l_orderkey", "l_orderkey"),
                ("i_l_orderkey_quantity", "l_orderkey, l_quantity"),
                ("i_l_commitdate", "l_commitdate"),
            ],
        }
    }

    /// Columns and the table that they refer to.
    const fn foreign_keys(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Region | Self::Part => &[],
            Self::Nation => &[("n_regionkey", Self::Region)],
            Self::Supplier => &[("s_nationkey", Self::Nation)],
            Self::PartSupp => &[("ps_partkey", Self::Part), ("ps_suppkey", Self::Supplier)],
            Self::Customer => &[("c_nationkey", Self::Nation)],
            Self::Orders => &[("o_custkey", Self::Customer)],
            Self::LineItem => &[("l_orderkey", Self::Orders), ("l_partkey, l_suppkey", Self::PartSupp)],
        }
    }

    /// Rows at `scale_factor`; of `lineitem`, which has 1 to 7 for each order, about.
    pub(crate) fn about_rows(self, scale_factor: f64) -> u64 {
        let rows = match self {
            Self::Region => 5,
            Self::Nation => 25,
            Self::Supplier => SupplierGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Part => PartGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::PartSupp => 4 * PartGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Customer => CustomerGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Orders => OrderGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::LineItem => 4 * OrderGenerator::calculate_row_count(scale_factor, 1, 1),
        };
        u64::try_from(rows).unwrap_or(0)
    }

    /// Rows at `scale_factor`, exactly.
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

const LINE_ITEM: &[(&str, Type)] = &[
    ("l_orderkey", Type::Key),
    ("l_partkey", Type::Int),
    ("l_suppkey", Type::Int),
    ("l_linenumber", Type::Int),
    ("l_quantity", Type::Number),
    ("l_extendedprice", Type::Number),
    ("l_discount", Type::Number),
    ("l_tax", Type::Number),
    ("l_returnflag", Type::Char(1)),
    ("l_linestatus", Type::Char(1)),
    ("l_shipdate", Type::Date),
    ("l_commitdate", Type::Date),
    ("l_receiptdate", Type::Date),
    ("l_shipinstruct", Type::Char(25)),
    ("l_shipmode", Type::Char(10)),
    ("l_comment", Type::Text(44)),
];

const ORDERS: &[(&str, Type)] = &[
    ("o_orderkey", Type::Key),
    ("o_custkey", Type::Int),
    ("o_orderstatus", Type::Char(1)),
    ("o_totalprice", Type::Number),
    ("o_orderdate", Type::Date),
    ("o_orderpriority", Type::Char(15)),
    ("o_clerk", Type::Char(15)),
    ("o_shippriority", Type::Int),
    ("o_comment", Type::Text(79)),
];

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    /// Of an order.
    Key,
    /// With two decimal places.
    Number,
    Date,
    Char(u16),
    Text(u16),
}

impl Type {
    /// A whole number.
    pub(crate) const fn is_whole(self) -> bool {
        matches!(self, Self::Int | Self::Key)
    }

    fn sql(self, capabilities: &Capabilities, scale_factor: f64) -> String {
        let typed = capabilities.typed_values;
        match self {
            Self::Key if scale_factor >= BIG_KEYS_FROM => capabilities.big_int.to_owned(),
            Self::Int | Self::Key => "INTEGER".to_owned(),
            Self::Number if typed => "DECIMAL(15,2)".to_owned(),
            Self::Number => "REAL".to_owned(),
            Self::Date if typed => "DATE".to_owned(),
            Self::Date => "TEXT".to_owned(),
            Self::Char(length) => format!("CHAR({length})"),
            Self::Text(length) => format!("VARCHAR({length})"),
        }
    }
}

/// Makes a table. Its primary key is there from the beginning, unless rows lie apart from it.
pub(crate) fn create(table: Table, (scale_factor, more): (f64, &str), capabilities: &Capabilities) -> String {
    let column =
        |(name, kind): &(&str, Type)| format!("{name} {} NOT NULL", kind.sql(capabilities, scale_factor));
    let mut parts: Vec<String> = table.columns().iter().map(column).collect();
    if !capabilities.keeps_arrival_order {
        parts.push(format!("PRIMARY KEY ({})", table.primary_key()));
    }
    let more = if more.is_empty() { String::new() } else { format!(" {more}") };
    format!("CREATE TABLE {} ({}){}{more}", table.name(), parts.join(", "), capabilities.table_suffix)
}

/// Statements that add what `table` lacks after the load, without foreign keys.
pub(crate) fn index(table: Table, capabilities: &Capabilities) -> Vec<String> {
    let name = table.name();
    let key = format!("ADD PRIMARY KEY ({})", table.primary_key());
    let adds = |(index, columns): &(&str, &str)| format!("ADD INDEX {index} ({columns})");
    let creates = |(index, columns): &(&str, &str)| format!("CREATE INDEX {index} ON {name} ({columns})");
    let key = capabilities.keeps_arrival_order.then_some(key);
    match capabilities.index_ddl {
        IndexDdl::OneAlter => {
            let all: Vec<String> = key.into_iter().chain(table.indexes().iter().map(adds)).collect();
            if all.is_empty() { Vec::new() } else { vec![format!("ALTER TABLE {name} {}", all.join(", "))] }
        }
        IndexDdl::AlterEach => {
            let all = key.into_iter().chain(table.indexes().iter().map(adds));
            all.map(|what| format!("ALTER TABLE {name} {what}")).collect()
        }
        IndexDdl::CreateEach => {
            let key = key.map(|key| format!("ALTER TABLE {name} {key}"));
            key.into_iter().chain(table.indexes().iter().map(creates)).collect()
        }
    }
}

/// Statements that add the foreign keys of `table`, once all primary keys are there.
pub(crate) fn foreign_keys(table: Table) -> Vec<String> {
    let add = |(columns, to): &(&str, Table)| {
        format!(
            "ALTER TABLE {} ADD FOREIGN KEY ({columns}) REFERENCES {} ({})",
            table.name(),
            to.name(),
            to.primary_key()
        )
    };
    table.foreign_keys().iter().map(add).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_drivers::{mysql, postgres, sqlite};

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
                [create(Table::PartSupp, (1.0, ""), capabilities)]
                    .into_iter()
                    .chain(index(Table::PartSupp, capabilities))
            })
            .collect();
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn row_counts_are_the_specifications() {
        let at_1 = Table::ALL.map(|table| table.rows(1.0));
        assert_eq!(at_1, [5, 25, 10_000, 200_000, 800_000, 150_000, 1_500_000, 6_001_215]);
        assert_eq!(Table::LineItem.rows(0.01), 60_175);
    }

    #[test]
    fn keys_of_orders_get_64_bits_before_they_need_them() {
        let capabilities = mysql::capabilities("InnoDB", true);
        let of = |scale_factor| create(Table::Orders, (scale_factor, ""), &capabilities);
        assert!(of(100.0).contains("o_orderkey INTEGER") && of(300.0).contains("o_orderkey BIGINT"));
        assert!(OrderGenerator::make_order_key(1_500_000 * 300) < i64::from(i32::MAX));
    }

    #[test]
    fn foreign_keys_name_the_keys_that_they_refer_to() {
        insta::assert_snapshot!(foreign_keys(Table::LineItem).join("\n"), @r"
        ALTER TABLE lineitem ADD FOREIGN KEY (l_orderkey) REFERENCES orders (o_orderkey)
        ALTER TABLE lineitem ADD FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp (ps_partkey, ps_suppkey)
        ");
    }
}
