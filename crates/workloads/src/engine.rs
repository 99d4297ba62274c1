//! Finds which storage engine the workload's tables really have, because some servers use another one
//! than was asked for, without an error.

use std::time::Instant;

use dbdyno_db::{AnySession, Capabilities, Session, is_engine, table_engines};
use serde_json::json;

use crate::{Context, Error, Result, Work};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Made,
    Found,
}

/// Makes tables with the statements of each.
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

/// Reads the engine of `tables` back and enters it into `work`.
pub(crate) async fn read_back(
    session: &mut AnySession,
    capabilities: &Capabilities,
    tables: &[String],
    origin: Origin,
    work: &mut Work,
) -> Result<()> {
    let Some(asked) = &capabilities.engine else { return Ok(()) };
    let looking = Error::during("asking for the engine of the tables");
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
