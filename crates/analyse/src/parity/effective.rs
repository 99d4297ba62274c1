//! What became of each line of a variant's configuration: not read, given again, not taken, changed
//! by the server.

use super::configured::ConfiguredLine;
use super::subject::{Product, Subject};
use super::value::{number, says_the_same, size, size_text, switch};

/// Why a line did not mean what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in a group that the server does not read.
    Unread,
    /// A later line says something else for the same setting.
    Twice,
    /// Marked `loose`, and the server has no such setting.
    NotTaken,
    /// The server has another value than configured.
    Changed,
}

/// Where dbdyno has the last word, and settings that are no values: paths, lists, plugins.
const NOT_COMPARED: &[&str] = &[
    "basedir",
    "bind_address",
    "datadir",
    "listen_addresses",
    "log_destination",
    "log_error",
    "logging_collector",
    "mysqlx",
    "optimizer_switch",
    "pid_file",
    "port",
    "skip_networking",
    "socket",
    "sql_mode",
    "tmpdir",
    "unix_socket_directories",
    "unix_socket_permissions",
];

impl Fate {
    /// The word for it in the conditions of traps.
    pub(super) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "unread" => Self::Unread,
            "twice" => Self::Twice,
            "not-taken" => Self::NotTaken,
            "changed" => Self::Changed,
            _ => return None,
        })
    }

    /// What happened, line by line; empty when it did not.
    pub(super) fn lines(self, subject: &Subject) -> Vec<String> {
        if subject.settings.is_empty() {
            return Vec::new();
        }
        match self {
            Self::Unread => unread(subject),
            Self::Twice => twice(subject),
            Self::NotTaken => not_taken(subject),
            Self::Changed => changed(subject),
        }
    }
}

fn unread(subject: &Subject) -> Vec<String> {
    let lines = subject.configured.iter().filter(|line| !line.is_read && !line.is_for_others);
    lines
        .filter_map(|line| {
            let (name, _) = line.setting(&subject.settings)?;
            Some(format!("line {}: {name} is in [{}]", line.line, line.group))
        })
        .collect()
}

fn twice(subject: &Subject) -> Vec<String> {
    let read: Vec<(&ConfiguredLine, (String, String))> = subject
        .configured
        .iter()
        .filter(|line| line.is_read)
        .filter_map(|line| Some((line, line.setting(&subject.settings)?)))
        .collect();
    let mut found = Vec::new();
    for (index, (line, (name, value))) in read.iter().enumerate() {
        let later = read[index + 1..].iter().find(|(_, (other, _))| other == name);
        if let Some((last, (_, wins))) = later
            && !says_the_same(value, wins)
        {
            found.push(format!("{name} = {value} (line {}) and {wins} (line {})", line.line, last.line));
        }
    }
    found
}

fn not_taken(subject: &Subject) -> Vec<String> {
    let lines = subject.configured.iter().filter(|line| line.is_read && line.is_loose);
    lines
        .filter(|line| line.setting(&subject.settings).is_none())
        .map(|line| format!("line {}: {}", line.line, line.name))
        .collect()
}

fn changed(subject: &Subject) -> Vec<String> {
    let changed = |(name, (configured, line)): (String, (String, &ConfiguredLine))| {
        // What the server was configured with, not what a connection makes of it.
        let is = subject.settings.get(&name)?;
        is_changed(subject.product, &name, &configured, is).then(|| {
            format!(
                "line {}: {name} is configured as {configured} and is effectively {}",
                line.line,
                shown(is)
            )
        })
    };
    subject.configured_settings().into_iter().filter_map(changed).collect()
}

/// Only what can be compared: switches, numbers, words; not what the server expands.
fn is_changed(product: &Product, name: &str, configured: &str, is: &str) -> bool {
    let lower = |text: &str| text.to_ascii_lowercase();
    let is_number_for_word = number(configured).is_some() && number(is).is_none() && switch(is).is_none();
    let is_automatic = configured.trim().starts_with('-')
        || (product.zero_is_automatic && configured.trim() == "0" && number(is).is_some());
    let is_comparable = !NOT_COMPARED.contains(&name)
        && !name.starts_with("plugin")
        && !configured.contains(['/', ','])
        && !is.contains(['/', ','])
        && !is_number_for_word
        && !is_automatic;
    is_comparable && !says_the_same(configured, is) && !lower(is).starts_with(&lower(configured))
}

fn shown(value: &str) -> String {
    const LEAST: u64 = 1 << 20;
    match size(value) {
        Some(bytes) if bytes >= LEAST && value.chars().all(|c| c.is_ascii_digit()) => size_text(bytes),
        _ if value.is_empty() => "empty".to_owned(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::testing::configured;

    fn all(product: &str, version: &str, config: &str) -> String {
        let subject = configured("a", product, version, config);
        let fates = [Fate::Unread, Fate::Twice, Fate::NotTaken, Fate::Changed];
        fates
            .iter()
            .flat_map(|fate| fate.lines(&subject).into_iter().map(move |line| format!("{fate:?}: {line}")))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn every_line_that_does_not_mean_what_it_says_is_named() {
        let config = "[mysql]\ninnodb_flush_log_at_trx_commit = 2\n[client]\nport = 3306\n[mysqld]\n\
                      sync_binlog = 1\nloose-innodb_foo = 1\ninnodb_buffer_pool_size = 200M\nsync-binlog = 0\n\
                      [mariadb]\nlog_bin = x\n";
        insta::assert_snapshot!(all("MySQL", "8.0.31", config), @r"
        Unread: line 2: innodb_flush_log_at_trx_commit is in [mysql]
        Twice: sync_binlog = 1 (line 6) and 0 (line 9)
        NotTaken: line 7: innodb_foo
        Changed: line 8: innodb_buffer_pool_size is configured as 200M and is effectively 256 MiB
        ");
    }

    #[test]
    fn what_was_taken_as_configured_is_no_finding() {
        let config = "[mysqld]\nskip-log-bin\ninnodb_buffer_pool_size = 1G\nperformance_schema = off\n\
                      innodb_flush_method = o_direct\nsql_mode = TRADITIONAL\ntmpdir = /x\nquery_cache_type = 0\n";
        assert_eq!(all("MySQL", "5.7.22", config), "");
        assert_eq!(
            all("PostgreSQL", "15.1.0", "shared_buffers = 131072\ncheckpoint_timeout = 300\njit = 0\n"),
            ""
        );
    }
}
