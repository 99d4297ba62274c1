//! What parity says: the table of classes and the remarks. The words are in the report.

use dbdyno_products::{Foreign, Knowledge};
use serde::Serialize;

use super::classes::Weight;
use super::effective::FatedLine;

/// How the variants were configured, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parity {
    pub variants: Vec<VariantKnowledge>,
    /// One row a class that at least one variant has.
    pub classes: Vec<ClassRow>,
    /// What a reader must know, worst first.
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
    /// In the order of the variants.
    pub cells: Vec<ClassCell>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCell {
    /// `128 MiB`, `off`; empty where there is nothing of the kind, or nothing is known.
    pub text: String,
    /// Not configured: the server's own choice. Never so for a server that others run, whose option
    /// file is not known.
    pub is_default: bool,
}

/// Whether the variants are alike in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Same,
    Differs,
    /// They differ, as the plan says.
    Declared,
    /// One variant has it, or each is of another family of products.
    NotCompared,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remark {
    pub kind: RemarkKind,
    /// Of the class or pitfall.
    pub id: String,
    pub variants: Vec<String>,
    #[serde(rename = "text")]
    pub what: What,
    /// What it does to a result.
    pub effect: String,
    /// What to write to be rid of it; empty for a difference that is meant.
    pub write: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum What {
    Class(ClassDifference),
    /// They have met a pitfall: its title, and the lines of their configurations that it is about,
    /// each with its variant.
    Pitfall {
        title: String,
        lines: Vec<(String, FatedLine)>,
    },
    /// Its build was not asked for its settings; this command asks it.
    NotAsked {
        ask: String,
    },
    /// It is none of the products, so that no rule says what its settings mean.
    ForeignServer(Foreign),
    /// Others run the server, and it was not yet asked for its settings.
    ExternalServer,
    UnknownSettings,
    /// In words, which only a report adds, for readers of its JSON.
    Words(String),
}

/// A class with its values, and which variants have each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassDifference {
    pub title: String,
    /// In the order of the variants.
    pub values: Vec<SharedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedValue {
    pub value: ClassCell,
    pub variants: Vec<String>,
}

/// A class with what two variants are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingDifference {
    /// `durability`
    pub class: String,
    pub base: String,
    pub variant: String,
}

/// What a remark is about, in the order in which reports show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// A class differs that decides results.
    Difference,
    Pitfall,
    /// A class differs that matters less.
    Detail,
    /// A class differs, as the plan says.
    Declared,
    /// Something that could not be known.
    Unknown,
}

impl Parity {
    pub fn of_kind(&self, kind: RemarkKind) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(move |remark| remark.kind == kind)
    }

    /// Classes in which `variant` is not like `base`: those that the plan names too.
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

    /// The classes that differ and decide results, by id.
    pub fn unlike(&self) -> Vec<&str> {
        self.of_kind(RemarkKind::Difference).map(|remark| remark.id.as_str()).collect()
    }
}
