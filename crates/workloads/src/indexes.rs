//! Statements that add indexes to a table that already holds its rows.

use dbdyno_db::IndexDdl;

/// Adds the primary key of `table`, where it has none yet, and indexes by their names and columns.
pub(crate) fn add_indexes<'a>(
    table: &str,
    key: Option<&str>,
    indexes: impl IntoIterator<Item = (&'a str, &'a str)>,
    form: IndexDdl,
) -> Vec<String> {
    let key = key.map(|columns| format!("ADD PRIMARY KEY ({columns})")).into_iter();
    let alter = |what: String| format!("ALTER TABLE {table} {what}");
    let add = |(name, columns): (&str, &str)| format!("ADD INDEX {name} ({columns})");
    let create = |(name, columns): (&str, &str)| format!("CREATE INDEX {name} ON {table} ({columns})");
    let indexes = indexes.into_iter();
    match form {
        IndexDdl::OneAlter => {
            let all: Vec<String> = key.chain(indexes.map(add)).collect();
            if all.is_empty() { Vec::new() } else { vec![alter(all.join(", "))] }
        }
        IndexDdl::AlterEach => key.chain(indexes.map(add)).map(alter).collect(),
        IndexDdl::CreateEach => key.map(alter).chain(indexes.map(create)).collect(),
    }
}

/// Formats the plan's own text after the closing bracket of CREATE TABLE.
pub(crate) fn after_columns(own: &str) -> String {
    if own.is_empty() { String::new() } else { format!(" {own}") }
}
