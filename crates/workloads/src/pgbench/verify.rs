//! Checks that no money appears or vanishes: it compares the changes of the sums of balances and of
//! the history in the step.

use std::time::Instant;

use dbdyno_db::AnySession;
use dbdyno_loadgen::StepEnd;
use dbdyno_record::Check;

use super::PgbenchSetup;
use super::sources::Scripts;
use crate::Result;
use crate::checks::{check, count, number, part};
use crate::pgbench::sources::TABLES;

/// Sums over the four tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Balances {
    accounts: i128,
    tellers: i128,
    branches: i128,
    history: i128,
    history_rows: i128,
}

impl Balances {
    pub(crate) async fn read(session: &mut AnySession) -> Result<Self> {
        let mut ask = async |sql: &str| number(session, sql, sql).await;
        Ok(Self {
            accounts: ask("select sum(abalance) from pgbench_accounts").await?,
            tellers: ask("select sum(tbalance) from pgbench_tellers").await?,
            branches: ask("select sum(bbalance) from pgbench_branches").await?,
            history: ask("select sum(delta) from pgbench_history").await?,
            history_rows: ask("select count(*) from pgbench_history").await?,
        })
    }

    /// Compares the changes of the step. Accounts and history must change by the same sum, and so
    /// must tellers and branches where every script changes them.
    pub(crate) async fn compare(
        self,
        scripts: &Scripts,
        end: &StepEnd,
        session: &mut AnySession,
    ) -> Result<Check> {
        let began = Instant::now();
        let after = Self::read(session).await?;
        let paid = after.history - self.history;
        let mut parts = vec![part("sum of accounts", paid, after.accounts - self.accounts)];
        let mut builtins =
            scripts.list.iter().filter(|source| source.weight > 0).filter_map(|source| source.builtin);
        if builtins.clone().all(|own| !own.only_accounts) {
            parts.push(part("sum of tellers", paid, after.tellers - self.tellers));
            parts.push(part("sum of branches", paid, after.branches - self.branches));
        }
        // An operation whose connection was lost may have been committed or not.
        let done: u64 = end.tasks.iter().map(|task| task.done).sum();
        let is_known = end.tasks.iter().all(|task| task.unknown_numbers.is_empty());
        if is_known && builtins.clone().all(|own| own.writes) {
            parts.push(part("rows of history", done.into(), after.history_rows - self.history_rows));
        } else if builtins.all(|own| !own.writes) {
            parts.push(part("rows of history", 0, after.history_rows - self.history_rows));
        }
        Ok(check("pgbench_history", parts, began))
    }
}

/// Checks the numbers of rows in the tables that were loaded.
pub(crate) async fn loaded(setup: &PgbenchSetup, session: &mut AnySession) -> Result<Vec<Check>> {
    if !setup.options.init_steps.contains(['g', 'G']) {
        return Ok(Vec::new());
    }
    let mut checks = Vec::new();
    for table in &TABLES {
        let began = Instant::now();
        let expected = i128::from(table.rows) * i128::from(setup.options.scale);
        let parts = vec![part("rows", expected, count(session, table.name).await?)];
        checks.push(check(table.name, parts, began));
    }
    Ok(checks)
}
