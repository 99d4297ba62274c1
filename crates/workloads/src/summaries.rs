//! Summarises a workload's steps for a reader: what each step is for, which statements it sends,
//! and with which parameters. The summaries are made from the same descriptions that runs record.

use std::collections::BTreeMap;

use dbdyno_db::{DatabaseAddress, DatabaseServer, null};
use dbdyno_record::StepSpec;
use serde::{Deserialize, Serialize};

use crate::{Context, Workload};

/// The steps of a workload in their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadSummary {
    pub workload: &'static str,
    /// Title of the list, such as `sequence 42`. It is empty where there is only one order.
    pub title: &'static str,
    pub steps: Vec<StepSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepSummary {
    pub step: String,
    /// The step's name in published tables, if that name differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_as: Option<String>,
    /// What the step is for, in a sentence.
    pub purpose: String,
    /// One entry for each kind of connection that the step has.
    pub operations: Vec<OperationSummary>,
    /// What the parameters of its statements are.
    pub parameters: String,
    /// What its rate counts, such as `queries/s`.
    pub rate: String,
    /// What a reader may get wrong about the step or its rate. It is empty when there is nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pitfall: String,
    /// The groups over which published reports sum steps up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
}

/// What one kind of connection sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationSummary {
    pub kind: String,
    /// `prepared` or `text`.
    pub protocol: String,
    /// The statements of one operation in their order, with `?` for parameters and long lists cut
    /// short.
    pub statements: Vec<String>,
}

/// What a workload's `words.toml` says about a step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StepDescription {
    /// What the step does, in a few words. `{option}` stands for an option in the step's
    /// specification.
    pub(crate) meaning: String,
    pub(crate) purpose: String,
    pub(crate) parameters: String,
    pub(crate) pitfall: String,
}

/// Returns what `text`, a workload's `words.toml`, says about a step. It looks for the step's whole
/// name, then for the part before the first dot, then for that part without the number at its
/// end, and finally for `*`. An entry without parameters takes those of `*`.
pub(crate) fn step_description(text: &str, step: &str) -> StepDescription {
    let mut descriptions: BTreeMap<String, StepDescription> =
        toml::from_str(text).expect("tests read every file of words");
    let for_all_steps = descriptions.remove("*").unwrap_or_default();
    let first_part = step.split('.').next().unwrap_or(step);
    let names = [step, first_part, first_part.trim_end_matches(|character: char| character.is_ascii_digit())];
    let found = names.iter().find_map(|name| descriptions.remove(*name));
    let mut description = found.unwrap_or_else(|| for_all_steps.clone());
    if description.parameters.is_empty() {
        description.parameters = for_all_steps.parameters;
    }
    description
}

/// Returns what a step does, in a few words, from a workload's `words.toml`.
pub(crate) fn meaning(text: &str, spec: &StepSpec) -> String {
    let meaning = step_description(text, &spec.name).meaning;
    spec.options.iter().fold(meaning, |meaning, (option, value)| {
        meaning.replace(&format!("{{{option}}}"), &value.to_string())
    })
}

/// Returns a context whose database stores nothing, because a summary needs no server.
pub(crate) fn context() -> Context {
    let database_server = DatabaseServer {
        address: DatabaseAddress::Null(null::Options::default()),
        capabilities: null::capabilities(),
    };
    Context { database_server, owned: true, seed: 1, draws: 1, device: None }
}

/// Returns the specifications of a workload's steps, from which summaries are made.
pub(crate) fn specs(workload: &impl Workload) -> impl Iterator<Item = StepSpec> {
    (0..workload.parts().steps.len()).map(|index| workload.spec(index))
}

/// Returns the summary of a workload whose steps come in only one order.
pub(crate) fn of<W: Workload>(options: &W::Options) -> Vec<WorkloadSummary> {
    let step_summary = |spec: StepSpec| step_summary(&spec, None, step_description(W::WORDS, &spec.name));
    let steps = specs(&W::new(options, context())).map(step_summary).collect();
    vec![WorkloadSummary { workload: W::NAME, title: "", steps }]
}

pub(crate) fn step_summary(
    spec: &StepSpec,
    published_as: Option<String>,
    description: StepDescription,
) -> StepSummary {
    // A name with a number, such as `sbtest7`, has `?` in the place of the number. A reader would
    // take that for a parameter.
    let numbered =
        |text: &str| text.replace("k_?", "k_N").replace("sbtest?", "sbtestN").replace("pi?", "piN");
    let operation = |kind: &dbdyno_record::KindSpec| OperationSummary {
        kind: kind.kind.clone(),
        protocol: kind.protocol.clone(),
        statements: shortened(&kind.statement)
            .split("; ")
            .flat_map(|all| all.split(" | "))
            .map(numbered)
            .collect(),
    };
    StepSummary {
        step: spec.name.clone(),
        published_as,
        purpose: description.purpose,
        operations: spec.kinds.iter().map(operation).collect(),
        parameters: description.parameters,
        rate: spec.headline.label.clone(),
        pitfall: description.pitfall,
        groups: spec.groups.clone(),
    }
}

/// Returns statements with long lists of parameters cut short, as in `(?, ... 10 values)`.
pub(crate) fn shortened(text: &str) -> String {
    let mut shortened = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("(?, ?") {
        let length = rest[start..].find(')').unwrap_or(rest.len() - start - 1);
        let count = rest[start..start + length].matches('?').count();
        shortened.push_str(&rest[..start]);
        if count > 4 {
            shortened.push_str(&format!("(?, ... {count} values)"));
        } else {
            shortened.push_str(&rest[start..=start + length]);
        }
        rest = &rest[start + length + 1..];
    }
    shortened + rest
}

#[cfg(test)]
mod tests {
    use crate::microbenchmarks::Microbenchmarks;
    use crate::{Workload, WorkloadSummary};

    #[test]
    fn every_step_of_every_workload_has_a_purpose_statements_and_parameters() {
        for kind in crate::ALL {
            let name = kind.name();
            for WorkloadSummary { title, steps, .. } in kind.summaries() {
                for step_summary in &steps {
                    let about = format!("{name} {title} {}", step_summary.step);
                    assert!(
                        !step_summary.purpose.is_empty() && !step_summary.parameters.is_empty(),
                        "{about}"
                    );
                    assert!(!step_summary.operations.is_empty() && !step_summary.rate.is_empty(), "{about}");
                    let mut statements =
                        step_summary.operations.iter().flat_map(|operation| &operation.statements);
                    assert!(statements.all(|sql| sql.len() > 4), "{about}: {step_summary:?}");
                }
            }
        }
    }

    #[test]
    fn a_summary_holds_what_the_step_sends_and_its_published_name() {
        let lists = Microbenchmarks::summaries();
        assert_eq!((lists[0].steps.len(), lists[1].steps.len()), (2 + 43, 2 + 38));
        let of = |name: &str| lists[0].steps.iter().find(|step_summary| step_summary.step == name).unwrap();
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
