//! Conditions of traps: a small language over settings, classes, versions and the run's size.
//!
//! `NAME OP VALUE` with `=`, `!=`, `<`, `<=`, `>`, `>=`, where VALUE is words, or `@NAME`, or
//! `N * @NAME`; `NAME set`, `NAME not set`, `NAME there`, `NAME absent`; `file FATE`. NAME is a
//! setting, `class.ID`, `version`, `product`, `engine`, `run.data` (bytes), `run.connections` or
//! `run.cpus` (of the server). What is not known makes a condition false.

use std::cmp::Ordering;

use serde::Deserialize;

use super::classes::classes;
use super::effective::{FATES, Fate};
use super::predicted::parts;
use super::subject::Subject;
use super::value::{number, says_the_same};

/// What a run does, as far as traps look at it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Circumstances {
    /// About what the tables take on the disk.
    pub data_bytes: Option<u64>,
    /// Most at once.
    pub connections: Option<u64>,
    /// CPUs that the server is bound to.
    pub server_cpus: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Condition {
    Configured(String, bool),
    There(String, bool),
    File(Fate),
    Compare { name: String, op: Op, value: Side },
}

/// How one value must be to another: the sign, and the orders for which it holds.
type Op = (&'static str, fn(Ordering) -> bool);

const OPS: [Op; 6] = [
    ("=", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<", Ordering::is_lt),
    ("<=", Ordering::is_le),
    (">", Ordering::is_gt),
    (">=", Ordering::is_ge),
];

#[derive(Debug, Clone)]
pub(super) enum Side {
    Words(String),
    /// So many times the value of another name.
    Times(f64, String),
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is no condition"))
    }
}

impl Condition {
    /// `None` for text that is no condition.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.trim().split_once(' ')?;
        let name = name.to_owned();
        Some(match rest.trim() {
            fate if name == "file" => Self::File(FATES.iter().find(|(word, _)| *word == fate)?.1),
            "set" => Self::Configured(name, true),
            "not set" => Self::Configured(name, false),
            "there" => Self::There(name, true),
            "absent" => Self::There(name, false),
            rest => {
                let (op, value) = rest.split_once(' ').unwrap_or((rest, ""));
                Self::Compare {
                    name,
                    op: *OPS.iter().find(|(sign, _)| *sign == op)?,
                    value: Side::parse(value.trim())?,
                }
            }
        })
    }

    pub(super) fn holds(&self, subject: &Subject, run: Circumstances) -> bool {
        match self {
            Self::Configured(name, wanted) => {
                subject.is_on_record() && subject.is_configured(name) == *wanted
            }
            Self::There(name, wanted) => subject.value(name).is_some() == *wanted,
            Self::File(fate) => !fate(subject).is_empty(),
            Self::Compare { name, op, value } if name == "version" => {
                let Side::Words(value) = value else { return false };
                op.1(subject.version.cmp(&parts(value)))
            }
            Self::Compare { name, op, value } => compares(subject, run, name, *op, value),
        }
    }

    /// Whether it can be said at all that the condition does not hold: `innodb_file_per_table = on`
    /// says nothing of PostgreSQL.
    pub(super) fn applies(&self, subject: &Subject, run: Circumstances) -> bool {
        match self {
            Self::Compare { name, .. } => name == "version" || text_of(subject, run, name).is_some(),
            Self::Configured(..) | Self::There(..) | Self::File(_) => true,
        }
    }
}

fn compares(subject: &Subject, run: Circumstances, name: &str, op: Op, value: &Side) -> bool {
    let Some(left) = text_of(subject, run, name) else { return false };
    match (op.0, value) {
        ("=", Side::Words(words)) => says_the_same(&left, words),
        ("!=", Side::Words(words)) => !says_the_same(&left, words),
        (_, side) => {
            let right = match side {
                Side::Words(words) => number(words),
                Side::Times(factor, other) => {
                    text_of(subject, run, other).and_then(|text| number(&text)).map(|value| value * factor)
                }
            };
            let (Some(left), Some(right)) = (number(&left), right) else { return false };
            left.partial_cmp(&right).is_some_and(op.1)
        }
    }
}

/// The value of a name; sizes as bytes.
fn text_of(subject: &Subject, run: Circumstances, name: &str) -> Option<String> {
    match (name, name.strip_prefix("class.")) {
        ("product", _) => Some(subject.product.name.to_owned()),
        ("engine", _) => subject.engine.clone(),
        ("run.data", _) => run.data_bytes.map(|bytes| bytes.to_string()),
        ("run.connections", _) => run.connections.map(|count| count.to_string()),
        ("run.cpus", _) => run.server_cpus.map(|count| count.to_string()),
        (_, Some(id)) => {
            let found = classes().iter().find(|class| class.id == id)?.of(subject)?;
            Some(found.value.number().map_or_else(|| found.value.to_string(), |number| number.to_string()))
        }
        _ => subject.value(name).map(str::to_owned),
    }
}

impl Side {
    fn parse(text: &str) -> Option<Self> {
        match (text.strip_prefix('@'), text.split_once("* @")) {
            (Some(name), _) => Some(Self::Times(1.0, name.to_owned())),
            (_, Some((factor, name))) => Some(Self::Times(factor.trim().parse().ok()?, name.to_owned())),
            _ => Some(Self::Words(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::testing::configured;

    fn holds(text: &str) -> bool {
        let config = "[mysqld]\ninnodb_buffer_pool_size = 1G\nsync_binlog = 1\nsync_binlog = 0\n";
        let subject = configured("a", "MySQL", "8.0.31", config);
        let run = Circumstances { data_bytes: Some(3 << 30), ..Circumstances::default() };
        Condition::parse(text).unwrap_or_else(|| panic!("{text}")).holds(&subject, run)
    }

    #[test]
    fn conditions_look_at_settings_classes_versions_and_the_run() {
        for text in [
            "log_bin = on",
            "innodb_buffer_pool_size set",
            "innodb_doublewrite not set",
            "query_cache_type absent",
            "version >= 8.0.30",
            "version < 8.4",
            "product = MySQL",
            "engine != rocksdb",
            "run.data > 2 * @class.buffer-pool",
            "class.redo = 104857600",
            "file twice",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "log_bin = off",
            "run.data > 4 * @class.buffer-pool",
            "run.connections > 1",
            "file unread",
            "no_such < 3",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_none() {
        for text in ["log_bin", "log_bin is on", "file eaten", "x > y * @z"] {
            assert!(Condition::parse(text).is_none(), "{text}");
        }
    }
}
