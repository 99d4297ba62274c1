//! Compares what was answered and changed with what must be.

use std::time::Instant;

use dbdyno_db::AnySession;
use dbdyno_record::Check;

use crate::Result;
use crate::checks::{check, count, part};
use crate::dbt3::Dbt3Setup;
use crate::dbt3::schema::Dbt3Table;
use crate::dbt3::steps::Dbt3Operation;
use crate::dbt3::tasks::Executed;

/// Checks the executions of a step: rows that refresh functions changed, and answers where some are
/// published.
pub(crate) fn executions(ledger: &[Executed], are_published: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    for executed in ledger.iter().filter(|executed| !executed.execution.cut_off) {
        let name = &executed.execution.name;
        if executed.due_rows > 0 {
            let parts = vec![part("rows changed", executed.due_rows.into(), executed.execution.rows.into())];
            checks.push(Check { table: name.clone(), parts, duration_us: 0 });
        } else if are_published {
            let reported =
                executed.difference.as_ref().map_or_else(String::new, |first| format!(": {first}"));
            let wrong = format!("rows that differ from the published answer{reported}");
            let parts = vec![part(&wrong, 0, executed.differing_rows as i128)];
            checks.push(Check { table: format!("answer of {name}"), parts, duration_us: 0 });
        }
    }
    checks
}

/// Returns the check that a step of several queries has an answer to each. There is none where that is
/// so.
pub(crate) fn refused(step: &str, scripts: &[Vec<Dbt3Operation>], ledger: &[Executed]) -> Option<Check> {
    let due: usize = scripts.iter().map(Vec::len).sum();
    let parts = || vec![part("queries answered", due as i128, ledger.len() as i128)];
    (due > ledger.len()).then(|| Check { table: step.to_owned(), parts: parts(), duration_us: 0 })
}

/// Counts the rows of all tables. Refresh functions insert as many rows as they delete.
pub(crate) async fn row_counts(setup: &Dbt3Setup, session: &mut AnySession) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for table in Dbt3Table::ALL {
        let began = Instant::now();
        let found = count(session, table.name()).await?;
        let parts = vec![part("rows", table.rows(setup.options.scale_factor).into(), found)];
        checks.push(check(table.name(), parts, began));
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_several_queries_needs_an_answer_to_each() {
        let scripts = [vec![Dbt3Operation::Insert { set: 1 }, Dbt3Operation::Delete { set: 1 }]];
        let answered = |count| vec![Executed::default(); count];
        assert!(refused("power", &scripts, &answered(2)).is_none());
        let check = refused("power", &scripts, &answered(1)).unwrap();
        assert!(check.table == "power" && !check.is_ok(), "{check:?}");
        assert!(refused("load", &[], &[]).is_none());
    }
}
