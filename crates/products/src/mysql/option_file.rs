//! Reads MySQL and MariaDB option files, with groups, settings, quotes, comments and includes.

use super::MARIADB;
use crate::settings::{ConfiguredLine, KNOWN};
use crate::{Product, Release};

/// A line that sets or includes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// `name = value` or a bare `name`. A `-` in the name becomes `_`. Lines count from 1.
    Setting { line: usize, group: String, name: String, value: Option<String> },
    /// `!include FILE` or `!includedir FOLDER`.
    Include { path: String, folder: bool },
}

/// Reads an option file's lines. The error says which line is wrong, but not its text, which may
/// hold a password.
pub fn items(text: &str) -> impl Iterator<Item = Result<Item, String>> {
    let mut group: Option<String> = None;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        if let Some(directive) = line.strip_prefix('!') {
            return Some(include(directive).ok_or_else(|| format!("line {number}: unknown directive")));
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some((name, _)) = header.split_once(']') else {
                return Some(Err(format!("line {number}: group without ]")));
            };
            group = Some(name.trim().to_owned());
            return None;
        }
        let Some(group) = group.clone() else {
            return Some(Err(format!("line {number}: option before the first [group]")));
        };
        let (name, value) = setting(line);
        Some(Ok(Item::Setting { line: number, group, name, value }))
    })
}

fn include(directive: &str) -> Option<Item> {
    let (word, path) = directive.split_once(char::is_whitespace)?;
    let folder = match word {
        "include" => false,
        "includedir" => true,
        _ => return None,
    };
    Some(Item::Include { path: path.trim().to_owned(), folder })
}

fn setting(line: &str) -> (String, Option<String>) {
    let line = without_comment(line);
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(unquoted(value.trim()))),
        None => (line, None),
    };
    (name.trim().replace('-', "_"), value)
}

/// Cuts the line at the first `#` outside quotes, as the servers do. A character after a backslash
/// does not end a quote.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('#', None) => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

fn unquoted(value: &str) -> String {
    let inner = ['\'', '"']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('s') => out.push(' '),
            Some(quoted @ ('"' | '\'' | '\\')) => out.push(quoted),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// Reads an option file's lines as a server with this product and version does. Includes are not
/// followed, and unreadable lines are skipped.
pub(super) fn lines(text: &str, product: &Product, version: Release) -> Vec<ConfiguredLine> {
    let configured = |item| {
        let Item::Setting { line, group, name, value } = item else { return None };
        let name = name.to_ascii_lowercase();
        let loose = name.strip_prefix("loose_");
        let plain = loose.unwrap_or(&name);
        Some(ConfiguredLine {
            line,
            name: plain.to_owned(),
            value,
            is_loose: loose.is_some(),
            is_read: is_read(&group, product, version),
            is_for_others: is_for_others(&group, plain),
            group,
        })
    };
    items(text).flatten().filter_map(configured).collect()
}

/// Whether a server with this product and version reads a group: `mysqld`, `server`, `mysqld-8.0`,
/// `mariadb`, ...
pub fn is_read(group: &str, product: &Product, version: Release) -> bool {
    let [major, minor, _] = version.0;
    let programs: &[&str] = if product == MARIADB { &["mysqld", "mariadb", "mariadbd"] } else { &["mysqld"] };
    group == "server"
        || programs.iter().any(|program| group == *program || group == format!("{program}-{major}.{minor}"))
}

/// Whether a line is for one version, for MariaDB or for client programs. It is then no mistake if
/// the server does not read the line.
fn is_for_others(group: &str, name: &str) -> bool {
    group.contains("mariadb")
        || group.starts_with("mysqld-")
        || KNOWN.of_clients.iter().any(|client| client == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn lines_of(text: &str, product: &str, version: [u32; 3]) -> Vec<ConfiguredLine> {
        lines(text, Product::named(product), Release(version))
    }

    fn settings(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), String::new())).collect()
    }

    #[test]
    fn lines_of_an_option_file_have_groups_prefixes_and_quotes() {
        let text = "[client]\nuser=x\n[mysqld]\n# c\nloose-Innodb-Foo = 'a # b' # c\nskip-log-bin\n[mariadb-10.11]\nx=1\n";
        let configured = lines_of(text, "MariaDB", [10, 11, 5]);
        let lines: Vec<String> = configured
            .iter()
            .map(|configured| {
                let ConfiguredLine { line, group, name, value, is_loose, is_read, .. } = configured;
                format!("{line} [{group}] {name} {value:?} loose {is_loose} read {is_read}")
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        2 [client] user Some("x") loose false read false
        5 [mysqld] innodb_foo Some("a # b") loose true read true
        6 [mysqld] skip_log_bin None loose false read true
        8 [mariadb-10.11] x Some("1") loose false read true
        "#);
        assert!(!lines_of(text, "MariaDB", [11, 4, 5])[3].is_read);
        assert!(!lines_of(text, "MySQL", [10, 11, 5])[3].is_read);
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
            let configured = lines_of(&format!("[mysqld]\n{line}\n"), "MySQL", [5, 6, 24]);
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
    fn settings_comments_quotes_and_includes_are_read_as_by_the_servers() {
        let text = r#"
# a comment
; another
[client]
user = 'ann'          # who
password="a#b\"c d"
[mysqld]
skip-name-resolve
innodb-page-size=4k # small
init_connect=SET NAMES 'utf8'
tmpdir = C:\\temp\sx
!includedir /etc/mysql/conf.d
"#;
        let items: Vec<String> = items(text).map(|item| format!("{:?}", item.unwrap())).collect();
        insta::assert_snapshot!(items.join("\n"), @r#"
        Setting { line: 5, group: "client", name: "user", value: Some("ann") }
        Setting { line: 6, group: "client", name: "password", value: Some("a#b\"c d") }
        Setting { line: 8, group: "mysqld", name: "skip_name_resolve", value: None }
        Setting { line: 9, group: "mysqld", name: "innodb_page_size", value: Some("4k") }
        Setting { line: 10, group: "mysqld", name: "init_connect", value: Some("SET NAMES 'utf8'") }
        Setting { line: 11, group: "mysqld", name: "tmpdir", value: Some("C:\\temp x") }
        Include { path: "/etc/mysql/conf.d", folder: true }
        "#);
    }

    #[test]
    fn the_error_for_a_wrong_line_has_its_number_and_not_its_text() {
        let wrong = |text: &str| items(text).find_map(Result::err).unwrap();
        assert_eq!(wrong("\npassword=secret"), "line 2: option before the first [group]");
        assert_eq!(wrong("[client\nx=1"), "line 1: group without ]");
        assert_eq!(wrong("[client]\n!read /x"), "line 2: unknown directive");
    }
}
