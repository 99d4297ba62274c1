//! Tests of whole statements against a server that follows a script, with errors and broken
//! connections.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::testing::{
    complete, described, error, fatal, message, notice, parameter, ready, row, short_row, two_columns,
};
use super::*;
use crate::{Class, TimeLimits};

const INT8: u32 = 20;

/// A session that is logged in, and the server's end of its connection.
fn connected() -> (PostgresSession<DuplexStream>, DuplexStream) {
    let (client, server) = tokio::io::duplex(1 << 20);
    let connection = PostgresSession {
        wire: PostgresWire::new(client),
        agreed: PostgresHandshake { version: "15.19".into(), backend: 7, key: 11 },
        statements: Vec::new(),
        next_name: 0,
        exchange: Exchange::new("/run/.s.PGSQL.5432 as bench".into()),
        options: Box::new(LoginOptions::socket("/run/.s.PGSQL.5432", "bench")),
        counted: None,
    };
    (connection, server)
}

/// A session whose server has already sent `bytes`, and then keeps the connection open or closes
/// it.
async fn answered(bytes: &[u8], closed: bool) -> (PostgresSession<DuplexStream>, DuplexStream) {
    let (connection, mut server) = connected();
    server.write_all(bytes).await.expect("room in the pipe");
    if closed {
        server.shutdown().await.expect("an end");
    }
    (connection, server)
}

/// What the client has sent.
async fn received(session: PostgresSession<DuplexStream>, mut server: DuplexStream) -> Vec<u8> {
    drop(session);
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).await.expect("the client's words");
    bytes
}

fn one_row() -> Vec<u8> {
    [two_columns(), short_row(), complete("SELECT 1"), ready()].concat()
}

fn executed() -> Vec<u8> {
    [message(b'2', b""), short_row(), complete("SELECT 1"), ready()].concat()
}

fn wants_rows() -> Vec<u8> {
    message(b'G', b"\0\0\x01\0\0")
}

#[tokio::test]
async fn a_query_is_one_message_and_its_answer_is_counted() {
    let (mut session, server) = answered(&one_row(), false).await;
    let answer = session.query(b"SELECT 1, 2").await.expect("an answer");
    assert_eq!((answer.rows, answer.bytes), (1, one_row().len() as u64));
    assert_eq!(received(session, server).await, b"Q\0\0\0\x10SELECT 1, 2\0");
}

#[tokio::test]
async fn an_error_leaves_the_session_usable_unless_it_ends_it() {
    let refused = [error("23505", "duplicate key value"), ready()].concat();
    let (mut session, mut server) = answered(&refused, false).await;
    let reported = session.query(b"INSERT INTO t VALUES ('1')").await.expect_err("refused");
    insta::assert_snapshot!(reported, @"INSERT INTO t VALUES (... on /run/.s.PGSQL.5432 as bench: server said: duplicate key value (23505)");
    server.write_all(&[complete("DELETE 3"), ready()].concat()).await.expect("room");
    assert_eq!(session.query(b"DELETE FROM t").await.expect("goes on").affected, 3);
    server.write_all(&fatal("57P01", "terminating connection")).await.expect("room");
    assert_eq!(session.query(b"SELECT 1").await.expect_err("lost").class, Class::Lost);
    server.write_all(&one_row()).await.expect("room");
    let reported = session.query(b"SELECT 1").await.expect_err("stays lost");
    insta::assert_snapshot!(reported, @"connection to /run/.s.PGSQL.5432 as bench is not usable: it was lost, or a statement on it was abandoned; connect again (io)");
}

#[tokio::test]
async fn a_statement_is_prepared_once_and_executed_in_one_write() {
    let (mut session, mut server) = answered(&described(&[INT8, INT8]).concat(), false).await;
    let statement = session.prepare("SELECT a FROM t WHERE b = ? AND c = ?").await.expect("a statement");
    assert_eq!(statement, Statement { id: 0, params: 2, columns: 1 });
    server.write_all(&executed()).await.expect("room");
    let two = [Param::Int(1), Param::Text(b"x".to_vec())];
    assert_eq!(session.execute(statement, &two).await.expect("a row").rows, 1);
    let wrong = session.execute(statement, &[Param::Int(1)]).await.expect_err("one is missing");
    assert_eq!(
        wrong.to_string(),
        "SELECT a FROM t WHERE b = ? AND c = ? on /run/.s.PGSQL.5432 as bench: takes 2 parameters, not 1 (params)"
    );
    let foreign = Statement { id: 9, params: 0, columns: 0 };
    assert_eq!(session.execute(foreign, &[]).await.expect_err("not prepared").class, Class::Fatal);
    server.write_all(&[error("40P01", "deadlock detected"), ready()].concat()).await.expect("room");
    assert_eq!(session.execute(statement, &two).await.expect_err("a deadlock").class, Class::Retry);
    server.write_all(&executed()).await.expect("room");
    assert_eq!(session.execute(statement, &two).await.expect("again").rows, 1);
    let received = received(session, server).await;
    let parsed = b"P\0\0\0\x31s0\0SELECT a FROM t WHERE b = $1 AND c = $2\0";
    assert!(received.starts_with(parsed), "{:?}", String::from_utf8_lossy(&received));
    assert_eq!(received.windows(4).filter(|window| window == b"\0s0\0").count(), 3, "three executions");
}

#[tokio::test]
async fn a_name_is_not_used_again_after_a_statement_failed() {
    let failed = [error("42601", "syntax error"), ready()].concat();
    let (mut session, mut server) = answered(&failed, false).await;
    assert_eq!(session.prepare("SELEC ?").await.expect_err("no SQL").code, "42601");
    server.write_all(&described(&[]).concat()).await.expect("room");
    assert_eq!(session.prepare("SELECT 1").await.expect("a statement").id, 0);
    let received = received(session, server).await;
    assert!(received.windows(12).any(|window| window == b"s1\0SELECT 1\0"), "{received:?}");
}

#[tokio::test]
async fn rows_come_as_text_from_the_first_statement_that_has_any() {
    let first =
        [two_columns(), row(&[Some(b"one"), None]), row(&[Some(b""), Some(b"2")]), complete("SELECT 2")];
    let bytes = [complete("SET"), first.concat(), notice("n"), one_row()].concat();
    let (mut session, _server) = answered(&bytes, false).await;
    let cells = session.rows("SET x = 1; SELECT 1; SELECT 2").await.expect("rows");
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(cells, [[text("one"), None], [text(""), text("2")]]);
    assert!(!session.exchange.is_unfinished());
}

#[tokio::test]
async fn a_stream_that_ends_anywhere_is_a_lost_connection() {
    for end in 0..one_row().len() {
        let (mut session, _server) = answered(&one_row()[..end], true).await;
        assert_eq!(session.query(b"SELECT 1").await.expect_err("cut").class, Class::Lost, "{end}");
        let (mut session, _server) = answered(&one_row()[..end], true).await;
        assert_eq!(session.rows("SELECT 1").await.expect_err("cut").class, Class::Lost, "{end}");
    }
    let statement = described(&[INT8]).concat();
    for end in 0..statement.len() {
        let (mut session, _server) = answered(&statement[..end], true).await;
        assert_eq!(session.prepare("SELECT ?").await.expect_err("cut").class, Class::Lost, "{end}");
    }
}

#[tokio::test]
async fn an_error_before_the_stream_ends_is_what_is_reported() {
    let (mut session, _server) = answered(&error("53200", "out of memory"), true).await;
    assert_eq!(session.query(b"SELECT 1").await.expect_err("lost").code, "53200");
    let (mut session, _server) = answered(&error("53200", "out of memory"), true).await;
    assert_eq!(session.rows("SELECT 1").await.expect_err("lost").code, "53200");
}

#[tokio::test]
async fn an_error_in_every_phase_of_rows_and_prepare_is_reported() {
    let rows = vec![two_columns(), short_row(), complete("SELECT 1")];
    let statement = described(&[INT8])[..3].to_vec();
    for (phases, is_rows) in [(&rows, true), (&statement, false)] {
        for cut in 0..phases.len() {
            let bytes = [phases[..cut].concat(), error("57014", "canceled"), ready()].concat();
            let (mut session, _server) = answered(&bytes, false).await;
            let reported = if is_rows {
                session.rows("SELECT 1").await.expect_err("an error")
            } else {
                session.prepare("SELECT ?").await.expect_err("an error")
            };
            assert_eq!(
                (reported.code.as_str(), reported.class),
                ("57014", Class::Refused),
                "after {cut} messages"
            );
            assert!(!session.exchange.is_unfinished());
        }
    }
}

#[tokio::test]
async fn rows_are_copied_in_whatever_their_chunks() {
    let (mut session, mut server) = answered(&wants_rows(), false).await;
    let rows = b"d\0\0\0\x071\n2d\0\0\0\x07\n3\nc\0\0\0\x04";
    let hears = async {
        let mut bytes = Vec::new();
        while !bytes.ends_with(rows) {
            server.read_buf(&mut bytes).await.expect("rows");
        }
        server.write_all(&[complete("COPY 3"), ready()].concat()).await.expect("room");
    };
    let (copied, ()) = tokio::join!(session.copy_in("COPY t FROM STDIN", ["1\n2", "\n3\n", ""]), hears);
    let copied = copied.expect("three rows");
    assert_eq!((copied.affected, copied.rows), (3, 0));
}

#[tokio::test]
async fn a_copy_that_ends_before_its_rows_breaks_the_protocol() {
    let answer = [wants_rows(), complete("COPY 3"), ready()].concat();
    let (mut session, _server) = answered(&answer, false).await;
    let reported = session.copy_in("COPY t FROM STDIN", ["1\n"]).await.expect_err("no row was sent");
    assert_eq!((reported.class, reported.code.as_str()), (Class::Lost, "protocol"));
}

#[tokio::test]
async fn a_copy_goes_in_batches_and_a_large_chunk_in_pieces() {
    let (mut session, mut server) = answered(&wants_rows(), false).await;
    let read = tokio::spawn(async move {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"c\0\0\0\x04") {
            server.read_buf(&mut bytes).await.expect("rows");
        }
        server.write_all(&[complete("COPY 9"), ready()].concat()).await.expect("room");
        (bytes, server)
    });
    let chunk = vec![b'x'; 5 << 20];
    let copied = session.copy_in("COPY t FROM STDIN", [&chunk, &chunk]).await.expect("rows");
    assert_eq!(copied.affected, 9);
    let (bytes, _server) = read.await.expect("no panic");
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'x').count(), 2 * chunk.len());
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'd').count(), 10, "pieces of 1 MiB");
}

#[tokio::test]
async fn a_server_that_talks_while_rows_go_out_is_listened_to() {
    let (mut session, mut server) = answered(&wants_rows(), false).await;
    let talk = tokio::spawn(async move {
        // This is more than the pipe holds in either direction, before the server reads the first
        // row.
        for _ in 0..2000 {
            server.write_all(&notice(&"n".repeat(1500))).await.expect("received");
        }
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"c\0\0\0\x04") {
            server.read_buf(&mut bytes).await.expect("rows");
        }
        server.write_all(&[complete("COPY 9"), ready()].concat()).await.expect("room");
        server
    });
    let chunk = vec![b'x'; 5 << 20];
    let copying = session.copy_in("COPY t FROM STDIN", [&chunk]);
    let copied =
        tokio::time::timeout(std::time::Duration::from_secs(20), copying).await.expect("no zero_rate");
    let copied = copied.expect("rows");
    assert_eq!((copied.affected, copied.warnings), (9, 2000));
    talk.await.expect("no panic");
}

#[tokio::test]
async fn a_copy_that_is_refused_early_is_not_sent_to_its_end() {
    let refusal = [wants_rows(), error("22P02", "no number"), ready()].concat();
    let (mut session, mut server) = answered(&refusal, false).await;
    let reads = tokio::spawn(async move {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"SELECT 1\0") {
            server.read_buf(&mut bytes).await.expect("words");
        }
        server.write_all(&one_row()).await.expect("room");
        (bytes.len(), server)
    });
    let chunks = vec![vec![b'x'; 1 << 20]; 60];
    let reported = session.copy_in("COPY t FROM STDIN", chunks).await.expect_err("no number");
    assert_eq!(reported.code, "22P02");
    assert_eq!(session.query(b"SELECT 1").await.expect("goes on").rows, 1);
    let (received, _server) = reads.await.expect("no panic");
    assert!(received < 60 << 20, "{received} bytes");
}

#[tokio::test]
async fn statements_that_do_not_copy_in_are_refused_and_the_session_goes_on() {
    let (mut session, mut server) = answered(&one_row(), false).await;
    let reported = session.copy_in("SELECT 1", ["1\n"]).await.expect_err("no copy");
    assert_eq!((reported.class, reported.code.as_str()), (Class::Refused, "copy"));
    server.write_all(&[error("42P01", "no such table"), ready()].concat()).await.expect("room");
    assert_eq!(session.copy_in("COPY x FROM STDIN", ["1\n"]).await.expect_err("no table").code, "42P01");
    server.write_all(&one_row()).await.expect("room");
    assert_eq!(session.query(b"SELECT 1").await.expect("goes on").rows, 1);
}

#[tokio::test]
async fn a_copy_without_rows_is_ended_and_refused() {
    let verdict = [error("57014", "COPY from stdin failed"), ready()].concat();
    for as_rows in [false, true] {
        let (mut session, server) = answered(&[wants_rows(), verdict.clone()].concat(), false).await;
        let reported = if as_rows {
            session.rows("COPY t FROM STDIN").await.expect_err("refused")
        } else {
            session.query(b"COPY t FROM STDIN").await.expect_err("refused")
        };
        assert_eq!((reported.class, reported.code.as_str()), (Class::Refused, "copy"), "{reported}");
        assert!(!session.exchange.is_unfinished(), "the session goes on");
        assert!(received(session, server).await.ends_with(b"f\0\0\0\x24no rows were given to this COPY\0"));
    }
}

#[tokio::test]
async fn an_abandoned_statement_makes_the_session_unusable() {
    let (mut session, mut server) = connected();
    let limit = std::time::Duration::from_millis(10);
    tokio::time::timeout(limit, session.query(b"SELECT pg_sleep(9)")).await.expect_err("no answer in time");
    server.write_all(&one_row()).await.expect("room");
    assert_eq!(session.query(b"SELECT 1").await.expect_err("whose answer would it be").class, Class::Lost);
}

#[tokio::test]
async fn unsolicited_messages_are_distinguished_from_a_stray_answer() {
    let unasked = [parameter("TimeZone", "UTC"), notice("n")].concat();
    for end in 0..=unasked.len() {
        let (mut session, mut server) = answered(&[one_row(), unasked[..end].to_vec()].concat(), false).await;
        session.query(b"SELECT 1").await.expect("the first answer");
        server.write_all(&[unasked[end..].to_vec(), one_row()].concat()).await.expect("room");
        assert_eq!(session.query(b"SELECT 1").await.expect("the second answer").rows, 1, "{end}");
    }
    let (mut session, _server) = answered(&[one_row(), one_row()].concat(), false).await;
    session.query(b"SELECT 1").await.expect("the first answer");
    let reported = session.query(b"SELECT 1").await.expect_err("an answer from before the probe");
    assert_eq!((reported.class, reported.code.as_str()), (Class::Lost, "protocol"));
}

#[tokio::test]
async fn the_reason_for_a_closed_connection_is_reported() {
    let bytes = [one_row(), fatal("57P05", "terminating connection due to idle-session timeout")].concat();
    let (mut session, server) = answered(&bytes, false).await;
    session.query(b"SELECT 1").await.expect("the first answer");
    drop(server);
    let reported = session.query(b"SELECT 1").await.expect_err("closed");
    assert_eq!((reported.class, reported.code.as_str()), (Class::Lost, "57P05"), "{reported}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_an_error_after_the_time_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sock");
    let _listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let limit = std::time::Duration::from_millis(50);
    let options = LoginOptions::socket(&path, "bench")
        .with_limits(TimeLimits { login: limit, ..TimeLimits::default() });
    let reported = PostgresSession::connect(&options).await.expect_err("silence");
    assert_eq!(reported.class, Class::Lost);
    assert!(reported.message.contains("no answer within 50ms"), "{reported}");
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named_with_a_hint() {
    let options = LoginOptions::socket("/nonesuch/.s.PGSQL.5432", "bench");
    let reported = PostgresSession::connect(&options).await.expect_err("no server");
    insta::assert_snapshot!(reported, @"connecting to /nonesuch/.s.PGSQL.5432 as bench: No such file or directory (os error 2); is the server running, and is this its socket? (io)");
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_every_kind_of_statement(
        messages in prop::collection::vec(
            prop_oneof![
                (any::<u8>(), prop::collection::vec(any::<u8>(), 0..12)).prop_map(|(kind, body)| message(kind, &body)),
                Just(two_columns()),
                Just(short_row()),
                Just(described(&[INT8]).concat()),
                Just(complete("SELECT 1")),
                Just(wants_rows()),
                Just(ready()),
            ],
            0..8,
        ),
        tail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let bytes = [messages.concat(), tail].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let (mut session, _server) = answered(&bytes, true).await;
            let _ = session.query(b"SELECT 1").await;
            let (mut session, _server) = answered(&bytes, true).await;
            let _ = session.rows("SELECT 1").await;
            let (mut session, _server) = answered(&bytes, true).await;
            let _ = session.copy_in("COPY t FROM STDIN", ["1\n"]).await;
            let (mut session, _server) = answered(&bytes, true).await;
            if let Ok(statement) = session.prepare("SELECT ?").await {
                let params = vec![Param::Int(1); usize::from(statement.params)];
                let _ = session.execute(statement, &params).await;
            }
        });
    }
}
