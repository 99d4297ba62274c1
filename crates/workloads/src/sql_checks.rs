//! Checks that a plan writes itself: a statement, and what the database must answer. And the rows of all tables.

use std::time::Instant;

use dbdyno_drivers::{AnySession, Session, first_i64};
use dbdyno_plan::Mistake;
use dbdyno_record::{Check, CheckPart};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::{Error, Work};

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
    /// Whole numbers are compared as numbers, all else as text.
    pub expect: String,
    /// Before measured steps, after steps, or both.
    #[serde(default)]
    pub at: CheckAt,
}

/// The first check that asks for nothing.
pub(crate) fn problem(checks: &[SqlCheck]) -> Option<Mistake> {
    let is_empty = |check: &&SqlCheck| check.sql.trim().is_empty();
    checks
        .iter()
        .find(is_empty)
        .map(|_| ("checks", "a check has no sql: write the statement to send".to_owned()))
}

/// Makes the checks that hold before a step.
///
/// # Errors
/// The first that fails: the step would run on other data than it is meant for.
pub(crate) async fn before(
    checks: &[SqlCheck],
    step: &str,
    session: &mut AnySession,
) -> Result<Option<Work>, Error> {
    let own = |check: &&SqlCheck| check.at != CheckAt::After;
    let began = Instant::now();
    for check in compared(checks.iter().filter(own), session).await? {
        if let Some(part) = check.parts.iter().find(|part| part.expected != part.actual) {
            let (sql, name) = (check.table.clone(), part.name.clone());
            let (found, expected) = (part.actual, part.expected);
            return Err(Error::Check { step: step.to_owned(), sql, name, found, expected });
        }
    }
    let is_there = checks.iter().any(|check| own(&check));
    Ok(is_there.then(|| Work::new("checks before", began.elapsed(), Map::new())))
}

/// Makes the checks that hold after a step.
pub(crate) async fn compare(checks: &[SqlCheck], session: &mut AnySession) -> Result<Vec<Check>, Error> {
    compared(checks.iter().filter(|check| check.at != CheckAt::Before), session).await
}

/// Sends each statement and compares. A text that differs is 0 where 1 is expected: figures of a check are numbers.
async fn compared(
    checks: impl Iterator<Item = &SqlCheck>,
    session: &mut AnySession,
) -> Result<Vec<Check>, Error> {
    let mut done = Vec::new();
    for check in checks {
        let began = Instant::now();
        let asking = Error::during(format!("checking {}", check.sql));
        let cells = session.rows(&check.sql).await.map_err(asking)?;
        let found = cells.first().and_then(|row| row.first()?.as_deref()).unwrap_or("NULL").trim();
        let part = match (check.expect.trim().parse(), found.parse()) {
            (Ok(expected), Ok(actual)) => CheckPart { name: "value".to_owned(), expected, actual },
            _ => CheckPart {
                name: format!("`{}` is `{}`", found, check.expect.trim()),
                expected: 1,
                actual: i128::from(found == check.expect.trim()),
            },
        };
        let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(0);
        done.push(Check { table: check.sql.clone(), parts: vec![part], duration_us });
    }
    Ok(done)
}

/// Rows of every table of the database.
pub(crate) async fn count_rows(names: &[String], session: &mut AnySession) -> Result<Work, Error> {
    let began = Instant::now();
    let mut details = Map::new();
    for table in names {
        let counting = Error::during(format!("counting the rows of table {table}"));
        let cells = session.rows(&format!("SELECT COUNT(*) FROM {table}")).await.map_err(counting)?;
        details.insert(table.clone(), json!(first_i64(&cells)));
    }
    Ok(Work::new("count rows", began.elapsed(), details))
}
