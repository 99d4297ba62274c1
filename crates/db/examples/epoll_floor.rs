//! The lowest cost that any load client can have: one thread, one epoll, and the same prepared
//! point select on each connection again and again, as constant bytes. It draws no random values,
//! measures no operation and records nothing. In an answer it looks only for the last packet. A
//! client's own cost is its cost above this floor.
//!
//! `epoll_floor SOCKET DATABASE CONNECTIONS SECONDS` logs in as root without a password to a
//! MariaDB or MySQL server and selects from the table sbtest1. It prints
//! `{"queries":N,"cpu_us":N,"seconds":N}`, where `cpu_us` is the user and kernel time in the
//! window.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Protocol 4.1, a database in the login, the length-prefixed scramble, and plugin names.
const CAPABILITIES: u32 = 0x8 | 0x200 | 0x8000 | 0x0008_0000;
/// Asks MariaDB to leave out column definitions that the client knows, as dbdyno and sysbench do.
/// MySQL ignores these flags.
const EXTENDED: u32 = 0x10;
const SQL: &[u8] = b"SELECT c FROM sbtest1 WHERE id=?";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [socket, database, connections, seconds] = arguments.as_slice() else {
        return Err(io::Error::other("usage: epoll_floor SOCKET DATABASE CONNECTIONS SECONDS"));
    };
    let number =
        |text: &str| text.parse::<u64>().map_err(|error| io::Error::other(format!("{text}: {error}")));
    let connections = number(connections)?;
    let window = Duration::from_secs(number(seconds)?);

    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut clients = Vec::new();
    for index in 0..connections {
        let mut stream = log_in(socket, database)?;
        let request = prepare(&mut stream)?;
        stream.set_nonblocking(true)?;
        let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&stream, EpollEvent::new(interest, index))?;
        clients.push((stream, request));
    }
    for (stream, request) in &mut clients {
        stream.write_all(request)?;
    }
    // The warm-up lasts a tenth of the window and is not counted.
    turn(&epoll, &mut clients, window / 10)?;
    let (cpu, began) = (cpu_us()?, Instant::now());
    let queries = turn(&epoll, &mut clients, window)?;
    let (cpu, seconds) = (cpu_us()? - cpu, began.elapsed().as_secs_f64());
    writeln!(io::stdout(), "{{\"queries\":{queries},\"cpu_us\":{cpu},\"seconds\":{seconds:.6}}}")
}

/// Reads answers and sends requests until `window` is over. Returns the number of answers.
fn turn(epoll: &Epoll, clients: &mut [(UnixStream, Vec<u8>)], window: Duration) -> io::Result<u64> {
    let mut events = [EpollEvent::empty(); 256];
    let mut answer = [0; 16 << 10];
    let mut queries = 0;
    let end = Instant::now() + window;
    while Instant::now() < end {
        let ready = epoll.wait(&mut events, EpollTimeout::from(100u8))?;
        for event in &events[..ready] {
            let (stream, request) = &mut clients[event.data() as usize];
            let length = stream.read(&mut answer)?;
            // A small answer arrives in one piece and ends with an EOF packet of nine bytes.
            let end = answer[..length].last_chunk::<9>();
            if !end.is_some_and(|end| end[..3] == [5, 0, 0] && end[4] == 0xfe) {
                return Err(io::Error::other("an answer came in pieces; this client cannot read that"));
            }
            queries += 1;
            stream.write_all(request)?;
        }
    }
    Ok(queries)
}

fn log_in(socket: &str, database: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    packet(&mut stream)?;
    let mut login = Vec::new();
    login.extend(CAPABILITIES.to_le_bytes());
    login.extend((1u32 << 24).to_le_bytes());
    login.push(33);
    login.extend([0; 19]);
    login.extend(EXTENDED.to_le_bytes());
    login.extend(b"root\0\0");
    login.extend(database.as_bytes());
    login.extend(b"\0mysql_native_password\0");
    send(&mut stream, 1, &login)?;
    let mut answer = packet(&mut stream)?;
    if answer.1.first() == Some(&0xfe) {
        send(&mut stream, answer.0 + 1, &[])?;
        answer = packet(&mut stream)?;
    }
    match answer.1.first() {
        Some(0) => Ok(stream),
        _ => Err(io::Error::other(format!("login refused: {}", String::from_utf8_lossy(&answer.1)))),
    }
}

/// Prepares the point select. Returns the whole packet that executes it with id 5000.
fn prepare(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut command = vec![0x16];
    command.extend(SQL);
    send(stream, 0, &command)?;
    let (_, answer) = packet(stream)?;
    if answer.first() != Some(&0) {
        return Err(io::Error::other(format!("cannot prepare: {}", String::from_utf8_lossy(&answer))));
    }
    // One parameter definition and one column definition follow, each with an EOF packet.
    for _ in 0..4 {
        packet(stream)?;
    }
    let mut execute = vec![0x17];
    execute.extend(&answer[1..5]);
    execute.extend([0, 1, 0, 0, 0, 0, 1, 3, 0]);
    execute.extend(5000u32.to_le_bytes());
    let mut whole = vec![u8::try_from(execute.len()).map_err(io::Error::other)?, 0, 0, 0];
    whole.extend(execute);
    Ok(whole)
}

fn send(stream: &mut UnixStream, sequence: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes();
    stream.write_all(&[&[length[0], length[1], length[2], sequence], body].concat())
}

fn packet(stream: &mut UnixStream) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut body = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok((header[3], body))
}

fn cpu_us() -> io::Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds())
}
