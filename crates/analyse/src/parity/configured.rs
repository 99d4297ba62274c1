//! How a variant was configured: the lines of an option file, a `postgresql.conf` or the pragmas,
//! as the servers read them.
//!
//! Reading here never fails: what starts a server has been checked before, and a report must be
//! possible of any record.

use std::collections::BTreeMap;

use super::product::Product;

/// One line that sets something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfiguredLine {
    /// Counts from 1.
    pub(super) line: usize,
    /// `mysqld`; empty where files have no groups.
    pub(super) group: String,
    /// In small letters with `_`, without `loose_`: `innodb_doublewrite`, `skip_log_bin`.
    pub(super) name: String,
    /// `None` for a bare name.
    pub(super) value: Option<String>,
    /// Marked `loose_`: the server passes over it when it does not know it.
    pub(super) is_loose: bool,
    /// The server reads the line's group.
    pub(super) is_read: bool,
}

/// Settings whose names begin with `skip_` and are no negation of another.
const REAL_SKIPS: &[&str] = &[
    "skip_external_locking",
    "skip_name_resolve",
    "skip_networking",
    "skip_show_database",
    "skip_replica_start",
    "skip_slave_start",
];

/// Options whose variable has another name, in both directions where versions differ.
const ALIASES: &[(&str, &[&str])] = &[
    ("transaction_isolation", &["tx_isolation"]),
    ("tx_isolation", &["transaction_isolation"]),
    ("transaction_read_only", &["tx_read_only"]),
    ("key_buffer", &["key_buffer_size"]),
    ("default_table_type", &["default_storage_engine"]),
    ("log_slow_queries", &["slow_query_log"]),
    ("log", &["general_log"]),
    ("ssl", &["have_ssl"]),
    ("innodb_checksums", &["innodb_checksum_algorithm"]),
];

/// Bare numbers of PostgreSQL count in these units, in bytes or milliseconds.
const POSTGRES_UNITS: &[(&str, f64)] = &[
    ("autovacuum_work_mem", 1024.0),
    ("bgwriter_delay", 1.0),
    ("checkpoint_timeout", 1e3),
    ("commit_delay", 0.001),
    ("effective_cache_size", 8192.0),
    ("log_min_duration_statement", 1.0),
    ("maintenance_work_mem", 1024.0),
    ("max_wal_size", 1_048_576.0),
    ("min_wal_size", 1_048_576.0),
    ("shared_buffers", 8192.0),
    ("temp_buffers", 8192.0),
    ("wal_buffers", 8192.0),
    ("wal_writer_delay", 1.0),
    ("work_mem", 1024.0),
];

impl ConfiguredLine {
    /// The setting that the line means among those of a server, and its value there: `skip_log_bin`
    /// is `log_bin = OFF`, `log_bin = x` is `log_bin = ON`. `None` when the server has no such
    /// setting.
    pub(super) fn setting(&self, settings: &BTreeMap<String, String>) -> Option<(String, String)> {
        let (name, negated) = self.base_name();
        let known = known_name(&name, settings)?;
        let value = match (&self.value, negated) {
            (_, Some(is_on)) => if is_on { "ON" } else { "OFF" }.to_owned(),
            (None, None) => "ON".to_owned(),
            (Some(value), None) if known == "log_bin" && super::value::switch(value).is_none() => {
                "ON".to_owned()
            }
            (Some(value), None) if name == "innodb_checksums" && known != name => {
                if super::value::switch(value) == Some(false) { "none" } else { "innodb" }.to_owned()
            }
            (Some(value), None) => value.clone(),
        };
        Some((known, value))
    }

    /// The name without `skip_`, `disable_` and `enable_`, and what they make of it.
    fn base_name(&self) -> (String, Option<bool>) {
        if !REAL_SKIPS.contains(&self.name.as_str()) {
            for (prefix, is_on) in [("skip_", false), ("disable_", false), ("enable_", true)] {
                if let Some(rest) = self.name.strip_prefix(prefix) {
                    return (rest.to_owned(), Some(is_on));
                }
            }
        }
        (self.name.clone(), None)
    }
}

/// The name under which the server has what `name` says: itself, an alias, or the only one that
/// begins so.
fn known_name(name: &str, settings: &BTreeMap<String, String>) -> Option<String> {
    if settings.contains_key(name) {
        return Some(name.to_owned());
    }
    let aliases = ALIASES.iter().find(|(option, _)| *option == name).map_or(&[][..], |(_, names)| names);
    if let Some(alias) = aliases.iter().find(|alias| settings.contains_key(**alias)) {
        return Some((*alias).to_owned());
    }
    let mut longer = settings.keys().filter(|known| known.starts_with(name));
    match (longer.next(), longer.next()) {
        // The servers take a shortened name when it is the beginning of one option only.
        (Some(only), None) if name.len() > 3 => Some(only.clone()),
        _ => None,
    }
}

/// Lines of an option file of MySQL or MariaDB. Includes are not followed.
pub(super) fn option_file(text: &str, product: Product, version: [u32; 3]) -> Vec<ConfiguredLine> {
    let mut group = String::new();
    let mut configured = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with(['#', ';', '!']) {
            continue;
        }
        if let Some(header) = text.strip_prefix('[') {
            header.split(']').next().unwrap_or_default().trim().clone_into(&mut group);
            continue;
        }
        let text = without_comment(text);
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(unquoted(value))),
            None => (text, None),
        };
        let name = name.trim().to_ascii_lowercase().replace('-', "_");
        let loose = name.strip_prefix("loose_");
        configured.push(ConfiguredLine {
            line,
            group: group.clone(),
            name: loose.unwrap_or(&name).to_owned(),
            value,
            is_loose: loose.is_some(),
            is_read: is_read(&group, product, version),
        });
    }
    configured
}

/// Whether a server of this product and version reads a group.
fn is_read(group: &str, product: Product, [major, minor, _]: [u32; 3]) -> bool {
    let programs: &[&str] = match product {
        Product::MariaDb => &["mysqld", "mariadb", "mariadbd"],
        Product::MySql | Product::PerconaServer => &["mysqld"],
        Product::Postgres | Product::Sqlite | Product::Other => &[],
    };
    group == "server"
        || programs.iter().any(|program| group == *program || group == format!("{program}-{major}.{minor}"))
}

/// Options of `initdb` that decide a setting.
const INITDB: &[(&str, &str, &str)] = &[
    ("(initdb --data-checksums)", "data_checksums", "on"),
    ("(initdb --no-data-checksums)", "data_checksums", "off"),
];

/// Lines of a `postgresql.conf`. A bare number gets its unit, so that it means the same as what the
/// server shows. What intents made of the data directory is in comments.
pub(super) fn postgresql_conf(text: &str) -> Vec<ConfiguredLine> {
    let mut configured = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let by_initdb = INITDB.iter().find(|(words, ..)| text.starts_with('#') && text.ends_with(words));
        let line_of = by_initdb.map(|(_, name, value)| format!("{name} = {value}"));
        let text = line_of.as_deref().unwrap_or_else(|| without_comment(text.trim()).trim());
        let end = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
        let name = text[..end].to_ascii_lowercase();
        if name.is_empty() {
            continue;
        }
        let value = unquoted(text[end..].trim_start().trim_start_matches('='));
        let value = with_unit(&name, value);
        configured.push(ConfiguredLine {
            line,
            name,
            value: Some(value),
            is_read: true,
            group: String::new(),
            is_loose: false,
        });
    }
    configured
}

fn with_unit(name: &str, value: String) -> String {
    let unit = POSTGRES_UNITS.iter().find(|(setting, _)| *setting == name);
    match (unit, value.parse::<f64>()) {
        (Some((_, unit)), Ok(number)) if number > 0.0 => format!("{}", number * unit),
        _ => value,
    }
}

/// Lines `PRAGMA name = value`.
pub(super) fn pragmas(text: &str) -> Vec<ConfiguredLine> {
    let configured = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let (name, value) = text.trim().strip_prefix("PRAGMA ")?.split_once('=')?;
        let (name, value) = (name.trim().to_ascii_lowercase(), Some(unquoted(value)));
        Some(ConfiguredLine { line, name, value, is_read: true, group: String::new(), is_loose: false })
    });
    configured.collect()
}

/// Cuts at the first `#` outside quotes.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('#', None) => return text[..at].trim_end(),
            _ => {}
        }
    }
    text
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches(['\'', '"']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), String::new())).collect()
    }

    #[test]
    fn lines_of_an_option_file_have_groups_prefixes_and_quotes() {
        let text = "[client]\nuser=x\n[mysqld]\n# c\nloose-Innodb-Foo = 'a # b' # c\nskip-log-bin\n[mariadb-10.11]\nx=1\n";
        let configured = option_file(text, Product::MariaDb, [10, 11, 5]);
        let lines: Vec<String> = configured
            .iter()
            .map(|configured| {
                let ConfiguredLine { line, group, name, value, is_loose, is_read } = configured;
                format!("{line} [{group}] {name} {value:?} loose {is_loose} read {is_read}")
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        2 [client] user Some("x") loose false read false
        5 [mysqld] innodb_foo Some("a # b") loose true read true
        6 [mysqld] skip_log_bin None loose false read true
        8 [mariadb-10.11] x Some("1") loose false read true
        "#);
        assert!(!option_file(text, Product::MariaDb, [11, 4, 5])[3].is_read);
        assert!(!option_file(text, Product::MySql, [10, 11, 5])[3].is_read);
    }

    #[test]
    fn a_line_means_the_setting_that_the_server_has() {
        let known = settings(&[
            "log_bin",
            "tx_isolation",
            "skip_name_resolve",
            "key_buffer_size",
            "innodb_doublewrite",
        ]);
        let meant = |line: &str| {
            let configured = option_file(&format!("[mysqld]\n{line}\n"), Product::MySql, [5, 6, 24]);
            configured[0].setting(&known).map(|(name, value)| format!("{name} = {value}")).unwrap_or_default()
        };
        assert_eq!(meant("skip-log-bin"), "log_bin = OFF");
        assert_eq!(meant("log-bin = binlog"), "log_bin = ON");
        assert_eq!(meant("transaction-isolation = READ-COMMITTED"), "tx_isolation = READ-COMMITTED");
        assert_eq!(meant("skip-name-resolve"), "skip_name_resolve = ON");
        assert_eq!(meant("innodb_doublew = 0"), "innodb_doublewrite = 0");
        assert_eq!(meant("key_buffer = 8M"), "key_buffer_size = 8M");
        assert_eq!(meant("no_such_thing = 1"), "");
    }

    #[test]
    fn postgresql_counts_bare_numbers_in_the_settings_own_unit() {
        let text = "shared_buffers = 16384\n# x\nmax_wal_size 1GB # c\nFsync='off'\ncheckpoint_timeout=300\n\
                    # checksums = true (initdb --data-checksums)\n";
        let configured = postgresql_conf(text);
        let lines: Vec<String> = configured
            .iter()
            .map(|configured| format!("{} {} {:?}", configured.line, configured.name, configured.value))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        1 shared_buffers Some("134217728")
        3 max_wal_size Some("1GB")
        4 fsync Some("off")
        5 checkpoint_timeout Some("300000")
        6 data_checksums Some("on")
        "#);
    }

    #[test]
    fn pragmas_are_read_one_a_line() {
        let configured = pragmas("PRAGMA journal_mode = wal\nPRAGMA synchronous = full\n");
        assert_eq!(
            (configured.len(), configured[1].name.as_str(), configured[1].value.as_deref()),
            (2, "synchronous", Some("full"))
        );
    }
}
