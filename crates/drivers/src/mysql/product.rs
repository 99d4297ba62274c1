//! MySQL, MariaDB and Percona Server as one [`Product`].

use super::status::{self, counters};
use super::{Mysql, MysqlSession, Options, capabilities, charset, debt, keys, locks, upkeep};
use crate::exchange::Exchange;
use crate::product::{
    Connection, Debt, Description, LimitedSession, Locks, Product, Texts, Work, name_value_pairs,
};
use crate::roster::Ticket;
use crate::{Answer, Bounds, Capabilities, Encryption, Result, Session};

impl Connection for MysqlSession {
    fn exchange(&self) -> Option<&Exchange> {
        Some(&self.exchange)
    }

    fn exchange_mut(&mut self) -> Option<&mut Exchange> {
        Some(&mut self.exchange)
    }

    fn encryption(&self) -> Option<Encryption> {
        self.encryption()
    }

    fn peer_pid(&self) -> Option<u32> {
        self.peer_pid()
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction()
    }

    async fn load_rows(&mut self, sql: &str, rows: &[u8]) -> Result<Answer> {
        self.load_rows(sql, rows).await
    }
}

impl Product for Mysql {
    const NAME: &'static str = "mysql";
    const PROTOCOL: &'static str = "MySQL";
    const ABOUT: &'static str =
        "MySQL 5.5 to 9.7, MariaDB 10.1 to 11.8, Percona Server, over unix socket or TCP";
    const TABLES: &'static str = "SELECT table_name FROM information_schema.tables \
                                  WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name";
    // MySQL 9 draws a tree by default; before 5.6 that cannot be changed.
    const EXPLAIN: &'static [(&'static str, &'static str)] =
        &[("EXPLAIN FORMAT=TRADITIONAL", Self::NAME), ("EXPLAIN", Self::NAME)];
    const ANALYZE: &'static [(&'static str, &'static str)] =
        &[("ANALYZE FORMAT=JSON", "executed-json"), ("EXPLAIN ANALYZE", "executed-tree")];
    const STAY_WHILE_IDLE: Option<&'static str> = Some(locks::STAY_WHILE_IDLE);
    const LIFT_OWN_LIMITS: &'static [&'static str] =
        &["SET SESSION max_execution_time = 0", "SET SESSION max_statement_time = 0"];
    const OWN_NUMBER: Option<&'static str> = Some("CONNECTION_ID()");
    const COMMITS_EACH: Option<&'static str> = Some("SELECT @@SESSION.autocommit");
    const ROOM: Option<(&'static str, &'static str)> = Some(("SELECT @@max_connections", "max_connections"));
    const PREPARED_ROOM: Option<(&'static str, &'static str)> =
        Some(("SELECT @@max_prepared_stmt_count", "max_prepared_stmt_count"));
    const WRITTEN_WHEN_ASKED: &'static [&'static str] = &["dirty_bytes", "checkpoint_age_bytes"];

    type Options = Options;
    type Session = MysqlSession;

    fn capabilities(engine: &str, owned: bool) -> Capabilities {
        capabilities(engine, owned)
    }

    async fn connect(options: &Options) -> Result<MysqlSession> {
        MysqlSession::connect(options).await
    }

    fn login(options: &Options) -> Option<&Options> {
        Some(options)
    }

    fn login_mut(options: &mut Options) -> Option<&mut Options> {
        Some(options)
    }

    async fn begin_to_insert(session: &mut MysqlSession) -> Result<()> {
        keys::one_by_one(session).await
    }

    async fn begin_to_load(session: &mut MysqlSession, table: &str) -> Result<()> {
        charset::as_the_table(session, table).await
    }

    async fn describe(session: &mut LimitedSession<'_, Self>) -> Result<Description> {
        status::describe(session).await
    }

    async fn counters(session: &mut LimitedSession<'_, Self>) -> Result<Texts> {
        counters(session).await
    }

    async fn debt(session: &mut LimitedSession<'_, Self>, capabilities: &Capabilities) -> Result<Debt> {
        debt::read(session, capabilities).await
    }

    fn quiet_at(level: &str, debt: &Debt, bounds: &Bounds) -> Option<i64> {
        debt::quiet_at(level, debt, bounds)
    }

    async fn upkeep(work: &mut Work<'_, Self>, tables: &[String]) -> Result<()> {
        upkeep::run(work, tables).await
    }

    async fn drop_binlog(session: &mut LimitedSession<'_, Self>) -> Result<bool> {
        upkeep::drop_binlog(session).await
    }

    async fn table_engines(session: &mut LimitedSession<'_, Self>, tables: &[String]) -> Result<Texts> {
        let names: Vec<String> = tables.iter().map(|table| format!("'{table}'")).collect();
        let sql = format!(
            "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({})",
            names.join(", ")
        );
        let mut engines = name_value_pairs(session, &sql).await?;
        engines.retain(|table, _| tables.contains(table));
        Ok(engines)
    }

    fn is_engine(asked: &str, found: &str) -> bool {
        // Words that stand for another one in CREATE TABLE.
        let word = match asked.to_ascii_lowercase().as_str() {
            "heap" => "memory",
            "innobase" => "innodb",
            "merge" => "mrg_myisam",
            "ndb" => "ndbcluster",
            _ => asked,
        };
        word.eq_ignore_ascii_case(found)
    }

    fn locks(database: &str) -> Option<Locks> {
        Some(locks::of(database))
    }

    async fn kill(session: &mut LimitedSession<'_, Self>, ticket: Ticket) {
        // It may have ended meanwhile.
        let _ = session.query(format!("KILL QUERY {}", ticket.id).as_bytes()).await;
    }

    async fn at_work(session: &mut LimitedSession<'_, Self>, login: &Options) -> Result<Vec<String>> {
        // Unlike a query of the same list it needs no temporary table.
        let rows = session.rows("SHOW PROCESSLIST").await?;
        let ours = rows.into_iter().filter(|row| is_ours(row, login));
        Ok(ours.filter_map(|row| row.into_iter().next()?).collect())
    }
}

/// Whether a row of the server's list is of a connection with this login that does something:
/// number, user, host, database, command.
fn is_ours(row: &[Option<String>], login: &Options) -> bool {
    let column = |number: usize| row.get(number).and_then(Option::as_deref).unwrap_or_default();
    let database = login.database.as_deref().unwrap_or_default();
    column(1) == login.user && column(3).eq_ignore_ascii_case(database) && column(4) != "Sleep"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_the_same_under_each_of_their_names() {
        for (asked, found) in [("rocksdb", "ROCKSDB"), ("innodb", "InnoDB"), ("heap", "MEMORY")] {
            assert!(Mysql::is_engine(asked, found), "{asked}");
        }
        assert!(!Mysql::is_engine("rocksdb", "InnoDB"));
    }
}
