//! Tests answers of every form and size, and thousands of answers over many connections.

use dbdyno_db::{Answer, AnySession, DatabaseServer, Param, Session};
use dbdyno_known_answer::{Listen, Protocol, Script, Server, Threads};

use crate::support::{BOTH, Running, database_address};

const SELECT: &str = "SELECT c FROM sbtest1 WHERE id=?";

async fn prepared(session: &mut AnySession) -> (Answer, Answer) {
    let select = session.prepare(SELECT).await.unwrap();
    assert_eq!((select.params, select.columns > 0), (1, true));
    let update = session.prepare("UPDATE sbtest1 SET k=? WHERE id=?").await.unwrap();
    assert_eq!((update.params, update.columns), (2, 0));
    let rows = session.execute(select, &[Param::Int(7)]).await.unwrap();
    let text = Param::Text(b"x".to_vec());
    (rows, session.execute(update, &[text, Param::Int(7)]).await.unwrap())
}

#[tokio::test(flavor = "current_thread")]
async fn rows_and_changes_come_as_programmed_over_both_protocols() {
    for protocol in BOTH {
        let server = Running::start(protocol, Script { rows: 3, columns: 2, bytes: 5, ..Script::default() });
        let mut session = server.connect().await;
        let rows = session.query(b"SELECT 1").await.unwrap();
        assert_eq!((rows.rows, rows.affected, rows.warnings), (3, 0, 0));
        let (rows, change) = prepared(&mut session).await;
        assert_eq!((rows.rows, change.rows, change.affected), (3, 0, 1));
        let cells = session.rows("SHOW STATUS").await.unwrap();
        assert_eq!(cells, vec![vec![Some("12345".to_owned()); 2]; 3]);
        assert_eq!(session.query(b"CREATE TABLE t (a int)").await.unwrap().rows, 0);
        for text in ["BEGIN", "INSERT INTO t VALUES (1)", "SELECT 1", "COMMIT"] {
            session.query(text.as_bytes()).await.unwrap();
        }
        session.close().await;
        let stats = server.settled(|stats| stats.connections.closed == 1).await;
        assert_eq!((stats.requests.queries, stats.requests.executions, stats.requests.prepares), (7, 2, 2));
        assert_eq!(stats.actual.count(), 9);
        assert_eq!(server.stop().connections.logged_in, 1);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn results_may_end_in_the_form_of_old_servers() {
    let script = Script { deprecate_eof: false, rows: 4, columns: 1, bytes: 300, ..Script::default() };
    let server = Running::start(Protocol::Mysql, script);
    let mut session = server.connect().await;
    assert_eq!(session.query(b"SELECT 1").await.unwrap().rows, 4);
    assert_eq!(prepared(&mut session).await.0.rows, 4);
}

#[tokio::test(flavor = "current_thread")]
async fn an_answer_may_have_no_rows() {
    for protocol in BOTH {
        let server = Running::start(protocol, Script { rows: 0, columns: 3, bytes: 1, ..Script::default() });
        let mut session = server.connect().await;
        assert_eq!(session.query(b"SELECT 1").await.unwrap().rows, 0);
        assert_eq!(prepared(&mut session).await.0.rows, 0);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn rows_of_more_than_16_mib_and_many_large_rows_get_through() {
    for protocol in BOTH {
        for (rows, columns, bytes) in [(2, 1, 17 << 20), (1, 2, (1 << 24) - 1), (3000, 3, 4000)] {
            let server = Running::start(protocol, Script { rows, columns, bytes, ..Script::default() });
            let mut session = server.connect().await;
            for _ in 0..2 {
                let answer = session.query(b"SELECT 1").await.unwrap();
                assert_eq!(answer.rows, u64::from(rows), "{protocol:?} {rows} {bytes}");
                assert!(answer.bytes > u64::from(rows) * u64::from(columns) * u64::from(bytes));
            }
            let (rows_again, change) = prepared(&mut session).await;
            assert_eq!((rows_again.rows, change.affected), (u64::from(rows), 1));
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_request_of_more_than_16_mib_is_understood() {
    for protocol in BOTH {
        let server = Running::start(protocol, Script::default());
        let mut session = server.connect().await;
        let mut sql = b"SELECT '".to_vec();
        sql.resize(17 << 20, b'x');
        assert_eq!(session.query(&sql).await.unwrap().rows, 1);
        assert_eq!(session.query(b"SELECT 1").await.unwrap().rows, 1);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn thousands_of_requests_on_many_connections_are_all_answered_and_counted() {
    for protocol in BOTH {
        let server = Running::start(protocol, Script::default());
        let mut sessions = Vec::new();
        for _ in 0..64 {
            let mut session = server.connect().await;
            let statement = session.prepare(SELECT).await.unwrap();
            sessions.push((session, statement));
        }
        for number in 0..100 {
            for (session, statement) in &mut sessions {
                assert_eq!(session.execute(*statement, &[Param::Int(number)]).await.unwrap().rows, 1);
            }
        }
        let stats = server.settled(|stats| stats.actual.count() == 6400).await;
        assert_eq!((stats.requests.executions, stats.connections.accepted), (6400, 64));
    }
}

#[tokio::test(flavor = "current_thread")]
async fn tcp_works_as_well() {
    for protocol in BOTH {
        let any = Listen::Tcp(([127, 0, 0, 1], 0).into());
        let server = Server::start(any, protocol, Script::default(), Threads::count(1)).unwrap();
        let (address, capabilities) = database_address(protocol, server.address());
        let mut session = DatabaseServer { address, capabilities }.connect().await.unwrap();
        assert_eq!(session.query(b"SELECT 1").await.unwrap().rows, 1);
        drop(server);
        assert!(session.query(b"SELECT 1").await.is_err());
    }
}
