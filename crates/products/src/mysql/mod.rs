//! Describes the family of MySQL, Percona Server and MariaDB: its facts, the options that its
//! variants have, and a reader for the query plans from EXPLAIN in all versions.

mod classes;
pub mod option_file;

use std::path::PathBuf;

use dbdyno_model::ColumnDefinitions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::facts::{PlanRow, joined};
use crate::settings::{KNOWN, size};
use crate::variant::{TypedOptions, VariantOptions, is_word};
use crate::{FamilyFacts, Product, Settings, TlsOption};

pub const MYSQL: &Product = &Product { word: "mysql", name: "MySQL", prefixes: &["mysql"], base: None };
pub const PERCONA: &Product =
    &Product { word: "percona", name: "Percona Server", prefixes: &["percona"], base: Some(MYSQL) };
pub const MARIADB: &Product =
    &Product { word: "mariadb", name: "MariaDB", prefixes: &["mariadb"], base: None };

pub static FACTS: FamilyFacts = FamilyFacts {
    name: "mysql",
    products: &[MYSQL, PERCONA, MARIADB],
    default_engine: Some("innodb"),
    config_options: include_str!("config-options.toml"),
    option_file_form: ("[mysqld]\n", ""),
    options: VariantOptions::of::<MysqlOptions>(),
    schemes: &["mysql://", "mariadb://"],
    default_port: 3306,
    // These are the names in MySQL's own tools. Option files write them with `_`.
    tls_options: &[
        ("ssl-mode", TlsOption::Mode),
        ("ssl-ca", TlsOption::Ca),
        ("ssl-cert", TlsOption::Cert),
        ("ssl-key", TlsOption::Key),
    ],
    password_file: "a MySQL option file",
    other_place_of_user: " or in the option file's [client]",
    option_file_ending: "cnf",
    distrusts_writable_files: true,
    libraries: &[("libaio.so.1", "libaio1"), ("libnuma.so.1", "libnuma1")],
    superuser: "root",
    certificate_option: "ssl_cert",
    zero_is_automatic: true,
    lines: option_file::lines,
    follow,
    plan_nodes: nodes,
    classes: classes::CLASSES,
    ..FamilyFacts::DEFAULT
};

/// Updates settings that depend on others, as the server does. A character set selects its default
/// collation, and the buffer pool's size is rounded up to whole chunks.
fn follow(settings: &mut Settings, before: &Settings) {
    let [set, collation] = ["character_set_server", "collation_server"];
    if settings.get(set) != before.get(set) && settings.get(collation) == before.get(collation) {
        let set = settings.get(set).map(|set| set.to_ascii_lowercase()).unwrap_or_default();
        match KNOWN.collations.get(&set) {
            Some(default_collation) => settings.insert(collation.to_owned(), default_collation.clone()),
            None => settings.remove(collation),
        };
    }
    let [pool, chunk] = ["innodb_buffer_pool_size", "innodb_buffer_pool_chunk_size"];
    if let [Some(bytes), Some(chunk)] = [pool, chunk].map(|name| size(settings.get(name)?))
        && chunk > 0
        && bytes > chunk
    {
        settings.insert(pool.to_owned(), (bytes.div_ceil(chunk) * chunk).to_string());
    }
}

/// `options` of a variant.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MysqlOptions {
    /// MariaDB and MySQL: storage engine of the tables (`innodb`, `rocksdb`, `myisam`); `innodb`
    /// when left out.
    pub engine: Option<String>,
    /// MariaDB and MySQL: character set of the connections, by the server's name for it (`latin1`);
    /// `utf8mb4` when left out.
    pub client_charset: Option<String>,
    /// MariaDB and MySQL: how often MariaDB (from 10.6) sends the column definitions of a prepared
    /// statement: `once`, as its own client library asks for and when left out, or with each answer
    /// (`always`), as all other servers of the family do.
    pub column_definitions: ColumnDefinitions,
    /// MariaDB and MySQL: whether connections ask for results without EOF packets
    /// (`CLIENT_DEPRECATE_EOF`); as the product's own client library does when left out: yes for
    /// MySQL from 5.7, no for MariaDB.
    pub deprecate_eof: Option<bool>,
    /// MariaDB and MySQL: whether connections ask for reports of changes of the session's state
    /// (`CLIENT_SESSION_TRACK`); yes when left out, as both products' own client libraries do where
    /// the server can (MySQL from 5.7, MariaDB from 10.2).
    pub session_track: Option<bool>,
    /// PEM file with the RSA key of the MySQL server at `address`, relative to the plan. It
    /// encrypts a password that is otherwise never sent over TCP without TLS.
    pub server_public_key: Option<PathBuf>,
    /// Such a password may be encrypted with the key that the MySQL server at `address` sends. A
    /// server that poses as it sends a key of its own and reads the password.
    pub allow_public_key_retrieval: bool,
}

impl TypedOptions for MysqlOptions {
    const FILES: &'static [&'static str] = &["server_public_key"];
    const OF_ADDRESSES: &'static [&'static str] = &["server_public_key", "allow_public_key_retrieval"];

    fn problem(&self) -> Option<(&'static str, String)> {
        if self.server_public_key.is_some() && self.allow_public_key_retrieval {
            let message = "has server_public_key and allow_public_key_retrieval at once: the given key is used; remove allow_public_key_retrieval";
            return Some(("allow_public_key_retrieval", message.to_owned()));
        }
        if self.client_charset.as_deref().is_some_and(|charset| !is_word(charset)) {
            let help = "write utf8mb4, latin1, or another of the server's SHOW CHARACTER SET";
            let message = format!("has a client_charset that is no name of a character set: {help}");
            return Some(("client_charset", message));
        }
        let is_wrong = self.engine.as_deref().is_some_and(|engine| !is_word(engine));
        is_wrong.then(|| ("engine", "has an engine that is not a plain name such as innodb".to_owned()))
    }
}

/// Returns one text for each row of EXPLAIN's result.
fn nodes(rows: &[PlanRow]) -> Vec<String> {
    rows.iter().map(|row| node(row, rows.len() > 1)).collect()
}

/// Returns the positions of table, access type, key and remarks among EXPLAIN's columns. MySQL has
/// two more columns from 5.7 on, `partitions` and `filtered`.
fn positions(columns: usize) -> Option<[usize; 4]> {
    match columns {
        10 => Some([2, 3, 5, 9]),
        12 => Some([2, 4, 6, 11]),
        _ => None,
    }
}

/// Returns one node, as in `index k_1 range, covering`. In a join, the tables' order is part of the
/// plan, so the table comes first: `orders: ...`.
fn node(row: &[Option<String>], is_join: bool) -> String {
    let Some(positions) = positions(row.len()) else { return joined(row) };
    let [table, access, key, extra] = positions.map(|position| row[position].as_deref().unwrap_or_default());
    let index = match key {
        "" => String::new(),
        "PRIMARY" => "primary key ".to_owned(),
        key => format!("index {key} "),
    };
    let how = match access {
        "ALL" => "full scan".to_owned(),
        "index" => format!("{index}full scan"),
        "range" | "index_merge" => format!("{index}{}", access.replace('_', " ")),
        "const" | "system" | "eq_ref" => format!("{index}one row"),
        "ref" | "ref_or_null" => format!("{index}lookup"),
        "" if table.is_empty() => "no table".to_owned(),
        other => format!("{index}{other}"),
    };
    let remarks =
        REMARKS.iter().filter(|(words, _)| extra.split(';').any(|part| part.trim().starts_with(words)));
    // The remark is compared whole, because `Using index condition` begins with the same words.
    let covering = extra.split(';').any(|part| part.trim() == "Using index").then(|| "covering".to_owned());
    let words = std::iter::once(how)
        .chain(covering)
        .chain(remarks.map(|(_, short)| (*short).to_owned()))
        .collect::<Vec<_>>()
        .join(", ");
    if is_join && !table.is_empty() { format!("{table}: {words}") } else { words }
}

/// EXPLAIN's remarks that a node shows, each with its short form. `Using where` is not among them,
/// because it means only that rows are filtered, and versions differ in when they print it.
const REMARKS: [(&str, &str); 11] = [
    ("Using index condition", "index condition"),
    ("Using index for group-by", "loose scan"),
    ("Using MRR", "multi-range read"),
    ("Rowid-ordered scan", "multi-range read"),
    ("Using rowid filter", "rowid filter"),
    ("Using temporary", "temporary table"),
    ("Using filesort", "sort"),
    ("Using join buffer", "join buffer"),
    ("Using union", "union of indexes"),
    ("Using intersect", "intersection of indexes"),
    ("Using sort_union", "union of indexes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(access: &str, key: &str, extra: &str) -> Vec<String> {
        let row = ["1", "SIMPLE", "t", access, "PRIMARY,k_1", key, "4", "", "9", extra];
        nodes(&[row.map(|cell| Some(cell.to_owned())).to_vec()])
    }

    #[test]
    fn explain_with_ten_and_with_twelve_columns_gives_the_same_text() {
        let new = ["1", "SIMPLE", "t", "", "range", "k_1", "k_1", "4", "", "101", "100.00", "Using index"];
        let new = new.map(|cell| Some(cell.to_owned()).filter(|text| !text.is_empty())).to_vec();
        assert_eq!(row("range", "k_1", "Using where; Using index"), ["index k_1 range, covering"]);
        assert_eq!(nodes(&[new]), ["index k_1 range, covering"]);
        assert_eq!(row("ALL", "", "Using where; Using filesort"), ["full scan, sort"]);
        assert_eq!(row("const", "PRIMARY", ""), ["primary key one row"]);
        assert_eq!(row("ref", "k_1", "Using index condition"), ["index k_1 lookup, index condition"]);
    }

    #[test]
    fn each_node_of_a_join_names_its_table() {
        let row = |table: &str| {
            let row = ["1", "SIMPLE", table, "ALL", "", "", "", "", "9", "Using join buffer (flat)"];
            row.map(|cell| Some(cell.to_owned())).to_vec()
        };
        assert_eq!(nodes(&[row("a"), row("b")]), ["a: full scan, join buffer", "b: full scan, join buffer"]);
    }
}
