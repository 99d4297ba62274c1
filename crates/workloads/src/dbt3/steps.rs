//! The steps: load, index, statistics, then the queries, the power test and the throughput test.

use std::collections::BTreeMap;

use dbdyno_record::{KindSpec, OperationClass, StepSpec, Unit};
use serde_json::{Map, Value, json};

use crate::dbt3::Setup;
use crate::dbt3::options::{Dbt3 as Options, Part};
use crate::dbt3::parameters::ORDERS;
use crate::dbt3::queries::{COUNT, Hint, shape};
use crate::dbt3::rows::{assigned, load_sql};
use crate::dbt3::schema::{self, Table};
use crate::specs::{kind_spec, step_spec};

/// Steps that only make the data.
pub(crate) const LOAD_STEPS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepKind {
    Load,
    Index,
    Statistics,
    Query { number: u8, hint: Hint },
    Power,
    Throughput,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepPlan {
    pub(crate) name: String,
    pub(crate) kind: StepKind,
}

/// Something that a connection does, with a time of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Query { number: u8, stream: u32, hint: Hint },
    Insert { set: u32 },
    Delete { set: u32 },
}

impl Operation {
    /// Name in records.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Query { number, .. } => format!("q{number}"),
            Self::Insert { .. } => "rf1".to_owned(),
            Self::Delete { .. } => "rf2".to_owned(),
        }
    }
}

pub(super) fn names(options: &Options) -> Vec<String> {
    plan(options).into_iter().map(|step| step.name).collect()
}

pub(crate) fn plan(options: &Options) -> Vec<StepPlan> {
    let step = |name: &str, kind| StepPlan { name: name.to_owned(), kind };
    let mut steps = vec![
        step("load", StepKind::Load),
        step("index", StepKind::Index),
        step("statistics", StepKind::Statistics),
    ];
    for part in &options.parts {
        match part {
            Part::Queries => {
                steps.extend(options.queries.iter().flat_map(|&number| query_steps(number, options)))
            }
            Part::Power => steps.push(step("power", StepKind::Power)),
            Part::Throughput => steps.push(step("throughput", StepKind::Throughput)),
        }
    }
    steps
}

fn query_steps(number: u8, options: &Options) -> Vec<StepPlan> {
    let name = format!("q{number}");
    let own = StepPlan { name: name.clone(), kind: StepKind::Query { number, hint: Hint::None } };
    let hinted = options.hints_of(number).into_iter().map(|(end, hint)| StepPlan {
        name: format!("{name}.{end}"),
        kind: StepKind::Query { number, hint },
    });
    [own].into_iter().chain(hinted).collect()
}

/// What each connection of a measured step does, in its order.
pub(crate) fn scripts(kind: &StepKind, options: &Options) -> Vec<Vec<Operation>> {
    let stream = |stream: u32| {
        let queries = ORDERS[stream as usize].into_iter();
        queries.map(move |number| Operation::Query { number, stream, hint: Hint::None })
    };
    match kind {
        StepKind::Load | StepKind::Index | StepKind::Statistics => Vec::new(),
        StepKind::Query { number, hint } => {
            let query = Operation::Query { number: *number, stream: 0, hint: hint.clone() };
            vec![vec![query; options.repetitions as usize]]
        }
        StepKind::Power => {
            let [insert, delete] = [Operation::Insert { set: 1 }, Operation::Delete { set: 1 }];
            vec![[insert].into_iter().chain(stream(0)).chain([delete]).collect()]
        }
        StepKind::Throughput => {
            // The first set belongs to the power test.
            let sets = 2..2 + options.streams;
            let refreshes = sets.flat_map(|set| [Operation::Insert { set }, Operation::Delete { set }]);
            let streams = (1..=options.streams).map(|number| stream(number).collect());
            streams.chain([refreshes.collect()]).collect()
        }
    }
}

/// Statements of the index step. Foreign keys come last: they need the keys of all tables.
pub(crate) fn index_statements(setup: &Setup) -> Vec<String> {
    let capabilities = &setup.context.endpoint.capabilities;
    let indexes = Table::ALL.into_iter().rev().flat_map(|table| schema::index(table, capabilities));
    let has_foreign_keys = setup.options.foreign_keys && capabilities.foreign_keys;
    let referring = Table::ALL.into_iter().filter(|_| has_foreign_keys);
    indexes.chain(referring.flat_map(schema::foreign_keys)).collect()
}

/// `None` where the server gathers none when it is asked to.
pub(crate) fn statistics_statement(table: Table, setup: &Setup) -> Option<String> {
    let words = setup.context.endpoint.capabilities.gather_statistics;
    (!words.is_empty()).then(|| format!("{words} {}", table.name()))
}

const QUERY: (&str, OperationClass) = ("query", OperationClass::Query);

pub(crate) fn spec(step: &StepPlan, setup: &Setup) -> StepSpec {
    let (unit, (kind, class), clients) = match step.kind {
        StepKind::Load => (Unit::Elapsed, ("insert", OperationClass::Insert), assigned(setup).len()),
        StepKind::Index => (Unit::Elapsed, ("index", OperationClass::Index), 1),
        StepKind::Statistics => (Unit::Elapsed, ("analyse", OperationClass::Other), 1),
        StepKind::Query { .. } => (Unit::Seconds, QUERY, 1),
        StepKind::Power | StepKind::Throughput => {
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

/// Published figures sum up the queries that the optimiser plans alone.
fn groups(step: &StepPlan) -> BTreeMap<String, String> {
    let is_query = matches!(step.kind, StepKind::Query { hint: Hint::None, .. });
    is_query.then(|| ("dbt3".to_owned(), "queries".to_owned())).into_iter().collect()
}

fn options(step: &StepPlan, setup: &Setup) -> Map<String, Value> {
    let Options { scale_factor, repetitions, parameters, time_limit, streams, .. } = &setup.options;
    let mut map = Map::from_iter([
        ("scale_factor".to_owned(), json!(scale_factor)),
        ("seed".to_owned(), json!(setup.context.seed)),
    ]);
    let mut add = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    match &step.kind {
        StepKind::Load | StepKind::Index | StepKind::Statistics => {}
        StepKind::Query { hint, .. } => {
            add("repetitions", json!(repetitions));
            add("parameters", json!(parameters));
            match hint {
                Hint::None => {}
                Hint::Order(order) => add("join_order", json!(order)),
                Hint::Index(index) => add("index", json!(index)),
            }
        }
        StepKind::Power => {}
        StepKind::Throughput => {
            add("streams", json!(streams));
        }
    }
    if let Some(limit) = time_limit {
        add("time_limit_seconds", json!(limit.0.as_secs_f64()));
    }
    map
}

fn statement(step: &StepPlan, setup: &Setup) -> String {
    match &step.kind {
        StepKind::Load => load_sql(Table::LineItem, setup.context.endpoint.capabilities.row_stream),
        StepKind::Index => index_statements(setup).join("; "),
        StepKind::Statistics => statistics_statement(Table::LineItem, setup).unwrap_or_default(),
        StepKind::Query { number, .. } => shape(*number),
        StepKind::Power | StepKind::Throughput => (1..=COUNT).map(shape).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_and_every_join_order_is_a_step() {
        let order = ["lineitem", "orders", "customer"].map(str::to_owned).to_vec();
        let options = Options {
            parts: vec![Part::Queries, Part::Power, Part::Throughput],
            queries: vec![3, 1],
            join_orders: BTreeMap::from([("q3".to_owned(), vec![order.clone(), order])]),
            indexes: BTreeMap::from([("q1".to_owned(), vec!["i_l_shipdate".to_owned()])]),
            ..Options::default()
        };
        assert_eq!(
            names(&options).join(" "),
            "load index statistics q3 q3.order1 q3.order2 q1 q1.i_l_shipdate power throughput"
        );
    }

    #[test]
    fn the_power_test_lies_between_its_refresh_functions_and_streams_have_sets_of_their_own() {
        let options = Options { streams: 2, ..Options::default() };
        let names = |kind| -> Vec<String> {
            let scripts = scripts(&kind, &options);
            scripts
                .iter()
                .map(|script| script.iter().map(Operation::name).collect::<Vec<_>>().join(" "))
                .collect()
        };
        insta::assert_snapshot!(names(StepKind::Power).join("\n"), @"rf1 q14 q2 q9 q20 q6 q17 q18 q8 q21 q13 q3 q22 q16 q4 q11 q15 q1 q10 q19 q5 q7 q12 rf2");
        let throughput = names(StepKind::Throughput);
        assert_eq!((throughput.len(), throughput[2].as_str()), (3, "rf1 rf2 rf1 rf2"));
        let sets = &scripts(&StepKind::Throughput, &options)[2];
        assert_eq!((&sets[0], &sets[2]), (&Operation::Insert { set: 2 }, &Operation::Insert { set: 3 }));
    }
}
