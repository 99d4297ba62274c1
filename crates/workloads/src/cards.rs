//! Steps as cards for a reader: what each is for, what it sends, with which parameters. Made of the same descriptions that runs record.

use dbdyno_drivers::{Endpoint, Target, null};
use dbdyno_record::StepSpec;

use crate::{Card, CardOperation, Cards, Context, Steps, Workload};

/// What must be said of a step in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    pub(crate) purpose: &'static str,
    pub(crate) parameters: &'static str,
    pub(crate) trap: &'static str,
}

/// A database that stores nothing.
pub(crate) fn context() -> Context {
    let endpoint =
        Endpoint { target: Target::Null(null::Options::default()), capabilities: null::capabilities() };
    Context { endpoint, owned: true, seed: 1, device: None }
}

/// The steps of a workload, to make cards of.
pub(crate) fn specs(workload: &impl Steps) -> impl Iterator<Item = StepSpec> {
    (0..workload.steps().len()).map(|index| workload.spec(index))
}

/// The cards of a workload whose steps have one list: what `words` says of each step's name.
pub(crate) fn of<W: Workload>(options: &W::Options, words: impl Fn(&str) -> Words) -> Vec<Cards> {
    let card = |spec: StepSpec| card(&spec, None, words(&spec.name));
    let steps = specs(&W::new(options, context())).map(card).collect();
    vec![Cards { workload: W::NAME, title: "", steps }]
}

/// The card of a step.
pub(crate) fn card(spec: &StepSpec, published_as: Option<String>, words: Words) -> Card {
    let operation = |kind: &dbdyno_record::KindSpec| CardOperation {
        kind: kind.kind.clone(),
        protocol: kind.protocol.clone(),
        statements: shown(&kind.statement)
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

/// Statements with lists cut short.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("(?, ?") {
        let length = rest[start..].find(')').unwrap_or(rest.len() - start - 1);
        let count = rest[start..start + length].matches('?').count();
        shown.push_str(&rest[..start]);
        if count > 4 {
            shown.push_str(&format!("(?, ... {count} values)"));
        } else {
            shown.push_str(&rest[start..=start + length]);
        }
        rest = &rest[start + length + 1..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use crate::microbenchmarks::Microbenchmarks;
    use crate::{Cards, Workload};

    #[test]
    fn every_step_of_every_workload_has_a_purpose_statements_and_parameters() {
        for kind in crate::ALL {
            let name = kind.name();
            for Cards { title, steps, .. } in kind.cards() {
                for card in &steps {
                    let about = format!("{name} {title} {}", card.step);
                    assert!(!card.purpose.is_empty() && !card.parameters.is_empty(), "{about}");
                    assert!(!card.operations.is_empty() && !card.rate.is_empty(), "{about}");
                    let mut statements = card.operations.iter().flat_map(|operation| &operation.statements);
                    assert!(statements.all(|sql| sql.len() > 4), "{about}: {card:?}");
                }
            }
        }
    }

    #[test]
    fn a_card_holds_what_the_step_sends_and_its_published_name() {
        let lists = Microbenchmarks::cards();
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
