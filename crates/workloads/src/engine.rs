//! Creates tables and checks that they have the requested storage engine. It also adds indexes to
//! tables that already have their rows, and finds out whether a server accepts
//! `LOAD DATA LOCAL INFILE`, which MySQL 8.0 and later refuse by default.

use std::time::Instant;

use dbdyno_db::{
    AnySession, Capabilities, Class, DbError, IndexDdl, RowStream, Session, first_i64, is_engine,
    table_engines,
};
use dbdyno_plan::Plan;
use serde_json::json;

use crate::{Context, Error, Result, Work};

/// Whether dbdyno made the tables or found them. It decides what an error about their engine says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Made,
    Found,
}

/// Makes tables. Each comes with its statements.
pub(crate) async fn create_tables(
    context: &Context,
    session: &mut AnySession,
    tables: impl Iterator<Item = (String, Vec<String>)>,
) -> Result<Work> {
    let began = Instant::now();
    let mut names = Vec::new();
    for (table, statements) in tables {
        for statement in statements {
            let creating = Error::during(format!("creating table {table}"));
            session.query(statement.as_bytes()).await.map_err(creating)?;
        }
        names.push(table);
    }
    let mut work = Work::new("create tables", began.elapsed(), [("tables", json!(names.len()))]);
    read_back(session, &context.database_server.capabilities, &names, Origin::Made, &mut work).await?;
    Ok(work)
}

/// Asks the server for the engine of `tables`, compares it with the one that was asked for, and
/// enters it into `work`.
pub(crate) async fn read_back(
    session: &mut AnySession,
    capabilities: &Capabilities,
    tables: &[String],
    origin: Origin,
    work: &mut Work,
) -> Result<()> {
    let Some(asked) = &capabilities.engine else { return Ok(()) };
    let looking = Error::during("reading the tables' engine");
    let engines = table_engines(session, tables).await.map_err(looking)?;
    if let Some((table, found)) = engines.iter().find(|(_, found)| !is_engine(session, asked, found)) {
        let (table, asked, found) = (table.clone(), asked.clone(), found.clone());
        return Err(match origin {
            Origin::Made => Error::Substituted { table, asked, found },
            Origin::Found => Error::OtherEngine { table, asked, found: found.to_lowercase() },
        });
    }
    work.details.extend(engines.into_values().next().map(|engine| ("engine".to_owned(), json!(engine))));
    Ok(())
}

/// Returns statements that add the primary key `key` to `table`, where it has none yet, and
/// `indexes` by their names and columns.
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

const ALLOW: &str = "SET GLOBAL local_infile = ON";

/// Returns whether the server of `session` takes the rows that a workload of `plan` streams in this
/// `form`. The result is also true where no workload streams rows in this way.
pub async fn takes_streams(plan: &Plan, form: RowStream, session: &mut AnySession) -> Result<bool, DbError> {
    let are_streamed = plan.workload.iter().any(|(_, options)| options.needs().row_streams);
    Ok(!are_streamed || form != RowStream::LocalInfile || is_local_infile_on(session).await?)
}

/// Returns whether `local_infile` is on. A server without this setting counts as on, because only
/// servers that can take streamed rows are asked.
async fn is_local_infile_on(session: &mut AnySession) -> Result<bool, DbError> {
    match session.rows("SELECT @@GLOBAL.local_infile").await {
        Err(error) if error.class != Class::Lost => Ok(true),
        answer => Ok(first_i64(&answer?) == Some(1)),
    }
}

/// Switches `local_infile` on in a server that dbdyno owns. Other servers without it were refused
/// before the run.
pub(crate) async fn allow_local_infile(context: &Context, session: &mut AnySession) -> Result<Option<Work>> {
    if !context.stores_data() || !context.owned {
        return Ok(None);
    }
    if is_local_infile_on(session).await.map_err(Error::during("reading local_infile"))? {
        return Ok(None);
    }
    let began = Instant::now();
    session.query(ALLOW.as_bytes()).await.map_err(Error::during("switching local_infile on"))?;
    Ok(Some(Work::new("allow local_infile", began.elapsed(), [("statement", json!(ALLOW))])))
}
