//! The catalogue of pitfalls (settings that mislead a comparison), and which of them a run's
//! variants have met.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbdyno_products::{Release, Subject, Value, says_the_same};
use serde::Deserialize;

use super::classes::{classes, read};
use super::entries;
use crate::parity::compared::{Remark, RemarkKind, What};
use crate::parity::settings::{LINE_CHECKS, LineProblem};

static PITFALLS: LazyLock<Vec<Pitfall>> = LazyLock::new(|| entries(include_str!("pitfalls.toml")));

/// The properties of a run on which pitfalls depend.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Circumstances {
    /// Approximate size of the tables on the disk, in bytes.
    pub data_bytes: Option<u64>,
    /// Largest number of connections at one time.
    pub connections: Option<u64>,
    /// Number of CPUs that the server is bound to.
    pub server_cpus: Option<u64>,
}

/// One pitfall. The data file `pitfalls.toml` says what the fields are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pitfall {
    pub(super) id: String,
    pub(super) title: String,
    #[serde(default)]
    product: Vec<String>,
    #[serde(default)]
    versions: String,
    pub(super) setting: Option<String>,
    /// Id of a class in `classes.toml`. A class is something that settings mean, whatever each
    /// product calls them. Its value is judged if `setting` is absent.
    pub(super) class: Option<String>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    below: BTreeMap<BoundedBy, f64>,
    #[serde(default)]
    above: BTreeMap<BoundedBy, f64>,
    configured: Option<bool>,
    /// The pitfall is met only if it misleads in some variants and not in all.
    #[serde(default)]
    differs: bool,
    /// Name of a check in [`LINE_CHECKS`]. The pitfall is met if the check finds lines in option
    /// files.
    lines: Option<String>,
    pub(super) effect: String,
    /// The remedy: what to write in the option file.
    write: String,
}

/// A setting's value is compared with this quantity times a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BoundedBy {
    Data,
    Connections,
    Cpus,
    /// One byte, so that the factor is a limit in bytes.
    Byte,
}

/// All pitfalls, in the order in which reports show them.
pub(super) fn pitfalls() -> &'static [Pitfall] {
    &PITFALLS
}

impl Circumstances {
    fn figure(&self, figure: BoundedBy) -> Option<f64> {
        let count = match figure {
            BoundedBy::Data => self.data_bytes,
            BoundedBy::Connections => self.connections,
            BoundedBy::Cpus => self.server_cpus,
            BoundedBy::Byte => Some(1),
        };
        count.map(|count| count as f64)
    }
}

impl Pitfall {
    /// The remark for the variants that have met the pitfall; `None` where none has.
    pub(super) fn met(&self, subjects: &[Subject], run: Circumstances) -> Option<Remark> {
        let (mut variants, mut lines, mut some_avoid_it) = (Vec::new(), Vec::new(), false);
        for subject in subjects.iter().filter(|subject| self.is_about(subject)) {
            let own = self.ineffective_lines(subject);
            match if self.lines.is_some() { Some(!own.is_empty()) } else { self.misleads(subject, run) } {
                Some(true) => variants.push(subject.name.clone()),
                Some(false) => some_avoid_it = true,
                None => {}
            }
            lines.extend(own.into_iter().map(|line| (subject.name.clone(), line)));
        }
        let is_met = !variants.is_empty() && (some_avoid_it || !self.differs);
        is_met.then(|| Remark {
            kind: RemarkKind::Pitfall,
            id: self.id.clone(),
            variants,
            what: What::Pitfall { title: self.title.clone(), lines },
            effect: self.effect.clone(),
            write: self.write.clone(),
        })
    }

    /// Whether the pitfall is about the subject's product and version, and the subject's settings
    /// and their meaning are known.
    fn is_about(&self, subject: &Subject) -> bool {
        let (from, below) = self.versions.split_once("..").unwrap_or_default();
        let is_named = |name: &String| name == subject.product.name || name == subject.family.name;
        subject.settings_source.has_known_settings()
            && (self.product.is_empty() || self.product.iter().any(is_named))
            && Release::parse(from).is_none_or(|from| subject.version >= from)
            && Release::parse(below).is_none_or(|below| subject.version < below)
    }

    /// Whether the value misleads; `None` where there is no value.
    fn misleads(&self, subject: &Subject, run: Circumstances) -> Option<bool> {
        let found = match &self.setting {
            // The value is the setting's text as it stands, unless a product's function gives it.
            Some(setting) => read(subject, setting, |text| text.map(Value::words))?,
            None => classes().iter().find(|class| Some(&class.id) == self.class.as_ref())?.of(subject)?,
        };
        let text = found.value.to_string();
        let all = |bounds: &BTreeMap<BoundedBy, f64>, holds: fn(&f64, &f64) -> bool| {
            bounds.iter().all(|(figure, times)| {
                let bound = run.figure(*figure).map(|figure| figure * times);
                found.value.number().zip(bound).is_some_and(|(value, bound)| holds(&value, &bound))
            })
        };
        // The record of a server that others run does not have the server's configuration.
        let is_as_configured = |wanted| subject.has_recorded_configuration() && found.is_configured == wanted;
        Some(
            (self.values.is_empty() || self.values.iter().any(|value| says_the_same(value, &text)))
                && all(&self.below, f64::lt)
                && all(&self.above, f64::gt)
                && self.configured.is_none_or(is_as_configured),
        )
    }

    fn ineffective_lines(&self, subject: &Subject) -> Vec<LineProblem> {
        let check = LINE_CHECKS.iter().find(|(word, _)| self.lines.as_deref() == Some(word));
        check.map(|(_, check)| check(subject)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::settings::LineProblem;
    use crate::parity::testing::configured;

    const RUN: Circumstances =
        Circumstances { data_bytes: Some(10 << 30), connections: Some(120), server_cpus: Some(1) };

    /// Ids of the pitfalls that these variants have met together. Each variant is a product, a
    /// version and an option file.
    fn met(variants: &[(&str, &str, &str)]) -> Vec<&'static str> {
        let subject = |(product, version, config): &(&str, &str, &str)| {
            let head = if matches!(*product, "MySQL" | "MariaDB") { "[mysqld]\n" } else { "" };
            configured(product, product, version, &format!("{head}{config}\n"))
        };
        let subjects: Vec<Subject> = variants.iter().map(subject).collect();
        let is_met = |pitfall: &&Pitfall| pitfall.met(&subjects, RUN).is_some();
        pitfalls().iter().filter(is_met).map(|pitfall| pitfall.id.as_str()).collect()
    }

    /// Pitfalls of a server with this option file, without those that its defaults have met
    /// already.
    fn met_by(product: &str, version: &str, config: &str) -> String {
        let defaults = met(&[(product, version, "")]);
        let own = met(&[(product, version, config)]);
        own.iter().filter(|id| !defaults.contains(id)).copied().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_pitfall_is_met_where_a_servers_defaults_are_too_small() {
        assert_eq!(met(&[("MySQL", "8.0.31", "")]), ["redo-small", "buffer-pool-default"]);
        assert_eq!(
            met(&[("PostgreSQL", "15.1", "")]),
            ["buffer-pool-default", "too-few-connections"],
            "its log has 1 GiB"
        );
        assert_eq!(met(&[("SQLite", "3.50", "")]), ["sqlite-cache-default"]);
        let large = "innodb_buffer_pool_size = 1G\ninnodb_redo_log_capacity = 4G";
        assert_eq!(met(&[("MySQL", "8.0.31", large)]), [""; 0]);
    }

    #[test]
    fn each_pitfall_is_met_by_the_values_that_it_names() {
        for (id, config) in [
            ("binlog-not-synced", "sync_binlog = 0"),
            ("commit-not-synced", "innodb_flush_log_at_trx_commit = 2"),
            ("commit-not-synced", "innodb_flush_log_at_trx_commit = 0"),
            ("nosync", "innodb_flush_method = nosync"),
            ("no-fsync-after-direct", "innodb_flush_method = O_DIRECT_NO_FSYNC"),
            ("torn-pages-off", "skip-innodb-doublewrite"),
            ("checksum-none", "innodb_checksum_algorithm = none"),
            ("autocommit-off", "autocommit = 0"),
            ("statistics-transient", "innodb_stats_persistent = 0"),
            ("native-aio-off", "innodb_use_native_aio = 0"),
            ("dedicated-server", "innodb_dedicated_server = 1"),
            ("statement-log", "general_log = 1"),
            ("slow-log", "slow-query-log"),
            ("too-few-connections", "max_connections = 100"),
            ("wrong-group", "[mysql]\ninnodb_flush_log_at_trx_commit = 2"),
            ("loose-not-taken", "loose-innodb_no_such = none"),
            ("set-twice", "sync_binlog = 0\nsync-binlog = 1"),
            ("changed-by-server", "innodb_buffer_pool_size = 200M"),
            ("", "innodb_flush_log_at_trx_commit = 1\nsync_binlog = 1\nsync-binlog = 1"),
        ] {
            assert_eq!(met_by("MySQL", "8.0.31", config), id, "{config}");
        }
        for (version, id, config) in [
            ("11.4.1", "flush-method-split", "innodb_flush_method = fsync"),
            ("10.11.5", "", "innodb_flush_method = fsync"),
            (
                "11.4.1",
                "flush-method-split no-fsync-after-direct no-fsync-without-effect",
                "innodb_flush_method = O_DIRECT_NO_FSYNC",
            ),
            ("11.4.5", "flush-method-split no-fsync-after-direct", "innodb_flush_method = O_DIRECT_NO_FSYNC"),
            ("10.11.5", "query-cache", "query_cache_type = 1"),
            ("10.11.5", "page-compression", "innodb_compression_default = 1"),
            ("10.11.5", "thread-pool-too-large", "thread_handling = pool-of-threads\nthread_pool_size = 2"),
            ("10.11.5", "", "thread_handling = pool-of-threads\nthread_pool_size = 1"),
            ("10.11.5", "", "thread_pool_size = 2"),
        ] {
            assert_eq!(met_by("MariaDB", version, config), id, "{version} {config}");
        }
        for (id, config) in [
            ("commit-not-synced", "synchronous_commit = off"),
            ("", "synchronous_commit = local"),
            ("postgres-not-synced", "fsync = no"),
            ("torn-pages-off", "full_page_writes = off"),
            ("statement-log", "log_statement = 'all'"),
            ("slow-log", "log_min_duration_statement = 0"),
            ("autovacuum-off", "autovacuum = off"),
        ] {
            assert_eq!(met_by("PostgreSQL", "15.1", config), id, "{config}");
        }
        for (id, config) in [
            ("sqlite-not-synced", "PRAGMA synchronous = 0"),
            ("sqlite-not-synced", "PRAGMA journal_mode = memory"),
            ("synced-at-checkpoints", "PRAGMA journal_mode = WAL\nPRAGMA synchronous = 1"),
            ("", "PRAGMA synchronous = normal"),
        ] {
            assert_eq!(met_by("SQLite", "3.50", config), id, "{config}");
        }
    }

    #[test]
    fn a_pitfall_of_differing_variants_is_not_met_by_equal_ones() {
        for (id, config) in [
            ("checksum-slow", "innodb_checksum_algorithm = innodb"),
            ("name-resolution", "skip-name-resolve"),
            ("gtid", "gtid_mode = on"),
        ] {
            let one = ("MySQL", "8.0.31", config);
            let all = met(&[one, ("MySQL", "8.0.31", "")]);
            assert!(all.contains(&id) && !met(&[one, one]).contains(&id), "{id}: {all:?}");
        }
        let without_log = ("MySQL", "9.7.4", "gtid_mode = on\nskip_log_bin");
        assert!(!met(&[without_log, ("MySQL", "8.0.31", "")]).contains(&"gtid"));
    }

    #[test]
    fn each_pitfall_is_complete() {
        for (index, pitfall) in pitfalls().iter().enumerate() {
            let id = &pitfall.id;
            assert!(pitfalls()[..index].iter().all(|other| other.id != *id), "{id} twice");
            for text in [&pitfall.title, &pitfall.effect, &pitfall.write] {
                assert!(!text.is_empty(), "{id}");
            }
            let class = pitfall.class.as_ref();
            assert!(class.is_none_or(|class| classes().iter().any(|known| known.id == *class)), "{id}");
            let lines = pitfall.lines.as_deref();
            assert!(lines.is_none_or(|lines| LINE_CHECKS.iter().any(|(word, _)| *word == lines)), "{id}");
            assert!(pitfall.setting.is_some() || class.is_some() || lines.is_some(), "{id}");
        }
    }

    #[test]
    fn lines_of_option_files_are_named_with_their_variant() {
        let config = "[mysqld]\nsync_binlog = 1\nsync_binlog = 0\n";
        let subjects = [configured("a", "MySQL", "8.0.31", config)];
        let pitfall = pitfalls().iter().find(|pitfall| pitfall.id == "set-twice").unwrap();
        let What::Pitfall { lines, .. } = pitfall.met(&subjects, RUN).unwrap().what else {
            panic!("no pitfall")
        };
        let [(variant, LineProblem::Twice { line: 2, later_line: 3, .. })] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!(variant, "a");
    }
}
