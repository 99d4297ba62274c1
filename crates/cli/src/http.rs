//! Answers requests of a browser or of Prometheus. It serves several connections at once, each for
//! a short time, so a client that connects and sends nothing does not keep others waiting.
//!
//! The figures of a run in progress are served as OpenMetrics text: counts since each step began,
//! and rates and percentiles of the last second.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dbdyno_record::{CellId, Interval};
use dbdyno_report::{Exposition, Labels, OPENMETRICS_TYPE};
use hdrhistogram::Histogram;

use crate::exit::ExitError;
use crate::terminal;

/// Longest request in bytes with its headers. A browser sends far less.
const REQUEST_BYTES: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// Highest number of connections that are served at once. Further connections wait until one of
/// these ends.
const MOST_AT_ONCE: usize = 128;
/// Time between two checks whether a connection has ended.
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: &'static str,
    /// Value of `Content-Type`.
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

/// Answers every client that connects to `listener`. Each has the time `patience` for its request,
/// and the same time again for receiving the response. `reply` makes the response from the path of
/// a GET, and other methods are refused. A request whose `Host` is not a name of this machine is
/// refused, because a foreign page whose name resolves to this machine must not read results (DNS
/// rebinding). A request without a host is answered, because it does not come from a browser.
pub(crate) fn serve(
    listener: &TcpListener,
    patience: Duration,
    reply: impl Fn(&str) -> HttpAnswer + Send + Sync + 'static,
) {
    let reply = Arc::new(reply);
    for stream in listener.incoming().flatten() {
        // Each connection that is being served holds one reference.
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

fn answer(mut stream: &TcpStream, patience: Duration, reply: &dyn Fn(&str) -> HttpAnswer) -> io::Result<()> {
    let refusal = |status, body: &str| HttpAnswer { status, kind: "text/plain", body: body.to_owned() };
    let request = read(stream, Instant::now() + patience)?;
    let HttpAnswer { status, kind, body } = match request.path {
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

/// Reads the whole header of one request, because the response may get lost if the request was not
/// read to its end.
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
        if length == 0 || read.len() > REQUEST_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
    }
}

/// Whether the host is an IP address or a name of this machine. A foreign page has a foreign name,
/// so an address is safe.
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

/// Quantiles of the last second's response times that are shown.
const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99), ("1.0", 1.0)];

/// Time that a client has for its request, and again for receiving the response.
const PATIENCE: Duration = Duration::from_secs(2);

/// Metrics that the measuring thread and the answering thread share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<MetricsState>>);

#[derive(Debug, Default)]
struct MetricsState {
    run: String,
    plan: String,
    /// Share of the run that is done (0 to 1), and the seconds until its end.
    progress: (f64, f64),
    step: Option<StepState>,
}

/// The step that runs, or the last one that did.
#[derive(Debug, Default)]
struct StepState {
    block: String,
    variant: String,
    workload: String,
    step: String,
    /// Headline of the last second, with its unit.
    rate: (f64, String),
    kinds: BTreeMap<String, KindState>,
    /// Quantiles of the second that is about to end, by kind of operation, in microseconds.
    times_us: BTreeMap<String, [u64; 4]>,
}

#[derive(Debug, Default)]
struct KindState {
    /// Sums since the step began. Gauges have the values of the last second.
    sum: Interval,
    /// Response times of the last second in microseconds, in the order of [`QUANTILES`].
    quantiles_us: Option<[u64; 4]>,
}

impl Metrics {
    pub(crate) fn name(&self, run: &str, plan: &str) {
        self.change(|state| (state.run, state.plan) = (run.to_owned(), plan.to_owned()));
    }

    fn change(&self, change: impl FnOnce(&mut MetricsState)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sets the share of the run that is done, from 0 to 1, and the seconds that remain.
    pub(crate) fn progress(&self, done: f64, remaining_seconds: f64) {
        self.change(|state| state.progress = (done, remaining_seconds));
    }

    pub(crate) fn begin(&self, cell: &CellId, step: &str) {
        let step = StepState {
            block: cell.block.to_string(),
            variant: cell.variant.clone(),
            workload: cell.workload.clone(),
            step: step.to_owned(),
            ..StepState::default()
        };
        self.change(|state| state.step = Some(step));
    }

    /// Takes the response times of a kind of operation in the second that is about to end, in
    /// microseconds.
    pub(crate) fn times(&self, kind: &str, response: &Histogram<u64>) {
        let quantiles_us = QUANTILES.map(|(_, quantile)| response.value_at_quantile(quantile));
        self.change(|state| {
            if let Some(step) = &mut state.step {
                step.times_us.insert(kind.to_owned(), quantiles_us);
            }
        });
    }

    pub(crate) fn second(&self, intervals: &[Interval], rate: f64, unit: &str) {
        self.change(|state| {
            let Some(step) = &mut state.step else { return };
            step.rate = (rate, unit.to_owned());
            let mut times_us = std::mem::take(&mut step.times_us);
            for (name, kind) in &mut step.kinds {
                (kind.sum.backlog, kind.sum.in_flight) = (0, 0);
                kind.quantiles_us = times_us.remove(name);
            }
            for interval in intervals {
                let kind = step.kinds.entry(interval.kind.clone()).or_default();
                kind.sum += interval;
                kind.quantiles_us = kind.quantiles_us.or_else(|| times_us.remove(&interval.kind));
            }
        });
    }

    fn reply(&self, path: &str) -> HttpAnswer {
        match path {
            "/metrics" => HttpAnswer { status: "200 OK", kind: OPENMETRICS_TYPE, body: self.text() },
            _ => {
                let body = "metrics are at /metrics\n".to_owned();
                HttpAnswer { status: "404 Not Found", kind: "text/plain", body }
            }
        }
    }

    fn text(&self) -> String {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Exposition::default();
        text.family("dbdyno_run", "info", "The run that goes on.");
        let labels =
            [("run", state.run.as_str()), ("plan", &state.plan), ("version", env!("CARGO_PKG_VERSION"))];
        text.sample("dbdyno_run_info", &labels, 1.0);
        let (done, remaining) = state.progress;
        text.family("dbdyno_run_done_ratio", "gauge", "Part of the run that is done.");
        text.sample("dbdyno_run_done_ratio", &[], done);
        text.family("dbdyno_run_remaining_seconds", "gauge", "Time that the run will still take.");
        text.sample("dbdyno_run_remaining_seconds", &[], remaining);
        if let Some(step) = &state.step {
            step.write(&mut text);
        }
        text.end()
    }
}

/// Name, kind, help and value of a metric family that has one sample per kind of operation.
type MetricFamily = (&'static str, &'static str, &'static str, fn(&Interval) -> u64);

const FAMILIES: [MetricFamily; 6] = [
    ("dbdyno_operations", "counter", "Operations answered since the step began.", |sum| sum.done),
    ("dbdyno_rows", "counter", "Rows inserted, deleted, fetched or indexed since the step began.", |sum| {
        sum.rows
    }),
    ("dbdyno_failed_operations", "counter", "Operations that ended with an error.", |sum| sum.failed),
    ("dbdyno_errors", "counter", "Errors of all classes, retried ones too.", |sum| sum.errors.total()),
    ("dbdyno_backlog", "gauge", "Operations due and not yet sent.", |sum| sum.backlog),
    ("dbdyno_in_flight", "gauge", "Operations sent and not yet answered.", |sum| sum.in_flight),
];

impl StepState {
    fn write(&self, text: &mut Exposition) {
        let labels: &Labels<'_> = &[
            ("block", &self.block),
            ("variant", &self.variant),
            ("workload", &self.workload),
            ("step", &self.step),
        ];
        let (rate, unit) = &self.rate;
        text.family(
            "dbdyno_rate",
            "gauge",
            "Rate of the step's headline in the last second, in the unit of its label.",
        );
        text.sample("dbdyno_rate", &[labels, &[("unit", unit.as_str())]].concat(), *rate);
        for (name, family, help, value) in FAMILIES {
            text.family(name, family, help);
            let name = if family == "counter" { format!("{name}_total") } else { name.to_owned() };
            for (kind, state) in &self.kinds {
                text.sample(&name, &[labels, &[("kind", kind.as_str())]].concat(), value(&state.sum) as f64);
            }
        }
        let name = "dbdyno_response_time_seconds";
        text.family(
            name,
            "summary",
            "Response times: percentiles of the last second; count and sum since the step began.",
        );
        for (kind, state) in &self.kinds {
            let labels = [labels, &[("kind", kind.as_str())]].concat();
            for ((quantile, _), value_us) in QUANTILES.iter().zip(state.quantiles_us.iter().flatten()) {
                let labels = [&labels[..], &[("quantile", *quantile)]].concat();
                text.sample(name, &labels, *value_us as f64 / 1e6);
            }
            text.sample(&format!("{name}_count"), &labels, state.sum.done as f64);
            text.sample(&format!("{name}_sum"), &labels, state.sum.response_sum_us as f64 / 1e6);
        }
    }
}

/// Answers `GET /metrics` at `address`, which is a port of the loopback interface or an address
/// with a port. It runs in a thread of its own, and returns the address at which it listens.
pub(crate) fn serve_metrics(address: &str, metrics: Metrics) -> Result<String, ExitError> {
    let full = if address.contains(':') { address.to_owned() } else { format!("127.0.0.1:{address}") };
    let cannot = |error: std::io::Error| {
        let advice = "name a free port, or an address of this host with a port";
        ExitError::machine(format!("cannot serve metrics at {full}: {error}; {advice}"))
    };
    let listener = TcpListener::bind(&full).map_err(cannot)?;
    let place = listener.local_addr().map_err(cannot)?;
    if !place.ip().is_loopback() {
        terminal::warning(&format!(
            "metrics are served at {place}: who reaches this address reads them, without a password; \
             --metrics {} keeps them on this machine",
            place.port()
        ));
    }
    let answer = move || serve(&listener, PATIENCE, move |path| metrics.reply(path));
    std::thread::Builder::new().name("metrics".to_owned()).spawn(answer).map_err(cannot)?;
    Ok(format!("http://{place}/metrics"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

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
        let reply = |_: &str| HttpAnswer { status: "200 OK", kind: "text/plain", body: "yes".to_owned() };
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
    fn connections_that_send_nothing_keep_no_one_from_an_answer() {
        let port = serving(Duration::from_secs(3600));
        let silent: Vec<TcpStream> =
            (0..50).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        assert!(ask(port, "localhost").ends_with("yes"));
        drop(silent);
    }

    #[test]
    fn a_request_that_comes_byte_by_byte_has_no_more_time_than_another() {
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

    #[test]
    fn counts_add_up_over_seconds_and_states_are_of_the_last_one() {
        let metrics = Metrics::default();
        metrics.name("r", "p");
        let cell = CellId { block: 2, variant: "a\"b".to_owned(), workload: "w".to_owned() };
        metrics.begin(&cell, "qr100");
        metrics.progress(0.5, 90.0);
        for (done, backlog) in [(10, 3), (20, 0)] {
            let query = Interval {
                kind: "query".to_owned(),
                done,
                backlog,
                response_sum_us: 1_500,
                ..Interval::default()
            };
            metrics.second(&[query], 20.0, "queries/s");
        }
        let of_query = r#"{block="2",variant="a\"b",workload="w",step="qr100",kind="query"}"#;
        let text = metrics.text();
        for line in [
            "# TYPE dbdyno_operations counter".to_owned(),
            format!("dbdyno_operations_total{of_query} 30"),
            format!("dbdyno_backlog{of_query} 0"),
            format!("dbdyno_response_time_seconds_sum{of_query} 0.003"),
            "# UNIT dbdyno_run_done_ratio ratio".to_owned(),
            "dbdyno_run_remaining_seconds 90".to_owned(),
            "# EOF".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        metrics.begin(&cell, "qp100");
        assert!(!metrics.text().contains("qr100"), "a step that is over is not shown with the next");
    }

    #[test]
    fn metrics_are_at_their_path_only_and_an_address_is_served_once() {
        let place = serve_metrics("0", Metrics::default()).unwrap();
        let address = place.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let ask = |question: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "{question} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let answer = ask("GET /metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(OPENMETRICS_TYPE), "{answer}");
        assert!(answer.ends_with("\n# EOF\n"), "{answer}");
        assert!(
            ask("GET /").starts_with("HTTP/1.1 404 ") && ask("POST /metrics").starts_with("HTTP/1.1 405 ")
        );
        let taken = serve_metrics(address, Metrics::default()).unwrap_err().message.unwrap();
        assert!(taken.starts_with(&format!("cannot serve metrics at {address}: ")), "{taken}");
    }
}
