//! Facts about PostgreSQL.

use crate::settings::{ConfiguredLine, KNOWN, LATER, NEVER, SYNCED, Value, io_words};
use crate::{FamilyFacts, Product, Reader, TlsOption};

pub const POSTGRESQL: &Product = &Product {
    word: "postgresql",
    name: "PostgreSQL",
    prefixes: &["pg", "postgresql", "postgres", "pgsql"],
    base: None,
};

/// Superuser in the data directories that dbdyno makes.
pub const SUPERUSER: &str = "postgres";

/// The database from which others are created.
pub const MAINTENANCE: &str = "postgres";

pub static FACTS: FamilyFacts = FamilyFacts {
    name: "postgres",
    products: &[POSTGRESQL],
    config_options: include_str!("config-options.toml"),
    schemes: &["postgres://", "postgresql://"],
    default_port: 5432,
    socket_prefix: Some(".s.PGSQL."),
    tls_options: &[
        ("sslmode", TlsOption::Mode),
        ("sslrootcert", TlsOption::Ca),
        ("sslcert", TlsOption::Cert),
        ("sslkey", TlsOption::Key),
    ],
    password_file: "a password file of PostgreSQL",
    option_file_ending: "conf",
    workers: Some(("postgres", "PG_VERSION")),
    superuser: SUPERUSER,
    first_database: Some(MAINTENANCE),
    certificate_option: "ssl_cert_file",
    only_own_certificates: true,
    has_no_tls_on_sockets: true,
    // The option is not in the option data. Its default has always been 3.
    reserved_connections: Some(("superuser_reserved_connections", 3)),
    lines: |text, _, _| postgresql_conf(text),
    plan_nodes: |rows| rows.iter().filter_map(|row| plan_node(row)).collect(),
    classes: &[
        ("collation", |reader| reader.text("lc_collate").map(Value::words)),
        ("commit", commit),
        ("io", io),
        ("isolation", isolation),
        ("statement_logging", statement_logging),
        ("tls", |reader| reader.subject.tls.map(Value::Switch)),
    ],
    ..FamilyFacts::DEFAULT
};

/// Options for `initdb` that determine a setting.
const INITDB: &[(&str, &str, &str)] = &[
    ("(initdb --data-checksums)", "data_checksums", "on"),
    ("(initdb --no-data-checksums)", "data_checksums", "off"),
];

/// Reads the lines in a `postgresql.conf`. A bare number gets the setting's unit, so that it means
/// the same as the value that the server shows. dbdyno's comments in the file name the `initdb`
/// options from intents, and those that determine a setting are read too.
fn postgresql_conf(text: &str) -> Vec<ConfiguredLine> {
    let configured = |(line, text): (usize, &str)| {
        let by_initdb = INITDB.iter().find(|(words, ..)| text.starts_with('#') && text.ends_with(words));
        let by_initdb = by_initdb.map(|(_, name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (name, value) = by_initdb.or_else(|| setting(text))?;
        let value = Some(with_unit(&name, value));
        Some(ConfiguredLine { line, name, value, is_read: true, ..Default::default() })
    };
    (1..).zip(text.lines()).filter_map(configured).collect()
}

/// Name, in lower case, and value in a `postgresql.conf` line, without quotes and comment. The
/// result is `None` for a line that sets nothing.
pub fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim_start();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    let (name, rest) = line.split_at(line.find(|c| !is_part(c)).unwrap_or(line.len()));
    let rest = rest.trim_start_matches([' ', '\t', '=']);
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => unquoted(quoted),
        None => rest.split('#').next().unwrap_or_default().trim().to_owned(),
    };
    (!name.is_empty()).then(|| (name.to_ascii_lowercase(), value))
}

/// The text before the closing quote. Two quotes in a row mean one quote in the value.
fn unquoted(text: &str) -> String {
    let mut value = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\'') {
        value.push_str(before);
        let Some(more) = after.strip_prefix('\'') else { return value };
        value.push('\'');
        rest = more;
    }
    value + rest
}

fn with_unit(name: &str, value: String) -> String {
    match (KNOWN.units.get(name), value.parse::<f64>()) {
        (Some(unit), Ok(number)) if number > 0.0 => format!("{}", number * unit),
        _ => value,
    }
}

fn commit(reader: &Reader<'_>) -> Option<Value> {
    Some(Value::words(match reader.is_on("fsync") {
        Some(false) => NEVER,
        _ if reader.text("synchronous_commit")? == "off" => LATER,
        _ => SYNCED,
    }))
}

fn io(reader: &Reader<'_>) -> Option<Value> {
    Some(io_words(reader.text("debug_io_direct").is_some_and(|text| text.contains("data"))))
}

fn isolation(reader: &Reader<'_>) -> Option<Value> {
    let level =
        reader.text("transaction_isolation").or_else(|| reader.text("default_transaction_isolation"))?;
    Some(Value::words(level.to_ascii_lowercase().replace('-', " ")))
}

fn statement_logging(reader: &Reader<'_>) -> Option<Value> {
    let slow = reader.text("log_min_duration_statement").is_some_and(|text| !text.starts_with('-'));
    Some(Value::words(match (reader.text("log_statement")?, slow) {
        ("none", false) => "none",
        ("none", true) => "slow ones",
        _ => "all or some",
    }))
}

/// One node in a query plan. Conditions are left out, because they hold the values.
fn plan_node(row: &[Option<String>]) -> Option<String> {
    let line = row.first()?.as_deref()?;
    match line.trim_start().strip_prefix("->") {
        Some(node) => Some(node.trim().to_owned()),
        // The first node has no arrow and no indent.
        None => (!line.starts_with(' ')).then(|| line.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_without_quotes_and_comment() {
        let of = |line| setting(line).map(|(name, value)| format!("{name}={value}")).unwrap_or_default();
        assert_eq!(of("Work_Mem = 4MB # each"), "work_mem=4MB");
        assert_eq!(of("search_path 'a b' # c"), "search_path=a b");
        assert_eq!(of("x.y = 'it''s' 'z'"), "x.y=it's");
        assert_eq!(of("include'more.conf'"), "include=more.conf");
        assert_eq!([of("# x"), of("")], ["", ""]);
    }

    #[test]
    fn a_query_plan_is_reduced_to_its_nodes() {
        let lines =
            ["Limit", "  ->  Index Only Scan using pi1_pdc on pi1", "        Index Cond: (price >= 250)"];
        let rows = lines.map(|line| vec![Some(line.to_owned())]);
        assert_eq!((FACTS.plan_nodes)(&rows), ["Limit", "Index Only Scan using pi1_pdc on pi1"]);
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
}
