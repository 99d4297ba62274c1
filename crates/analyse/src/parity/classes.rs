//! The catalogue of semantic classes (what settings mean, whatever their names), and each class's
//! value for a variant.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbdyno_products::{Reader, Subject, Value, number, size, switch};
use serde::Deserialize;

use super::entries;

static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| entries(include_str!("classes.toml")));

/// One class: something that settings mean, whatever they are called. The data file `classes.toml`
/// says what the fields are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub id: String,
    pub title: String,
    pub(super) kind: ClassKind,
    pub across: Across,
    pub weight: Weight,
    pub meaning: String,
    pub effect: String,
    /// The setting or function that gives the value, by product family.
    pub(super) from: BTreeMap<String, String>,
    /// The value where the setting is absent, by product family.
    #[serde(default)]
    pub(super) absent: BTreeMap<String, String>,
    #[serde(default)]
    words: BTreeMap<String, String>,
    pub write: String,
    /// Patterns of the server's functions that the class turns on, or that work instead where it is
    /// off.
    #[serde(default)]
    pub functions: Vec<String>,
}

/// How the value of a single setting is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClassKind {
    Size,
    Number,
    Switch,
    Words,
}

/// The variants between which a class is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Across {
    All,
    Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// A difference makes a comparison one of settings.
    Result,
    Detail,
}

/// All classes, in the order in which tables show them.
pub fn classes() -> &'static [Class] {
    &CLASSES
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ClassValue {
    pub(super) value: Value,
    /// One of the class's settings was configured, or the class has no setting that could be
    /// configured.
    pub(super) is_configured: bool,
}

impl Class {
    /// The class's value; `None` where the variant's product has nothing of the kind, or nothing is
    /// known.
    pub(super) fn of(&self, subject: &Subject) -> Option<ClassValue> {
        let is_known = subject.settings_source.has_known_settings() || self.id == "tls";
        is_known.then(|| self.of_known_settings(subject)).flatten()
    }

    /// Form of [`Self::of`] for a subject whose settings may not be complete.
    pub(super) fn of_known_settings(&self, subject: &Subject) -> Option<ClassValue> {
        let family = subject.family.name;
        let absent = self.absent.get(family).map(String::as_str);
        read(subject, self.from.get(family).map_or("", String::as_str), |text| {
            let text = text.or(absent)?;
            match self.kind {
                ClassKind::Size => size(text).map(Value::Size),
                ClassKind::Number => number(text).map(Value::Number),
                ClassKind::Switch => switch(text).map(Value::Switch),
                ClassKind::Words => {
                    let text = text.to_ascii_lowercase();
                    Some(Value::words(self.words.get(&text).unwrap_or(&text)))
                }
            }
        })
    }
}

/// The value of a setting, or of `NAME()` among the product's functions. `plain` reads the setting.
/// An empty source stands for no setting.
pub(super) fn read(
    subject: &Subject,
    source: &str,
    plain: impl Fn(Option<&str>) -> Option<Value>,
) -> Option<ClassValue> {
    let reader = Reader::new(subject);
    let value = match source.strip_suffix("()") {
        Some(name) => subject.family.classes.iter().find(|(known, _)| *known == name)?.1(&reader)?,
        None if source.is_empty() => plain(None)?,
        None => plain(reader.text(source))?,
    };
    let names = reader.names();
    let is_configured = names.is_empty() || names.iter().any(|name| subject.is_configured(name));
    Some(ClassValue { value, is_configured })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dbdyno_products::ALL;

    use super::*;
    use crate::parity::pitfalls::pitfalls;
    use crate::parity::testing::effective;

    fn mysql(version: &str, settings: &[(&str, &str)]) -> Subject {
        effective("MySQL", version, settings)
    }

    fn shown(id: &str, subject: &Subject) -> String {
        let class = classes().iter().find(|class| class.id == id).unwrap();
        class.of(subject).map(|found| found.value.to_string()).unwrap_or_default()
    }

    /// A reader of these texts compares two products. The option of one product would not help with
    /// the other.
    #[test]
    fn the_text_that_makes_products_equal_is_no_option_of_one_of_them() {
        let options =
            ["innodb", "PRAGMA", "initdb", "shared_buffers", "wal_size", "character_set", "log_bin"];
        for class in classes().iter().filter(|class| class.across == Across::All) {
            assert!(!options.iter().any(|option| class.write.contains(option)), "{}", class.write);
        }
    }

    #[test]
    fn every_class_is_whole_and_every_function_is_used() {
        let mut used = BTreeSet::new();
        for (index, class) in classes().iter().enumerate() {
            assert!(classes()[..index].iter().all(|other| other.id != class.id), "{} twice", class.id);
            for text in [&class.title, &class.meaning, &class.effect, &class.write] {
                assert!(!text.is_empty(), "{}", class.id);
            }
            for (family, source) in &class.from {
                assert!(ALL.iter().any(|known| known.name == family), "{}", class.id);
                used.extend(source.strip_suffix("()").map(|name| (family.as_str(), name)));
            }
        }
        let settings = pitfalls().iter().filter_map(|pitfall| pitfall.setting.as_deref());
        used.extend(settings.filter_map(|name| Some(("mysql", name.strip_suffix("()")?))));
        let known = ALL.iter().flat_map(|family| family.classes.iter().map(|(name, _)| (family.name, *name)));
        assert_eq!(used, known.collect(), "functions of classes, and those that there are");
    }

    #[test]
    fn durability_has_one_word_for_all_products() {
        let innodb = |n| mysql("8.0.31", &[("innodb_flush_log_at_trx_commit", n)]);
        assert_eq!(shown("commit", &innodb("1")), "synced");
        assert_eq!(shown("commit", &innodb("2")), "synced within a second or so");
        let postgres = |fsync, commit| {
            effective("PostgreSQL", "18.6.0", &[("fsync", fsync), ("synchronous_commit", commit)])
        };
        assert_eq!(shown("commit", &postgres("on", "on")), "synced");
        assert_eq!(shown("commit", &postgres("on", "off")), "synced within a second or so");
        assert_eq!(shown("commit", &postgres("off", "on")), "never synced");
        let sqlite = |journal, synchronous| {
            effective("SQLite", "3.50.0", &[("journal_mode", journal), ("synchronous", synchronous)])
        };
        assert_eq!(shown("commit", &sqlite("wal", "2")), "synced");
        assert_eq!(shown("commit", &sqlite("wal", "1")), "synced at checkpoints only");
    }

    #[test]
    fn the_redo_log_is_counted_in_all_whatever_it_is_made_of() {
        let old = [("innodb_log_file_size", "50331648"), ("innodb_log_files_in_group", "2")];
        assert_eq!(shown("redo", &mysql("5.7.22", &old)), "96 MiB");
        let one = [("innodb_log_file_size", "1073741824")];
        assert_eq!(shown("redo", &effective("MariaDB", "11.4.5", &one)), "1 GiB");
        let capacity = [old[0], old[1], ("innodb_redo_log_capacity", "104857600")];
        assert_eq!(shown("redo", &mysql("8.0.31", &capacity)), "100 MiB");
        assert_eq!(shown("redo", &effective("PostgreSQL", "15.1.0", &[("max_wal_size", "2GB")])), "2 GiB");
        let wal = [("journal_mode", "wal"), ("wal_autocheckpoint", "1000"), ("page_size", "4096")];
        assert_eq!(shown("redo", &effective("SQLite", "3.50.0", &wal)), "4,000 KiB");
    }

    #[test]
    fn each_engine_has_its_own_buffer_pool() {
        let settings = [
            ("innodb_buffer_pool_size", "1073741824"),
            ("rocksdb_block_cache_size", "536870912"),
            ("key_buffer_size", "8388608"),
        ];
        let of = |engine: &str| {
            let mut subject = effective("MariaDB", "10.11.5", &settings);
            subject.engine = Some(engine.to_owned());
            (shown("engine", &subject), shown("buffer-pool", &subject))
        };
        let said = |engine: &str, size: &str| (engine.to_owned(), size.to_owned());
        assert_eq!(of("innodb"), said("InnoDB", "1 GiB"));
        assert_eq!(of("rocksdb"), said("MyRocks", "512 MiB"));
        assert_eq!(of("myisam"), said("MyISAM", "8 MiB"));
        let sqlite = effective("SQLite", "3.50.0", &[("cache_size", "-2000"), ("page_size", "4096")]);
        assert_eq!(shown("buffer-pool", &sqlite), "2,000 KiB");
    }

    #[test]
    fn a_setting_that_a_version_lacks_has_its_old_meaning() {
        let bare = mysql("5.5.34", &[("log_bin", "OFF")]);
        assert_eq!(shown("page-size", &bare), "16 KiB");
        assert_eq!(shown("statistics", &bare), "transient");
        assert_eq!(shown("numa", &bare), "off");
        assert_eq!(shown("flush-neighbours", &bare), "on");
        assert_eq!(shown("change-buffer", &effective("MariaDB", "11.4.5", &[("log_bin", "OFF")])), "none");
    }

    #[test]
    fn direct_io_isolation_and_characters_are_words_for_people() {
        let maria = |name, value| {
            effective("MariaDB", "11.4.5", &[(name, value), ("innodb_flush_method", "O_DIRECT")])
        };
        assert_eq!(shown("io", &maria("innodb_data_file_buffering", "ON")), "page cache");
        assert_eq!(shown("io", &maria("innodb_data_file_buffering", "OFF")), "O_DIRECT");
        assert_eq!(shown("io", &mysql("5.7.22", &[("innodb_flush_method", "")])), "page cache");
        let snapshot = [("tx_isolation", "REPEATABLE-READ"), ("innodb_snapshot_isolation", "ON")];
        assert_eq!(
            shown("isolation", &effective("MariaDB", "11.8.6", &snapshot)),
            "repeatable read, refuses changed rows"
        );
        assert_eq!(shown("charset", &mysql("8.0.31", &[("character_set_server", "utf8mb4")])), "UTF-8");
        assert_eq!(
            shown("charset", &mysql("5.7.22", &[("character_set_server", "utf8")])),
            "UTF-8 of up to 3 bytes"
        );
        assert_eq!(
            shown("charset", &effective("PostgreSQL", "15.1.0", &[("server_encoding", "UTF8")])),
            "UTF-8"
        );
    }
}
