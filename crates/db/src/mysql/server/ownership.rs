//! Takes ownership of a database on a MariaDB or MySQL server that others run. dbdyno makes the
//! database with its own marker table, and refuses an existing one that has no marker.

use crate::{DatabaseAddress, LoginOptions, Session, first_i64};

use crate::server::Error;
use crate::server::address::{MARKER_TABLE, Ownership, check_not_system, refused};

/// Longest name for a database, in characters.
const MAX_NAME: usize = 64;

/// Databases that belong to the servers themselves. They are refused even with a marker.
const SYSTEM: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];

/// Implements [`crate::Family::take_ownership`].
pub(in crate::mysql) async fn take_ownership(
    options: &LoginOptions,
    database: &str,
) -> Result<Ownership, Error> {
    check(database)?;
    let refused = |source| refused("looking for database", database, source);
    // The database may not exist yet, so the first login names none.
    let address = DatabaseAddress::Mysql(LoginOptions { database: None, ..options.clone() });
    let mut database_server = address.database_server("innodb", false);
    database_server.commit_each_statement().await.map_err(refused)?;
    let mut session = database_server.connect().await.map_err(refused)?;
    let ownership = take_ownership_over(&mut session, database).await;
    session.close().await;
    ownership
}

/// Checks that dbdyno may make and use a database with this name.
fn check(database: &str) -> Result<(), Error> {
    check_name(database)?;
    check_not_system(database, &SYSTEM)
}

/// Takes ownership of the database over `session`, which needs no current database and keeps the
/// one that it has.
async fn take_ownership_over<S: Session>(session: &mut S, database: &str) -> Result<Ownership, Error> {
    check(database)?;
    if count(session, &exists_sql(database), database).await? == 0 {
        let [create, marker, note] = create_sql(database);
        session.query(create.as_bytes()).await.map_err(|source| Error::CannotMakeDatabase {
            what: format!("making database {database}"),
            source,
            statement: marker.clone(),
        })?;
        for sql in [marker, note] {
            session
                .query(sql.as_bytes())
                .await
                .map_err(|source| refused("marking database", database, source))?;
        }
        return Ok(Ownership::Created);
    }
    if count(session, &marked_sql(database), database).await? == 0 {
        let statement = marker_sql(&quoted(database));
        return Err(Error::DatabaseNotOurs { database: database.to_owned(), statement });
    }
    Ok(Ownership::Ours)
}

async fn count<S: Session>(session: &mut S, sql: &str, database: &str) -> Result<i64, Error> {
    let rows = session.rows(sql).await.map_err(|source| refused("looking for database", database, source))?;
    Ok(first_i64(&rows).unwrap_or(0))
}

fn check_name(name: &str) -> Result<(), Error> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.chars().count() > MAX_NAME {
        "it has more than 64 characters"
    } else if name.contains('\0') || name.ends_with(' ') {
        "it holds a zero byte or ends with a space"
    } else {
        return Ok(());
    };
    Err(Error::DatabaseName { name: name.to_owned(), why })
}

fn exists_sql(database: &str) -> String {
    format!("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = {}", text(database))
}

fn marked_sql(database: &str) -> String {
    format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = {} AND table_name = '{MARKER_TABLE}'",
        text(database)
    )
}

fn quoted(database: &str) -> String {
    format!("`{}`", database.replace('`', "``"))
}

fn marker_sql(quoted: &str) -> String {
    format!(
        "CREATE TABLE {quoted}.{MARKER_TABLE} (created DATETIME NOT NULL PRIMARY KEY, tool VARCHAR(40) NOT NULL)"
    )
}

fn create_sql(database: &str) -> [String; 3] {
    let quoted = quoted(database);
    [
        format!("CREATE DATABASE {quoted}"),
        marker_sql(&quoted),
        format!("INSERT INTO {quoted}.{MARKER_TABLE} VALUES (NOW(), 'dbdyno {}')", env!("CARGO_PKG_VERSION")),
    ]
}

/// Returns a text literal that means the same with and without NO_BACKSLASH_ESCAPES. A plain name
/// stays plain, so that every server with this protocol understands it.
fn text(value: &str) -> String {
    if value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        return format!("'{value}'");
    }
    let digits: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(X'{digits}' USING utf8)")
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use crate::{Answer, Cells, Class, DbError, Param, Statement};

    use super::*;

    /// A session that answers each `rows` with the next number and records every statement.
    struct Script {
        counts: Vec<i64>,
        sent: Vec<String>,
    }

    impl Session for Script {
        async fn query(&mut self, sql: &[u8]) -> Result<Answer, DbError> {
            self.sent.push(String::from_utf8(sql.to_vec()).unwrap());
            Ok(Answer::default())
        }

        async fn prepare(&mut self, _: &str) -> Result<Statement, DbError> {
            Err(DbError::new(Class::Fatal, "", "not asked for"))
        }

        async fn execute(&mut self, _: Statement, _: &[Param]) -> Result<Answer, DbError> {
            Err(DbError::new(Class::Fatal, "", "not asked for"))
        }

        async fn rows(&mut self, sql: &str) -> Result<Cells, DbError> {
            self.sent.push(sql.to_owned());
            Ok(vec![vec![Some(self.counts.remove(0).to_string())]])
        }

        async fn close(self) {}
    }

    fn ownership_of(counts: &[i64], database: &str) -> (Result<Ownership, Error>, String) {
        let mut session = Script { counts: counts.to_vec(), sent: Vec::new() };
        let result = {
            let future = pin!(take_ownership_over(&mut session, database));
            match future.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => result,
                Poll::Pending => panic!("the script never waits"),
            }
        };
        (result, session.sent.join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION"))
    }

    #[test]
    fn an_absent_database_is_made_and_marked() {
        let (result, sent) = ownership_of(&[0], "ib");
        assert_eq!(result.unwrap(), Ownership::Created);
        insta::assert_snapshot!(sent, @r"
        SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'ib'
        CREATE DATABASE `ib`
        CREATE TABLE `ib`.dbdyno_mark (created DATETIME NOT NULL PRIMARY KEY, tool VARCHAR(40) NOT NULL)
        INSERT INTO `ib`.dbdyno_mark VALUES (NOW(), 'dbdyno VERSION')
        ");
    }

    #[test]
    fn a_marked_database_is_ours_and_nothing_is_changed() {
        let (result, sent) = ownership_of(&[1, 1], "ib");
        assert_eq!(result.unwrap(), Ownership::Ours);
        assert!(sent.lines().all(|sql| sql.starts_with("SELECT")), "{sent}");
    }

    #[test]
    fn a_foreign_database_is_refused_with_the_statement_to_hand_it_over() {
        let (result, sent) = ownership_of(&[1, 0], "shop`s");
        assert!(sent.lines().all(|sql| sql.starts_with("SELECT")), "{sent}");
        insta::assert_snapshot!(result.unwrap_err(), @"database shop`s exists and is not marked as dbdyno's, so it is left alone; name one that does not exist, or hand it over with: CREATE TABLE `shop``s`.dbdyno_mark (created DATETIME NOT NULL PRIMARY KEY, tool VARCHAR(40) NOT NULL)");
    }

    #[test]
    fn an_impossible_name_is_refused_without_a_query() {
        for name in ["", "ends ", &"x".repeat(65)] {
            let (result, sent) = ownership_of(&[], name);
            assert!(matches!(result, Err(Error::DatabaseName { .. })) && sent.is_empty(), "{name:?}");
        }
    }

    #[test]
    fn a_system_database_is_refused_without_a_query_or_an_offer_to_mark_it() {
        for name in SYSTEM.into_iter().chain(["MySQL"]) {
            let (result, sent) = ownership_of(&[], name);
            assert!(sent.is_empty(), "{sent}");
            let said = result.unwrap_err().to_string();
            let expected = "belongs to the server itself; name one that does not exist, and dbdyno makes it";
            assert_eq!(said, format!("database {name} {expected}"));
        }
    }
}
