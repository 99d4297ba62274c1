//! Defines the options of DBT3, checks them, and derives from them what the workload needs.

use std::collections::BTreeMap;
use std::fmt;

use dbdyno_model::{Cold, DataMode, PlanDuration, with_defaults};
use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};
use schemars::JsonSchema;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::dbt3::queries::Q15;
use crate::dbt3::queries::{COUNT, Hint, joined_tables};
use crate::dbt3::schema::Dbt3Table;
use crate::dbt3::steps::table_bytes;
use crate::options::{Verify, first_problem, schema_problem, table_options_problem};
use crate::settle::Settle;
use crate::step::{StepOptions, forecast, outlines};

/// Parameters of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Parameters {
    /// Those with which answers at scale factor 1 are published.
    Validation,
    /// Random by the specification's rules, by the plan's seed and the stream.
    Seed,
}

/// Measured steps that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dbt3Part {
    /// A step for each query: `q1` to `q22`.
    Queries,
    /// The step `power`: a refresh function, all queries in the order of stream 0, the other
    /// refresh function.
    Power,
    /// The step `throughput`: streams of queries at the same time, with a stream of refresh
    /// functions.
    Throughput,
}

with_defaults! {
    /// `[workload.dbt3]`: DBT3, 22 queries on a database of eight tables. Derived from TPC-H;
    /// figures are not comparable with published TPC-H results.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename = "Dbt3", deny_unknown_fields, default)]
    pub struct Dbt3Options {
        /// 1 is about 1 GB of rows, and 6 million of them in the largest table. Below 0.01 the
        /// original's rows have keys twice.
        #[schemars(range(min = 0.01, max = 1000.0), extend("x-size" = true))]
        pub scale_factor: f64 = 1.0,
        /// What runs after the load, in this order.
        #[schemars(extend("uniqueItems" = true))]
        pub parts: Vec<Dbt3Part> = vec![Dbt3Part::Queries],
        /// Queries that have a step, in its order; `power` and `throughput` always have all.
        #[serde(deserialize_with = "query_numbers")]
        #[schemars(inner(range(min = 1, max = 22)), extend("uniqueItems" = true))]
        pub queries: Vec<u8> = (1..=COUNT).collect(),
        /// How often each query is sent in its step, one after the other. Cold repetitions are
        /// blocks: `cold = true`, `blocks = 5`.
        #[schemars(range(min = 1, max = 1_000))]
        pub repetitions: u32 = 1,
        pub parameters: Parameters = Parameters::Validation,
        /// Streams of queries in `throughput`.
        #[schemars(range(min = 1, max = 10))]
        pub streams: u32 = 2,
        /// A query that takes longer is ended on the server, and counts as longer than this.
        /// Without a limit when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-least-ms" = 1))]
        pub time_limit: Option<PlanDuration> = None,
        pub q15: Q15 = Q15::View,
        /// Orders in which to join the tables of a query, each a step of its own after the
        /// optimiser's: `join_orders = { q3 = [["lineitem", "orders", "customer"]] }` gives
        /// `q3.order1`.
        pub join_orders: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new(),
        /// Indexes by which a query's outer table is read, each a step of its own: `indexes = {
        /// q6 = ["i_l_shipdate"] }` gives `q6.i_l_shipdate`. Not on PostgreSQL, which cannot
        /// force an index.
        pub indexes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
        /// Each query is executed once more when its step is over, for the server to count rows and
        /// time by operator. Not one that was cut off.
        pub analyze: bool = false,
        /// Foreign keys are added after the load, where the engine has them. DBT3 has none.
        pub foreign_keys: bool = false,
        /// Connections that load. Where rows stay in the order in which they came (PostgreSQL,
        /// MyISAM, Aria), each has whole tables.
        #[schemars(range(min = 1, max = 1_024))]
        pub load_connections: u32 = 4,
        /// Text after the closing bracket of CREATE TABLE.
        pub create_table_options: String = String::new(),
        /// How the server is brought to rest after the load. When left out, the run waits until the server's state is quiet.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub settle: Option<Settle> = None,
        /// When rows are counted and answers compared.
        pub verify: Verify = Verify::EachStep,
        /// The data with which a measured step begins: `"preserve"`, `"restart"`, `"reset"`, `"restore"`,
        /// `"restore-each-step"`.
        pub data: DataMode = DataMode::Preserve,
        /// Steps that begin with a server that has just been started and with empty caches: `true`,
        /// or a list of steps. Needs root.
        pub cold: Cold = Cold::All(false),
    }
}

/// Reads queries by number, or by the name of their step: `3`, `"q3"`.
fn query_numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let numbers = Vec::<QueryNumber>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|QueryNumber(number)| number).collect())
}

/// A query's number, which a plan writes as `3` or `"q3"`.
struct QueryNumber(u8);

impl<'de> Deserialize<'de> for QueryNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrName)
    }
}

struct NumberOrName;

impl Visitor<'_> for NumberOrName {
    type Value = QueryNumber;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a query, 1 to {COUNT} or \"q1\" to \"q{COUNT}\"")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<QueryNumber, E> {
        let wrong = || E::invalid_value(Unexpected::Signed(number), &self);
        u8::try_from(number).map(QueryNumber).map_err(|_| wrong())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<QueryNumber, E> {
        let wrong = || E::invalid_value(Unexpected::Unsigned(number), &self);
        u8::try_from(number).map(QueryNumber).map_err(|_| wrong())
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<QueryNumber, E> {
        let number = name.strip_prefix('q').and_then(|number| number.parse().ok()).map(QueryNumber);
        number.ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }
}

impl Dbt3Options {
    /// Returns the optimiser hints for query `number`. Each hint has a step of its own and comes
    /// with the end of that step's name, such as `order1`.
    pub(crate) fn hints_of(&self, number: u8) -> Vec<(String, Hint)> {
        let name = format!("q{number}");
        let orders = self.join_orders.get(&name).into_iter().flatten().zip(1..);
        let orders = orders.map(|(order, at)| (format!("order{at}"), Hint::Order(order.clone())));
        let indexes = self.indexes.get(&name).into_iter().flatten();
        orders.chain(indexes.map(|index| (index.clone(), Hint::Index(index.clone())))).collect()
    }
}

impl WorkloadOptions for Dbt3Options {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        schema_problem(self)
            .or_else(|| repetitions_problem(self))
            .or_else(|| orders_problem(self))
            .or_else(|| indexes_problem(self))
            .or_else(|| table_options_problem(&self.create_table_options))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        let streams = if self.parts.contains(&Dbt3Part::Throughput) { self.streams + 1 } else { 1 };
        Needs {
            connections: self.load_connections.max(streams),
            data_bytes: Some(table_bytes(self)),
            data: self.data,
            cold: self.cold.clone(),
            row_streams: true,
            long_operations: true,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

fn repetitions_problem(options: &Dbt3Options) -> Option<Mistake> {
    let one_cold = "only the first of several repetitions would be cold: set repetitions = 1, and blocks to the number of cold executions";
    first_problem([
        // Only the first execution after a server's start is cold.
        (options.cold.is_any() && options.repetitions > 1, "repetitions", one_cold),
    ])
}

/// Returns the tables of the query called `name` that can be given an order or an index. It is a
/// mistake in the option `key` when the plan has no step for that query.
fn outer_tables(options: &Dbt3Options, key: &'static str, name: &str) -> Result<Vec<&'static str>, Mistake> {
    let number = name.strip_prefix('q').and_then(|number| number.parse().ok());
    let known = number
        .filter(|number| options.queries.contains(number) && options.parts.contains(&Dbt3Part::Queries));
    let unknown = || (key, format!("{key} names {name}, which is not one of the plan's queries"));
    known.map(joined_tables).ok_or_else(unknown)
}

fn indexes_problem(options: &Dbt3Options) -> Option<Mistake> {
    options.indexes.iter().find_map(|(name, indexes)| {
        let tables = match outer_tables(options, "indexes", name) {
            Ok(tables) => tables,
            Err(mistake) => return Some(mistake),
        };
        let is_in_query =
            |table: Dbt3Table| tables.iter().any(|known| known.split(' ').next() == Some(table.name()));
        let unknown = indexes.iter().find(|index| !Dbt3Table::of_index(index).is_some_and(is_in_query))?;
        let message = format!(
            "indexes names {unknown} for {name}, whose tables have no such index: {}",
            tables.join(", ")
        );
        Some(("indexes", message))
    })
}

fn orders_problem(options: &Dbt3Options) -> Option<Mistake> {
    options.join_orders.iter().find_map(|(name, orders)| {
        let tables = match outer_tables(options, "join_orders", name) {
            Ok(tables) => tables,
            Err(mistake) => return Some(mistake),
        };
        let fits = |order: &Vec<String>| {
            let mut given: Vec<&str> = order.iter().map(String::as_str).collect();
            let mut wanted = tables.clone();
            given.sort_unstable();
            wanted.sort_unstable();
            given == wanted
        };
        let is_single = tables.len() < 2;
        let message = match is_single {
            true => format!("{name} has no tables to join in another order"),
            false => format!("an order of {name} must have each of these tables once: {}", tables.join(", ")),
        };
        (is_single || !orders.iter().all(fits)).then_some(("join_orders", message))
    })
}

#[cfg(test)]
mod tests {
    use crate::plans::parse;

    fn parsed(lines: &str) -> String {
        let plan = format!(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.dbt3]\n{lines}\n"
        );
        parse(&plan, "test.toml").map_or_else(|error| error.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        let wrong = [
            "scale_factor = 0",
            "queries = [1, 23]",
            "queries = [1, 1]",
            "queries = [3, \"q3\"]",
            "queries = [\"revenue\"]",
            "queries = [-1]",
            "cold = true\nrepetitions = 5",
            "join_orders = { q1 = [[\"lineitem\"]] }",
            "join_orders = { q3 = [[\"lineitem\", \"orders\"]] }",
            "indexes = { q6 = [\"i_o_custkey\"] }",
            "cold = [\"q30\"]",
            "time_limit = \"0s\"",
        ];
        let all: Vec<String> = wrong.iter().map(|lines| parsed(lines)).collect();
        insta::assert_snapshot!(all.join("\n"));
        assert_eq!(parsed("queries = [\"q3\", 5]"), "fine");
        assert_eq!(parsed("join_orders = { q3 = [[\"lineitem\", \"orders\", \"customer\"]] }"), "fine");
    }
}
