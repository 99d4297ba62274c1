//! CPU time that a busy-polling client spent on polls that found no answer. It is not work, so
//! figures for client CPU leave it out.

use crate::window::counters::{Change, HOST_BUSY};
use crate::window::{Span, WindowSummary};

/// CPU time of the load threads' polls that found nothing, between the samples nearest to `span`.
/// `None` for a client that sleeps.
pub(crate) fn polled(step: &WindowSummary<'_>, span: Span) -> Option<Change> {
    step.change_over("load", &["polled_us"], span)
}

/// CPU time of the client or the host, without the polls in that time that found nothing.
pub(crate) fn without(step: &WindowSummary<'_>, busy: Change) -> Change {
    let polled_us =
        polled(step, busy.between).map_or(0.0, |polled| polled.per_second() * busy.between.seconds());
    Change { value: (busy.value - polled_us).max(0.0), ..busy }
}

/// CPU time that the host was busy, without polls that found nothing.
pub(crate) fn host_busy(step: &WindowSummary<'_>) -> Option<Change> {
    Some(without(step, step.change("host", &HOST_BUSY)?))
}

/// Share of the load threads' CPU time that was spent on such polls.
pub(crate) fn share(step: &WindowSummary<'_>) -> Option<f64> {
    let polled = polled(step, step.window)?;
    let cpu = step.change("load", &["cpu_us"]).filter(|cpu| cpu.value > 0.0)?;
    Some((polled.per_second() / cpu.per_second()).min(1.0))
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{series, summary, with_counters};
    use crate::metrics::cost::cost;
    use crate::metrics::original::metric_row;
    use crate::window::WindowSummary;
    use crate::window::counters::{Counters, HOST_BUSY};

    /// A step of 500 queries in 2.5 s. A load thread used 2 s of CPU time, of which `polled_us`
    /// were polls that found nothing.
    fn of(polled_us: Option<i64>, check: impl Fn(&WindowSummary<'_>)) {
        let two = |values: Vec<i64>| [(0, vec![0; values.len()]), (2_500_000, values)];
        let mut counters: Counters = match polled_us {
            Some(polled_us) => series("load", &["cpu_us", "polled_us"], &two(vec![2_000_000, polled_us])),
            None => series("load", &["cpu_us"], &two(vec![2_000_000])),
        };
        let client = ["cpu_us", "cpu_user_us", "cpu_kernel_us"];
        counters.extend(series("client", &client, &two(vec![2_100_000, 1_000_000, 1_000_000])));
        counters.extend(series("server", &client, &two(vec![500_000, 250_000, 250_000])));
        counters.extend(series("host", &HOST_BUSY, &two(vec![3_000_000, 0, 0, 0, 0])));
        check(&summary(&with_counters(&counters)));
    }

    #[test]
    fn what_is_polled_in_vain_is_in_no_figure_but_its_own() {
        of(Some(1_500_000), |step| {
            let cost = cost(step, None);
            assert_eq!((cost.client_cpu_us, cost.client_polling_share), (Some(1_200.0), Some(0.75)));
            assert_eq!((cost.client_user_us, cost.client_kernel_us), (None, None));
            assert_eq!((cost.server_cpu_us, cost.rest_cpu_us), (Some(1_000.0), Some(800.0)));
            let row = metric_row(step, "a");
            assert_eq!((row.cpupq, row.cpups), (Some(3_000.0), Some(15.0)));
        });
    }

    #[test]
    fn a_client_that_sleeps_has_polled_nothing() {
        of(None, |step| {
            let cost = cost(step, None);
            assert_eq!((cost.client_cpu_us, cost.client_polling_share), (Some(4_200.0), None));
            assert_eq!(cost.client_user_us, Some(2_100.0));
            assert_eq!((cost.rest_cpu_us, metric_row(step, "a").cpupq), (Some(800.0), Some(6_000.0)));
        });
    }
}
