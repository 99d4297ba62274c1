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
            !subject.settings.is_empty()
                && subject.foreign.is_none()
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
    use std::collections::BTreeMap;

    use dbdyno_record::VariantInfo;

    use super::*;
    use crate::parity::classes::classes;
    use crate::parity::effective::FatedLine;
    use crate::parity::subject::{Build, Extra};
    use crate::parity::testing::variant;

    const CASES: &str = include_str!("trap_cases.toml");
    const RUN: Circumstances =
        Circumstances { data_bytes: Some(10 << 30), connections: Some(200), server_cpus: Some(1) };

    #[derive(Deserialize)]
    struct Case {
        fires: Vec<String>,
        quiet: Vec<String>,
    }

    /// `MySQL 8.0.31 rocksdb: a = 1; b = 2`.
    fn subject(text: &str) -> Subject {
        let (head, lines) = text.split_once(": ").unwrap_or((text, ""));
        let words: Vec<&str> = head.split(' ').collect();
        let build = Build { product: words[0].to_owned(), version: words[1].to_owned() };
        let rest = words.get(2).copied();
        let extra = match rest {
            Some("tls") => Extra { tls: true, ..Extra::default() },
            Some("always") => Extra { column_definitions_always: true, ..Extra::default() },
            engine => Extra { engine: engine.map(str::to_owned), ..Extra::default() },
        };
        let lines = lines.replace("; ", "\n");
        let config = match words[0] {
            "PostgreSQL" => lines,
            "SQLite" => lines.lines().map(|line| format!("PRAGMA {line}\n")).collect(),
            _ if lines.starts_with('[') => lines,
            _ => format!("[mysqld]\n{lines}"),
        };
        let info: VariantInfo = variant(text, &config);
        let mut subject = Subject::predicted(&info, Some(&build), &extra);
        // Without a default that is known it is what a server shows.
        let size = subject.configured.iter().find(|line| line.name == "thread_pool_size");
        let shown = size.and_then(|line| Some((line.name.clone(), line.value.clone()?)));
        subject.settings.extend(shown);
        subject
    }

    #[test]
    fn each_trap_fires_where_it_should_and_is_quiet_where_it_should_not() {
        let cases: BTreeMap<String, Case> = toml::from_str(CASES).unwrap();
        for trap in traps() {
            let case = cases.get(&trap.id).unwrap_or_else(|| panic!("no case for {}", trap.id));
            let fires = |texts: &[String]| {
                let subjects: Vec<Subject> = texts.iter().map(|text| subject(text)).collect();
                trap.fired(&subjects, RUN).map(|remark| remark.variants.len())
            };
            assert!(fires(&case.fires).is_some(), "{} does not fire", trap.id);
            assert_eq!(fires(&case.quiet), None, "{} fires", trap.id);
        }
        assert_eq!(cases.len(), traps().len(), "a case without a trap");
    }

    #[test]
    fn every_trap_is_whole() {
        assert!(traps().len() >= 30, "{}", traps().len());
        for (index, trap) in traps().iter().enumerate() {
            assert!(traps()[..index].iter().all(|other| other.id != trap.id), "{} twice", trap.id);
            assert!(
                !trap.title.is_empty() && !trap.effect.is_empty() && !trap.write.is_empty(),
                "{}",
                trap.id
            );
            if let Some(class) = &trap.class {
                assert!(classes().iter().any(|known| known.id == *class), "{}: class {class}", trap.id);
            }
        }
    }

    #[test]
    fn lines_of_option_files_are_named_with_their_variant() {
        let subjects = [subject("MySQL 8.0.31: sync_binlog = 1; sync_binlog = 0")];
        let trap = traps().iter().find(|trap| trap.id == "set-twice").unwrap();
        let What::Trap { lines, .. } = trap.fired(&subjects, RUN).unwrap().what else { panic!("no trap") };
        let [(variant, FatedLine::Twice { line: 2, later_line: 3, .. })] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(variant.starts_with("MySQL 8.0.31: "), "{variant}");
    }
}
