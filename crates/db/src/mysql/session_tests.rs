//! Tests of whole statements against a server that follows a script, with errors and broken
//! connections.

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::testing::{eof, error, ok, packet, packets, result_set};
use super::*;
use crate::mysql::wire::Form;
use crate::{Class, TimeLimits};

/// A session that is logged in, and the server's end of its connection.
fn connected(deprecate_eof: bool) -> (MysqlSession<DuplexStream>, DuplexStream) {
    let (client, server) = tokio::io::duplex(1 << 20);
    let form = Form { deprecate_eof, optional_definitions: false };
    let agreed = MysqlHandshake {
        version: "8.0.31".into(),
        is_mariadb: false,
        connection_id: 7,
        form,
        session_track: true,
    };
    let connection = MysqlSession {
        wire: MysqlWire::new(client),
        agreed,
        statements: Vec::new(),
        exchange: Exchange::new("/run/db.sock as bench".into()),
    };
    (connection, server)
}

/// A session whose server has already sent `bytes`, and then keeps the connection open or closes
/// it.
async fn answered(
    deprecate_eof: bool,
    bytes: &[u8],
    closed: bool,
) -> (MysqlSession<DuplexStream>, DuplexStream) {
    let (connection, mut server) = connected(deprecate_eof);
    server.write_all(bytes).await.expect("room in the pipe");
    if closed {
        server.shutdown().await.expect("an end");
    }
    (connection, server)
}

/// The first answer to a prepare: statement number 5, one column, two parameters.
fn prepared(deprecate_eof: bool) -> Vec<Vec<u8>> {
    let mut payloads = vec![vec![0, 5, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0], b"param".to_vec(), b"param".to_vec()];
    if !deprecate_eof {
        payloads.push(eof(false, 0, false));
    }
    payloads.push(b"column".to_vec());
    if !deprecate_eof {
        payloads.push(eof(false, 0, false));
    }
    payloads
}

fn two() -> [Param; 2] {
    [Param::Int(1), Param::Text(b"x".to_vec())]
}

#[tokio::test]
async fn a_query_is_one_packet_and_its_answer_is_counted() {
    let bytes = packets(&result_set(true, &[b"\x011\x012"], false));
    let (mut session, mut server) = answered(true, &bytes, false).await;
    let answer = session.query(b"SELECT 1, 2").await.expect("an answer");
    assert_eq!((answer.rows, answer.bytes, answer.warnings), (1, bytes.len() as u64, 5));
    let mut received = [0; 16];
    server.read_exact(&mut received).await.expect("the query");
    assert_eq!(&received, b"\x0c\0\0\0\x03SELECT 1, 2");
}

#[tokio::test]
async fn an_error_leaves_the_session_usable_unless_it_says_lost() {
    let (mut session, mut server) =
        answered(true, &packets(&[error(1062, "Duplicate entry '1'")]), false).await;
    let reported = session.query(b"INSERT INTO t VALUES ('1')").await.expect_err("refused");
    insta::assert_snapshot!(reported, @"INSERT INTO t VALUES (... on /run/db.sock as bench: server said: Duplicate entry '1' (1062)");
    server.write_all(&packets(&[ok(0)])).await.expect("room");
    assert_eq!(session.query(b"DO 1").await.expect("goes on").affected, 1);
    server.write_all(&packets(&[error(1053, "Server shutdown in progress")])).await.expect("room");
    assert_eq!(session.query(b"DO 1").await.expect_err("lost").class, Class::Lost);
    server.write_all(&packets(&[ok(0)])).await.expect("room");
    let reported = session.query(b"DO 1").await.expect_err("stays lost");
    insta::assert_snapshot!(reported, @"connection to /run/db.sock as bench is not usable: it was lost, or a statement on it was abandoned; connect again (io)");
}

#[tokio::test]
async fn a_statement_is_prepared_and_executed_in_both_forms() {
    for deprecate_eof in [false, true] {
        let (mut session, mut server) =
            answered(deprecate_eof, &packets(&prepared(deprecate_eof)), false).await;
        let statement = session.prepare("SELECT a FROM t WHERE b = ? AND c = ?").await.expect("a statement");
        assert_eq!(statement, Statement { id: 0, params: 2, columns: 1 });
        let rows = packets(&result_set(deprecate_eof, &[b"\0\0\x07", b"\0\0\x08"], false));
        server.write_all(&rows).await.expect("room");
        assert_eq!(session.execute(statement, &two()).await.expect("rows").rows, 2);
        let wrong = session.execute(statement, &[Param::Int(1)]).await.expect_err("one is missing");
        assert_eq!(
            wrong.to_string(),
            "SELECT a FROM t WHERE b = ? AND c = ? on /run/db.sock as bench: takes 2 parameters, not 1 (params)"
        );
        let foreign = Statement { id: 9, params: 0, columns: 0 };
        assert_eq!(session.execute(foreign, &[]).await.expect_err("not prepared").class, Class::Fatal);
        server.write_all(&packets(&[error(1213, "Deadlock found")])).await.expect("room");
        assert_eq!(session.execute(statement, &two()).await.expect_err("a deadlock").class, Class::Retry);
        assert!(session.statements[0].types.is_empty(), "types are sent again after an error");
    }
}

#[tokio::test]
async fn rows_come_as_text_from_the_first_result_that_has_any() {
    for form in [false, true] {
        let mut payloads = result_set(form, &[b"\x03one\xfb", b"\x00\x012"], true);
        payloads.extend(result_set(form, &[b"\x01x\x01y"], true));
        payloads.push(ok(0));
        let (mut session, _server) = answered(form, &packets(&payloads), false).await;
        let cells = session.rows("CALL p()").await.expect("rows");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(cells, [[text("one"), None], [text(""), text("2")]]);
        assert!(!session.exchange.is_unfinished());
    }
}

#[tokio::test]
async fn a_stream_that_ends_anywhere_is_a_lost_connection() {
    for form in [false, true] {
        let rows = packets(&result_set(form, &[b"\x011\x012", b"\x011\x012"], false));
        for end in 0..rows.len() {
            let (mut session, _server) = answered(form, &rows[..end], true).await;
            assert_eq!(session.query(b"SELECT 1").await.expect_err("cut").class, Class::Lost, "{end}");
            let (mut session, _server) = answered(form, &rows[..end], true).await;
            assert_eq!(session.rows("SELECT 1").await.expect_err("cut").class, Class::Lost, "{end}");
        }
        let statement = packets(&prepared(form));
        for end in 0..statement.len() {
            let (mut session, _server) = answered(form, &statement[..end], true).await;
            assert_eq!(session.prepare("SELECT ?").await.expect_err("cut").class, Class::Lost, "{end}");
        }
    }
}

#[tokio::test]
async fn an_error_in_every_phase_of_rows_and_prepare_is_reported() {
    for form in [false, true] {
        let rows = result_set(form, &[b"\x011\x012"], false);
        let statement = prepared(form);
        for (phases, is_rows) in [(&rows, true), (&statement, false)] {
            for cut in 0..phases.len() {
                let mut payloads = phases[..cut].to_vec();
                payloads.push(error(1317, "interrupted"));
                let (mut session, _server) = answered(form, &packets(&payloads), true).await;
                let reported = if is_rows {
                    session.rows("SELECT 1").await.expect_err("an error")
                } else {
                    session.prepare("SELECT ?").await.expect_err("an error")
                };
                assert_eq!(reported.code, "1317", "after {cut} packets");
            }
        }
    }
}

#[tokio::test]
async fn a_request_for_a_local_file_is_answered_with_nothing() {
    let asks = [1, 0, 0, 1, 0xfb];
    let answer = packet(3, &error(1148, "no file came"));
    for as_rows in [false, true] {
        let (mut session, mut server) = answered(true, &[&asks[..], &answer].concat(), false).await;
        let reported = if as_rows {
            session.rows("LOAD DATA").await.expect_err("refused")
        } else {
            session.query(b"LOAD DATA").await.expect_err("refused")
        };
        assert_eq!(reported.class, Class::Refused, "{reported}");
        let mut received = [0; 4 + 10 + 4];
        server.read_exact(&mut received).await.expect("the statement and an empty packet");
        assert_eq!(received[14..], [0, 0, 0, 2]);
        assert!(!session.exchange.is_unfinished(), "the session goes on");
    }
}

#[tokio::test]
async fn rows_for_a_load_go_in_numbered_packets_with_an_empty_one_at_the_end() {
    let asks = [1, 0, 0, 1, 0xfb];
    // The two packets with rows and the empty one have the numbers 2, 3 and 4.
    let answer = packet(5, &ok(6));
    let (mut session, mut server) = answered(true, &[&asks[..], &answer].concat(), false).await;
    let rows = vec![b'7'; (256 << 10) + 3];
    let mut received = Vec::new();
    let (done, ()) = tokio::join!(session.load_rows("LOAD DATA", &rows), async {
        received.resize(4 + 10 + 4 + (256 << 10) + 4 + 3 + 4, 0);
        server.read_exact(&mut received).await.expect("statement, rows, end");
    });
    assert_eq!(done.expect("taken").affected, 7);
    let first = 14 + 4 + (256 << 10);
    assert_eq!(received[14..18], [0, 0, 4, 2]);
    assert_eq!(received[first..], [3, 0, 0, 3, b'7', b'7', b'7', 0, 0, 0, 4]);
    assert!(!session.exchange.is_unfinished());
}

#[tokio::test]
async fn rows_go_to_no_statement_that_does_not_ask_for_them() {
    let (mut session, _server) = answered(true, &packets(&[ok(0)]), false).await;
    let reported = session.load_rows("DO 1", b"secret").await.expect_err("no load");
    assert_eq!((reported.class, reported.code.as_str()), (Class::Refused, "local infile"), "{reported}");
    assert!(!session.exchange.is_unfinished(), "the session goes on");
    let refused = packets(&[error(1146, "no such table")]);
    let (mut session, _server) = answered(true, &refused, false).await;
    assert_eq!(session.load_rows("LOAD DATA", b"1").await.expect_err("refused").code, "1146");
}

#[tokio::test]
async fn an_abandoned_statement_makes_the_session_unusable() {
    let (mut session, mut server) = connected(true);
    let limit = std::time::Duration::from_millis(10);
    tokio::time::timeout(limit, session.query(b"SELECT SLEEP(9)")).await.expect_err("no answer in time");
    server.write_all(&packets(&[ok(0)])).await.expect("room");
    assert_eq!(session.query(b"DO 1").await.expect_err("whose answer would it be").class, Class::Lost);
}

#[tokio::test]
async fn bytes_after_an_answer_are_noticed() {
    let (mut session, _server) =
        answered(true, &[packets(&[ok(0)]), packets(&[ok(0)])].concat(), false).await;
    session.query(b"DO 1").await.expect("the first answer");
    let reported = session.query(b"DO 1").await.expect_err("an answer from before the probe");
    assert_eq!((reported.class, reported.code.as_str()), (Class::Lost, "protocol"));
}

#[tokio::test]
async fn a_server_that_says_nothing_is_an_error_after_the_time_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sock");
    let _listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let limit = std::time::Duration::from_millis(50);
    let options = LoginOptions::socket(&path, "bench")
        .with_limits(TimeLimits { login: limit, ..TimeLimits::default() });
    let reported = MysqlSession::connect(&options).await.expect_err("silence");
    assert_eq!(reported.class, Class::Lost);
    assert!(reported.message.contains("no answer within 50ms"), "{reported}");
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named_with_a_hint() {
    let reported = MysqlSession::connect(&LoginOptions::socket("/nonesuch/db.sock", "bench"))
        .await
        .expect_err("no server");
    insta::assert_snapshot!(reported, @"connecting to /nonesuch/db.sock as bench: No such file or directory (os error 2); is the server running, and is this its socket? (io)");
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_every_kind_of_statement(
        form: bool,
        payloads in prop::collection::vec(
            prop_oneof![prop::collection::vec(any::<u8>(), 0..30), Just(vec![1]), Just(vec![0; 12]), Just(vec![0xfb])],
            0..8,
        ),
        tail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let bytes = [packets(&payloads), tail].concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (mut session, _server) = answered(form, &bytes, true).await;
            let _ = session.query(b"SELECT 1").await;
            let (mut session, _server) = answered(form, &bytes, true).await;
            let _ = session.rows("SELECT 1").await;
            let (mut session, _server) = answered(form, &bytes, true).await;
            if let Ok(statement) = session.prepare("SELECT ?").await {
                let params = vec![Param::Int(1); usize::from(statement.params)];
                let _ = session.execute(statement, &params).await;
            }
        });
    }
}
