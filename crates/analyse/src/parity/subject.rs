//! One variant as parity sees it: which product and version, how it was configured, and how it is
//! set or would be.

use std::collections::BTreeMap;

use dbdyno_record::{ServerInfo, VariantInfo};
use serde::Serialize;

use super::configured::{self, ConfiguredLine};
use super::defaults::{defaults, overlay, parts};
use super::product::{Product, Settings};

/// How well the settings of a variant are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Knowledge {
    /// Read back from the running server.
    Effective,
    /// From the defaults of its version and its configuration; `assumed_from` is the version whose
    /// defaults were taken when those of the very version are not known.
    Predicted { assumed_from: Option<String> },
    /// Neither its settings nor its defaults are known.
    Unknown,
}

/// One variant.
#[derive(Debug, Clone)]
pub struct Subject {
    pub(super) name: String,
    pub(super) product: Product,
    pub(super) version: [u32; 3],
    /// In small letters: `innodb`, `rocksdb`, `myisam`; `None` where tables have no engine.
    pub(super) engine: Option<String>,
    pub(super) settings: Settings,
    /// Values of a connection of the load, which may differ from the server's own.
    pub(super) session: Settings,
    pub(super) configured: Vec<ConfiguredLine>,
    pub(super) knowledge: Knowledge,
    /// Connections are encrypted; `None` where that is not known.
    pub(super) tls: Option<bool>,
    /// What the plan says beyond the option file.
    pub(super) extra: Extra,
    pub(super) is_external: bool,
}

/// What a plan says of a variant beyond its option file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// Storage engine of the tables.
    pub engine: Option<String>,
    /// Whether the plan asks for encrypted connections.
    pub tls: bool,
    /// Whether the plan asks for column definitions with each answer.
    pub column_definitions_always: bool,
    /// Whether connections ask for results without EOF packets, where the plan says so.
    pub deprecate_eof: Option<bool>,
    /// Whether they ask for reports of changes of the session's state, where the plan says so.
    pub session_track: Option<bool>,
    /// Character set of connections, where the plan names one.
    pub client_charset: Option<String>,
    /// The plan's workloads prepare no statement on MariaDB and MySQL.
    pub sends_text_only: bool,
}

/// What is known of a server before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite`.
    pub product: String,
    /// `10.11.19`
    pub version: String,
}

impl Subject {
    /// A variant whose server was read back.
    pub fn effective(variant: &VariantInfo, server: &ServerInfo, extra: &Extra) -> Self {
        let build = Build { product: server.product.clone(), version: server.version.clone() };
        let mut subject = Self::bare(variant, Some(&build), extra);
        subject.settings = server.settings.clone();
        subject.session = server.session.clone();
        if subject.product == Product::Sqlite {
            subject.settings.iter_mut().for_each(|(name, value)| *value = sqlite_word(name, value));
        }
        subject.knowledge =
            if subject.settings.is_empty() { Knowledge::Unknown } else { Knowledge::Effective };
        subject
    }

    /// A variant that has not run: its settings are those of its version's defaults and of its
    /// configuration. `config` of `variant` is the text of its configuration; an option file
    /// rendered from intents will do.
    pub fn predicted(variant: &VariantInfo, build: Option<&Build>, extra: &Extra) -> Self {
        let mut subject = Self::bare(variant, build, extra);
        if subject.is_external {
            return subject;
        }
        if let Some(found) = defaults(subject.product, subject.version, subject.engine.as_deref()) {
            subject.settings = found.settings;
            overlay(&mut subject.settings, &subject.configured, subject.product, subject.version);
            subject.knowledge = Knowledge::Predicted { assumed_from: found.assumed_from };
        }
        subject
    }

    fn bare(variant: &VariantInfo, build: Option<&Build>, extra: &Extra) -> Self {
        let product = build.map_or(Product::Other, |build| Product::of(&build.product));
        let version = build.map_or([0; 3], |build| parts(&build.version));
        let mut configured = match product {
            Product::MariaDb | Product::MySql | Product::PerconaServer => {
                configured::option_file(&variant.config, product, version)
            }
            Product::Postgres => configured::postgresql_conf(&variant.config),
            Product::Sqlite => configured::pragmas(&variant.config),
            Product::Other => Vec::new(),
        };
        let engine = || extra.engine.as_deref().unwrap_or("innodb").to_ascii_lowercase();
        if product == Product::Sqlite {
            for line in &mut configured {
                line.value = line.value.as_deref().map(|value| sqlite_word(&line.name, value));
            }
        }
        Self {
            name: variant.name.clone(),
            product,
            version,
            engine: product.is_mysql().then(engine),
            settings: Settings::new(),
            session: Settings::new(),
            configured,
            knowledge: Knowledge::Unknown,
            tls: (!matches!(product, Product::Sqlite | Product::Other)).then_some(extra.tls),
            extra: extra.clone(),
            is_external: variant.external,
        }
    }

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

/// The word for a number that SQLite shows, and for one that it is given.
fn sqlite_word(name: &str, value: &str) -> String {
    let words: &[&str] = match name {
        "synchronous" => &["off", "normal", "full", "extra"],
        "auto_vacuum" => &["none", "full", "incremental"],
        "temp_store" => &["default", "file", "memory"],
        _ => &[],
    };
    let number: Option<usize> = value.trim().parse().ok();
    let word = number.and_then(|number| words.get(number)).map(|word| (*word).to_owned());
    word.unwrap_or_else(|| value.trim().to_ascii_lowercase())
}
