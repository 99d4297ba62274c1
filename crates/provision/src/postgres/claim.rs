//! A database on a PostgreSQL server that others run: made with dbdyno's mark, or refused.

use dbdyno_drivers::postgres::{Options, PostgresSession};
use dbdyno_drivers::{Class, Session, first_i64};

use super::MAINTENANCE;
use crate::Error;
use crate::claim::{Claim, MARK_TABLE, check_not_system, refused};

/// Longest name of a database, in bytes; the server would cut a longer one and so mean another
/// database.
const MAX_NAME_BYTES: usize = 63;

/// Databases that belong to the server, or to everyone who connects without naming one.
const SYSTEM: [&str; 3] = [MAINTENANCE, "template0", "template1"];

/// SQLSTATE for a database that does not exist.
const NO_DATABASE: &str = "3D000";

pub(super) async fn claim(options: &Options, database: &str) -> Result<Claim, Error> {
    check_name(database)?;
    check_not_system(database, &SYSTEM)?;
    let inside = options.clone().with_database(database);
    match PostgresSession::connect(&inside).await {
        Ok(mut session) => {
            let claimed = there(&mut session, database).await;
            session.close().await;
            claimed
        }
        Err(error) if error.class == Class::Fatal && error.code == NO_DATABASE => {
            let outside = options.clone().with_database(MAINTENANCE);
            run(&outside, &[create_sql(database)], database)
                .await
                .map_err(|error| with_way_on(error, database))?;
            run(&inside, &[mark_sql(), note_sql()], database).await?;
            Ok(Claim::Created)
        }
        Err(source) => Err(refused("looking for database", database, source)),
    }
}

/// Claims the database that the session is in. That is another one than was named where a server has
/// only one, which no one can add another to: what is not yet used may be dbdyno's.
async fn there(session: &mut PostgresSession, database: &str) -> Result<Claim, Error> {
    let looking = |source| refused("looking into database", database, source);
    let marked = session.rows(&marked_sql()).await.map_err(looking)?;
    if first_i64(&marked).unwrap_or(0) > 0 {
        return Ok(Claim::Ours);
    }
    let found = session.rows("SELECT current_database()").await.map_err(looking)?;
    let found = found.into_iter().flatten().flatten().next().unwrap_or_default();
    if found != database && first_i64(&session.rows(TABLES).await.map_err(looking)?) == Some(0) {
        for sql in [mark_sql(), note_sql()] {
            session
                .query(sql.as_bytes())
                .await
                .map_err(|source| refused("marking database", &found, source))?;
        }
        return Ok(Claim::Only);
    }
    let found = if found.is_empty() { database.to_owned() } else { found };
    let statement = format!("(connected to it) {}", mark_sql());
    Err(Error::DatabaseNotOurs { database: found, statement })
}

/// A server may have no such statement, or not give the right.
fn with_way_on(error: Error, database: &str) -> Error {
    match error {
        Error::Database { what, source } => Error::CannotMakeDatabase {
            what,
            source,
            statement: format!("(connected to {database}) {}", mark_sql()),
        },
        other => other,
    }
}

async fn run(options: &Options, statements: &[String], database: &str) -> Result<(), Error> {
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

/// Counts the tables of users, in all schemas.
const TABLES: &str =
    "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";

fn marked_sql() -> String {
    format!(
        "SELECT count(*) FROM pg_tables WHERE tablename = '{MARK_TABLE}' AND schemaname = ANY (current_schemas(false))"
    )
}

fn create_sql(database: &str) -> String {
    format!("CREATE DATABASE \"{}\"", database.replace('"', "\"\""))
}

fn mark_sql() -> String {
    format!("CREATE TABLE {MARK_TABLE} (created timestamp NOT NULL PRIMARY KEY, tool varchar(40) NOT NULL)")
}

fn note_sql() -> String {
    format!("INSERT INTO {MARK_TABLE} VALUES (now(), 'dbdyno {}')", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_those_that_no_database_can_have_refused() {
        assert_eq!(create_sql("a\"b"), "CREATE DATABASE \"a\"\"b\"");
        for name in ["", "a\0", &"ü".repeat(32)] {
            assert!(matches!(check_name(name), Err(Error::DatabaseName { .. })), "{name:?}");
        }
        assert!(check_name(&"x".repeat(63)).is_ok());
    }
}
