//! Lines of option files. Includes are not followed.

use super::MARIADB;
use crate::configured::{ConfiguredLine, unquoted, without_comment};
use crate::known::KNOWN;
use crate::{Product, Release};

/// As a server of this product and version reads them.
pub(super) fn lines(text: &str, product: &Product, version: Release) -> Vec<ConfiguredLine> {
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
        let plain = loose.unwrap_or(&name);
        configured.push(ConfiguredLine {
            line,
            group: group.clone(),
            name: plain.to_owned(),
            value,
            is_loose: loose.is_some(),
            is_read: is_read(&group, product, version),
            is_for_others: is_for_others(&group, plain),
        });
    }
    configured
}

/// Whether a server of this product and version reads a group.
fn is_read(group: &str, product: &Product, version: Release) -> bool {
    let [major, minor, _] = version.0;
    let programs: &[&str] = if product == MARIADB { &["mysqld", "mariadb", "mariadbd"] } else { &["mysqld"] };
    group == "server"
        || programs.iter().any(|program| group == *program || group == format!("{program}-{major}.{minor}"))
}

/// Groups of one version or of the other product are there on purpose.
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
}
