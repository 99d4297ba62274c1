//! The tables before the first test. They are made, or found as others have left them.

use std::time::Instant;

use crate::options::Verify;
use dbdyno_db::{AnySession, KeySource, RowStream, Session};
use serde_json::json;

use crate::engine::{Origin, create_tables, read_back};
use crate::local_infile::allow_local_infile;
use crate::oltp::load::{LoadForm, LoadPlan};
use crate::oltp::verify::{Contents, sums_of};
use crate::oltp::{OltpSetup, sql};
use crate::{Error, Result, Work, checks};

/// Makes all tables, empty, and makes sure that the server takes the rows in the way that the plan asks
/// for.
pub(crate) async fn make(setup: &OltpSetup, session: &mut AnySession) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    if LoadPlan::new(setup).form == LoadForm::Stream(RowStream::LocalInfile) {
        works.extend(allow_local_infile(&setup.context, session).await?);
    }
    let tables =
        (1..=setup.options.tables).map(|number| (OltpSetup::table(number), sql::create_table(setup, number)));
    works.push(create_tables(&setup.context, session, tables).await?);
    Ok(works)
}

/// Makes the sequence go on after the ids that the load gave, where it knows nothing about them.
pub(crate) async fn restart_ids(setup: &OltpSetup, session: &mut AnySession) -> Result<Option<Work>> {
    let has_sequence = setup.context.database_server.capabilities.key_source == KeySource::Sequence;
    if !has_sequence || setup.client_ids() || !LoadPlan::new(setup).with_ids {
        return Ok(None);
    }
    let began = Instant::now();
    for table in setup.tables() {
        let restarting = Error::during(format!("restarting the ids of table {table}"));
        let statement = sql::restart_ids(&table, setup.options.last_id());
        session.query(statement.as_bytes()).await.map_err(restarting)?;
    }
    Ok(Some(work("restart ids", began, setup.options.tables)))
}

/// Tables that dbdyno found and did not make.
pub(crate) struct ExistingTables {
    /// What later checks begin with.
    pub(crate) contents: Contents,
    /// Number of rows in each table. It is empty where they were not counted.
    pub(crate) rows: Vec<u64>,
    pub(crate) work: Work,
}

/// Checks whether existing tables hold what the tests will ask for. With `with_rows` it also finds how
/// many rows each table has.
pub(crate) async fn find(setup: &OltpSetup, session: &mut AnySession, with_rows: bool) -> Result<ExistingTables> {
    let began = Instant::now();
    let mut found = work("find tables", began, setup.options.tables);
    let tables = setup.tables();
    read_back(session, &setup.context.database_server.capabilities, &tables, Origin::Found, &mut found)
        .await?;
    let mut contents = Contents { rows: Some(0), k: Some(0), whole: true };
    let mut rows_of_tables = Vec::new();
    let is_verified = setup.options.verify != Verify::Off;
    for number in 1..=setup.options.tables {
        let [rows, least, greatest, k, _] = if is_verified {
            sums_of(number, session).await?
        } else {
            // In this case no one needs the sums, so a large table is not read.
            let greatest = greatest_id(number, session).await?;
            [greatest, 1, greatest, 0, 0]
        };
        let last_id = setup.options.last_id();
        if setup.context.stores_data() && greatest < i128::from(last_id) {
            let wanted = wanted(setup);
            return Err(Error::TooSmall { table: OltpSetup::table(number), rows, greatest, wanted });
        }
        if with_rows {
            let counted =
                if is_verified { rows } else { checks::count(session, &OltpSetup::table(number)).await? };
            rows_of_tables.push(u64::try_from(counted).unwrap_or(0));
        }
        contents.rows = contents.rows.map(|all| all + rows);
        contents.k = contents.k.map(|all| all + k);
        contents.whole &= rows == greatest - least + 1 && least <= setup.options.first_id.into();
    }
    let work = Work { duration: began.elapsed(), ..found };
    Ok(ExistingTables { contents, rows: rows_of_tables, work })
}

/// Returns what the plan says about the tables, in its own words.
fn wanted(setup: &OltpSetup) -> String {
    let size = format!("table_size = {}", setup.options.table_size);
    match setup.options.first_id {
        1 => size,
        first_id => format!("first_id = {first_id} and {size}"),
    }
}

pub(crate) async fn greatest_id(number: u32, session: &mut AnySession) -> Result<i128> {
    let table = OltpSetup::table(number);
    let looking = format!("looking for the greatest id of table {table}");
    checks::number(session, &sql::greatest_id(&table), looking).await
}

fn work(name: &str, began: Instant, tables: u32) -> Work {
    Work::new(name, began.elapsed(), [("tables", json!(tables))])
}
