//! Executions of queries whose time counts by itself, and the headline of a step, which may be a
//! time.

use dbdyno_record::{StepEvent, StepRecord, Unit};

use crate::model::{Composite, Execution};
use crate::statistics::describe::{geometric_mean, median};
use crate::window::{Span, WindowSummary};

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
            // An execution that was cut off would have taken longer than its time. Where the median
            // is such an execution, or is next to one, it is a bound.
            let ended = executions.iter().filter(|execution| !execution.cut_off).count();
            (middle, !seconds.is_empty() && ended <= seconds.len() / 2)
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{query_seconds_step, read_write_step, summary};

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
    }

    #[test]
    fn composite_figures_are_of_all_queries_and_the_whole_time() {
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
}
