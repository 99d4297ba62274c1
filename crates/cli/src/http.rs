//! Answers requests of a browser or of Prometheus, several at once, each on a connection of its own
//! and within a short time. A client that connects and sends nothing cannot keep others from their
//! answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Longest request in bytes with its headers. A browser sends far less.
const QUESTION_BYTES: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// Highest number of connections that are served at once. Others wait until one of these has had
/// its time.
const MOST_AT_ONCE: usize = 128;
/// How long they wait before the next look.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    /// Value of `Content-Type`.
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

/// Answers all who connect to `listener`. Each has `patience` for its request, and as long again
/// for taking the answer. `reply` makes the answer from the path of a GET, and nothing else is
/// answered. A request whose `Host` is no name of this machine is refused, because a page from
/// elsewhere whose name leads here must not read results. A request without a host comes from no
/// browser.
pub(crate) fn serve(
    listener: &TcpListener,
    patience: Duration,
    reply: impl Fn(&str) -> Answer + Send + Sync + 'static,
) {
    let reply = Arc::new(reply);
    for stream in listener.incoming().flatten() {
        // Each connection in work holds one reference.
        while Arc::strong_count(&reply) > MOST_AT_ONCE {
            std::thread::sleep(PAUSE);
        }
        let reply = Arc::clone(&reply);
        let answering = std::thread::Builder::new().name("answers".to_owned());
        // A client that hangs up early misses its answer, and so does a client for which no thread
        // can be started.
        let _ = answering.spawn(move || answer(&stream, patience, &*reply));
    }
}

fn answer(mut stream: &TcpStream, patience: Duration, reply: &dyn Fn(&str) -> Answer) -> io::Result<()> {
    let refusal = |status, body: &str| Answer { status, kind: "text/plain", body: body.to_owned() };
    let request = read(stream, Instant::now() + patience)?;
    let Answer { status, kind, body } = match request.path {
        _ if !request.host.is_none_or(|host| is_of_this_machine(&host)) => {
            refusal("403 Forbidden", "Ask by the name or the address of this machine.\n")
        }
        Some(path) => reply(&path),
        None => refusal("405 Method Not Allowed", "Only GET is answered.\n"),
    };
    let length = body.len();
    stream.set_write_timeout(Some(patience))?;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    )
}

struct Request {
    /// Path of a GET, without what follows a question mark.
    path: Option<String>,
    host: Option<String>,
}

/// Reads the whole head of one request, because an answer to a request that was not read to its end
/// may get lost.
fn read(mut stream: &TcpStream, until: Instant) -> io::Result<Request> {
    let (mut read, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let length = stream.read(&mut piece)?;
        read.extend_from_slice(&piece[..length]);
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if request.parse(&read).map_err(io::Error::other)?.is_complete() {
            let target = request.path.filter(|_| request.method == Some("GET"));
            let path = target.and_then(|target| target.split('?').next()).map(str::to_owned);
            let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
            return Ok(Request {
                path,
                host: host.map(|host| String::from_utf8_lossy(host.value).into_owned()),
            });
        }
        if length == 0 || read.len() > QUESTION_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
    }
}

/// Whether the host is this machine. An address cannot be another machine's name, and this
/// machine's names are its own.
fn is_of_this_machine(host: &str) -> bool {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        name.trim().to_owned()
    });
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let own = NAME.as_str();
    let is_own = |name: &str| {
        let short = own.split('.').next().unwrap_or(own);
        !own.is_empty() && (name.eq_ignore_ascii_case(own) || name.eq_ignore_ascii_case(short))
    };
    is_address || name.eq_ignore_ascii_case("localhost") || is_own(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(port: u16, host: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn serving(patience: Duration) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let reply = |_: &str| Answer { status: "200 OK", kind: "text/plain", body: "yes".to_owned() };
        std::thread::spawn(move || serve(&listener, patience, reply));
        port
    }

    #[test]
    fn only_names_and_addresses_of_this_machine_are_answered() {
        let port = serving(Duration::from_secs(60));
        for host in ["localhost", "localhost:9100", "127.0.0.1:1", "[::1]:9100", "10.0.0.7:9100"] {
            assert!(ask(port, host).starts_with("HTTP/1.1 200"), "{host}");
        }
        for host in ["evil.example", "evil.example:9100", "localhost.evil.example"] {
            assert!(ask(port, host).starts_with("HTTP/1.1 403"), "{host}");
        }
    }

    #[test]
    fn connections_that_say_nothing_keep_no_one_from_an_answer() {
        let port = serving(Duration::from_secs(3600));
        let silent: Vec<TcpStream> =
            (0..50).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        assert!(ask(port, "localhost").ends_with("yes"));
        drop(silent);
    }

    #[test]
    fn a_question_that_comes_byte_by_byte_has_no_more_time_than_another() {
        let port = serving(Duration::from_millis(300));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            if stream.write_all(b"G").is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("it was never given up");
    }
}
