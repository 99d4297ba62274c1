//! Checks whether the load client was the limit of a step. The figures are then the client's and
//! not the server's. The cases are:
//!
//! * A load thread ran or waited for a CPU nearly all the time, or other programs held it up on the
//!   client's own CPUs.
//! * The client was close to the highest rate that was calibrated against a server that only
//!   answers.
//! * One of several client hosts was at its limit, or began late.
//! * The client stood still. This happens when the client is stopped (Ctrl-Z, SIGSTOP), and when
//!   its control group or its machine is frozen. A paused client sends nothing to the server. The
//!   load engine records each pause, without the time in which the client waited for a CPU
//!   ([`StepEvent::Paused`]).

use dbdyno_record::{
    CellRecord, ClientCalibration, ClientHost, ClientRate, LimitedBy, StepEvent, StepRecord,
};

use crate::model::steps::valid_runs;
use crate::model::{ClientHeadroom, Code, KindResult, Warning, WorkloadFindings};
use crate::validity::throttled;
use crate::window::Span;
use crate::window::cpu::{BusiestThread, client_hosts};

/// Shortest window that is judged, in seconds. The samples lie some milliseconds before and after a
/// window. In a shorter window, what a thread did in these milliseconds would be a large part of
/// its work.
const BUSY_FROM_SECONDS: f64 = 0.2;
/// Share of the time with work from which on a load thread counts as the limit.
const BUSY_LIMIT: f64 = 0.90;
/// Share of the common window for which a load thread may wait for a CPU where it has CPUs of its
/// own. Other programs on them hold up answers, and a closed loop may then send less by the same
/// share.
const WAITING_LIMIT: f64 = 0.10;

/// Why a step with a window of `window_seconds` says more about the client than about the server,
/// judged by its busiest load thread; `None` when it does not.
pub(crate) fn busy_fault(busiest: BusiestThread, window_seconds: f64) -> Option<Warning> {
    (window_seconds >= BUSY_FROM_SECONDS && busiest.wanted() >= BUSY_LIMIT).then(|| {
        Warning::reason(Code::ClientBusy)
            .with("share", busiest.wanted())
            .with("on_cpu", busiest.on_cpu)
            .with("waiting", busiest.waiting)
            .with("limit", BUSY_LIMIT)
    })
}

/// Why a step was held up by other programs on the client's own CPUs, judged by the longest wait of
/// a load thread; `None` when it was not.
pub(crate) fn wait_fault(longest_wait: f64) -> Option<Warning> {
    let fault =
        || Warning::reason(Code::ClientWaited).with("share", longest_wait).with("limit", WAITING_LIMIT);
    (longest_wait >= WAITING_LIMIT).then(fault)
}

/// Share of the client's calibrated rate from which on a step is said to be limited by the client.
const HEADROOM_LIMIT: f64 = 0.90;
/// Above this share, the client has done more than the calibration says it can. The calibration is
/// then wrong, not the step. The load threads still show whether the client had time left.
const PROVED_WRONG: f64 = 1.0;

/// A step's statements per second compared with what the client can reach with as many connections;
/// `None` where nothing was calibrated for the driver.
pub(crate) fn client_headroom(
    calibration: &ClientCalibration,
    driver: &str,
    kinds: &[KindResult],
) -> Option<ClientHeadroom> {
    let connections = kinds.iter().map(|kind| kind.connections).sum();
    let could = best_around(&calibration.rates, driver, connections)?;
    Some(ClientHeadroom {
        statements_per_second: kinds.iter().map(|kind| kind.statements_per_second).sum(),
        connections,
        could_per_second: could.statements_per_second,
        could_connections: could.connections,
        at_least: could.limit != LimitedBy::Client,
    })
}

/// The higher of the rates at the nearest calibrated numbers of connections: the one not above and
/// the one not below. The lower number alone would condemn valid steps, because eight connections
/// reach several times what one does.
fn best_around<'a>(rates: &'a [ClientRate], driver: &str, connections: u32) -> Option<&'a ClientRate> {
    let of_driver = || rates.iter().filter(|rate| rate.driver == driver);
    let below =
        of_driver().filter(|rate| rate.connections <= connections).max_by_key(|rate| rate.connections);
    let above =
        of_driver().filter(|rate| rate.connections >= connections).min_by_key(|rate| rate.connections);
    let both = below.into_iter().chain(above);
    both.max_by(|a, b| a.statements_per_second.total_cmp(&b.statements_per_second))
}

/// Why the step says more about the client than about the server. It is `None` when the step does
/// not, and also where the client could reach a higher rate than the calibrated one, or did reach
/// it.
pub(crate) fn headroom_fault(client_headroom: &ClientHeadroom) -> Option<Warning> {
    let share = client_headroom.share();
    let fault =
        || with_rates(Warning::reason(Code::ClientAtItsRate), client_headroom).with("limit", HEADROOM_LIMIT);
    (!client_headroom.at_least && (HEADROOM_LIMIT..=PROVED_WRONG).contains(&share)).then(fault)
}

fn with_rates(warning: Warning, client_headroom: &ClientHeadroom) -> Warning {
    warning
        .with("rate", client_headroom.statements_per_second)
        .with("connections", client_headroom.connections)
        .with("share", client_headroom.share())
        .with("could", client_headroom.could_per_second)
        .with("could_connections", client_headroom.could_connections)
}

/// A warning that the calibration is below what steps have reached. Where the client was not the
/// limit of the calibration, a step with more connections that reaches more proves nothing.
pub(crate) fn headroom_warning(workloads: &[WorkloadFindings]) -> Option<Warning> {
    let is_wrong = |client_headroom: &ClientHeadroom| {
        let is_bound =
            !client_headroom.at_least || client_headroom.connections <= client_headroom.could_connections;
        is_bound && client_headroom.share() > PROVED_WRONG
    };
    let runs = valid_runs(workloads);
    let wrong: Vec<_> =
        runs.filter_map(|found| Some((found.run.client_headroom.filter(is_wrong)?, found))).collect();
    let (client_headroom, worst) =
        wrong.iter().max_by(|one, other| one.0.share().total_cmp(&other.0.share()))?;
    let warning = Warning::new(Code::CalibrationWrong).at(worst.place()).with("runs", wrong.len());
    Some(with_rates(warning, client_headroom))
}

/// Longest accepted time by which a host begins after the others, in microseconds. A host that
/// begins later has put on less load than the others, in seconds that count.
const LATE_US: u64 = 1_000;

/// Hosts that began too late, by what they report or by the possible error of their clocks.
pub(crate) fn late_hosts(events: &[StepEvent]) -> Vec<Warning> {
    let is_late = |host: &&ClientHost| host.late_us + host.clock_error_us > LATE_US;
    let fault = |host: &ClientHost| {
        Warning::reason(Code::ClientHostLate)
            .at(&host.host)
            .with("late_us", host.late_us)
            .with("clock_error_us", host.clock_error_us)
            .with("limit_us", LATE_US)
    };
    client_hosts(events).filter(is_late).map(fault).collect()
}

/// Hosts whose load threads had no time left, unless a CPU quota took it.
pub(crate) fn limiting_hosts(events: &[StepEvent]) -> Vec<Warning> {
    let share = |host: &ClientHost| {
        let busy_us = host.busiest_cpu_us + host.busiest_run_delay_us;
        let is_judged = host.measured_us as f64 / 1e6 >= BUSY_FROM_SECONDS;
        is_judged.then(|| busy_us as f64 / host.measured_us as f64)
    };
    let fault = |host: &ClientHost| {
        let share = share(host).filter(|share| *share >= BUSY_LIMIT)?;
        Some(
            Warning::reason(Code::ClientHostBusy)
                .at(&host.host)
                .with("share", share)
                .with("limit", BUSY_LIMIT),
        )
    };
    client_hosts(events).filter(|host| !throttled::is_host(host)).filter_map(fault).collect()
}

/// Largest accepted share of the common window for which the client stood still. It is the same as
/// for a CPU quota.
const PAUSE_LIMIT: f64 = 0.02;
/// Share from which a pause is reported.
const PAUSE_REPORTED: f64 = 0.005;

/// How long the client stood still within the common window, in seconds and as a share of it.
/// Several client hosts may have stood still at the same time.
fn stood_still(step: &StepRecord) -> Option<(f64, f64)> {
    let (from_us, to_us) = step.window().filter(|(from_us, to_us)| from_us < to_us)?;
    let window = Span::new(from_us, to_us);
    let paused = |event: &StepEvent| match event {
        StepEvent::Paused { to_us, paused_us } => {
            Some(window.overlap(Span::new(to_us.saturating_sub(*paused_us), *to_us)))
        }
        _ => None,
    };
    let seconds: f64 = step.events.iter().filter_map(paused).map(|pause| pause.seconds().max(0.0)).sum();
    Some((seconds, (seconds / window.seconds()).min(1.0)))
}

/// Why the step must not be used, if the client stood still for too long; `None` otherwise.
pub(crate) fn pause_fault(step: &StepRecord) -> Option<Warning> {
    let (seconds, share) = stood_still(step).filter(|(_, share)| *share > PAUSE_LIMIT)?;
    Some(
        Warning::reason(Code::Paused)
            .with("seconds", seconds)
            .with("share", share)
            .with("limit", PAUSE_LIMIT),
    )
}

/// A warning for a shorter pause that is still long enough to be reported.
pub(crate) fn pause_warning(cell: &CellRecord, step: &StepRecord) -> Option<Warning> {
    let (seconds, share) = stood_still(step)?;
    let place = format!("block {} {} {}", cell.id.block, cell.id.variant, step.name);
    (share > PAUSE_REPORTED && share <= PAUSE_LIMIT)
        .then(|| Warning::new(Code::ClientPause).at(place).with("seconds", seconds).with("share", share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, cell, client_host, load_step, shown, shown_all};
    use crate::model::Validity;
    use crate::validity::validity;

    #[test]
    fn a_thread_without_time_left_is_a_fault_and_waiting_counts() {
        let busiest = |waiting| BusiestThread { on_cpu: 0.7, waiting };
        assert_eq!(busy_fault(busiest(0.196), 60.0), None);
        assert_eq!(busy_fault(busiest(0.98), 0.004), None, "a load of a few milliseconds");
        insta::assert_snapshot!(shown(&busy_fault(busiest(0.5), 60.0).unwrap()), @"client-busy limit: 0.9, on_cpu: 0.7, share: 1.2, waiting: 0.5");
    }

    #[test]
    fn a_thread_that_waited_for_its_own_cpus_is_a_fault_from_ten_percent_on() {
        assert_eq!(wait_fault(0.096), None);
        insta::assert_snapshot!(shown(&wait_fault(0.2).unwrap()), @"client-waited limit: 0.1, share: 0.2");
    }

    fn calibration() -> ClientCalibration {
        let mut all = fixtures::calibration(1, 40_000.0);
        let first = all.rates[0].clone();
        let rate = |connections, statements_per_second, limit| ClientRate {
            connections,
            statements_per_second,
            limit,
            ..first.clone()
        };
        all.rates[0].limit = LimitedBy::RoundTrip;
        all.rates.push(rate(16, 200_000.0, LimitedBy::Client));
        all.rates.push(rate(64, 180_000.0, LimitedBy::Server));
        all
    }

    fn of(driver: &str, parts: &[(u32, f64)]) -> Option<ClientHeadroom> {
        let kind = |&(connections, statements_per_second): &(u32, f64)| KindResult {
            connections,
            statements_per_second,
            ..KindResult::default()
        };
        client_headroom(&calibration(), driver, &parts.iter().map(kind).collect::<Vec<_>>())
    }

    fn could(connections: u32) -> (u32, f64) {
        let client_headroom = of("mysql", &[(connections, 1.0)]).unwrap();
        (client_headroom.could_connections, client_headroom.could_per_second)
    }

    #[test]
    fn between_two_calibrated_numbers_of_connections_the_better_one_counts() {
        assert_eq!(could(1), (1, 40_000.0));
        assert_eq!((could(2), could(15), could(16)), ((16, 200_000.0), (16, 200_000.0), (16, 200_000.0)));
        assert_eq!((could(17), could(64), could(5_000)), ((16, 200_000.0), (64, 180_000.0), (64, 180_000.0)));
        assert!(of("postgres", &[(1, 1.0)]).is_none());
    }

    #[test]
    fn a_step_near_the_clients_calibrated_rate_has_a_fault_with_both_numbers() {
        let client_headroom = of("mysql", &[(10, 150_000.0), (6, 31_000.0)]).unwrap();
        insta::assert_snapshot!(fixtures::shown(&headroom_fault(&client_headroom).unwrap()), @"client-at-its-rate connections: 16, could: 200000.0, could_connections: 16, limit: 0.9, rate: 181000.0, share: 0.905");
        assert_eq!(headroom_fault(&of("mysql", &[(16, 179_000.0)]).unwrap()), None);
    }

    #[test]
    fn where_the_client_was_not_the_limit_it_can_do_more() {
        // The answering server had no time left, or both waited for each other.
        for (connections, statements_per_second) in [(64, 179_000.0), (1, 39_000.0), (1, 92_000.0)] {
            let client_headroom = of("mysql", &[(connections, statements_per_second)]).unwrap();
            assert!(client_headroom.at_least);
            assert_eq!(headroom_fault(&client_headroom), None);
        }
    }

    #[test]
    fn a_calibration_is_no_bound_where_it_was_passed() {
        assert!(headroom_fault(&of("mysql", &[(16, 200_000.0)]).unwrap()).is_some());
        assert_eq!(headroom_fault(&of("mysql", &[(16, 201_000.0)]).unwrap()), None);
    }

    #[test]
    fn a_calibration_that_steps_have_passed_is_reported_with_the_worst_of_them() {
        let reported = |at: u32, limit| {
            let mut run =
                fixtures::run(&["a"], 1, vec![fixtures::cell(1, "a", vec![fixtures::query_step(230, 50)])]);
            let mut calibration = fixtures::calibration(at, 100.0);
            calibration.rates[0].limit = limit;
            run.manifest.client_calibration = Some(calibration);
            let mut warnings = fixtures::texts(&crate::analyse(&run)).into_iter();
            warnings.find(|text| text.contains("calibration"))
        };
        // 230 queries, 1 insert and no delete per second, over one connection of each.
        insta::assert_snapshot!(reported(3, LimitedBy::RoundTrip).unwrap(), @"calibration-wrong [block 1 a qr100] connections: 3, could: 100.0, could_connections: 3, rate: 231.0, runs: 1, share: 2.31");
        assert!(reported(1, LimitedBy::Client).is_some());
        assert_eq!(reported(1, LimitedBy::RoundTrip), None, "three connections can reach more than one");
    }

    fn host(late_us: u64, clock_error_us: u64, busy_us: u64) -> StepEvent {
        let (busiest_cpu_us, busiest_run_delay_us) = (busy_us / 2, busy_us / 2);
        StepEvent::ClientHost(ClientHost {
            late_us,
            clock_error_us,
            busiest_cpu_us,
            busiest_run_delay_us,
            ..client_host()
        })
    }

    #[test]
    fn a_host_that_began_late_or_was_the_limit_is_named() {
        let sound = [host(0, 40, 1_700_000), host(0, 1_000, 0)];
        assert_eq!((late_hosts(&sound), limiting_hosts(&sound)), (Vec::new(), Vec::new()));
        let late = late_hosts(&[host(0, 40, 0), host(970, 31, 0)]);
        insta::assert_snapshot!(shown_all(&late), @"client-host-late [c1] clock_error_us: 31, late_us: 970, limit_us: 1000");
        let limiting = limiting_hosts(&[host(0, 40, 1_800_000)]);
        insta::assert_snapshot!(shown_all(&limiting), @"client-host-busy [c1] limit: 0.9, share: 0.9");
    }

    /// A step of 2 s in which the client stood still. Each pause is given as the moment at which it
    /// ended and its length, in ms.
    fn step(pauses: &[(u64, u64)]) -> StepRecord {
        let mut step = load_step(1_000);
        let paused =
            |(to_ms, ms): &(u64, u64)| StepEvent::Paused { to_us: 1000 * to_ms, paused_us: 1000 * ms };
        step.events.extend(pauses.iter().map(paused));
        step
    }

    fn reported(step: &StepRecord) -> Option<String> {
        pause_warning(&cell(1, "a", Vec::new()), step).as_ref().map(shown)
    }

    #[test]
    fn a_step_in_which_the_client_stood_still_is_invalid() {
        // The client was stopped for 4 s, of which half a second lies within the window.
        let step = step(&[(5_500, 4_000)]);
        let Validity::Invalid { reasons } = validity(&step) else { panic!("valid") };
        insta::assert_snapshot!(shown_all(&reasons), @"paused limit: 0.02, seconds: 0.5, share: 0.25");
        assert_eq!(reported(&step), None);
    }

    #[test]
    fn pauses_add_up_and_short_ones_are_reported() {
        let short = step(&[(500, 15), (1_500, 15)]);
        insta::assert_snapshot!(reported(&short).unwrap(), @"client-pause [block 1 a l.i0] seconds: 0.03, share: 0.015");
        assert_eq!(validity(&short), Validity::Valid);
        assert!(matches!(validity(&step(&[(500, 25), (1_500, 25)])), Validity::Invalid { .. }));
    }

    #[test]
    fn a_pause_outside_the_window_makes_nothing_invalid() {
        let after = step(&[(5_000, 2_900)]);
        assert_eq!((validity(&after), reported(&after)), (Validity::Valid, None));
    }
}
