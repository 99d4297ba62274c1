//! Whether one of several client hosts was the limit, or began too late.

use dbdyno_record::{ClientHost, StepEvent};

use crate::model::{Code, Notice};

/// Share of the time in which a load thread had work from which its host is called the limit; as of
/// a client of one host.
const LIMIT: f64 = 0.90;
/// A host that begins later than this has put less load on than the others, in seconds that count.
const LATE_US: u64 = 1_000;

/// The client hosts of a step, where there are several.
pub(crate) fn all(events: &[StepEvent]) -> impl Iterator<Item = &ClientHost> {
    events.iter().filter_map(|event| match event {
        StepEvent::ClientHost(host) => Some(host),
        _ => None,
    })
}

/// Hosts that began too late, by what they say or by what may be wrong about their clocks.
pub(crate) fn late(events: &[StepEvent]) -> Vec<Notice> {
    let is_late = |host: &&ClientHost| host.late_us + host.clock_error_us > LATE_US;
    let fault = |host: &ClientHost| {
        Notice::reason(Code::ClientHostLate)
            .at(&host.host)
            .with("late_us", host.late_us)
            .with("clock_error_us", host.clock_error_us)
            .with("limit_us", LATE_US)
    };
    all(events).filter(is_late).map(fault).collect()
}

/// Hosts whose load threads had no time left.
pub(crate) fn limiting(events: &[StepEvent]) -> Vec<Notice> {
    let share = |host: &ClientHost| {
        let busy_us = host.busiest_cpu_us + host.busiest_run_delay_us;
        (host.measured_us > 0).then(|| busy_us as f64 / host.measured_us as f64)
    };
    let fault = |host: &ClientHost| {
        let share = share(host).filter(|share| *share >= LIMIT)?;
        Some(Notice::reason(Code::ClientHostBusy).at(&host.host).with("share", share).with("limit", LIMIT))
    };
    all(events).filter_map(fault).collect()
}

/// CPU of all client hosts per second, in microseconds; `None` where this host was the client.
pub(crate) fn cpu_us_per_second(events: &[StepEvent]) -> Option<f64> {
    let per_second = |host: &ClientHost| {
        (host.measured_us > 0).then(|| host.cpu_us as f64 * 1e6 / host.measured_us as f64)
    };
    let all: Option<Vec<f64>> = all(events).map(per_second).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::shown_all;

    fn host(late_us: u64, error_us: u64, busy_us: u64) -> StepEvent {
        StepEvent::ClientHost(ClientHost {
            host: "c1".to_owned(),
            connections: 4,
            cpus: 2,
            measured_us: 2_000_000,
            cpu_us: 1_000_000,
            busiest_cpu_us: busy_us / 2,
            busiest_run_delay_us: busy_us / 2,
            late_us,
            lag_max_us: 0,
            clock_offset_us: -5_000,
            clock_error_us: error_us,
            clock_drift_us: 3,
            clock_source: String::new(),
        })
    }

    #[test]
    fn a_host_that_began_late_or_was_the_limit_is_named() {
        let sound = [host(0, 40, 1_700_000), host(0, 1_000, 0)];
        assert_eq!((late(&sound), limiting(&sound)), (Vec::new(), Vec::new()));
        let late = late(&[host(0, 40, 0), host(970, 31, 0)]);
        insta::assert_snapshot!(shown_all(&late), @"client-host-late [c1] clock_error_us: 31, late_us: 970, limit_us: 1000");
        let limiting = limiting(&[host(0, 40, 1_800_000)]);
        insta::assert_snapshot!(shown_all(&limiting), @"client-host-busy [c1] limit: 0.9, share: 0.9");
    }

    #[test]
    fn cpu_of_client_hosts_is_summed_where_each_was_measured() {
        assert_eq!(cpu_us_per_second(&[host(0, 0, 0), host(0, 0, 0)]), Some(1e6));
        assert_eq!(cpu_us_per_second(&[]), None);
    }
}
