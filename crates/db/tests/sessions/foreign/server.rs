//! Servers that answer statements from a list, in either protocol. Any other statement gets an
//! error.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The answers to statements: a statement that contains the text gets the rows, which may be empty.
pub(crate) type Script = &'static [(&'static str, &'static [&'static [&'static str]])];

/// Rows of the answer to `sql`. `None` means an error.
fn answer(script: Script, sql: &str) -> Option<&'static [&'static [&'static str]]> {
    script.iter().find(|(part, _)| sql.contains(part)).map(|(_, rows)| *rows)
}

/// Serves each connection in its own thread, and returns the port.
fn serve(speak: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, speak) = (stream.expect("a client"), speak.clone());
            // The thread ends when the client is gone.
            std::thread::spawn(move || drop(speak(&mut stream)));
        }
    });
    port
}

fn received(stream: &mut TcpStream, count: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The connection number that every login reports.
pub(crate) const NUMBER: u8 = 7;

pub(crate) fn mysql(version: &'static str, script: Script) -> u16 {
    serve(move |stream| {
        let mut greeting = [&[10], version.as_bytes()].concat();
        greeting.extend_from_slice(&[0, NUMBER, 0, 0, 0]);
        // The capabilities exclude TLS, session tracking and the newer packet at the end of rows.
        greeting.extend_from_slice(b"abcdefgh\0\xff\xf7\x08\x02\0\x0f\x80\x15");
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        send_packets(stream, 0, &[greeting])?;
        const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
        const EOF: &[u8] = &[0xfe, 0, 0, 2, 0];
        let mut first = true;
        loop {
            let header = received(stream, 4)?;
            let length = usize::from(header[0]) | usize::from(header[1]) << 8;
            let payload = received(stream, length)?;
            if std::mem::take(&mut first) {
                send_packets(stream, 2, &[OK.to_vec()])?;
                continue;
            }
            let sql = String::from_utf8_lossy(&payload[1..]).into_owned();
            let rows = if payload[0] == 3 { answer(script, &sql) } else { None };
            match rows {
                None => {
                    let error = b"\xff\x28\x04#42000You have an error in your SQL syntax".to_vec();
                    send_packets(stream, 1, &[error])?;
                }
                Some([]) => send_packets(stream, 1, &[OK.to_vec()])?,
                Some(rows) => {
                    let columns = rows[0].len();
                    let mut packets = vec![vec![columns as u8]];
                    packets.extend((0..columns).map(|_| b"\x03def column".to_vec()));
                    packets.push(EOF.to_vec());
                    for row in rows {
                        let cell = |text: &&str| [&[text.len() as u8], text.as_bytes()].concat();
                        packets.push(row.iter().flat_map(cell).collect());
                    }
                    packets.push(EOF.to_vec());
                    send_packets(stream, 1, &packets)?;
                }
            }
        }
    })
}

fn send_packets(stream: &mut TcpStream, number: u8, payloads: &[Vec<u8>]) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for (index, payload) in payloads.iter().enumerate() {
        let length = (payload.len() as u32).to_le_bytes();
        bytes.extend_from_slice(&[length[0], length[1], length[2], number + index as u8]);
        bytes.extend_from_slice(payload);
    }
    stream.write_all(&bytes)
}

pub(crate) fn postgres(version: &'static str, script: Script) -> u16 {
    serve(move |stream| {
        let length = received(stream, 4)?;
        received(stream, usize::from(length[3]) + (usize::from(length[2]) << 8) - 4)?;
        let mut hello = message(b'R', &[0; 4]);
        hello.extend(message(b'S', format!("server_version\0{version}\0").as_bytes()));
        hello.extend(message(b'K', &[0, 0, 0, NUMBER, 0, 0, 0, 1]));
        hello.extend(READY);
        stream.write_all(&hello)?;
        let error = message(b'E', b"SERROR\0VERROR\0C42601\0Msyntax error\0\0");
        loop {
            let kind = received(stream, 1)?[0];
            let length = received(stream, 4)?;
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            let body = received(stream, length - 4)?;
            let bytes = match kind {
                b'X' => return Ok(()),
                b'S' => [&error[..], READY].concat(),
                b'Q' => {
                    let sql = String::from_utf8_lossy(&body).into_owned();
                    let said = answer(script, &sql).map_or_else(|| error.clone(), result);
                    [&said[..], READY].concat()
                }
                _ => continue,
            };
            stream.write_all(&bytes)?;
        }
    })
}

const READY: &[u8] = b"Z\0\0\0\x05I";

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

fn result(rows: &[&[&str]]) -> Vec<u8> {
    let Some(first) = rows.first() else { return message(b'C', b"CREATE TABLE\0") };
    let columns = (first.len() as u16).to_be_bytes();
    let mut description = columns.to_vec();
    for _ in *first {
        description.extend_from_slice(b"c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
    }
    let mut bytes = message(b'T', &description);
    for row in rows {
        let mut body = columns.to_vec();
        for cell in *row {
            body.extend_from_slice(&(cell.len() as u32).to_be_bytes());
            body.extend_from_slice(cell.as_bytes());
        }
        bytes.extend(message(b'D', &body));
    }
    bytes.extend(message(b'C', b"SELECT 1\0"));
    bytes
}
