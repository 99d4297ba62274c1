//! Puts rows back that a delete step took away, as the load has made them.

use std::time::Instant;

use dbdyno_drivers::{AnySession, Session, first_i64};
use serde_json::{Map, json};

use crate::oltp::Setup;
use crate::oltp::rows::{RowSource, push_c, push_pad};
use crate::{Error, Work};

/// Rows that are looked for by one statement.
const ROWS_PER_LOOK: u64 = 20_000;
/// Rows of one INSERT.
const ROWS_PER_STATEMENT: usize = 1_000;

/// Inserts the loaded rows that are missing, outside of any clock, and says how many. Other rows
/// stay as they are.
pub(crate) async fn refill(setup: &Setup, session: &mut AnySession) -> Result<(u64, Work), Error> {
    let began = Instant::now();
    let source = RowSource::of(setup);
    let mut rows = 0_u64;
    for number in 1..=setup.options.tables {
        let mut first = 1;
        while first <= setup.options.table_size {
            let last = (first + ROWS_PER_LOOK - 1).min(setup.options.table_size);
            let missing = missing(number, source.id(first), source.id(last), session).await?;
            for some in missing.chunks(ROWS_PER_STATEMENT) {
                let sql = insert(setup, &source, number, some);
                let putting = Error::during(format!("putting rows of table {} back", Setup::table(number)));
                session.query(&sql).await.map_err(putting)?;
                rows += some.len() as u64;
            }
            first = last + 1;
        }
    }
    let details = Map::from_iter([("rows".to_owned(), json!(rows))]);
    Ok((rows, Work::new("refill", began.elapsed(), details)))
}

/// Ids from `first` to `last` without a row, ascending.
async fn missing(number: u32, first: u64, last: u64, session: &mut AnySession) -> Result<Vec<u64>, Error> {
    let table = Setup::table(number);
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

fn insert(setup: &Setup, source: &RowSource, number: u32, ids: &[u64]) -> Vec<u8> {
    let mut sql = format!("INSERT INTO {}(id, k, c, pad) VALUES", Setup::table(number)).into_bytes();
    for (index, &id) in ids.iter().enumerate() {
        let (k, mut draws) = source.row(number, id - setup.options.first_id + 1);
        sql.extend_from_slice(if index == 0 { b"" } else { b"," });
        sql.extend_from_slice(format!("({id}, {k}, '").as_bytes());
        push_c(&mut draws, &mut sql);
        sql.extend_from_slice(b"', '");
        push_pad(&mut draws, &mut sql);
        sql.extend_from_slice(b"')");
    }
    sql
}
