//! Checks that a plan writes itself: a statement, and what the database must answer.

use std::time::Instant;

use dbdyno_db::{AnySession, Session};
use dbdyno_plan::Mistake;
use dbdyno_record::Check;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::options::first_problem;
use crate::{Context, Error, Result, Work, checks};

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

/// Returns the first check that asks for nothing.
pub(crate) fn problem(checks: &[SqlCheck]) -> Option<Mistake> {
    let is_empty = checks.iter().any(|check| check.sql.trim().is_empty());
    first_problem([(is_empty, "checks", "a check has no sql: write the statement to send")])
}

/// Makes the checks that hold before a step.
pub(crate) async fn before(
    context: &Context,
    checks: &[SqlCheck],
    step: &str,
    session: &mut AnySession,
) -> Result<Option<Work>> {
    let own = |check: &&SqlCheck| check.at != CheckAt::After;
    if !context.stores_data() || !checks.iter().any(|check| own(&check)) {
        return Ok(None);
    }
    let began = Instant::now();
    for check in compared(checks.iter().filter(own), session).await? {
        if let Some(part) = check.parts.iter().find(|part| part.expected != part.actual) {
            let (sql, name) = (check.table.clone(), part.name.clone());
            let (found, expected) = (part.actual, part.expected);
            return Err(Error::Check { step: step.to_owned(), sql, name, found, expected });
        }
    }
    Ok(Some(Work::new("checks before", began.elapsed(), Map::new())))
}

/// Makes the checks that hold after a step.
pub(crate) async fn compare(checks: &[SqlCheck], session: &mut AnySession) -> Result<Vec<Check>> {
    compared(checks.iter().filter(|check| check.at != CheckAt::Before), session).await
}

/// Sends each statement and compares its answer. Figures of a check are numbers, so a text that differs
/// is recorded as 0 where 1 is expected.
async fn compared(list: impl Iterator<Item = &SqlCheck>, session: &mut AnySession) -> Result<Vec<Check>> {
    let mut done = Vec::new();
    for check in list {
        let began = Instant::now();
        let asking = Error::during(format!("checking {}", check.sql));
        let cells = session.rows(&check.sql).await.map_err(asking)?;
        let found = cells.first().and_then(|row| row.first()?.as_deref()).unwrap_or("NULL").trim();
        let part = match (check.expect.trim().parse(), found.parse()) {
            (Ok(expected), Ok(actual)) => checks::part("value", expected, actual),
            _ => {
                let wanted = check.expect.trim();
                checks::part(&format!("`{found}` is `{wanted}`"), 1, i128::from(found == wanted))
            }
        };
        done.push(checks::check(check.sql.as_str(), vec![part], began));
    }
    Ok(done)
}
