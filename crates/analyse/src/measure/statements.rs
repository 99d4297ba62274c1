//! Statements within a step's operations, by kind: counts, rates, times.

use dbdyno_record::{Clock, StepEvent, StepRecord, statement_kind};

use crate::measure::latency::{latency, merge};
use crate::model::{Code, Latency, StatementResult, Warning};
use crate::window::Span;

/// The statements that were counted within operations of `kind`. Where an operation is one
/// statement, its times are `operation`'s. What is wrong with a histogram goes to `faults`.
pub(crate) fn statements(
    step: &StepRecord,
    kind: &str,
    operation: &Latency,
    faults: &mut Vec<Warning>,
) -> Vec<StatementResult> {
    let mut results = Vec::new();
    for event in &step.events {
        let StepEvent::Statement { kind: of, statement, from_us, to_us, done, empty, rows } = event else {
            continue;
        };
        if of != kind {
            continue;
        }
        let window = Span::new(*from_us, *to_us);
        let tag = statement_kind(kind, statement);
        let own = merge(&step.histograms, &tag, Clock::Service, window).unwrap_or_else(|error| {
            faults.push(Warning::quoted(&error.to_string()));
            None
        });
        if let Some(own) = own.as_ref().filter(|own| own.len() != *done) {
            let fault = Warning::reason(Code::StatementTimesUnlike).at(Clock::Service.tag(&tag));
            faults.push(fault.with("timed", own.len()).with("done", *done));
        }
        results.push(StatementResult {
            statement: statement.clone(),
            count: *done,
            empty: *empty,
            rows: *rows,
            per_second: window.rate_of(*done as f64),
            service: if own.is_some() { latency(own.as_ref()) } else { operation.clone() },
        });
    }
    results
}

#[cfg(test)]
mod tests {
    use dbdyno_record::HistogramSpan;
    use hdrhistogram::Histogram;

    use super::*;
    use crate::fixtures::read_write_step;

    fn counted(kind: &str, statement: &str, done: u64, empty: u64) -> StepEvent {
        let (kind, statement) = (kind.to_owned(), statement.to_owned());
        StepEvent::Statement {
            kind,
            statement,
            from_us: 0,
            to_us: 2_000_000,
            done,
            empty,
            rows: done - empty,
        }
    }

    #[test]
    fn statements_have_their_own_times_or_those_of_the_operation_that_they_are() {
        let mut step = read_write_step();
        step.events.push(counted("query", "point-select", 1_000, 0));
        step.events.push(counted("query", "delete", 100, 30));
        step.events.push(counted("insert", "insert", 10, 0));
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        histogram.record_n(50, 1_000).unwrap();
        let span =
            HistogramSpan::new("query:point-select", Clock::Service, 0, 2_000_000, &histogram).unwrap();
        step.histograms.push(span);
        let (mut faults, operation) = (Vec::new(), Latency { count: 7, p50_us: 900, ..Latency::default() });
        let found = statements(&step, "query", &operation, &mut faults);
        let short: Vec<_> = found
            .iter()
            .map(|s| (s.statement.as_str(), s.count, s.empty, s.rows, s.per_second, s.service.p50_us))
            .collect();
        assert_eq!(short, [("point-select", 1_000, 0, 1_000, 500.0, 50), ("delete", 100, 30, 70, 50.0, 900)]);
        assert!(faults.is_empty());
    }
}
