//! Brings PostgreSQL to rest after a load: vacuums all tables at the same time, then writes a
//! checkpoint.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::status::major;
use super::{Postgres, PostgresSession};
use crate::product::{Limited, Work, permitted};
use crate::{Class, DbError, Result, Session, first_i64};

/// First version whose VACUUM has an option to clean indexes in any case. From 14 on, VACUUM may
/// otherwise skip them.
const INDEX_CLEANUP_SINCE: u32 = 12;

impl Work<'_, Postgres> {
    /// Vacuums each table on a separate connection, so these parts' durations overlap. The
    /// checkpoint needs rights over the whole server, so it is skipped on one that others run.
    pub(super) async fn vacuum(&mut self, tables: &[String]) -> Result<()> {
        if !self.capabilities.gather_statistics.starts_with("VACUUM") {
            return self.without_vacuum(tables).await;
        }
        self.dead_rows(tables, "before").await?;
        let major = major(&self.session);
        let begun = Instant::now();
        let mut vacuums = JoinSet::new();
        for (number, table) in tables.iter().enumerate() {
            let mut another = self.session.another().await?;
            another.exchange.limit = self.session.exchange.limit;
            vacuums.spawn(vacuum(another, number, vacuum_statement(table, major)));
        }
        let mut took = vec![Duration::ZERO; tables.len()];
        while let Some(ended) = vacuums.join_next().await {
            let number = ended.map_err(|error| DbError::new(Class::Fatal, "", error.to_string()))??;
            took[number] = begun.elapsed();
        }
        for (table, took) in tables.iter().zip(took) {
            self.report.parts.push((format!("vacuum {table}"), took));
        }
        if self.owned {
            let part = Instant::now();
            self.session.query(b"CHECKPOINT").await?;
            self.ended("checkpoint", part);
        } else {
            self.note("external server: no checkpoint was requested");
        }
        // Before 15 the statistics are half a second late.
        self.come_to_rest().await?;
        self.dead_rows(tables, "after").await
    }

    /// Gathers only statistics, if the server supports that, because it has no VACUUM.
    async fn without_vacuum(&mut self, tables: &[String]) -> Result<()> {
        self.note("the server has no VACUUM");
        let words = self.capabilities.gather_statistics;
        for table in tables.iter().filter(|_| !words.is_empty()) {
            let part = Instant::now();
            let sql = format!("{words} \"{}\"", table.replace('"', "\"\""));
            self.session.query(sql.as_bytes()).await?;
            self.ended(&format!("analyze {table}"), part);
        }
        Ok(())
    }

    /// Records the deleted rows that still lie in the tables, as the server estimates them.
    async fn dead_rows(&mut self, tables: &[String], when: &str) -> Result<()> {
        let names: Vec<String> = tables.iter().map(|table| literal(table)).collect();
        let sql = format!(
            "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE relname IN ({})",
            names.join(", ")
        );
        let rows = match names.is_empty() {
            true => None,
            false => permitted(self.session.rows(&sql).await)?.as_ref().and_then(first_i64),
        };
        self.fact(&format!("dead_rows_{when}"), rows);
        Ok(())
    }
}

async fn vacuum(mut session: PostgresSession, number: usize, sql: String) -> Result<usize> {
    Limited(&mut session).query(sql.as_bytes()).await?;
    session.close().await;
    Ok(number)
}

fn vacuum_statement(table: &str, major: u32) -> String {
    let cleanup = if major >= INDEX_CLEANUP_SINCE { ", INDEX_CLEANUP ON" } else { "" };
    format!("VACUUM (VERBOSE, ANALYZE{cleanup}) \"{}\"", table.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_cleaned_where_the_version_can_be_asked_to() {
        assert_eq!(vacuum_statement("pi1", 9), "VACUUM (VERBOSE, ANALYZE) \"pi1\"");
        assert_eq!(vacuum_statement("p\"i", 12), "VACUUM (VERBOSE, ANALYZE, INDEX_CLEANUP ON) \"p\"\"i\"");
    }
}
