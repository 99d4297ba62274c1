//! One variant for the parity check, with its product and version, its configuration, and its
//! settings or their prediction.

use std::cell::RefCell;
use std::collections::BTreeMap;

use dbdyno_model::{TlsMode, Variant, foreign_title};
use serde::Serialize;

use crate::settings::{ConfiguredLine, Value, size, switch};
use crate::{FamilyFacts, Product, Release};

/// Settings by name, as the server writes them.
pub type Settings = BTreeMap<String, String>;

/// How well a variant's settings are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SettingsSource {
    /// The settings were read back from the running server.
    Effective,
    /// The settings are predicted from the build's answers to a probe, and from its configuration.
    Predicted,
    /// The server's settings were not read back, and its build was not probed.
    Unknown,
    /// The server is none of the known products. Its settings were read back, but no rule says what
    /// they mean.
    Foreign,
}

impl SettingsSource {
    /// Whether classes and pitfalls can be judged.
    pub fn has_known_settings(&self) -> bool {
        matches!(self, Self::Effective | Self::Predicted)
    }
}

/// A server that is none of the known products.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Foreign {
    /// The name that the server gives itself.
    pub name: String,
    /// The product whose protocol the server speaks.
    pub speaks: String,
}

impl Foreign {
    pub fn title(&self) -> String {
        foreign_title(&self.name, &self.speaks)
    }
}

/// The properties of a variant in a plan beyond its option file.
#[derive(Debug, Clone, Default)]
pub struct Planned {
    pub variant: Variant,
    /// Whether the plan's workloads prepare no statement on MariaDB and MySQL.
    pub sends_text_only: bool,
}

impl Planned {
    pub fn asks_for_tls(&self) -> bool {
        self.variant.tls.as_ref().is_some_and(|tls| tls.mode != TlsMode::Off)
    }
}

/// One variant for the parity check.
#[derive(Debug, Clone)]
pub struct Subject {
    pub name: String,
    pub family: &'static FamilyFacts,
    pub product: &'static Product,
    pub version: Release,
    /// The engine in lower case: `innodb`, `rocksdb`, `myisam`; `None` where tables have no engine.
    pub engine: Option<String>,
    pub settings: Settings,
    /// Values in the load's connections, which may differ from the server's own.
    pub session: Settings,
    pub configured: Vec<ConfiguredLine>,
    pub settings_source: SettingsSource,
    /// The command that probes its build, where the build was not probed.
    pub ask: String,
    /// Whether connections are encrypted; `None` where that is unknown.
    pub tls: Option<bool>,
    pub planned: Planned,
    pub is_external: bool,
    /// The running server, where it is none of the known products.
    pub foreign: Option<Foreign>,
}

impl Subject {
    /// The value in the load's connections where these have one, otherwise the server's.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.session.get(name).or_else(|| self.settings.get(name)).map(String::as_str)
    }

    /// The configured lines that take effect, by the setting that each means. When several lines
    /// set the same one, the last counts.
    pub fn configured_settings(&self) -> BTreeMap<String, (String, &ConfiguredLine)> {
        let read = self.configured.iter().filter(|line| line.is_read);
        read.filter_map(|line| {
            let (name, value) = line.setting(&self.settings)?;
            Some((name, (value, line)))
        })
        .collect()
    }

    pub fn is_configured(&self, setting: &str) -> bool {
        let mut read = self.configured.iter().filter(|line| line.is_read);
        read.any(|line| line.setting(&self.settings).is_some_and(|(name, _)| name == setting))
    }

    /// Whether the record has the server's configuration. It does not for a server that others run.
    pub fn has_recorded_configuration(&self) -> bool {
        !self.is_external
    }
}

/// Reads one variant's settings and remembers which were read, so that a value can be called
/// configured or default.
pub struct Reader<'a> {
    pub subject: &'a Subject,
    read: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    pub fn new(subject: &'a Subject) -> Self {
        Self { subject, read: RefCell::default() }
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.read.borrow_mut().push(name.to_owned());
        self.subject.value(name)
    }

    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(switch)
    }

    pub fn size(&self, name: &str) -> Option<u64> {
        self.text(name).and_then(size)
    }

    /// Names of the settings that were read.
    pub fn names(self) -> Vec<String> {
        self.read.into_inner()
    }

    pub fn engine(&self) -> Option<&'a str> {
        self.subject.engine.as_deref()
    }
}

/// Derives the value of a class that combines more than one setting.
pub type Derive = fn(&Reader<'_>) -> Option<Value>;
