//! Judges parity: whether the variants were configured equally, whether the servers applied their
//! configuration, and where they still differ.
//!
//! `settings` takes a variant's settings from the record, or predicts them from its option file and
//! what its build reported. Settings that mean the same in different products belong to one class
//! (`classes`), such as the buffer pool. Remarks come from classes that differ (`compared`) and
//! from pitfalls (`pitfalls`). Each product's folder in `dbdyno-products` says how its option file
//! is read and what its settings mean. The same code judges the parity of a recorded run and
//! predicts that of a planned one. docs/reference/parity.md is generated from the data files
//! `classes.toml` and `pitfalls.toml`.

mod classes;
mod compared;
mod pitfalls;
#[cfg(test)]
#[path = "tests/reference.rs"]
mod reference;
mod settings;
#[cfg(test)]
#[path = "tests/subjects.rs"]
mod testing;

use std::collections::BTreeMap;

use dbdyno_products::FamilyFacts;
pub use dbdyno_products::{Foreign, Planned, Settings, SettingsSource, Subject, Value, size_text};
use dbdyno_record::{Manifest, Run, WorkloadInfo};
use serde::de::DeserializeOwned;

use crate::servers::cpu_list;
use crate::servers::servers;

pub use classes::{Across, Class, Weight, classes};
pub use compared::{
    ClassCell, ClassDifference, ClassRow, Parity, Remark, RemarkKind, SettingDifference, SharedValue,
    Standing, VariantSettings, What, compared,
};
pub use pitfalls::Circumstances;
pub use settings::{Build, LineProblem, effective, predicted};

/// Reads the tables in a data file. All tables in it have the same name.
fn entries<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let tables: BTreeMap<String, Vec<T>> =
        toml::from_str(text).expect("the data files are parts of the program and are tested");
    tables.into_values().flatten().collect()
}

/// Returns how a run's variants were configured and what the servers made of it. It is `None` where
/// the plan turns parity off, and where no server's settings were read back.
pub(crate) fn of_run(run: &Run) -> Option<Parity> {
    let plan = &run.manifest.plan;
    if plan.parity == dbdyno_model::Parity::Off {
        return None;
    }
    let subjects: Vec<Subject> =
        run.manifest.variants.iter().filter_map(|variant| subject_of(run, &variant.name)).collect();
    if subjects.is_empty() {
        return None;
    }
    Some(compared(&subjects, &plan.differs, circumstances_of(&run.manifest)))
}

/// Returns one text per node of the query plan in `rows`, without what differs from run to run.
/// `form` says how the rows are to be read, such as `mysql` for rows of MySQL's EXPLAIN.
pub(crate) fn plan_nodes(form: &str, rows: &[Vec<Option<String>>]) -> Vec<String> {
    (FamilyFacts::named(form).plan_nodes)(rows)
}

/// Returns the size in bytes of a variant's buffer pool, or of what its product has in place of
/// one, and whether the size was configured. It is `None` where the size is not known.
pub fn buffer_pool_bytes(subject: &Subject) -> Option<(u64, bool)> {
    // Unlike `of`, `of_known_settings` also gives a value where only some settings are known.
    let found = classes().iter().find(|class| class.id == "buffer-pool")?.of_known_settings(subject)?;
    match found.value {
        Value::Size(bytes) => Some((bytes, found.is_configured)),
        _ => None,
    }
}

/// Whether a variant's server answers repeated queries from a query cache.
pub(crate) fn keeps_answers(run: &Run, name: &str) -> bool {
    let class = classes().iter().find(|class| class.id == "query-cache");
    let found = class.and_then(|class| class.of(&subject_of(run, name)?));
    found.is_some_and(|found| found.value == Value::words("on"))
}

/// Returns the classes that decide results and that are set differently for two variants. The
/// variants may be from one run or from two.
pub(crate) fn class_differences(base: (&Run, &str), new: (&Run, &str)) -> Vec<ClassDifference> {
    let [base_subject, new_subject] = [base, new].map(|(run, name)| subject_of(run, name));
    let (Some(base_subject), Some(new_subject)) = (base_subject, new_subject) else {
        return Vec::new();
    };
    let plans = [base, new].map(|(run, _)| &run.manifest.plan);
    if plans.iter().any(|plan| plan.parity == dbdyno_model::Parity::Off) {
        return Vec::new();
    }
    let declared = plans.map(|plan| plan.differs.as_slice()).concat();
    let parity = compared(&[base_subject, new_subject], &declared, circumstances_of(&base.0.manifest));
    let difference = |remark: Remark| match remark.what {
        What::Class(difference) if remark.kind == RemarkKind::Difference => Some(difference),
        _ => None,
    };
    parity.remarks.into_iter().filter_map(difference).collect()
}

/// Returns a variant with the settings that were read back from its server, or `None` when it never
/// ran.
pub(crate) fn subject_of(run: &Run, name: &str) -> Option<Subject> {
    let variant = run.manifest.variants.iter().find(|variant| variant.name == name)?;
    let server = servers(run, name).next()?;
    let planned = run.manifest.plan.variant(name).cloned().unwrap_or_default();
    let planned = Planned { variant: planned, sends_text_only: sends_text_only(run, name) };
    Some(effective(variant, server, &planned))
}

/// Whether the variant ran a step and all its steps sent their statements as text, not prepared.
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

/// Returns the properties of a run on which pitfalls depend. Sizes and connections are the largest
/// of any workload. `server_cpus` is a list such as `0-3,8`.
pub fn circumstances(workloads: &[WorkloadInfo], server_cpus: Option<&str>) -> Circumstances {
    Circumstances {
        data_bytes: workloads.iter().filter_map(|workload| workload.data_bytes).max(),
        connections: workloads.iter().map(|workload| workload.connections.into()).max(),
        server_cpus: server_cpus.and_then(cpu_list).map(|cpus| cpus.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, query_step, run};

    #[test]
    fn a_variant_sends_text_only_if_all_its_steps_do() {
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
