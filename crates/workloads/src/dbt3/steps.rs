//! The steps are load, index and statistics, then the queries, the power test and the throughput
//! test.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_plan::{Size, StepEstimate, StepOutline, grouped, numbered};
use dbdyno_record::{KindSpec, OperationClass, StepSpec, Unit};
use serde_json::{Map, Value, json};

use crate::dbt3::Dbt3Setup;
use crate::dbt3::options::{Dbt3Options, Dbt3Part};
use crate::dbt3::queries::ORDERS;
use crate::dbt3::queries::{COUNT, Hint, shape};
use crate::dbt3::rows::{about_bytes, assigned, load_sql};
use crate::dbt3::schema::{self, Dbt3Table};
use crate::settle::Settle;
use crate::step::{DataSize, Step, StepOptions, checked, load_steps};
use crate::step::{kind_spec, step_spec};
use crate::workload::multiplied;

/// Size of rows and their indexes, divided by the size of the rows' text. The report of 2012 had 48 GB
/// for 30.
const DISK_FACTOR: f64 = 1.9;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dbt3StepKind {
    Load,
    Index,
    Statistics,
    Query { number: u8, hint: Hint },
    Power,
    Throughput,
}

pub(crate) type Dbt3Step = Step<Dbt3StepKind>;

/// One operation of a connection. Each is timed separately in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dbt3Operation {
    Query { number: u8, stream: u32, hint: Hint },
    Insert { set: u32 },
    Delete { set: u32 },
}

impl Dbt3Operation {
    /// Returns the name in records.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Query { number, .. } => format!("q{number}"),
            Self::Insert { .. } => "rf1".to_owned(),
            Self::Delete { .. } => "rf2".to_owned(),
        }
    }
}

impl StepOptions for Dbt3Options {
    type Kind = Dbt3StepKind;

    fn list(&self) -> Vec<Dbt3Step> {
        let load = [
            ("load", Dbt3StepKind::Load),
            ("index", Dbt3StepKind::Index),
            ("statistics", Dbt3StepKind::Statistics),
        ];
        let load = load.into_iter().map(|(name, kind)| self.step(name, kind)).collect();
        let measured = self.parts.iter().flat_map(|part| match part {
            Dbt3Part::Queries => self.queries.iter().flat_map(|&number| self.query_steps(number)).collect(),
            Dbt3Part::Power => vec![self.step("power", Dbt3StepKind::Power)],
            Dbt3Part::Throughput => vec![self.step("throughput", Dbt3StepKind::Throughput)],
        });
        checked(load_steps(load).into_iter().chain(measured).collect(), self.verify)
    }

    fn settling(&self) -> Settle {
        self.settle.clone().unwrap_or_default()
    }

    fn data_size(&self, size: &Size) -> DataSize {
        let settled = if size.row_bytes > 0.0 { table_bytes(self) } else { 0 };
        let binlog = if size.binlog_row_bytes > 0 { text_bytes(self) } else { 0 };
        let loaded = settled.saturating_add(size.log_bytes);
        DataSize { settled, loaded, disk: loaded.saturating_add(binlog) }
    }
}

impl Dbt3Options {
    fn step(&self, name: &str, kind: Dbt3StepKind) -> Dbt3Step {
        let outline = StepOutline {
            leaves_data: matches!(kind, Dbt3StepKind::Query { .. }),
            is_checked: matches!(kind, Dbt3StepKind::Load | Dbt3StepKind::Power | Dbt3StepKind::Throughput),
            ..StepOutline::new(self.step_estimate(name, &kind))
        };
        Step { outline, kind }
    }

    /// Returns the steps of a query: first as the optimiser plans it, then with each hint.
    fn query_steps(&self, number: u8) -> Vec<Dbt3Step> {
        let step = |name: &str, hint| self.step(name, Dbt3StepKind::Query { number, hint });
        let hints = self.hints_of(number).into_iter();
        let hinted = hints.map(|(end, hint)| step(&format!("q{number}.{end}"), hint));
        [step(&format!("q{number}"), Hint::None)].into_iter().chain(hinted).collect()
    }

    /// Returns an estimate from figures for rows and for each query. It is a guess, because a query
    /// with a bad plan may take any time.
    fn step_estimate(&self, name: &str, kind: &Dbt3StepKind) -> StepEstimate {
        let rows: u64 = Dbt3Table::ALL.iter().map(|table| table.about_rows(self.scale_factor)).sum();
        let detail = format!("{} rows", grouped(rows));
        let rows = rows as f64;
        let of = |what: &str| StepEstimate::new(name, what, Duration::ZERO);
        match kind {
            Dbt3StepKind::Load => of(&detail).and("dbt3 row loaded", rows, self.load_connections),
            Dbt3StepKind::Index => of(&format!("indexes on {detail}")).and("dbt3 row indexed", rows, 1),
            Dbt3StepKind::Statistics => of("all tables").and("dbt3 row analysed", rows, 1),
            Dbt3StepKind::Query { number, .. } => {
                let times = self.repetitions;
                queries(self, of(&numbered(times, "execution")), &[(*number, f64::from(times))], 1)
            }
            Dbt3StepKind::Power => {
                let once: Vec<_> = ORDERS[0].iter().map(|number| (*number, 1.0)).collect();
                queries(self, of("all queries"), &once, 1)
            }
            Dbt3StepKind::Throughput => {
                let streams = ORDERS.iter().skip(1).take(self.streams as usize).flatten();
                let sent: Vec<_> = streams.map(|number| (*number, 1.0)).collect();
                queries(self, of(&numbered(self.streams, "stream")), &sent, self.streams)
            }
        }
    }
}

/// Returns the estimate for queries. `sent` has the number of each query and how often it is sent,
/// over `connections` connections.
fn queries(options: &Dbt3Options, step: StepEstimate, sent: &[(u8, f64)], connections: u32) -> StepEstimate {
    let times: f64 = sent.iter().map(|(_, times)| times).sum();
    let limit = options.time_limit.map(|limit| multiplied(limit.0, times / f64::from(connections.max(1))));
    let with = |step: StepEstimate, (number, times): &(u8, f64)| {
        step.and(&format!("dbt3 q{number}"), times * options.scale_factor, connections)
    };
    sent.iter().fold(step, with).at_most(limit)
}

fn text_bytes(options: &Dbt3Options) -> u64 {
    Dbt3Table::ALL.iter().map(|table| about_bytes(*table, options.scale_factor)).sum()
}

/// Returns the bytes of all tables with their indexes.
pub(crate) fn table_bytes(options: &Dbt3Options) -> u64 {
    (text_bytes(options) as f64 * DISK_FACTOR) as u64
}

/// Returns the operations of each connection of a measured step, in their order.
pub(crate) fn scripts(kind: &Dbt3StepKind, options: &Dbt3Options) -> Vec<Vec<Dbt3Operation>> {
    let stream = |stream: u32| {
        let queries = ORDERS[stream as usize].into_iter();
        queries.map(move |number| Dbt3Operation::Query { number, stream, hint: Hint::None })
    };
    match kind {
        Dbt3StepKind::Load | Dbt3StepKind::Index | Dbt3StepKind::Statistics => Vec::new(),
        Dbt3StepKind::Query { number, hint } => {
            let query = Dbt3Operation::Query { number: *number, stream: 0, hint: hint.clone() };
            vec![vec![query; options.repetitions as usize]]
        }
        Dbt3StepKind::Power => {
            let [insert, delete] = [Dbt3Operation::Insert { set: 1 }, Dbt3Operation::Delete { set: 1 }];
            vec![[insert].into_iter().chain(stream(0)).chain([delete]).collect()]
        }
        Dbt3StepKind::Throughput => {
            // The first set belongs to the power test.
            let sets = 2..2 + options.streams;
            let refreshes =
                sets.flat_map(|set| [Dbt3Operation::Insert { set }, Dbt3Operation::Delete { set }]);
            let streams = (1..=options.streams).map(|number| stream(number).collect());
            streams.chain([refreshes.collect()]).collect()
        }
    }
}

/// Returns the statements of the index step. Foreign keys come last, because they need the keys of all
/// tables.
pub(crate) fn index_statements(setup: &Dbt3Setup) -> Vec<String> {
    let capabilities = &setup.context.database_server.capabilities;
    let indexes = Dbt3Table::ALL.into_iter().rev().flat_map(|table| schema::index(table, capabilities));
    let has_foreign_keys = setup.options.foreign_keys && capabilities.foreign_keys;
    let referring = Dbt3Table::ALL.into_iter().filter(|_| has_foreign_keys);
    indexes.chain(referring.flat_map(schema::foreign_keys)).collect()
}

/// Returns the statement that gathers statistics. It is `None` where the server cannot be asked to
/// gather any.
pub(crate) fn statistics_statement(table: Dbt3Table, setup: &Dbt3Setup) -> Option<String> {
    let words = setup.context.database_server.capabilities.gather_statistics;
    (!words.is_empty()).then(|| format!("{words} {}", table.name()))
}

const QUERY: (&str, OperationClass) = ("query", OperationClass::Query);

pub(crate) fn spec(step: &Dbt3Step, setup: &Dbt3Setup) -> StepSpec {
    let (unit, (kind, class), clients) = match step.kind {
        Dbt3StepKind::Load => (Unit::Elapsed, ("insert", OperationClass::Insert), assigned(setup).len()),
        Dbt3StepKind::Index => (Unit::Elapsed, ("index", OperationClass::Index), 1),
        Dbt3StepKind::Statistics => (Unit::Elapsed, ("analyse", OperationClass::Other), 1),
        Dbt3StepKind::Query { .. } => (Unit::Seconds, QUERY, 1),
        Dbt3StepKind::Power | Dbt3StepKind::Throughput => {
            (Unit::Elapsed, QUERY, scripts(&step.kind, &setup.options).len())
        }
    };
    let kind = KindSpec {
        rows_per_operation: 1,
        statements_per_operation: 1,
        ..kind_spec(kind, class, statement(step, setup))
    };
    let clients = u32::try_from(clients).unwrap_or(u32::MAX);
    let spec = step_spec((&step.name, clients), (unit, "seconds"), false, kind, options(step, setup));
    StepSpec { groups: groups(step), ..spec }
}

/// Returns the group of a step. Published figures sum up only the queries that have no hint.
fn groups(step: &Dbt3Step) -> BTreeMap<String, String> {
    let is_query = matches!(step.kind, Dbt3StepKind::Query { hint: Hint::None, .. });
    is_query.then(|| ("dbt3".to_owned(), "queries".to_owned())).into_iter().collect()
}

fn options(step: &Dbt3Step, setup: &Dbt3Setup) -> Map<String, Value> {
    let Dbt3Options { scale_factor, repetitions, parameters, time_limit, streams, .. } = &setup.options;
    let mut map = Map::from_iter([
        ("scale_factor".to_owned(), json!(scale_factor)),
        ("seed".to_owned(), json!(setup.context.seed)),
    ]);
    let mut add = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    match &step.kind {
        Dbt3StepKind::Load | Dbt3StepKind::Index | Dbt3StepKind::Statistics => {}
        Dbt3StepKind::Query { hint, .. } => {
            add("repetitions", json!(repetitions));
            add("parameters", json!(parameters));
            match hint {
                Hint::None => {}
                Hint::Order(order) => add("join_order", json!(order)),
                Hint::Index(index) => add("index", json!(index)),
            }
        }
        Dbt3StepKind::Power => {}
        Dbt3StepKind::Throughput => {
            add("streams", json!(streams));
        }
    }
    if let Some(limit) = time_limit {
        add("time_limit_seconds", json!(limit.0.as_secs_f64()));
    }
    map
}

fn statement(step: &Dbt3Step, setup: &Dbt3Setup) -> String {
    match &step.kind {
        Dbt3StepKind::Load => {
            load_sql(Dbt3Table::LineItem, setup.context.database_server.capabilities.row_stream)
        }
        Dbt3StepKind::Index => index_statements(setup).join("; "),
        Dbt3StepKind::Statistics => statistics_statement(Dbt3Table::LineItem, setup).unwrap_or_default(),
        Dbt3StepKind::Query { number, .. } => shape(*number),
        Dbt3StepKind::Power | Dbt3StepKind::Throughput => {
            (1..=COUNT).map(shape).collect::<Vec<_>>().join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::WorkloadOptions;

    use super::*;

    #[test]
    fn every_query_and_every_join_order_is_a_step() {
        let order = ["lineitem", "orders", "customer"].map(str::to_owned).to_vec();
        let options = Dbt3Options {
            parts: vec![Dbt3Part::Queries, Dbt3Part::Power, Dbt3Part::Throughput],
            queries: vec![3, 1],
            join_orders: BTreeMap::from([("q3".to_owned(), vec![order.clone(), order])]),
            indexes: BTreeMap::from([("q1".to_owned(), vec!["i_l_shipdate".to_owned()])]),
            ..Dbt3Options::default()
        };
        assert_eq!(
            options.step_names().join(" "),
            "load index statistics q3 q3.order1 q3.order2 q1 q1.i_l_shipdate power throughput"
        );
    }

    #[test]
    fn the_power_test_lies_between_its_refresh_functions_and_streams_have_sets_of_their_own() {
        let options = Dbt3Options { streams: 2, ..Dbt3Options::default() };
        let names = |kind| -> Vec<String> {
            let scripts = scripts(&kind, &options);
            scripts
                .iter()
                .map(|script| script.iter().map(Dbt3Operation::name).collect::<Vec<_>>().join(" "))
                .collect()
        };
        insta::assert_snapshot!(names(Dbt3StepKind::Power).join("\n"), @"rf1 q14 q2 q9 q20 q6 q17 q18 q8 q21 q13 q3 q22 q16 q4 q11 q15 q1 q10 q19 q5 q7 q12 rf2");
        let throughput = names(Dbt3StepKind::Throughput);
        assert_eq!((throughput.len(), throughput[2].as_str()), (3, "rf1 rf2 rf1 rf2"));
        let sets = &scripts(&Dbt3StepKind::Throughput, &options)[2];
        assert_eq!(
            (&sets[0], &sets[2]),
            (&Dbt3Operation::Insert { set: 2 }, &Dbt3Operation::Insert { set: 3 })
        );
    }
}
