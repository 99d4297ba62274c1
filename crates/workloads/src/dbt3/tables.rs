//! Makes the empty tables.

use std::time::Instant;

use dbdyno_db::{AnySession, RowStream, Session};
use serde_json::json;

use crate::dbt3::parameters::ORDERS;
use crate::dbt3::schema::{Dbt3Table, create};
use crate::dbt3::{Dbt3Setup, comments};
use crate::engine::create_tables;
use crate::local_infile::allow_local_infile;
use crate::{Error, Result, Work};

/// Makes all tables, and makes sure that the server takes rows.
pub(crate) async fn make(setup: &Dbt3Setup, session: &mut AnySession) -> Result<Vec<Work>> {
    let capabilities = &setup.context.database_server.capabilities;
    let mut works = Vec::new();
    if capabilities.row_stream == RowStream::LocalInfile {
        works.extend(allow_local_infile(&setup.context, session).await?);
    }
    // Makes the text that comments are cut from. It is the same for every table and scale factor, and
    // no part of the load.
    let began = Instant::now();
    let bytes = comments::make_text();
    works.push(Work::new("make texts", began.elapsed(), [("bytes", json!(bytes))]));
    let began = Instant::now();
    // These views may be left at an address from an earlier cell or a run that was killed.
    for stream in 0..ORDERS.len() {
        let dropping = Error::during("dropping the views of q15");
        session.query(format!("DROP VIEW IF EXISTS revenue{stream}").as_bytes()).await.map_err(dropping)?;
    }
    for table in Dbt3Table::ALL.into_iter().rev() {
        let dropping = Error::during(format!("dropping table {}", table.name()));
        let drop = format!("DROP TABLE IF EXISTS {}", table.name());
        session.query(drop.as_bytes()).await.map_err(dropping)?;
    }
    let dropped = began.elapsed();
    let of_plan = (setup.options.scale_factor, setup.options.create_table_options.as_str());
    let tables = Dbt3Table::ALL.into_iter();
    let tables = tables.map(|table| (table.name().to_owned(), vec![create(table, of_plan, capabilities)]));
    let mut created = create_tables(&setup.context, session, tables).await?;
    created.duration += dropped;
    if setup.options.foreign_keys && !capabilities.foreign_keys {
        let text =
            "foreign_keys = true, but this engine takes none after the load: the tables have no foreign keys";
        created.warning = Some(text.to_owned());
    }
    works.push(created);
    Ok(works)
}
