//! The catalogue of traps, and which of them a set of variants has walked into.

use std::sync::LazyLock;

use serde::Deserialize;

use super::condition::{Circumstances, Condition};
use super::entries;
use super::remarks::{Remark, RemarkKind, What};
use super::subject::Subject;

static TRAPS: LazyLock<Vec<Trap>> = LazyLock::new(|| entries(include_str!("traps.toml")));

/// One trap. The data file says what the fields are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trap {
    pub id: String,
    pub title: String,
    pub fires: Fires,
    pub(super) when: Vec<Condition>,
    /// Conditions that a variant must fulfil to be looked at at all.
    #[serde(default)]
    among: Vec<Condition>,
    pub class: Option<String>,
    pub effect: String,
    pub write: String,
}

/// For which variants a trap fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fires {
    /// For each for which its conditions hold.
    Each,
    /// For those, when they hold for some only.
    Differs,
}

/// All traps, in the order in which reports show them.
pub fn traps() -> &'static [Trap] {
    &TRAPS
}

impl Trap {
    /// `None` when it does not fire.
    pub(super) fn fired(&self, subjects: &[Subject], run: Circumstances) -> Option<Remark> {
        let is_looked_at = |subject: &&Subject| {
            let fails = self.when.iter().find(|condition| !condition.holds(subject, run));
            subject.knowledge.is_of_settings()
                && self.among.iter().all(|condition| condition.holds(subject, run))
                && fails.is_none_or(|condition| condition.applies(subject, run))
        };
        let known: Vec<&Subject> = subjects.iter().filter(is_looked_at).collect();
        let holds = |subject: &&Subject| self.when.iter().all(|condition| condition.holds(subject, run));
        let (caught, free): (Vec<&Subject>, Vec<&Subject>) = known.into_iter().partition(holds);
        if caught.is_empty() || (self.fires == Fires::Differs && free.is_empty()) {
            return None;
        }
        let lines = caught.iter().flat_map(|subject| {
            let fates = self.when.iter().filter_map(|condition| match condition {
                Condition::File(fate) => Some(fate(subject)),
                _ => None,
            });
            fates.flatten().map(|line| (subject.name.clone(), line))
        });
        Some(Remark {
            kind: RemarkKind::Trap,
            id: self.id.clone(),
            variants: caught.iter().map(|subject| subject.name.clone()).collect(),
            trap: None,
            what: What::Trap { title: self.title.clone(), lines: lines.collect() },
            effect: self.effect.clone(),
            write: self.write.clone(),
        })
    }

    /// Whether it says why variants differ in the class.
    pub(super) fn explains(&self, class: &str) -> bool {
        self.fires == Fires::Differs && self.class.as_deref() == Some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::effective::FatedLine;
    use crate::parity::testing::configured;

    #[test]
    fn lines_of_option_files_are_named_with_their_variant() {
        let config = "[mysqld]\nsync_binlog = 1\nsync_binlog = 0\n";
        let subjects = [configured("a", "MySQL", "8.0.31", config)];
        let trap = traps().iter().find(|trap| trap.id == "set-twice").unwrap();
        let What::Trap { lines, .. } = trap.fired(&subjects, Circumstances::default()).unwrap().what else {
            panic!("no trap")
        };
        let [(variant, FatedLine::Twice { line: 2, later_line: 3, .. })] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(variant, "a");
    }
}
