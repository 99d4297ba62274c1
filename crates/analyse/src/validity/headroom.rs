//! Check whether the load client was at its own limit, or held up by other programs on its CPUs.
//!
//! Where a load thread ran or waited for a CPU nearly all the time, the figures are the client's
//! and not the server's.

use crate::model::{Code, Warning};
use crate::window::load_threads::Busiest;

/// Shortest window that is judged, in seconds. The samples lie some milliseconds before and after a
/// window, and what a thread did there would be taken for work in a shorter one.
pub(super) const BUSY_FROM_SECONDS: f64 = 0.2;
/// Share of the time with work from which on a load thread counts as the limit.
pub(super) const LIMIT: f64 = 0.90;
/// Share of the common window for which a load thread may wait for a CPU where it has CPUs of its
/// own. Other programs on them hold up answers, and a closed loop then sends up to as much less.
const WAITING_LIMIT: f64 = 0.10;

/// Why a step of `window_seconds` says more about the client than about the server; `None` when it
/// does not.
pub(crate) fn fault(busiest: Busiest, window_seconds: f64) -> Option<Warning> {
    (window_seconds >= BUSY_FROM_SECONDS && busiest.wanted() >= LIMIT).then(|| {
        Warning::reason(Code::ClientBusy)
            .with("share", busiest.wanted())
            .with("on_cpu", busiest.on_cpu)
            .with("waiting", busiest.waiting)
            .with("limit", LIMIT)
    })
}

/// Why a step was held up by other programs on the client's own CPUs, judged by the longest wait of
/// a load thread; `None` when it was not.
pub(crate) fn wait_fault(longest_wait: f64) -> Option<Warning> {
    let fault =
        || Warning::reason(Code::ClientWaited).with("share", longest_wait).with("limit", WAITING_LIMIT);
    (longest_wait >= WAITING_LIMIT).then(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::shown;

    #[test]
    fn a_thread_without_time_to_spare_is_a_fault_and_waiting_counts() {
        let busiest = |waiting| Busiest { on_cpu: 0.7, waiting };
        assert_eq!(fault(busiest(0.196), 60.0), None);
        assert_eq!(fault(busiest(0.98), 0.004), None, "a load of a few milliseconds");
        insta::assert_snapshot!(shown(&fault(busiest(0.5), 60.0).unwrap()), @"client-busy limit: 0.9, on_cpu: 0.7, share: 1.2, waiting: 0.5");
    }

    #[test]
    fn a_thread_that_waited_for_its_own_cpus_is_a_fault_from_ten_percent_on() {
        assert_eq!(wait_fault(0.096), None);
        insta::assert_snapshot!(shown(&wait_fault(0.2).unwrap()), @"client-waited limit: 0.1, share: 0.2");
    }
}
