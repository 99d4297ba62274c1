//! Takes ownership of a database on a PostgreSQL server that others run. dbdyno makes the database
//! with its own marker table, and refuses an existing one that has no marker.

use crate::postgres::{LoginOptions, PostgresSession};
use crate::{Class, Session, first_i64};

use super::MAINTENANCE;
use crate::server::Error;
use crate::server::address::{MARKER_TABLE, Ownership, check_not_system, refused};

/// Longest name for a database, in bytes. The server would cut a longer name off, and so use
/// another database.
const MAX_NAME_BYTES: usize = 63;

/// Databases that belong to the server, or to everyone who connects without naming one.
const SYSTEM: [&str; 3] = [MAINTENANCE, "template0", "template1"];

/// SQLSTATE for a database that does not exist.
const NO_DATABASE: &str = "3D000";

/// Implements [`crate::Family::take_ownership`].
pub(in crate::postgres) async fn take_ownership(
    options: &LoginOptions,
    database: &str,
) -> Result<Ownership, Error> {
    check_name(database)?;
    check_not_system(database, &SYSTEM)?;
    let inside = options.clone().with_database(database);
    match PostgresSession::connect(&inside).await {
        Ok(mut session) => {
            let found = marked(&mut session, database).await;
            session.close().await;
            match found? {
                (true, _) => Ok(Ownership::Ours),
                (false, actual) if actual != database && is_only(options, &actual).await => {
                    mark_only_database(&inside, &actual).await
                }
                (false, _) => {
                    let (database, statement) = (database.to_owned(), hand_over_sql());
                    Err(Error::DatabaseNotOurs { database, statement })
                }
            }
        }
        Err(error) if error.class == Class::Fatal && error.code == NO_DATABASE => {
            let outside = options.clone().with_database(MAINTENANCE);
            run(&outside, &[create_sql(database)], database).await.map_err(with_hint)?;
            run(&inside, &[marker_table_sql(), marker_row_sql()], database).await?;
            Ok(Ownership::Created)
        }
        Err(source) => Err(refused("looking for database", database, source)),
    }
}

/// Returns whether the session's database has the marker, and the database's name. Servers and
/// poolers may lead to another database than the one that the login names.
async fn marked(session: &mut PostgresSession, database: &str) -> Result<(bool, String), Error> {
    let looking = |source| refused("looking into database", database, source);
    let marked = session.rows(&marked_sql()).await.map_err(looking)?;
    let found = current_database(session).await.unwrap_or_else(|| database.to_owned());
    Ok((first_i64(&marked).unwrap_or(0) > 0, found))
}

async fn current_database(session: &mut PostgresSession) -> Option<String> {
    session.rows("SELECT current_database()").await.ok()?.into_iter().flatten().flatten().next()
}

/// A database name that should not exist on any server.
const ABSENT: &str = "dbdyno_no_such_database";

/// Whether every database name leads to `found`. The server then has only this database, and no
/// other can be made.
async fn is_only(options: &LoginOptions, found: &str) -> bool {
    let Ok(mut session) = PostgresSession::connect(&options.clone().with_database(ABSENT)).await else {
        return false;
    };
    let other = current_database(&mut session).await;
    session.close().await;
    other.as_deref() == Some(found)
}

/// Marks a server's only database if it is empty.
async fn mark_only_database(inside: &LoginOptions, found: &str) -> Result<Ownership, Error> {
    let refused = |source| refused("looking into database", found, source);
    let mut session = PostgresSession::connect(inside).await.map_err(refused)?;
    let used = session.rows(COUNT_RELATIONS).await;
    session.close().await;
    if first_i64(&used.map_err(refused)?) != Some(0) {
        return Err(Error::OnlyDatabaseNotOurs { database: found.to_owned(), statement: hand_over_sql() });
    }
    run(inside, &[marker_table_sql(), marker_row_sql()], found).await?;
    Ok(Ownership::Only)
}

/// Returns the statement with which the user hands a database over to dbdyno.
fn hand_over_sql() -> String {
    format!("(connected to it) {}", marker_table_sql())
}

/// Adds to an error how the user can hand over a database instead. A server may lack CREATE
/// DATABASE, or deny permission for it.
fn with_hint(error: Error) -> Error {
    match error {
        Error::Database { what, source } => {
            Error::CannotMakeDatabase { what, source, statement: hand_over_sql() }
        }
        other => other,
    }
}

async fn run(options: &LoginOptions, statements: &[String], database: &str) -> Result<(), Error> {
    let refused = |source| refused("making database", database, source);
    let mut session = PostgresSession::connect(options).await.map_err(refused)?;
    for sql in statements {
        session.query(sql.as_bytes()).await.map_err(refused)?;
    }
    session.close().await;
    Ok(())
}

fn check_name(name: &str) -> Result<(), Error> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "it has more than 63 bytes"
    } else if name.contains('\0') {
        "it holds a zero byte"
    } else {
        return Ok(());
    };
    Err(Error::DatabaseName { name: name.to_owned(), why })
}

/// Query that counts tables, views and all other relations that users have made.
const COUNT_RELATIONS: &str = "SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
                    WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'";

fn marked_sql() -> String {
    format!(
        "SELECT count(*) FROM pg_tables WHERE tablename = '{MARKER_TABLE}' AND schemaname = ANY (current_schemas(false))"
    )
}

fn create_sql(database: &str) -> String {
    format!("CREATE DATABASE \"{}\"", database.replace('"', "\"\""))
}

fn marker_table_sql() -> String {
    format!("CREATE TABLE {MARKER_TABLE} (created timestamp NOT NULL PRIMARY KEY, tool varchar(40) NOT NULL)")
}

fn marker_row_sql() -> String {
    format!("INSERT INTO {MARKER_TABLE} VALUES (now(), 'dbdyno {}')", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_impossible_names_are_refused() {
        assert_eq!(create_sql("a\"b"), "CREATE DATABASE \"a\"\"b\"");
        for name in ["", "a\0", &"ü".repeat(32)] {
            assert!(matches!(check_name(name), Err(Error::DatabaseName { .. })), "{name:?}");
        }
        assert!(check_name(&"x".repeat(63)).is_ok());
    }
}
