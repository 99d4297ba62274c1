//! Check whether one of several client hosts was the limit, or began too late.

use dbdyno_record::{ClientHost, StepEvent};

use crate::model::{Code, Warning};
use crate::validity::headroom::{BUSY_FROM_SECONDS, LIMIT};
use crate::validity::throttled;
use crate::window::client_hosts::all;

/// Latest accepted begin after the others, in microseconds. A host that begins later has put on
/// less load than the others, in seconds that count.
const LATE_US: u64 = 1_000;

/// Hosts that began too late, by what they report or by the possible error of their clocks.
pub(crate) fn late(events: &[StepEvent]) -> Vec<Warning> {
    let is_late = |host: &&ClientHost| host.late_us + host.clock_error_us > LATE_US;
    let fault = |host: &ClientHost| {
        Warning::reason(Code::ClientHostLate)
            .at(&host.host)
            .with("late_us", host.late_us)
            .with("clock_error_us", host.clock_error_us)
            .with("limit_us", LATE_US)
    };
    all(events).filter(is_late).map(fault).collect()
}

/// Hosts whose load threads had no time left, unless a CPU quota took it.
pub(crate) fn limiting(events: &[StepEvent]) -> Vec<Warning> {
    let share = |host: &ClientHost| {
        let busy_us = host.busiest_cpu_us + host.busiest_run_delay_us;
        let is_judged = host.measured_us as f64 / 1e6 >= BUSY_FROM_SECONDS;
        is_judged.then(|| busy_us as f64 / host.measured_us as f64)
    };
    let fault = |host: &ClientHost| {
        let share = share(host).filter(|share| *share >= LIMIT)?;
        Some(Warning::reason(Code::ClientHostBusy).at(&host.host).with("share", share).with("limit", LIMIT))
    };
    all(events).filter(|host| !throttled::is_host(host)).filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{client_host, shown_all};

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
        assert_eq!((late(&sound), limiting(&sound)), (Vec::new(), Vec::new()));
        let late = late(&[host(0, 40, 0), host(970, 31, 0)]);
        insta::assert_snapshot!(shown_all(&late), @"client-host-late [c1] clock_error_us: 31, late_us: 970, limit_us: 1000");
        let limiting = limiting(&[host(0, 40, 1_800_000)]);
        insta::assert_snapshot!(shown_all(&limiting), @"client-host-busy [c1] limit: 0.9, share: 0.9");
    }
}
