//! What checks of tables have in common: they compare numbers from the database with those that must be
//! there.

use std::time::Instant;

use dbdyno_db::{AnySession, Session, first_i64};
use dbdyno_record::{Check, CheckPart};

use crate::{Error, Result};

pub(crate) fn part(name: &str, expected: i128, actual: i128) -> CheckPart {
    CheckPart { name: name.to_owned(), expected, actual }
}

pub(crate) fn check(table: impl Into<String>, parts: Vec<CheckPart>, began: Instant) -> Check {
    let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(0);
    Check { table: table.into(), parts, duration_us }
}

/// Returns the numbers in the only row of `sql`, with 0 for NULL. `work` is what they are needed for.
pub(crate) async fn numbers<const N: usize>(
    session: &mut AnySession,
    sql: &str,
    work: impl Into<String>,
) -> Result<[i128; N]> {
    let work = work.into();
    let cells = session.rows(sql).await.map_err(Error::during(work.clone()))?;
    let number = |cell: &Option<String>| cell.as_deref().map_or(Ok(0), str::parse).ok();
    let numbers: Option<Vec<i128>> = cells.first().and_then(|row| row.iter().map(number).collect());
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| Error::Answer { work, answer: format!("{cells:?}") })
}

/// Returns the number that `sql` returns, or 0 where there is none.
pub(crate) async fn number(session: &mut AnySession, sql: &str, work: impl Into<String>) -> Result<i128> {
    let cells = session.rows(sql).await.map_err(Error::during(work))?;
    Ok(first_i64(&cells).unwrap_or(0).into())
}

pub(crate) async fn count(session: &mut AnySession, table: &str) -> Result<i128> {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    number(session, &sql, format!("counting the rows of table {table}")).await
}
