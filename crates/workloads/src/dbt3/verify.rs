//! Compares what was answered and changed with what must be.

use std::time::Instant;

use dbdyno_drivers::{AnySession, Session, first_i64};
use dbdyno_record::{Check, CheckPart};

use crate::Error;
use crate::dbt3::Setup;
use crate::dbt3::lanes::Executed;
use crate::dbt3::schema::Table;

/// Checks of the executions of a step: rows that refresh functions changed, and answers where some are published.
pub(crate) fn executions(ledger: &[Executed], are_published: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    for executed in ledger.iter().filter(|executed| !executed.execution.cut_off) {
        let name = &executed.execution.name;
        if executed.due_rows > 0 {
            let parts = vec![part("rows changed", executed.due_rows, executed.execution.rows)];
            checks.push(Check { table: name.clone(), parts, duration_us: 0 });
        } else if are_published {
            let reported =
                executed.difference.as_ref().map_or_else(String::new, |first| format!(": {first}"));
            let wrong = format!("rows that differ from the published answer{reported}");
            let parts = vec![part(&wrong, 0, executed.differing_rows as u64)];
            checks.push(Check { table: format!("answer of {name}"), parts, duration_us: 0 });
        }
    }
    checks
}

/// Counts the rows of all tables. Refresh functions put in as many as they take out.
pub(crate) async fn row_counts(setup: &Setup, session: &mut AnySession) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    for table in Table::ALL {
        let began = Instant::now();
        let name = table.name();
        let counting = Error::during(format!("counting the rows of table {name}"));
        let cells = session.rows(&format!("SELECT COUNT(*) FROM {name}")).await.map_err(counting)?;
        let found = first_i64(&cells).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        let parts = vec![part("rows", table.rows(setup.options.scale_factor), found)];
        let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(0);
        checks.push(Check { table: name.to_owned(), parts, duration_us });
    }
    Ok(checks)
}

fn part(name: &str, expected: u64, actual: u64) -> CheckPart {
    CheckPart { name: name.to_owned(), expected: expected.into(), actual: actual.into() }
}
