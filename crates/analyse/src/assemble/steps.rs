//! Computes all figures of one execution of one step from its records.

use dbdyno_record::{ClientCalibration, Clock, StepRecord};
use hdrhistogram::Histogram;

use crate::measure::latency::{buckets, has_equal_service_and_response_times, latency, merge};
use crate::measure::outages::longest_without_connection;
use crate::measure::schedule::{self, judged_rate, schedule, seconds_on_target};
use crate::measure::server_state::{deferred_work, group_memory};
use crate::measure::statements::{composite, executions, headline, lookups, statements};
use crate::measure::time_series::{device_seconds, rates_of, seconds, server_events, steadiness};
use crate::metrics::cost::cost;
use crate::metrics::device::device;
use crate::metrics::efficiency::efficiency;
use crate::metrics::fsyncs::Binlog;
use crate::metrics::hardware::hardware;
use crate::metrics::host_check::host_check;
use crate::metrics::original::metric_row;
use crate::model::steps::JUDGED_FROM_SECONDS;
use crate::model::{ClientHeadroom, KindResult, StepRun, Validity, Warning};
use crate::validity::client::{self, client_headroom};
use crate::validity::record_integrity::times_fault;
use crate::validity::{operations, throttled, validity};
use crate::window::counters::KIB;
use crate::window::cpu::busiest_thread;
use crate::window::{Hosting, KindSummary, WindowSummary};

/// What a step's figures depend on in addition to the step's own record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepContext<'a> {
    pub(crate) block: u32,
    /// The metric row's last column, which is the variant's name.
    pub(crate) tag: &'a str,
    pub(crate) hosting: Hosting,
    pub(crate) cpus: u32,
    /// Whether a step that the client limited is invalid. It is `false` for builds of dbdyno whose
    /// client is slow by nature.
    pub(crate) judges_client: bool,
    /// Whether the plan gives the client CPUs on which no other program is meant to run.
    pub(crate) client_has_own_cpus: bool,
    /// The variant's driver, for which the client was calibrated.
    pub(crate) driver: &'a str,
    pub(crate) calibration: Option<&'a ClientCalibration>,
    /// How often the server syncs its binary log in addition to the engine's files; `None` where
    /// the server does not count all of its syncs.
    pub(crate) syncs: Option<Binlog>,
}

/// The figures of a step, without its response times.
pub(crate) fn step_run(step: &StepRecord, around: StepContext<'_>) -> StepRun {
    timed_run(step, around).0
}

/// The figures of a step, and the response times of its headline operations. The figures of a step
/// that never reached its common window are zero or absent, and its validity says why.
pub(crate) fn timed_run(step: &StepRecord, around: StepContext<'_>) -> (StepRun, Option<Histogram<u64>>) {
    let summary = WindowSummary::of(step, around.hosting, around.cpus);
    let of_records = validity(step);
    let is_sound = of_records == Validity::Valid;
    let (mut kinds, mut faults, mut times) = (Vec::new(), Vec::new(), None);
    for kind in &summary.kinds {
        let found = kind_result(step, &summary, kind, is_sound);
        times = if kind.spec.kind == step.spec.headline.kind { found.response } else { times };
        kinds.push(found.result);
        faults.extend(found.faults);
    }
    let cost = cost(&summary, around.syncs);
    let client_headroom = around.calibration.and_then(|found| client_headroom(found, around.driver, &kinds));
    faults.extend(operation_faults(&summary, &kinds));
    if around.judges_client {
        let is_long = summary.window.seconds() >= JUDGED_FROM_SECONDS;
        let waited = cost.load_thread_wait_share.filter(|_| around.client_has_own_cpus && is_long);
        faults.extend(client_faults(step, &summary, waited, client_headroom, &kinds));
    }
    let target = step.spec.target.as_ref();
    let seconds = seconds(&summary);
    let tail_from_second = summary.tail_from.map(|second| second - summary.window.whole_seconds().start);
    let telling = summary.has_telling_seconds();
    let metrics = metric_row(&summary, around.tag);
    let executions = executions(step);
    let (figure, cut_off) = headline(&summary, &executions);
    let run = StepRun {
        block: around.block,
        validity: faults.into_iter().fold(of_records, add_reason),
        window_seconds: summary.window.seconds(),
        rate: figure,
        cut_off,
        too_few: summary.too_few(),
        composite: composite(&executions, summary.window),
        executions,
        kinds,
        efficiency: efficiency(&summary, &metrics),
        device: device(&summary),
        hardware: hardware(&summary),
        host_check: host_check(&summary),
        metrics,
        cost,
        client_headroom,
        seconds_on_target: target.and_then(|target| seconds_on_target(&summary, target)),
        judged_background_rate: target.and_then(|target| summary.in_window(judged_rate(&summary, target))),
        lookups: lookups(step),
        steadiness: steadiness(
            &rates_of(&seconds, &step.spec.headline.kind, tail_from_second),
            longest_without_connection(step, summary.window),
        )
        .filter(|_| telling),
        device_seconds: device_seconds(&summary),
        server_events: server_events(&summary, &seconds),
        seconds,
        has_telling_seconds: telling,
        tail_from_second,
        deferred_work: deferred_work(&step.counters),
        group_memory: group_memory(&summary),
        written_kib: summary.per_unit("disk", &["written_bytes"]).map(|bytes| bytes / KIB),
    };
    (run, times)
}

/// Returns the reasons why the figures do not describe the requested load: too many operations
/// failed, or the warm-up left too many waiting.
fn operation_faults(summary: &WindowSummary<'_>, kinds: &[KindResult]) -> Vec<Warning> {
    let headline_kinds = kinds.iter().filter(|kind| kind.kind == summary.spec.headline.kind);
    let refused = headline_kinds.filter_map(|kind| operations::refused_fault(kind, summary.events));
    let waited = kinds.iter().filter_map(|kind| operations::backlog_fault(summary, kind));
    refused.chain(waited).collect()
}

/// Returns every reason why the step's figures show the client's limit and not the server's. The
/// client had no time left, was held up on its own CPUs for the share `waited` of the window,
/// reached its calibrated rate, or sent late.
fn client_faults(
    step: &StepRecord,
    summary: &WindowSummary<'_>,
    waited: Option<f64>,
    reached: Option<ClientHeadroom>,
    kinds: &[KindResult],
) -> Vec<Warning> {
    let busy =
        busiest_thread(summary).and_then(|busiest| client::busy_fault(busiest, summary.window.seconds()));
    let busy = busy.or_else(|| waited.and_then(client::wait_fault));
    // Threads that a quota keeps off their CPUs do not wait for another program.
    let busy = busy.filter(|_| !throttled::is_client(step));
    let at_its_rate = reached.as_ref().and_then(client::headroom_fault);
    let late = kinds.iter().filter_map(schedule::schedule_fault);
    busy.into_iter().chain(at_its_rate).chain(late).chain(client::limiting_hosts(summary.events)).collect()
}

/// Adds a reason. A valid step becomes invalid, and an invalid one has one more reason. A failed or
/// interrupted step stays as it is, because its figures are not used anyway.
pub(crate) fn add_reason(validity: Validity, reason: Warning) -> Validity {
    match validity {
        Validity::Valid => Validity::Invalid { reasons: vec![reason] },
        Validity::Invalid { mut reasons } => {
            reasons.push(reason);
            Validity::Invalid { reasons }
        }
        other => other,
    }
}

/// The figures from the records of one kind of operation.
struct KindFindings {
    result: KindResult,
    response: Option<Histogram<u64>>,
    faults: Vec<Warning>,
}

/// The figures of one kind. If the rest of the records `is_sound`, it also checks that the
/// histograms hold a time for each operation.
fn kind_result(
    step: &StepRecord,
    summary: &WindowSummary<'_>,
    kind: &KindSummary<'_>,
    is_sound: bool,
) -> KindFindings {
    let (spec, window, wrong, done) = (kind.spec, summary.window, kind.failed_or_dropped(), kind.done);
    let mut faults = Vec::new();
    let mut histogram = |clock| {
        merge(&step.histograms, &spec.kind, clock, window).unwrap_or_else(|error| {
            faults.push(Warning::quoted(&error.to_string()));
            None
        })
    };
    let service = histogram(Clock::Service);
    let service_latency = latency(service.as_ref());
    let buckets = buckets(service.as_ref());
    let (response, response_latency) =
        match has_equal_service_and_response_times(&step.histograms, &spec.kind, window) {
            true => (service, service_latency.clone()),
            false => {
                let response = histogram(Clock::Response);
                let found = latency(response.as_ref());
                (response, found)
            }
        };
    let lag = histogram(Clock::Lag);
    if faults.is_empty() && is_sound {
        faults.extend(operations::littles_law_fault(summary, kind));
        let timed = [(Clock::Service, service_latency.count), (Clock::Response, response_latency.count)];
        faults.extend(times_fault(summary, kind, timed));
    }
    let operations_per_second = window.rate_of(done.operations);
    let result = KindResult {
        kind: spec.kind.clone(),
        connections: kind.connections,
        arrivals: spec.arrivals.clone(),
        operations: kind.answered.operations.round() as u64,
        rows: kind.answered.rows.round() as u64,
        failed: wrong.failed,
        dropped: wrong.dropped,
        errors: wrong.errors,
        operations_per_second,
        rows_per_second: window.rate_of(done.rows),
        statements_per_second: operations_per_second * f64::from(spec.statements_per_operation),
        statements: statements(step, &spec.kind, &service_latency, &mut faults),
        service: service_latency,
        response: response_latency,
        schedule: schedule(summary, kind, latency(lag.as_ref())),
        buckets,
    };
    KindFindings { result, response, faults }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{HistogramSpan, Outcome, StepEvent};

    use super::*;
    use crate::fixtures::{calibration, codes, ended, read_write_step, series};
    use crate::model::Code;

    fn around() -> StepContext<'static> {
        StepContext {
            block: 3,
            tag: "a",
            hosting: Hosting::Process,
            cpus: 4,
            judges_client: true,
            client_has_own_cpus: false,
            driver: "mysql",
            calibration: None,
            syncs: Some(Binlog::NotSynced),
        }
    }

    #[test]
    fn a_step_of_three_kinds_over_an_odd_window_gives_the_figures_worked_out_by_hand() {
        let mut step = read_write_step();
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        histogram.record_n(200, 400).unwrap();
        histogram.record_n(5_000, 100).unwrap();
        step.histograms.push(HistogramSpan::new("query", Clock::Service, 0, 1_000_000, &histogram).unwrap());
        let run = step_run(&step, around());
        assert_eq!((run.block, &run.validity, run.window_seconds), (3, &Validity::Valid, 2.5));
        assert_eq!(run.rate, 200.0); // 500 queries / 2.5 s
        let [insert, delete, query] = run.kinds.as_slice() else { panic!("three kinds") };
        assert_eq!((insert.operations, insert.rows, insert.rows_per_second), (10, 500, 200.0));
        assert_eq!((delete.operations_per_second, delete.connections), (4.0, 2)); // 10 / 2.5 s; 2 clients
        assert_eq!((query.operations, query.rows, query.operations_per_second), (500, 5_000, 200.0));
        assert_eq!((query.service.count, query.service.p50_us, query.response.count), (500, 200, 0));
        let shares: Vec<_> = query.buckets.iter().take(4).map(|bucket| bucket.percent).collect();
        assert_eq!(shares, [80.0, 0.0, 0.0, 20.0]); // 400 of 500 within 256 us, 100 within 16 ms
        assert_eq!(run.seconds_on_target, Some(1.0)); // 200 rows in both whole seconds, target 200
    }

    #[test]
    fn a_step_that_the_client_limited_is_invalid_unless_the_build_is_slow_by_nature() {
        let mut step = read_write_step();
        let keys = ["load-0.cpu_us", "load-0.run_delay_us"];
        step.counters.extend(series(
            "load",
            &keys,
            &[(0, vec![0; 2]), (2_500_000, vec![2_000_000, 500_000])],
        ));
        let run = step_run(&step, around());
        assert_eq!(run.cost.busiest_load_thread_share, Some(1.0)); // 2.5 of 2.5 s
        assert_eq!(codes(&run), [Code::ClientBusy]);
        let slow = step_run(&step, StepContext { judges_client: false, ..around() });
        assert_eq!(slow.validity, Validity::Valid);
    }

    #[test]
    fn a_step_whose_client_waited_for_its_own_cpus_is_invalid() {
        let mut step = read_write_step();
        let keys = ["load-0.cpu_us", "load-0.run_delay_us"];
        step.counters.extend(series("load", &keys, &[(0, vec![0; 2]), (2_500_000, vec![500_000, 500_000])]));
        assert_eq!(step_run(&step, around()).validity, Validity::Valid, "client and server share CPUs");
        let run = step_run(&step, StepContext { client_has_own_cpus: true, ..around() });
        assert_eq!(run.cost.load_thread_wait_share, Some(0.2));
        assert_eq!(codes(&run), [Code::ClientWaited]);
    }

    #[test]
    fn a_step_at_the_calibrated_rate_of_its_client_is_invalid_and_shows_both_rates() {
        let calibrated = |reached: Option<f64>| {
            let calibration = reached.map(|rate| calibration(16, rate));
            step_run(&read_write_step(), StepContext { calibration: calibration.as_ref(), ..around() })
        };
        let run = calibrated(Some(220.0));
        let client_headroom = run.client_headroom.unwrap();
        // 500 queries, 10 inserts and 10 deletes in 2.5 s make 208 per second. 2 clients have 3
        // connections each.
        assert_eq!((client_headroom.statements_per_second, client_headroom.connections), (208.0, 6));
        assert_eq!((client_headroom.could_per_second, client_headroom.could_connections), (220.0, 16));
        assert_eq!(codes(&run), [Code::ClientAtItsRate]);
        assert_eq!(calibrated(Some(240.0)).validity, Validity::Valid);
        assert_eq!(calibrated(None).client_headroom, None);
    }

    #[test]
    fn a_step_whose_client_was_late_is_invalid_unless_the_build_is_slow_by_nature() {
        let mut step = read_write_step();
        let (process, kind) = ("constant".to_owned(), "insert".to_owned());
        let operations_per_second = 4.0;
        step.events.push(StepEvent::Scheduled { kind, process, operations_per_second, connections: 2 });
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        histogram.record_n(60, 970).unwrap();
        histogram.record_n(3_000, 30).unwrap();
        step.histograms.push(HistogramSpan::new("insert", Clock::Lag, 0, 1_000_000, &histogram).unwrap());
        let run = step_run(&step, around());
        let schedule = run.kinds[0].schedule.as_ref().unwrap();
        assert_eq!((schedule.asked_per_second, schedule.lag.count, schedule.lag.p50_us), (4.0, 1_000, 60));
        assert_eq!(codes(&run), [Code::ClientLate]);
        let slow = step_run(&step, StepContext { judges_client: false, ..around() });
        assert_eq!(slow.validity, Validity::Valid);
    }

    #[test]
    fn a_failed_step_keeps_what_it_measured_but_is_not_valid() {
        let run = step_run(&ended(read_write_step(), Outcome::Failed, "disk full"), around());
        assert_eq!(run.validity, Validity::Failed { message: "disk full".to_owned() });
        assert_eq!(run.rate, 200.0);
    }

    #[test]
    fn a_step_that_never_reached_a_window_has_no_rate() {
        let mut step = read_write_step();
        step.events.truncate(1);
        step.intervals[0].failed = 4;
        step.intervals[0].errors.lost = 4;
        let run = step_run(&step, around());
        assert_eq!((run.validity, run.rate, run.window_seconds), (Validity::Interrupted, 0.0, 0.0));
        assert_eq!(
            (run.kinds[0].operations, run.seconds.len(), run.metrics.median_second_rate),
            (0, 0, None)
        );
        assert_eq!((run.metrics.qps, run.metrics.maxop, run.efficiency.o_s), (None, None, None));
        let kind = run.kinds.iter().find(|kind| kind.kind == step.intervals[0].kind).unwrap();
        assert_eq!((kind.failed, kind.errors.lost), (4, 4), "what went wrong is counted all the same");
    }

    #[test]
    fn a_fault_makes_a_valid_step_invalid_and_leaves_a_failed_one_failed() {
        let [a, b] = ["a", "b"].map(Warning::quoted);
        let twice = add_reason(add_reason(Validity::Valid, a.clone()), b.clone());
        assert_eq!(twice, Validity::Invalid { reasons: vec![a.clone(), b] });
        assert_eq!(add_reason(Validity::Interrupted, a), Validity::Interrupted);
    }
}
