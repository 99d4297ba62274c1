//! Types for what parity finds: the table of setting classes and the remarks. The report crate
//! writes the sentences.

use dbdyno_products::{Foreign, Knowledge};
use serde::Serialize;

use super::classes::Weight;
use super::effective::FatedLine;

/// How the variants were configured, and what the servers made of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parity {
    pub variants: Vec<VariantKnowledge>,
    /// One row per class that at least one variant has.
    pub classes: Vec<ClassRow>,
    /// Remarks that a reader must know, worst first.
    pub remarks: Vec<Remark>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariantKnowledge {
    pub name: String,
    pub knowledge: Knowledge,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassRow {
    pub id: String,
    pub title: String,
    pub meaning: String,
    pub weight: Weight,
    pub standing: Standing,
    /// One entry per variant, in the order of the variants.
    pub cells: Vec<ClassCell>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCell {
    /// The value as text: `128 MiB`, `off`. It is empty where the product has nothing of the kind,
    /// or nothing is known.
    pub text: String,
    /// The value is the server's own choice, because nothing was configured. It is never set for a
    /// server that others run, whose option file is not known.
    pub is_default: bool,
}

/// Whether the variants are alike in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Same,
    Differs,
    /// The variants differ, as the plan says they do.
    Declared,
    /// Only one variant has the class, or the variants are from different product families.
    NotCompared,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remark {
    pub kind: RemarkKind,
    /// Id of the class or pitfall.
    pub id: String,
    pub variants: Vec<String>,
    #[serde(rename = "text")]
    pub what: What,
    /// How it affects a result.
    pub effect: String,
    /// What to write in order to remove it; empty for a difference that is intended.
    pub write: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum What {
    Class(ClassDifference),
    /// The variants have met a pitfall. It has the title, and the configuration lines concerned,
    /// each with its variant.
    Pitfall {
        title: String,
        lines: Vec<(String, FatedLine)>,
    },
    /// The variant's build was not asked for its settings. This command asks it.
    NotAsked {
        ask: String,
    },
    /// The server is not one of the known products, so that no rule says what its settings mean.
    ForeignServer(Foreign),
    /// Others run the server, and it was not asked for its settings yet.
    ExternalServer,
    UnknownSettings,
    /// The remark as a sentence. Only a report adds it, for readers of its JSON.
    Words(String),
}

/// A class in which variants differ, and the variants that have each value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassDifference {
    pub title: String,
    /// The values in the order of the variants.
    pub values: Vec<SharedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedValue {
    pub value: ClassCell,
    pub variants: Vec<String>,
}

/// A class with the values of two variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingDifference {
    /// Id of the class, such as `durability`.
    pub class: String,
    pub base: String,
    pub variant: String,
}

/// What a remark is about, in the order in which reports show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// A class that decides results differs.
    Difference,
    Pitfall,
    /// A class that matters less differs.
    Detail,
    /// A class differs, as the plan says it does.
    Declared,
    /// Something could not be known.
    Unknown,
}

impl Parity {
    pub fn of_kind(&self, kind: RemarkKind) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(move |remark| remark.kind == kind)
    }

    /// Classes in which `variant` differs from `base`, including those that the plan declares.
    pub fn differences(&self, base: &str, variant: &str) -> Vec<SettingDifference> {
        let place = |name: &str| self.variants.iter().position(|known| known.name == name);
        let (Some(base), Some(variant)) = (place(base), place(variant)) else { return Vec::new() };
        let differing = |row: &&ClassRow| matches!(row.standing, Standing::Differs | Standing::Declared);
        let difference = |row: &ClassRow| {
            let [base, variant] = [base, variant].map(|at| row.cells[at].text.clone());
            let is_unlike = !base.is_empty() && !variant.is_empty() && base != variant;
            is_unlike.then(|| SettingDifference { class: row.id.clone(), base, variant })
        };
        self.classes.iter().filter(differing).filter_map(difference).collect()
    }

    /// Ids of the classes that differ and decide results.
    pub fn unlike(&self) -> Vec<&str> {
        self.of_kind(RemarkKind::Difference).map(|remark| remark.id.as_str()).collect()
    }
}
