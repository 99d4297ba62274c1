//! Answers `GET /metrics`. One request after the other: who asks is one Prometheus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use dbdyno_report::OPENMETRICS_TYPE;

use super::Metrics;
use crate::exit::{Ended, MACHINE};

/// Time that a client has for its question, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of a question that are read.
const QUESTION_BYTES: u64 = 8 << 10;

/// Listens at `address`, a port of the loopback interface or an address with one, and answers in a
/// thread of its own. Where it listens.
pub(crate) fn serve(address: &str, metrics: Metrics) -> Result<String, Ended> {
    let full = if address.contains(':') { address.to_owned() } else { format!("127.0.0.1:{address}") };
    let cannot = |error: std::io::Error| {
        let advice = "name a free port, or an address of this host with a port";
        Ended::new(MACHINE, format!("cannot serve metrics at {full}: {error}; {advice}"))
    };
    let listener = TcpListener::bind(&full).map_err(cannot)?;
    let place = listener.local_addr().map_err(cannot)?;
    let answer = move || {
        for stream in listener.incoming().flatten() {
            // Who hangs up early misses an answer.
            let _ = answered(&stream, &metrics);
        }
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(answer).map_err(cannot)?;
    Ok(format!("http://{place}/metrics"))
}

fn answered(mut stream: &TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(QUESTION_BYTES)).lines();
    let asked = lines.next().unwrap_or(Ok(String::new()))?;
    // An answer to a question that was not read to its end may be lost on its way.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = asked.strip_prefix("GET ").and_then(|rest| rest.split([' ', '?']).next());
    let (status, kind, body) = match path {
        Some("/metrics") => ("200 OK", OPENMETRICS_TYPE, metrics.text()),
        _ => ("404 Not Found", "text/plain", "metrics are at /metrics\n".to_owned()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_at_their_path_only_and_an_address_is_served_once() {
        let place = serve("0", Metrics::default()).unwrap();
        let address = place.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let ask = |question: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{question} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let answer = ask("GET /metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(OPENMETRICS_TYPE), "{answer}");
        assert!(answer.ends_with("\n# EOF\n"), "{answer}");
        assert!(
            ask("GET /").starts_with("HTTP/1.1 404 ") && ask("POST /metrics").starts_with("HTTP/1.1 404 ")
        );
        let taken = serve(address, Metrics::default()).unwrap_err().message.unwrap();
        assert!(taken.starts_with(&format!("cannot serve metrics at {address}: ")), "{taken}");
    }
}
