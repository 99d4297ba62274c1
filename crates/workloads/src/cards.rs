//! Steps as cards for a reader: what each is for, what it sends, with which parameters. Made of the same descriptions that runs record.

use std::collections::BTreeMap;

use dbdyno_drivers::{Endpoint, Target, null};
use dbdyno_plan::{
    InsertBenchmark as InsertOptions, MicroRung, MicroSequence, Microbenchmarks as MicroOptions,
    Oltp as OltpOptions, OltpTest,
};
use dbdyno_record::StepSpec;
use serde::Serialize;

use crate::{Context, Workload, insert_benchmark, microbenchmarks, oltp};

/// The steps of a workload in their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cards {
    pub workload: &'static str,
    /// `sequence 42`; empty where there is one order only.
    pub title: &'static str,
    pub steps: Vec<Card>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Card {
    pub step: String,
    /// Its name in published tables, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_as: Option<String>,
    /// What it is for, in a sentence.
    pub purpose: &'static str,
    /// One for each kind of connection that it has.
    pub operations: Vec<CardOperation>,
    /// What the parameters of its statements are.
    pub parameters: &'static str,
    /// What its rate counts: `queries/s`.
    pub rate: String,
    /// What its name hides; empty when it hides nothing.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub trap: &'static str,
    /// The groups over which published reports sum steps up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
}

/// What one kind of connection sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardOperation {
    pub kind: String,
    /// `prepared` or `text`
    pub protocol: String,
    /// The statements of one operation in their order, `?` for parameters, long lists cut short.
    pub statements: Vec<String>,
}

/// What must be said of a step in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    pub(crate) purpose: &'static str,
    pub(crate) parameters: &'static str,
    pub(crate) trap: &'static str,
}

/// The steps of the workload called `name` with its default options, as they are on a database that has no special configuration;
/// `None` for a name that is none of [`crate::ALL`].
pub fn cards(name: &str) -> Option<Vec<Cards>> {
    match name {
        "insert-benchmark" => Some(vec![of_insert_benchmark()]),
        "microbenchmarks" => Some(vec![
            of_microbenchmarks("sequence 42", MicroSequence::FortyTwo),
            of_microbenchmarks("sequence 32", MicroSequence::ThirtyTwo),
        ]),
        "oltp" => Some(vec![of_oltp()]),
        _ => None,
    }
}

/// A database that stores nothing.
pub(crate) fn context() -> Context {
    let endpoint =
        Endpoint { target: Target::Null(null::Options::default()), capabilities: null::capabilities() };
    Context { endpoint, owned: true, seed: 1, device: None }
}

fn of_insert_benchmark() -> Cards {
    let workload = insert_benchmark::InsertBenchmark::new(&InsertOptions::default(), context());
    let card = |spec: StepSpec| card(&spec, None, insert_benchmark::words(&spec.name));
    Cards { workload: "insert-benchmark", title: "", steps: specs(&workload).map(card).collect() }
}

fn of_oltp() -> Cards {
    let options = OltpOptions { tests: OltpTest::ALL.to_vec(), ..OltpOptions::default() };
    let workload = oltp::Oltp::new(&options, context());
    let card = |spec: StepSpec| card(&spec, None, oltp::words(&spec.name));
    Cards { workload: "oltp", title: "", steps: specs(&workload).map(card).collect() }
}

fn of_microbenchmarks(title: &'static str, sequence: MicroSequence) -> Cards {
    let options = MicroOptions { sequence, ..MicroOptions::default() };
    let workload = microbenchmarks::Microbenchmarks::new(&options, context());
    let rungs = options.rungs();
    let card = |spec: StepSpec| {
        let rung: Option<&MicroRung> = rungs.iter().find(|rung| rung.name == spec.name);
        let words = rung
            .map_or_else(|| oltp::words(&spec.name), |rung| microbenchmarks::entry(rung.step.test).words());
        let published = rung.map(|rung| rung.step.published_name()).filter(|name| *name != spec.name);
        card(&spec, published, words)
    };
    Cards { workload: "microbenchmarks", title, steps: specs(&workload).map(card).collect() }
}

fn specs<W: Workload>(workload: &W) -> impl Iterator<Item = StepSpec> {
    (0..workload.steps().len()).map(|index| workload.spec(index))
}

fn card(spec: &StepSpec, published_as: Option<String>, words: Words) -> Card {
    let operation = |kind: &dbdyno_record::KindSpec| CardOperation {
        kind: kind.kind.clone(),
        protocol: kind.protocol.clone(),
        statements: microbenchmarks::shown(&kind.statement)
            .split("; ")
            .flat_map(|statement| statement.split(" | "))
            .map(|statement| {
                statement.replace("k_?", "k_N").replace("sbtest?", "sbtestN").replace("pi?", "piN")
            })
            .collect(),
    };
    Card {
        step: spec.name.clone(),
        published_as,
        purpose: words.purpose,
        operations: spec.kinds.iter().map(operation).collect(),
        parameters: words.parameters,
        rate: spec.headline.label.clone(),
        trap: words.trap,
        groups: spec.groups.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_workload_has_a_purpose_statements_and_parameters() {
        for (name, _) in crate::ALL {
            for Cards { title, steps, .. } in cards(name).unwrap() {
                for card in &steps {
                    let about = format!("{name} {title} {}", card.step);
                    assert!(!card.purpose.is_empty() && !card.parameters.is_empty(), "{about}");
                    assert!(!card.operations.is_empty() && !card.rate.is_empty(), "{about}");
                    let mut statements = card.operations.iter().flat_map(|operation| &operation.statements);
                    assert!(statements.all(|sql| sql.len() > 4), "{about}: {card:?}");
                }
            }
        }
        assert_eq!(cards("tpcc"), None);
    }

    #[test]
    fn a_card_holds_what_the_step_sends_and_its_published_name() {
        let lists = cards("microbenchmarks").unwrap();
        assert_eq!((lists[0].steps.len(), lists[1].steps.len()), (2 + 43, 2 + 38));
        let of = |name: &str| lists[0].steps.iter().find(|card| card.step == name).unwrap();
        let inlist = of("update-inlist");
        assert_eq!(inlist.published_as.as_deref(), Some("update-inlist_range=100"));
        assert_eq!(
            inlist.operations[0].statements,
            ["UPDATE sbtestN SET c=? WHERE id IN (?, ... 10 values)"]
        );
        assert_eq!(of("insert").operations[0].protocol, "text");
        assert_eq!(of("read-only_range=10").operations[0].statements.len(), 7);
        assert_eq!(of("read-only_range=10").published_as, None);
    }
}
