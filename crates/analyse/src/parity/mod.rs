//! Parity: were the variants configured equally, did the servers take it, and in what do they
//! differ all the same?
//!
//! Option files become lines (`configured`), lines and defaults become settings, or settings come
//! from the record (`defaults`), settings become semantic classes (`classes`), and classes and
//! traps become remarks (`compared`, `traps`). What is of one product is in `products`. The same
//! code judges a run that was recorded and predicts one that was not. The three data files are
//! `classes.toml`, `traps.toml` and `defaults.toml`; docs/reference/parity.md is written from them.

mod classes;
mod compared;
mod condition;
mod configured;
mod defaults;
mod effective;
mod plan_words;
mod products;
#[cfg(test)]
#[path = "tests/reference.rs"]
mod reference;
mod remarks;
mod subject;
#[cfg(test)]
mod testing;
mod traps;
mod value;

use dbdyno_record::{Manifest, Run, WorkloadInfo};

use crate::cpus::cpu_list;
use crate::servers::servers;

pub use classes::{Across, Class, Weight, classes};
pub use compared::compared;
pub use condition::Circumstances;
pub use plan_words::{Mode, PlanWords};
pub use remarks::{ClassCell, ClassRow, Parity, Remark, RemarkKind, Standing, VariantKnowledge};
pub use subject::{Build, Extra, Knowledge, Settings, Subject};
pub use traps::{Fires, Trap, traps};
pub use value::{Value, size_text};

/// How a run's variants were configured and what came of it; `None` when the plan does not want to
/// know, and when no server was ever read back.
pub(crate) fn of_run(run: &Run) -> Option<Parity> {
    let words = PlanWords::read(&run.manifest.plan_toml);
    if words.mode == Mode::Off {
        return None;
    }
    let subjects: Vec<Subject> =
        run.manifest.variants.iter().filter_map(|variant| subject_of(run, &variant.name, &words)).collect();
    if subjects.is_empty() {
        return None;
    }
    Some(compared(&subjects, &words.differs, circumstances_of(&run.manifest)))
}

/// Where a prediction was wrong, one phrase a setting or class: settings that were predicted, and
/// all classes. Empty for a perfect one.
pub fn unexpected(predicted: &Subject, effective: &Subject) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, value) in &predicted.settings {
        match effective.settings.get(name).or_else(|| effective.session.get(name)) {
            Some(is) if value::says_the_same(value, is) => {}
            Some(is) => wrong.push(format!("{name}: predicted {value:?}, is {is:?}")),
            None => wrong.push(format!("{name}: predicted {value:?}, is not there")),
        }
    }
    for class in classes() {
        let text = |subject| class.of(subject).map_or("nothing".to_owned(), |found| found.value.to_string());
        let (expected, is) = (text(predicted), text(effective));
        if expected != is {
            wrong.push(format!("class {}: predicted {expected}, is {is}", class.id));
        }
    }
    wrong
}

/// Size of the cache of pages that a variant's tables are in, and whether it was configured; `None`
/// where it is not known.
pub fn buffer_pool_bytes(subject: &Subject) -> Option<(u64, bool)> {
    let found = classes().iter().find(|class| class.id == "buffer-pool")?.of(subject)?;
    match found.value {
        Value::Size(bytes) => Some((bytes, found.is_configured)),
        _ => None,
    }
}

/// In what two variants, of one run or of two, are not set alike, one text a class that decides
/// results.
pub(crate) fn between(base: (&Run, &str), new: (&Run, &str)) -> Vec<String> {
    let words = [base, new].map(|(run, _)| PlanWords::read(&run.manifest.plan_toml));
    let [base_subject, new_subject] =
        [(base, &words[0]), (new, &words[1])].map(|((run, name), words)| subject_of(run, name, words));
    let (Some(mut base_subject), Some(mut new_subject)) = (base_subject, new_subject) else {
        return Vec::new();
    };
    if words.iter().any(|words| words.mode == Mode::Off) {
        return Vec::new();
    }
    if base_subject.name == new_subject.name {
        base_subject.name.push_str(" of the base");
        new_subject.name.push_str(" of the new run");
    }
    let declared = words.map(|words| words.differs).concat();
    let parity = compared(&[base_subject, new_subject], &declared, circumstances_of(&base.0.manifest));
    parity.of_kind(RemarkKind::Difference).map(|remark| remark.text.clone()).collect()
}

/// One variant of a run as its server was read back; `None` when it never ran.
pub(crate) fn subject_of(run: &Run, name: &str, words: &PlanWords) -> Option<Subject> {
    let variant = run.manifest.variants.iter().find(|variant| variant.name == name)?;
    let server = servers(run, name).next()?;
    let extra = Extra { sends_text_only: sends_text_only(run, name), ..words.extra(name) };
    Some(Subject::effective(variant, server, &extra))
}

/// Whether no step that the variant ran has prepared statements.
fn sends_text_only(run: &Run, variant: &str) -> bool {
    const TEXT: [&str; 2] = ["text", "simple"];
    let cells = run.cells.iter().filter(|cell| cell.id.variant == variant);
    let kinds = cells.flat_map(|cell| &cell.steps).flat_map(|step| &step.spec.kinds);
    let mut protocols = kinds.map(|kind| kind.protocol.as_str()).peekable();
    protocols.peek().is_some() && protocols.all(|protocol| TEXT.contains(&protocol))
}

fn circumstances_of(manifest: &Manifest) -> Circumstances {
    circumstances(&manifest.workloads, manifest.host.server_cpus.as_deref())
}

/// What the workloads of a run need, as far as traps look at it: the largest of each; and the CPUs
/// of its servers, as `0-3,8`.
pub fn circumstances(workloads: &[WorkloadInfo], server_cpus: Option<&str>) -> Circumstances {
    Circumstances {
        data_bytes: workloads.iter().filter_map(WorkloadInfo::data_bytes).max(),
        connections: workloads.iter().filter_map(WorkloadInfo::connections).max(),
        server_cpus: server_cpus.and_then(cpu_list).map(|cpus| cpus.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, query_step, run};

    #[test]
    fn a_variant_sends_text_where_each_of_its_steps_did() {
        let ran = |protocols: &[&str]| {
            let step = |protocol: &&str| {
                let mut step = query_step(400, 200);
                step.spec.kinds.iter_mut().for_each(|kind| kind.protocol = (*protocol).to_owned());
                step
            };
            let other = cell(1, "b", vec![load_step(1_000)]);
            let cells = vec![cell(1, "a", protocols.iter().map(step).collect()), other];
            sends_text_only(&run(&["a", "b"], 1, cells), "a")
        };
        assert!(ran(&["text"]) && ran(&["text", "simple"]));
        assert!(!ran(&["text", "prepared"]) && !ran(&["as the script asks"]) && !ran(&[]));
    }
}
