//! Puts rows back that a delete step removed, as the load has made them.

use std::time::Instant;

use dbdyno_db::{AnySession, Session, first_i64};
use serde_json::json;

use crate::oltp::OltpSetup;
use crate::oltp::load::write_insert;
use crate::oltp::rows::OltpRowSource;
use crate::{Error, Result, Work};

const ROWS_PER_LOOK: u64 = 20_000;
const ROWS_PER_STATEMENT: usize = 1_000;

/// Inserts the loaded rows that are missing, outside of any clock. The result has how many there were.
/// Other rows stay as they are.
pub(crate) async fn refill(setup: &OltpSetup, session: &mut AnySession) -> Result<(u64, Work)> {
    let began = Instant::now();
    let source = OltpRowSource::of(setup);
    let (mut rows, mut sql) = (0_u64, Vec::new());
    for number in 1..=setup.options.tables {
        let mut first = 1;
        while first <= setup.options.table_size {
            let last = (first + ROWS_PER_LOOK - 1).min(setup.options.table_size);
            let missing = missing(number, source.id(first), source.id(last), session).await?;
            for some in missing.chunks(ROWS_PER_STATEMENT) {
                let rows_of_load = some.iter().map(|id| id - setup.options.first_id + 1);
                write_insert(number, rows_of_load, true, &source, &mut sql);
                let putting = Error::during(format!("putting rows of table {} back", OltpSetup::table(number)));
                session.query(&sql).await.map_err(putting)?;
                rows += some.len() as u64;
            }
            first = last + 1;
        }
    }
    Ok((rows, Work::new("refill", began.elapsed(), [("rows", json!(rows))])))
}

/// Returns the ids from `first` to `last` without a row, ascending.
async fn missing(number: u32, first: u64, last: u64, session: &mut AnySession) -> Result<Vec<u64>> {
    let table = OltpSetup::table(number);
    let looking = || Error::during(format!("looking for missing rows of table {table}"));
    let between = format!("FROM {table} WHERE id BETWEEN {first} AND {last}");
    let count = session.rows(&format!("SELECT COUNT(*) {between}")).await.map_err(looking())?;
    if first_i64(&count).and_then(|count| u64::try_from(count).ok()) == Some(last - first + 1) {
        return Ok(Vec::new());
    }
    let cells = session.rows(&format!("SELECT id {between} ORDER BY id")).await.map_err(looking())?;
    let ids = cells.iter().filter_map(|row| row.first()?.as_deref()?.parse::<u64>().ok());
    let mut missing = Vec::new();
    let mut next = first;
    for id in ids {
        missing.extend(next..id);
        next = id + 1;
    }
    missing.extend(next..=last);
    Ok(missing)
}
