//! Tests programmed faults, and the error classes that the drivers give them.

use std::time::{Duration, Instant};

use dbdyno_db::{Class, Param, Session};
use dbdyno_known_answer::{Protocol, Script};

use crate::support::{BOTH, Running, expect_class};

/// Large enough that each half of an answer takes more than one network packet.
const SIZE: (u32, u16, u32) = (100, 1, 1000);

fn script() -> Script {
    Script { rows: SIZE.0, columns: SIZE.1, bytes: SIZE.2, ..Script::default() }
}

#[tokio::test(flavor = "current_thread")]
async fn errors_have_their_class_and_the_connection_goes_on() {
    for (protocol, code, class) in [
        (Protocol::Mysql, "1213", Class::Retry),
        (Protocol::Mysql, "1062", Class::Refused),
        (Protocol::Mysql, "1146", Class::Fatal),
        (Protocol::Postgres, "40P01", Class::Retry),
        (Protocol::Postgres, "23505", Class::Refused),
        (Protocol::Postgres, "42P01", Class::Fatal),
    ] {
        let error = format!("{code} every 3").parse().unwrap();
        let server = Running::start(protocol, Script { error: Some(error), ..script() });
        let mut session = server.connect().await;
        let statement = session.prepare("SELECT c FROM t WHERE id=?").await.unwrap();
        for round in 0..20 {
            session.query(b"SELECT 1").await.unwrap();
            session.execute(statement, &[Param::Int(1)]).await.unwrap();
            if round % 2 == 0 {
                expect_class(session.query(b"SELECT 1").await, class, code);
            } else {
                expect_class(session.execute(statement, &[Param::Int(1)]).await, class, code);
            }
        }
        assert_eq!(server.stop().faults.errors, 20);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_failed_transaction_of_postgres_refuses_all_but_its_end() {
    let error = "40P01 every 2".parse().unwrap();
    let server = Running::start(Protocol::Postgres, Script { error: Some(error), ..Script::default() });
    let mut session = server.connect().await;
    session.query(b"BEGIN").await.unwrap();
    expect_class(session.query(b"SELECT 1").await, Class::Retry, "40P01");
    expect_class(session.query(b"SELECT 1").await, Class::Refused, "25P02");
    expect_class(session.query(b"SELECT 1").await, Class::Retry, "40P01");
    session.query(b"ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn a_disconnect_is_a_lost_connection() {
    for protocol in BOTH {
        let server = Running::start(protocol, Script { disconnect_every: Some(3), ..script() });
        let mut session = server.connect().await;
        session.query(b"SELECT 1").await.unwrap();
        session.query(b"SELECT 1").await.unwrap();
        expect_class(session.query(b"SELECT 1").await, Class::Lost, "io");
        let stats = server.settled(|stats| stats.connections.closed == 1).await;
        assert_eq!((stats.faults.disconnects, stats.actual.count()), (1, 2));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn half_an_answer_is_a_lost_connection() {
    for protocol in BOTH {
        for sizes in [SIZE, (1, 1, 1)] {
            let script = Script { rows: sizes.0, columns: sizes.1, bytes: sizes.2, ..Script::default() };
            let server =
                Running::start(protocol, Script { half: Some("every 2".parse().unwrap()), ..script });
            let mut session = server.connect().await;
            let statement = session.prepare("SELECT 1").await.unwrap();
            session.execute(statement, &[]).await.unwrap();
            expect_class(session.execute(statement, &[]).await, Class::Lost, "io");
            assert_eq!(server.stop().faults.half_answers, 1);
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_stalled_answer_comes_whole_after_its_stall() {
    for protocol in BOTH {
        for sizes in [SIZE, (1, 1, 100_000), (1, 1, 1)] {
            let script = Script { rows: sizes.0, columns: sizes.1, bytes: sizes.2, ..Script::default() };
            let server = Running::start(
                protocol,
                Script { half: Some("every 2 stall 60ms".parse().unwrap()), ..script },
            );
            let mut session = server.connect().await;
            let statement = session.prepare("SELECT 1").await.unwrap();
            session.execute(statement, &[]).await.unwrap();
            let begin = Instant::now();
            let answer = session.execute(statement, &[]).await.unwrap();
            assert_eq!(answer.rows, u64::from(sizes.0));
            assert!(begin.elapsed() >= Duration::from_millis(60));
            session.execute(statement, &[]).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn connections_beyond_the_limit_are_refused_until_one_is_free() {
    for (protocol, code) in [(Protocol::Mysql, "1040"), (Protocol::Postgres, "53300")] {
        let script = Script { connection_limit: Some(2), ..Script::default() };
        let server = Running::start(protocol, script);
        let (first, mut second) = (server.connect().await, server.connect().await);
        let refused = server.refused().await;
        assert_eq!((refused.class, refused.code.as_str()), (Class::Refused, code), "{refused}");
        second.query(b"SELECT 1").await.unwrap();
        first.close().await;
        server.settled(|stats| stats.connections.closed == 2).await;
        server.connect().await.query(b"SELECT 1").await.unwrap();
        let stats = server.stop();
        assert_eq!((stats.connections.accepted, stats.connections.refused), (4, 1));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_login_takes_as_long_as_programmed() {
    for protocol in BOTH {
        let login_delay = Duration::from_millis(80);
        let server = Running::start(protocol, Script { login_delay, ..Script::default() });
        let begin = Instant::now();
        let mut session = server.connect().await;
        assert!(begin.elapsed() >= login_delay);
        session.query(b"SELECT 1").await.unwrap();
    }
}
