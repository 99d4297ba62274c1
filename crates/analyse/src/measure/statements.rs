//! Collects a step's statements:
//!
//! * Statements within operations are counted by kind.
//! * Executions of queries have a time that counts by itself. A step's headline may be such a time.
//! * Statements that a step sends outside its operations are counted by what they ask for (the
//!   lowest id, the highest id, the INSERT before the indexes).

use dbdyno_record::{Clock, StepEvent, StepRecord, Unit, statement_kind};

use crate::measure::latency::{latency, merge};
use crate::model::{Code, Composite, Execution, Latency, Lookups, StatementResult, Warning};
use crate::statistics::describe::{geometric_mean, median};
use crate::window::{Span, WindowSummary};

/// The statements that were counted within operations of `kind`. Where an operation is one
/// statement, the statement's times are those of `operation`. A histogram that cannot be unpacked,
/// or that does not have a time for each statement, is added to `faults`.
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

/// The executions of a step in their order.
pub(crate) fn executions(step: &StepRecord) -> Vec<Execution> {
    let of = |event: &StepEvent| match event {
        StepEvent::Execution(execution) => Some(Execution {
            name: execution.name.clone(),
            client: execution.client,
            repetition: execution.repetition,
            seconds: execution.duration_us as f64 / 1e6,
            cut_off: execution.cut_off,
            rows: execution.rows,
            answer: execution.answer.clone(),
        }),
        _ => None,
    };
    step.events.iter().filter_map(of).collect()
}

/// The one figure that a step is about: a rate over the window, or a time. The flag says whether a
/// time is only a bound.
pub(crate) fn headline(step: &WindowSummary<'_>, executions: &[Execution]) -> (f64, bool) {
    match step.spec.headline.unit {
        Unit::Operations | Unit::Rows => (step.headline_rate(), false),
        Unit::Elapsed => (step.window.seconds(), executions.iter().any(|execution| execution.cut_off)),
        Unit::Seconds => {
            let seconds: Vec<f64> = executions.iter().map(|execution| execution.seconds).collect();
            let middle = median(&seconds).unwrap_or(0.0);
            (middle, is_median_bound(executions.iter().map(|one| (one.seconds, one.cut_off))))
        }
    }
}

/// Whether the median of these times is only a bound. Each time comes with a flag: whether a time
/// limit cut it off. The true median is longer if a time at or below it was cut off.
pub(crate) fn is_median_bound(times: impl Iterator<Item = (f64, bool)>) -> bool {
    let mut sorted: Vec<(f64, bool)> = times.collect();
    sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    // For an even number of times, the median is between this time and the one before.
    let Some((middle, _)) = sorted.get(sorted.len() / 2) else { return false };
    sorted.iter().any(|(time, is_cut_off)| *is_cut_off && time <= middle)
}

/// Figures over all queries, for a step that has several.
pub(crate) fn composite(executions: &[Execution], window: Span) -> Option<Composite> {
    let first = executions.first()?;
    if window.seconds() <= 0.0 || executions.iter().all(|execution| execution.name == first.name) {
        return None;
    }
    let queries = executions.iter().filter(|execution| execution.name.starts_with('q')).count();
    let seconds: Vec<f64> = executions.iter().map(|execution| execution.seconds).collect();
    Some(Composite {
        queries,
        geometric_mean_seconds: geometric_mean(&seconds)?,
        queries_per_hour: 3600.0 * queries as f64 / window.seconds(),
        cut_off: executions.iter().filter(|execution| execution.cut_off).count(),
    })
}

/// One entry per name, in the order in which the names were first sent.
pub(crate) fn lookups(step: &StepRecord) -> Vec<Lookups> {
    let mut found: Vec<(&str, Vec<u64>)> = Vec::new();
    for event in &step.events {
        let StepEvent::Lookup { name, duration_us, .. } = event else { continue };
        match found.iter_mut().find(|(known, _)| known == name) {
            Some((_, durations_us)) => durations_us.push(*duration_us),
            None => found.push((name, vec![*duration_us])),
        }
    }
    found.iter().map(|(name, durations_us)| Lookups::of(name, durations_us)).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::HistogramSpan;
    use hdrhistogram::Histogram;

    use super::*;
    use crate::fixtures::{query_seconds_step, read_write_step, summary};

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

    fn found(seconds: &[(f64, bool)]) -> (f64, bool) {
        let step = query_seconds_step("q1", seconds);
        headline(&summary(&step), &executions(&step))
    }

    #[test]
    fn the_headline_of_a_query_is_its_median_time() {
        assert_eq!(found(&[(3.0, false), (1.0, false), (2.0, false)]), (2.0, false));
        assert_eq!(found(&[(43.0, false), (13.0, false)]), (28.0, false));
    }

    #[test]
    fn a_median_among_executions_that_were_cut_off_is_a_bound() {
        assert_eq!(found(&[(5.0, true)]), (5.0, true));
        assert_eq!(found(&[(1.0, false), (2.0, false), (5.0, true)]), (2.0, false));
        assert_eq!(found(&[(1.0, false), (5.0, true)]), (3.0, true));
        // A refresh that was cut off early may be the longest of all.
        assert_eq!(found(&[(1.0, true), (1.5, false), (1.6, false)]), (1.5, true));
    }

    #[test]
    fn composite_figures_cover_all_queries_and_the_whole_time() {
        let mut of_step = executions(&query_seconds_step("q1", &[(2.0, false), (8.0, true)]));
        assert_eq!(composite(&of_step, Span::new(0, 10_000_000)), None);
        of_step[0].name = "rf1".to_owned();
        let found = composite(&of_step, Span::new(0, 10_000_000)).unwrap();
        assert!((found.geometric_mean_seconds - 4.0).abs() < 1e-12);
        assert_eq!((found.queries, found.queries_per_hour, found.cut_off), (1, 360.0, 1));
    }

    #[test]
    fn a_piece_of_work_takes_its_window() {
        let mut step = read_write_step();
        step.spec.headline.unit = Unit::Elapsed;
        assert_eq!(headline(&summary(&step), &[]), (2.5, false));
    }

    #[test]
    fn a_rare_slow_look_up_does_not_drown_among_quick_ones_of_another_name() {
        let mut step = read_write_step();
        assert_eq!(lookups(&step), []);
        let asked =
            [("min_id", 1_500_000), ("max_id", 100), ("max_id", 300), ("min_id", 250_000), ("max_id", 200)];
        step.events.extend(asked.map(|(name, duration_us)| StepEvent::Lookup {
            at_us: 1,
            client: 1,
            name: name.to_owned(),
            duration_us,
            value: Some(1),
        }));
        let figures = |found: &Lookups| (found.count, found.seconds, found.mean_seconds, found.max_seconds);
        let found = lookups(&step);
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["min_id", "max_id"]);
        assert_eq!(figures(&found[0]), (2, 1.75, 0.875, 1.5));
        assert_eq!(figures(&found[1]), (3, 0.000_6, 0.000_6 / 3.0, 0.000_3));
    }
}
