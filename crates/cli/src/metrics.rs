//! Serves what a run measures while it goes on, as OpenMetrics text over HTTP: counts since each
//! step began, and rates and percentiles of the last second.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dbdyno_record::{CellId, Interval};
use dbdyno_report::{Exposition, Labels, OPENMETRICS_TYPE};
use hdrhistogram::Histogram;

use crate::exit::ExitError;
use crate::http::{self, Answer};
use crate::terminal;

/// Quantiles that are shown of the last second's response times.
const QUANTILES: [(&str, f64); 4] = [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99), ("1.0", 1.0)];

/// Time that a client has for its request, and again for taking the response.
const PATIENCE: Duration = Duration::from_secs(2);

/// Metrics that the measuring thread and the answering thread share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    run: String,
    plan: String,
    /// Part of the run that is done (0 to 1), and seconds to its end.
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
    /// Quantiles by kind of operation, in microseconds, of the second that is about to end.
    times_us: BTreeMap<String, [u64; 4]>,
}

#[derive(Debug, Default)]
struct KindState {
    /// Sums since the step began. Momentary values are those of the last second.
    sum: Interval,
    /// Response times of the last second in microseconds, in the order of [`QUANTILES`].
    quantiles_us: Option<[u64; 4]>,
}

impl Metrics {
    pub(crate) fn name(&self, run: &str, plan: &str) {
        self.change(|state| (state.run, state.plan) = (run.to_owned(), plan.to_owned()));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sets how far the run is, from 0 to 1, and the seconds that it will still take.
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

    fn reply(&self, path: &str) -> Answer {
        match path {
            "/metrics" => Answer { status: "200 OK", kind: OPENMETRICS_TYPE, body: self.text() },
            _ => {
                let body = "metrics are at /metrics\n".to_owned();
                Answer { status: "404 Not Found", kind: "text/plain", body }
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
type Family = (&'static str, &'static str, &'static str, fn(&Interval) -> u64);

const FAMILIES: [Family; 6] = [
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
pub(crate) fn serve(address: &str, metrics: Metrics) -> Result<String, ExitError> {
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
    let answer = move || http::serve(&listener, PATIENCE, move |path| metrics.reply(path));
    std::thread::Builder::new().name("metrics".to_owned()).spawn(answer).map_err(cannot)?;
    Ok(format!("http://{place}/metrics"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

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
        let place = serve("0", Metrics::default()).unwrap();
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
        let taken = serve(address, Metrics::default()).unwrap_err().message.unwrap();
        assert!(taken.starts_with(&format!("cannot serve metrics at {address}: ")), "{taken}");
    }
}
