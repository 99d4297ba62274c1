//! One variant as parity sees it: which product and version, how it was configured, and how it is
//! set or would be.

use std::cell::RefCell;
use std::collections::BTreeMap;

use dbdyno_model::{TlsMode, Variant};
use serde::Serialize;

use super::configured::ConfiguredLine;
use super::remarks::Foreign;
use super::value::{Value, size, switch};

/// Settings by name, as the server writes them.
pub type Settings = BTreeMap<String, String>;

/// A database product, or one that is not known: what its settings are called and what they mean,
/// and what its query plans say.
#[derive(Debug)]
pub(super) struct Product {
    /// As servers and records name it; empty for one that is not known.
    pub(super) name: &'static str,
    /// The word for its family in the data files.
    pub(super) family: &'static str,
    /// The engine of tables when nothing is said, where tables have an engine.
    pub(super) engine: Option<&'static str>,
    pub(super) has_tls: bool,
    /// The server chooses a number where 0 is configured.
    pub(super) zero_is_automatic: bool,
    pub(super) lines: fn(&str, &Self, [u32; 3]) -> Vec<ConfiguredLine>,
    /// The value that a setting of this name shows, in the words of a configuration.
    pub(super) word: Option<fn(&str, &str) -> String>,
    /// Makes settings follow those that were configured, given what they were before.
    pub(super) follow: fn(&mut Settings, &Settings),
    /// A query plan as EXPLAIN gives it, a text a node, without what differs from run to run:
    /// costs, estimates of rows, values.
    pub(super) plan_nodes: fn(&[PlanRow]) -> Vec<String>,
    /// Classes that are more than one setting, by the names of `classes.toml`.
    pub(super) classes: &'static [(&'static str, Derive)],
}

/// Cells of a row; `None` is NULL.
pub(super) type PlanRow = Vec<Option<String>>;

impl Product {
    pub(super) fn is_known(&self) -> bool {
        !self.name.is_empty()
    }
}

/// How well the settings of a variant are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Knowledge {
    /// Read back from the running server.
    Effective,
    /// From what its build answered when it was got, and its configuration.
    Predicted,
    /// Its server was not read back, and its build was not asked.
    Unknown,
    /// The server is none of the products: its settings were read back, and no rule says what they
    /// mean.
    Foreign,
}

impl Knowledge {
    /// Whether classes and pitfalls can be judged.
    pub(super) fn is_of_settings(&self) -> bool {
        matches!(self, Self::Effective | Self::Predicted)
    }
}

/// What a plan says of a variant beyond its option file.
#[derive(Debug, Clone, Default)]
pub struct Planned {
    pub variant: Variant,
    /// The plan's workloads prepare no statement on MariaDB and MySQL.
    pub sends_text_only: bool,
}

impl Planned {
    pub(super) fn asks_for_tls(&self) -> bool {
        self.variant.tls.as_ref().is_some_and(|tls| tls.mode != TlsMode::Off)
    }
}

#[derive(Debug, Clone)]
pub struct Subject {
    pub(super) name: String,
    pub(super) product: &'static Product,
    pub(super) version: [u32; 3],
    /// In small letters: `innodb`, `rocksdb`, `myisam`; `None` where tables have no engine.
    pub(super) engine: Option<String>,
    pub(super) settings: Settings,
    /// Values of a connection of the load, which may differ from the server's own.
    pub(super) session: Settings,
    pub(super) configured: Vec<ConfiguredLine>,
    pub(super) knowledge: Knowledge,
    /// The command that asks its build, where it was not asked.
    pub(super) ask: String,
    /// Connections are encrypted; `None` where that is not known.
    pub(super) tls: Option<bool>,
    pub(super) planned: Planned,
    pub(super) is_external: bool,
    /// The server that was read back, where it is none of the products.
    pub(super) foreign: Option<Foreign>,
}

/// What is known of a server before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite`; empty where it is not known.
    pub product: String,
    /// `10.11.19`
    pub version: String,
    /// As it answered when it was started without an option file; empty where it was not asked.
    pub settings: Settings,
    /// The command that asks it.
    pub ask: String,
}

impl Subject {
    /// The value of a connection of the load where it has one of its own, else the server's.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.session.get(name).or_else(|| self.settings.get(name)).map(String::as_str)
    }

    /// Lines that count, with the setting that each means; of several for one setting the last.
    pub(super) fn configured_settings(&self) -> BTreeMap<String, (String, &ConfiguredLine)> {
        let read = self.configured.iter().filter(|line| line.is_read);
        read.filter_map(|line| {
            let (name, value) = line.setting(&self.settings)?;
            Some((name, (value, line)))
        })
        .collect()
    }

    pub(super) fn is_configured(&self, setting: &str) -> bool {
        let mut read = self.configured.iter().filter(|line| line.is_read);
        read.any(|line| line.setting(&self.settings).is_some_and(|(name, _)| name == setting))
    }

    /// Whether its configuration is on record; of a server that others run it is not.
    pub(super) fn is_on_record(&self) -> bool {
        !self.is_external
    }
}

/// Reads settings of one variant and remembers which, so that a value can be called configured or
/// left to a default.
pub(super) struct Reader<'a> {
    pub(super) subject: &'a Subject,
    read: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(subject: &'a Subject) -> Self {
        Self { subject, read: RefCell::default() }
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.read.borrow_mut().push(name.to_owned());
        self.subject.value(name)
    }

    pub(super) fn is_on(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(switch)
    }

    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.text(name).and_then(size)
    }

    /// Names of the settings that were looked at.
    pub(super) fn names(self) -> Vec<String> {
        self.read.into_inner()
    }

    pub(super) fn engine(&self) -> Option<&'a str> {
        self.subject.engine.as_deref()
    }
}

/// What a class comes to that is more than one setting.
pub(super) type Derive = fn(&Reader<'_>) -> Option<Value>;
