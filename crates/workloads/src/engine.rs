//! Which storage engine the workload's tables really have: some servers take another one than was
//! asked for, without an error.

use dbdyno_drivers::{AnySession, Capabilities, is_engine, table_engines};
use serde_json::{Value, json};

use crate::{Error, Work};

/// Where tables came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Made,
    Found,
}

/// Reads the engine of `tables` back and enters it into `work`.
pub(crate) async fn read_back(
    session: &mut AnySession,
    capabilities: &Capabilities,
    tables: &[String],
    origin: Origin,
    work: &mut Work,
) -> Result<(), Error> {
    let Some(asked) = &capabilities.engine else { return Ok(()) };
    let looking = Error::during("asking for the engine of the tables");
    let engines = table_engines(session, tables).await.map_err(looking)?;
    if let Some((table, found)) = engines.iter().find(|(_, found)| !is_engine(asked, found)) {
        let (table, asked, found) = (table.clone(), asked.clone(), found.clone());
        return Err(match origin {
            Origin::Made => Error::Substituted { table, asked, found },
            Origin::Found => Error::OtherEngine { table, asked, found: found.to_lowercase() },
        });
    }
    let engine = engines.into_values().next().map_or(Value::Null, |engine| json!(engine));
    if !engine.is_null() {
        work.details.insert("engine".to_owned(), engine);
    }
    Ok(())
}
