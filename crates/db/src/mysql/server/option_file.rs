//! The grammar of MySQL and MariaDB option files: groups, settings, quotes, comments, includes.

/// One meaningful line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// `name = value` or a bare `name`; `-` in the name is written `_`.
    Setting { group: String, name: String, value: Option<String> },
    /// `!include FILE` or `!includedir FOLDER`.
    Include { path: String, folder: bool },
}

/// Reads the lines of an option file. The error says which line is wrong, without its text: it may
/// hold a password.
pub(super) fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut group: Option<String> = None;
    let mut items = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(directive) = line.strip_prefix('!') {
            items.push(include(directive).ok_or_else(|| format!("line {number}: unknown directive"))?);
        } else if let Some(header) = line.strip_prefix('[') {
            let name = header.split_once(']').ok_or_else(|| format!("line {number}: group without ]"))?.0;
            group = Some(name.trim().to_owned());
        } else {
            let group =
                group.clone().ok_or_else(|| format!("line {number}: option before the first [group]"))?;
            let (name, value) = setting(line);
            items.push(Item::Setting { group, name, value });
        }
    }
    Ok(items)
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

/// Cuts at the first `#` that is outside quotes, as the servers do; a backslash keeps the next
/// character from ending a quote.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_comments_quotes_and_includes_are_read_as_the_servers_read_them() {
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
        let items: Vec<String> = parse(text).unwrap().iter().map(|item| format!("{item:?}")).collect();
        insta::assert_snapshot!(items.join("\n"), @r#"
        Setting { group: "client", name: "user", value: Some("ann") }
        Setting { group: "client", name: "password", value: Some("a#b\"c d") }
        Setting { group: "mysqld", name: "skip_name_resolve", value: None }
        Setting { group: "mysqld", name: "innodb_page_size", value: Some("4k") }
        Setting { group: "mysqld", name: "init_connect", value: Some("SET NAMES 'utf8'") }
        Setting { group: "mysqld", name: "tmpdir", value: Some("C:\\temp x") }
        Include { path: "/etc/mysql/conf.d", folder: true }
        "#);
    }

    #[test]
    fn a_wrong_line_is_named_by_number_and_never_repeated() {
        assert_eq!(parse("\npassword=secret").unwrap_err(), "line 2: option before the first [group]");
        assert_eq!(parse("[client\nx=1").unwrap_err(), "line 1: group without ]");
        assert_eq!(parse("[client]\n!read /x").unwrap_err(), "line 2: unknown directive");
    }
}
