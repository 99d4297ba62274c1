//! Tests of `dbdyno run --metrics`: Prometheus itself reads the figures while a run goes on, and
//! the file of figures after it has ended. Prometheus must have an answer to each query of the
//! Grafana dashboard.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::commands::plan;
use crate::support::{Desk, wait_for};

const ONE_VARIANT: &str =
    "[[variant]]\nname = \"only\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";

/// A Prometheus that scrapes its targets every second.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    fn start(desk: &Desk, targets: &[(&str, u16)]) -> Self {
        let job = |(name, port): &(&str, u16)| {
            format!("  - job_name: {name}\n    static_configs:\n      - targets: ['127.0.0.1:{port}']\n")
        };
        let jobs: String = targets.iter().map(job).collect();
        let config = format!("global:\n  scrape_interval: 1s\nscrape_configs:\n{jobs}");
        let config = desk.write("prometheus.yml", &config);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = std::fs::File::create(desk.path("prometheus.log")).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", desk.path("tsdb").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("prometheus");
        Self { child, port }
    }

    /// Returns the samples that answer a query. They are empty while there is no answer.
    fn answer(&self, query: &str) -> Vec<Value> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let query: String = query
            .bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect();
        let path = format!("/api/v1/query?query={query}");
        let answer = asked(self.port, &path);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        assert_ne!(answer["status"], "error", "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the body of an HTTP response, which is empty while no server answers.
fn asked(port: u16, path: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
    };
    ask().unwrap_or_default()
}

/// Serves a file over HTTP, and returns the port. The response is empty while the file does not
/// exist.
fn served(file: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\n\r\n{text}");
        }
    });
    port
}

/// Returns each query of the Grafana dashboard, with its variables filled in.
fn queries_of_the_board() -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("expr").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| collect(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/grafana.json");
    let board: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut found = Vec::new();
    collect(&board, &mut found);
    found.iter().map(|query| query.replace("$__rate_interval", "10s")).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: Prometheus"]
fn prometheus_reads_a_run_while_it_goes_on_and_its_figures_at_the_end() {
    let desk = Desk::new();
    // The step is long, because the test stops the run once all queries have answers.
    desk.write("p.toml", &plan(ONE_VARIANT, "read_write_time = \"120s\""));
    let running = desk.start(&mut desk.command(&["run", "p.toml", "--metrics", "0"]));
    let port = wait_for("the port", || {
        let said = running.said();
        said.split_once("metrics: http://127.0.0.1:")?.1.split_once('/')?.0.parse::<u16>().ok()
    });
    assert_eq!(asked(port, "/"), "metrics are at /metrics\n");
    let file = desk.run_dir().join("metrics.prom");
    let prometheus = Prometheus::start(&desk, &[("run", port), ("file", served(file))]);
    let queries = queries_of_the_board();
    assert!(queries.len() >= 6, "{queries:?}");
    for query in &queries {
        wait_for(query, || (!prometheus.answer(query).is_empty()).then_some(()));
    }
    let operations = prometheus.answer("dbdyno_operations_total{kind=\"query\"}");
    let labels = &operations[0]["metric"];
    assert_eq!(
        (&labels["variant"], &labels["workload"], &labels["step"]),
        (&"only".into(), &"insert-benchmark".into(), &"qr100".into())
    );
    running.signal(Signal::SIGINT);
    assert_eq!(running.wait().code, Some(130));
    wait_for("the figures", || {
        (!prometheus.answer("dbdyno_step_rate{step=\"l.i0\"}").is_empty()).then_some(())
    });
    // The load's operations are too few for a p99.
    assert_eq!(prometheus.answer("dbdyno_step_response_p50_seconds{step=\"l.i0\"}").len(), 1);
    assert_eq!(prometheus.answer("dbdyno_step_response_p99_seconds{step=\"l.i0\"}").len(), 0);
}

#[test]
fn an_address_that_is_taken_ends_the_run_before_it_begins() {
    let desk = Desk::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = desk.dbdyno(&["run", "--metrics", &address]);
    assert_eq!(ended.code, Some(3));
    assert!(ended.err.contains(&format!("cannot serve metrics at {address}: ")), "{}", ended.err);
    assert!(desk.run_dirs().is_empty());
}
