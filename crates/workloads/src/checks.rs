//! Checks of tables compare numbers that the database returns with the expected ones. A plan can
//! add checks of its own, each with a statement and the value that it must return.

use std::time::Instant;

use dbdyno_db::{AnySession, Session, first_i64};
use dbdyno_plan::Mistake;
use dbdyno_record::{Check, CheckPart};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::options::first_problem;
use crate::{Context, Error, Result, Work};

pub(crate) fn part(name: &str, expected: i128, actual: i128) -> CheckPart {
    CheckPart { name: name.to_owned(), expected, actual }
}

pub(crate) fn check(table: impl Into<String>, parts: Vec<CheckPart>, began: Instant) -> Check {
    let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(0);
    Check { table: table.into(), parts, duration_us }
}

/// Returns the numbers in the only row that `sql` returns, with 0 for NULL. An error says that it
/// occurred during `work`.
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

/// When a check is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckAt {
    Before,
    After,
    #[default]
    Both,
}

/// A statement that returns one value, and the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlCheck {
    pub sql: String,
    /// Whole numbers are compared as numbers, anything else as text.
    pub expect: String,
    /// Before measured steps, after steps, or both.
    #[serde(default)]
    pub at: CheckAt,
}

/// Returns a mistake if a check has no statement.
pub(crate) fn problem(checks: &[SqlCheck]) -> Option<Mistake> {
    let is_empty = checks.iter().any(|check| check.sql.trim().is_empty());
    first_problem([(is_empty, "checks", "a check has no sql: write the statement to send")])
}

/// Makes the checks that must hold before a step. The first one that fails is an error, because the
/// step would measure other data.
pub(crate) async fn before(
    context: &Context,
    checks: &[SqlCheck],
    step: &str,
    session: &mut AnySession,
) -> Result<Option<Work>> {
    let is_before = |check: &&SqlCheck| check.at != CheckAt::After;
    if !context.stores_data() || !checks.iter().any(|check| is_before(&check)) {
        return Ok(None);
    }
    let began = Instant::now();
    for check in compared(checks.iter().filter(is_before), session).await? {
        if let Some(part) = check.parts.iter().find(|part| part.expected != part.actual) {
            let (sql, name) = (check.table.clone(), part.name.clone());
            let (found, expected) = (part.actual, part.expected);
            return Err(Error::Check { step: step.to_owned(), sql, name, found, expected });
        }
    }
    Ok(Some(Work::new("checks before", began.elapsed(), Map::new())))
}

/// Makes the checks that must hold after a step.
pub(crate) async fn compare(checks: &[SqlCheck], session: &mut AnySession) -> Result<Vec<Check>> {
    compared(checks.iter().filter(|check| check.at != CheckAt::Before), session).await
}

/// Sends each statement and compares its answer. A check records numbers, so a comparison of texts
/// is recorded as 1 where they are equal and 0 where they differ, and 1 is expected.
async fn compared(checks: impl Iterator<Item = &SqlCheck>, session: &mut AnySession) -> Result<Vec<Check>> {
    let mut done = Vec::new();
    for sql_check in checks {
        let began = Instant::now();
        let failed = Error::during(format!("checking {}", sql_check.sql));
        let cells = session.rows(&sql_check.sql).await.map_err(failed)?;
        let found = cells.first().and_then(|row| row.first()?.as_deref()).unwrap_or("NULL").trim();
        let part = match (sql_check.expect.trim().parse(), found.parse()) {
            (Ok(expected), Ok(actual)) => part("value", expected, actual),
            _ => {
                let wanted = sql_check.expect.trim();
                part(&format!("`{found}` is `{wanted}`"), 1, i128::from(found == wanted))
            }
        };
        done.push(check(sql_check.sql.as_str(), vec![part], began));
    }
    Ok(done)
}
