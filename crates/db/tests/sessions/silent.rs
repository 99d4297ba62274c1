//! Tests with servers that accept a login and then answer nothing. A statement outside a step must
//! fail at its time limit.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use dbdyno_db::{
    Class, DatabaseAddress, DatabaseServer, DbError, Param, Session, Statement, mysql, postgres,
};

/// A time that is long compared with every limit in these tests.
const FOREVER: Duration = Duration::from_secs(600);
const LIMIT: Duration = Duration::from_millis(200);

/// A MySQL server's greeting, and its OK for a login without a password.
const MYSQL: [&[u8]; 2] = [
    b"\x4a\0\0\0\x0a8.0.31\0\x07\0\0\0abcdefgh\0\xff\xf7\x21\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0",
    b"\x07\0\0\x02\0\0\0\x02\0\0\0",
];

/// A PostgreSQL server sends nothing first. Then it accepts the login, reports the number 7 and is
/// ready.
const POSTGRES: [&[u8]; 2] = [
    b"",
    b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0015.2\0K\0\0\0\x0c\0\0\0\x07\0\0\0\x09Z\0\0\0\x05I",
];

/// A server that sends the first part of `script`, and the second part after the client's first
/// packet. After that it reads and sends nothing.
fn silent(script: [&'static [u8]; 2]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut received = [0; 4096];
                stream.write_all(script[0]).unwrap();
                if stream.read(&mut received).is_ok_and(|read| read > 0) {
                    stream.write_all(script[1]).unwrap();
                }
                while stream.read(&mut received).is_ok_and(|read| read > 0) {}
            });
        }
    });
    port
}

fn database_servers() -> [DatabaseServer; 2] {
    let mut mysql_greeting = MYSQL;
    let mut whole = mysql_greeting[0].to_vec();
    // The first byte of a packet is its length, here without the four bytes of the header.
    whole[0] = u8::try_from(whole.len() - 4).unwrap();
    mysql_greeting[0] = whole.leak();
    let mysql_options = mysql::Options::tcp("127.0.0.1", silent(mysql_greeting), "u");
    let postgres_options = postgres::Options::tcp("127.0.0.1", silent(POSTGRES), "u").with_database("d");
    [
        DatabaseServer {
            address: DatabaseAddress::Mysql(mysql_options),
            capabilities: mysql::capabilities("InnoDB", false),
        },
        DatabaseServer {
            address: DatabaseAddress::Postgres(postgres_options),
            capabilities: postgres::capabilities(),
        },
    ]
}

fn is_silence(error: &DbError) -> bool {
    error.class == Class::Lost && error.message.contains("no answer within 200ms; see what the server does")
}

#[tokio::test]
async fn a_statement_outside_a_step_fails_at_its_limit_on_a_silent_server() {
    for database_server in database_servers() {
        let connect = async || {
            let mut session = database_server.connect().await.unwrap();
            session.limit_statements(Some(LIMIT));
            session
        };
        let asked = tokio::time::timeout(FOREVER, connect().await.query(b"SELECT 1")).await.unwrap();
        let error = asked.unwrap_err();
        assert!(is_silence(&error) && error.message.starts_with("SELECT 1 on 127.0.0.1:"), "{error}");
        assert!(is_silence(&connect().await.rows("SELECT 1").await.unwrap_err()));
        assert!(is_silence(&connect().await.prepare("SELECT 1").await.unwrap_err()));
        assert!(is_silence(&connect().await.stay_while_idle().await.unwrap_err()));
        // A session whose statement was given up sends no other statement, because the next answer
        // could belong to the first one.
        let mut given_up = connect().await;
        assert!(given_up.rows("SELECT 1").await.is_err());
        let again = given_up.rows("SELECT 2").await.unwrap_err();
        assert!(again.message.contains("is not usable"), "{again}");
        let unknown = Statement { id: 9, params: 1, columns: 0 };
        assert!(connect().await.execute(unknown, &[Param::Int(1)]).await.is_err());
    }
}
