//! Tests of sessions on real files: answers, contention, full disks and large ids.

use std::time::{Duration, Instant};

use super::testing::{folder, options};
use super::{SqliteSession, capabilities};
use crate::{Answer, Class, DbError, Param, Session, first_i64};

/// Runs a future to its end on a runtime in its own thread, as a load thread does.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

async fn run(session: &mut SqliteSession, sql: &str) -> Result<Answer, DbError> {
    session.query(sql.as_bytes()).await
}

async fn run_all(session: &mut SqliteSession, statements: &[&str]) {
    for sql in statements {
        run(session, sql).await.unwrap();
    }
}

async fn number(session: &mut SqliteSession, sql: &str) -> i64 {
    first_i64(&session.rows(sql).await.unwrap()).unwrap()
}

#[test]
fn rows_are_fetched_and_changes_counted() {
    let folder = folder();
    block_on(async {
        let mut session = SqliteSession::open(&options(folder.path(), &[])).unwrap();
        let none = run(&mut session, "CREATE TABLE t (id integer primary key, name text)").await.unwrap();
        assert_eq!(none, Answer::default());
        let inserted =
            run(&mut session, "INSERT INTO t (name) VALUES ('one'), ('two'), (NULL)").await.unwrap();
        assert_eq!(inserted, Answer { affected: 3, ..Answer::default() });
        let fetched = run(&mut session, "SELECT * FROM t").await.unwrap();
        assert_eq!(fetched, Answer { rows: 3, bytes: 3 * 8 + 6, ..Answer::default() });
        assert_eq!(run(&mut session, "BEGIN").await.unwrap().affected, 0);
        let deleted = run(&mut session, "DELETE FROM t WHERE id < 3 RETURNING id").await.unwrap();
        assert_eq!(deleted, Answer { rows: 2, affected: 2, bytes: 16, ..Answer::default() });
        assert_eq!(run(&mut session, "COMMIT;").await.unwrap(), Answer::default());
        let cells = session.rows("SELECT id, name, 1.5 FROM t").await.unwrap();
        assert_eq!(cells, [[Some("3".to_owned()), None, Some("1.5".to_owned())]]);
        session.close().await;
    });
}

#[test]
fn a_prepared_insert_of_100_rows_and_ids_beyond_32_bits_work() {
    let folder = folder();
    block_on(async {
        let mut session = SqliteSession::open(&options(folder.path(), &[])).unwrap();
        let key = capabilities().auto_key;
        run(&mut session, &format!("CREATE TABLE t (id {key}, a, b, c, d, e)")).await.unwrap();
        let rows = vec!["(?,?,?,?,?,?)"; 100].join(",");
        let insert = session.prepare(&format!("INSERT INTO t VALUES {rows}")).await.unwrap();
        assert_eq!((insert.params, insert.columns), (600, 0));
        let select = session.prepare("SELECT a, b FROM t WHERE id >= ? LIMIT 10").await.unwrap();
        assert_eq!((select.params, select.columns), (1, 2));

        let first = 5_000_000_000_i64;
        let params = |start: i64| -> Vec<Param> {
            let row = |id| {
                let mut row = vec![Param::Int(id), Param::Text(b"text".to_vec())];
                row.extend((0..4).map(Param::Int));
                row
            };
            (start..start + 100).flat_map(row).collect()
        };
        for start in [first, first + 100] {
            assert_eq!(session.execute(insert, &params(start)).await.unwrap().affected, 100);
        }
        let answer = session.execute(select, &[Param::Int(first + 195)]).await.unwrap();
        assert_eq!(answer, Answer { rows: 5, bytes: 5 * (4 + 8), ..Answer::default() });
        run(&mut session, "INSERT INTO t (a) VALUES ('next')").await.unwrap();
        assert_eq!(number(&mut session, "SELECT max(id) FROM t").await, first + 200);
    });
}

#[test]
fn the_error_for_a_wrongly_used_statement_is_one_sentence() {
    let folder = folder();
    block_on(async {
        let mut session = SqliteSession::open(&options(folder.path(), &[])).unwrap();
        let mut other = SqliteSession::open(&options(folder.path(), &[])).unwrap();
        let select = session.prepare("SELECT ?").await.unwrap();
        let count = session.execute(select, &[]).await.unwrap_err();
        assert!(count.message.ends_with("0 parameters for 1 places in `SELECT ?`"), "{count}");
        let foreign = other.execute(select, &[Param::Int(1)]).await.unwrap_err();
        assert!(foreign.message.ends_with("statement 0 was not prepared by this session"), "{foreign}");
        let two = run(&mut session, "SELECT 1; SELECT 2").await.unwrap_err();
        assert!(two.message.ends_with("more than one statement in one text: `SELECT 1; SELECT 2`"), "{two}");
        assert!(session.prepare("SELECT 1; SELECT 2").await.is_err());
        assert!(run(&mut session, " ").await.unwrap_err().message.ends_with("an empty statement"));
        assert!(session.query(b"SELECT '\xff'").await.unwrap_err().message.contains("not UTF-8"));
        assert_eq!(run(&mut session, "SELECT 1; -- and no more\n").await.unwrap().rows, 1);
    });
}

#[test]
fn refused_and_fatal_statements_have_their_class_and_code() {
    let folder = folder();
    block_on(async {
        let mut session = SqliteSession::open(&options(folder.path(), &[])).unwrap();
        run_all(&mut session, &["CREATE TABLE t (id integer primary key)", "INSERT INTO t VALUES (1)"]).await;
        for (sql, class, code) in [
            ("INSERT INTO t VALUES (1)", Class::Refused, "SQLITE_CONSTRAINT_PRIMARYKEY"),
            ("INSERT INTO t VALUES ('x')", Class::Refused, "SQLITE_MISMATCH"),
            ("SELEC 1", Class::Fatal, "SQLITE_ERROR"),
            ("SELECT * FROM nowhere", Class::Fatal, "SQLITE_ERROR"),
        ] {
            let error = run(&mut session, sql).await.unwrap_err();
            assert_eq!((error.class, error.code.as_str()), (class, code), "{error}");
            assert!(error.message.contains(sql) && error.message.contains("bench.db"), "{error}");
        }
    });
}

#[test]
fn a_file_in_an_absent_folder_and_a_file_that_is_no_database_are_fatal() {
    let folder = folder();
    let absent = SqliteSession::open(&options(&folder.path().join("absent"), &[])).unwrap_err();
    assert_eq!((absent.class, absent.code.as_str()), (Class::Fatal, "SQLITE_CANTOPEN"));
    assert!(absent.message.contains("does the folder exist"), "{absent}");
    let options = options(folder.path(), &[]);
    std::fs::write(&options.path, "a text file, longer than a header of SQLite".repeat(10)).unwrap();
    let text = SqliteSession::open(&options).unwrap_err();
    assert_eq!((text.class, text.code.as_str()), (Class::Fatal, "SQLITE_NOTADB"), "{text}");
}

#[test]
fn a_full_file_is_fatal_and_a_rollback_after_it_succeeds() {
    for mode in ["delete", "wal"] {
        let folder = folder();
        let options = options(folder.path(), &[("journal_mode", mode), ("max_page_count", "20")]);
        block_on(async {
            let mut session = SqliteSession::open(&options).unwrap();
            run_all(&mut session, &["CREATE TABLE t (a)", "BEGIN"]).await;
            let insert = session.prepare("INSERT INTO t VALUES (zeroblob(?))").await.unwrap();
            let mut inserted = 0;
            let error = loop {
                match session.execute(insert, &[Param::Int(10_000)]).await {
                    Ok(answer) => inserted += answer.affected,
                    Err(error) => break error,
                }
                assert!(inserted < 100, "{mode}: 100 rows of 10 kB fit into 20 pages");
            };
            assert_eq!((error.class, error.code.as_str()), (Class::Fatal, "SQLITE_FULL"), "{mode}: {error}");
            let place = format!("no space left on the disk of {}", folder.path().display());
            assert!(error.message.contains(&place), "{mode}: {error}");
            run_all(&mut session, &["ROLLBACK", "rollback;\n"]).await;
            assert_eq!(number(&mut session, "SELECT count(*) FROM t").await, 0, "{mode}");
        });
    }
}

#[test]
fn pragmas_take_effect_in_any_order() {
    let folder = folder();
    let pragmas =
        [("journal_mode", "wal"), ("synchronous", "full"), ("page_size", "8192"), ("cache_size", "-4000")];
    let options = options(folder.path(), &pragmas);
    block_on(async {
        for connection in ["the first connection", "a later one"] {
            let mut session = SqliteSession::open(&options).unwrap();
            run(&mut session, "CREATE TABLE IF NOT EXISTS t (a)").await.unwrap();
            assert_eq!(number(&mut session, "PRAGMA page_size").await, 8192, "{connection}");
            assert_eq!(number(&mut session, "PRAGMA synchronous").await, 2, "{connection}");
            assert_eq!(number(&mut session, "PRAGMA cache_size").await, -4000, "{connection}");
            assert_eq!(session.rows("PRAGMA journal_mode").await.unwrap(), [[Some("wal".to_owned())]]);
        }
    });
    let mut other_size = options;
    other_size.pragmas[2].1 = "4096".to_owned();
    let error = SqliteSession::open(&other_size).unwrap_err();
    assert!(error.message.contains("did not take pragma page_size = 4096: it is 8192"), "{error}");
}

/// SQLite's own handler sleeps up to 100 ms at a time. The tests in `session.rs` cover the pauses
/// of dbdyno's handler.
#[test]
fn waits_for_locks_are_not_left_to_sqlites_own_handler() {
    let folder = folder();
    let mut session = SqliteSession::open(&options(folder.path(), &[])).unwrap();
    // This is the time limit of SQLite's own handler. It is 0 where another handler replaces it.
    assert_eq!(block_on(number(&mut session, "PRAGMA busy_timeout")), 0);
}

#[test]
fn two_writers_that_contend_all_the_time_lose_nothing() {
    for mode in ["delete", "wal"] {
        let folder = folder();
        let mut options = options(folder.path(), &[("journal_mode", mode), ("synchronous", "off")]);
        options.busy_timeout = Duration::from_secs(60);
        let mut session = SqliteSession::open(&options).unwrap();
        block_on(run_all(&mut session, &["CREATE TABLE t (a)"]));
        let writers = [1, 2].map(|writer| {
            let options = options.clone();
            std::thread::spawn(move || {
                let mut session = SqliteSession::open(&options).unwrap();
                block_on(async {
                    let insert = session.prepare("INSERT INTO t VALUES (?)").await.unwrap();
                    for _ in 0..200 {
                        session.execute(insert, &[Param::Int(writer)]).await.unwrap();
                    }
                });
            })
        });
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(block_on(number(&mut session, "SELECT sum(a) FROM t")), 200 * 3, "{mode}");
    }
}

#[test]
fn a_lock_that_is_held_for_too_long_gives_the_class_retry() {
    for mode in ["delete", "wal"] {
        let folder = folder();
        let mut options = options(folder.path(), &[("journal_mode", mode)]);
        options.busy_timeout = Duration::from_millis(60);
        block_on(async {
            let mut owner = SqliteSession::open(&options).unwrap();
            run_all(&mut owner, &["CREATE TABLE t (a)", "BEGIN IMMEDIATE"]).await;
            let mut waiter = SqliteSession::open(&options).unwrap();
            let insert = waiter.prepare("INSERT INTO t VALUES (?)").await.unwrap();
            let start = Instant::now();
            let error = waiter.execute(insert, &[Param::Int(1)]).await.unwrap_err();
            let waited = start.elapsed();
            assert_eq!((error.class, error.code.as_str()), (Class::Retry, "SQLITE_BUSY"), "{mode}: {error}");
            assert!(waited >= Duration::from_millis(57), "{mode}: gave up after {waited:?}");
            // rusqlite's default limit is 5 s.
            assert!(waited < Duration::from_secs(5), "{mode}: gave up only after {waited:?}");
            run(&mut owner, "COMMIT").await.unwrap();
            assert_eq!(waiter.execute(insert, &[Param::Int(1)]).await.unwrap().affected, 1, "{mode}");
        });
    }
}

#[test]
fn a_read_transaction_that_writes_too_late_gives_the_class_retry() {
    let folder = folder();
    let options = options(folder.path(), &[("journal_mode", "wal")]);
    block_on(async {
        let mut first = SqliteSession::open(&options).unwrap();
        run_all(&mut first, &["CREATE TABLE t (a)", "BEGIN", "SELECT count(*) FROM t"]).await;
        let mut second = SqliteSession::open(&options).unwrap();
        run(&mut second, "INSERT INTO t VALUES (2)").await.unwrap();
        let error = run(&mut first, "INSERT INTO t VALUES (1)").await.unwrap_err();
        assert_eq!((error.class, error.code.as_str()), (Class::Retry, "SQLITE_BUSY_SNAPSHOT"), "{error}");
        run_all(&mut first, &["ROLLBACK", "INSERT INTO t VALUES (1)"]).await;
        assert_eq!(number(&mut second, "SELECT count(*) FROM t").await, 2);
    });
}

#[test]
fn a_timer_on_the_same_runtime_gets_its_turn_between_statements() {
    let folder = folder();
    block_on(async {
        let mut session = SqliteSession::open(&options(folder.path(), &[])).unwrap();
        let select = session.prepare("SELECT 1").await.unwrap();
        let load = async {
            loop {
                session.execute(select, &[]).await.unwrap();
            }
        };
        // The load ends only because the timer gets its turn.
        let ended = tokio::time::timeout(Duration::from_millis(50), load).await;
        assert!(ended.is_err());
    });
}
