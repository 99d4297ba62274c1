//! Whether server, client and the rest explain what the host's CPUs did.

use crate::measure::cost::{Cpu, process};
use crate::measure::counters::change;
use crate::measure::measured::{Hosting, Measured};
use crate::measure::metrics::HOST_BUSY;
use crate::model::runs::judged_runs;
use crate::model::{Code, Notice};
use crate::model::{HostCheck, WorkloadFindings};

/// Share of the host's CPU below which an unexplained rest is not reported: what published tables
/// do not colour either. Above it, a figure of the whole host (`cpups`, `cpupq`) may differ between
/// variants by something that is neither server nor client.
const BOUND: f64 = 0.05;
/// A second source of error: the host counts busy ticks, so of n ticks about √n may be chance.
/// Three of these are certain.
const STANDARD_ERRORS: f64 = 3.0;
/// Users see ticks of 10 ms (USER_HZ); the kernel's own are as long or shorter.
const TICK_US: f64 = 10_000.0;

/// `None` where processes were not sampled, and for a server of which nothing was seen here.
pub(crate) fn host_check(step: &Measured<'_>) -> Option<HostCheck> {
    // Processes are sampled seldom, so all is over the time between two of their samples.
    let all = step.change("processes", &["cpu_us"])?;
    let per_unit =
        |source, keys: &[&str]| step.per_headline_unit(change(step.counters, source, keys, all.between)?);
    let server = match step.hosting {
        Hosting::Process => process(step, "server", all.between),
        // Of a server out of sight: if it is on this host, it is one of the others.
        Hosting::Embedded | Hosting::Nothing | Hosting::External => {
            Cpu { total_us: Some(0.0), ..Cpu::default() }
        }
    };
    let (server_us, client_us) = (server.total_us?, process(step, "client", all.between).total_us?);
    let busy = change(step.counters, "host", &HOST_BUSY, all.between)?;
    let host_us = step.per_headline_unit(busy).filter(|us| *us > 0.0)?;
    let all_us = step.per_headline_unit(all)?;
    let kernel_threads_us = per_unit("processes", &["kernel_threads_cpu_us"])?;
    let rest_us = host_us - all_us - kernel_threads_us;
    let most_us = per_unit("host", &["cpu_irq_us", "cpu_softirq_us"])?;
    let interrupts_us = rest_us.clamp(0.0, most_us);
    let ticks = (busy.value / TICK_US).max(1.0);
    Some(HostCheck {
        host_us: Some(host_us),
        server_user_us: server.user_us,
        server_kernel_us: server.kernel_us,
        client_us: Some(client_us),
        // The sum of processes counts in ticks, the two clocks do not.
        others_us: Some((all_us - server_us - client_us).max(0.0)),
        kernel_threads_us: Some(kernel_threads_us),
        interrupts_us: Some(interrupts_us),
        unexplained_us: Some(rest_us - interrupts_us),
        unexplained_share: (rest_us - interrupts_us) / host_us,
        bound_share: BOUND + STANDARD_ERRORS / ticks.sqrt(),
    })
}

/// The worst of the steps in which the parts do not explain the host, and how many there are.
pub(crate) fn notice(workloads: &[WorkloadFindings]) -> Option<Notice> {
    let broken: Vec<(HostCheck, String)> = judged_runs(workloads)
        .filter_map(|found| Some((found.run.host_check.filter(|check| !check.holds())?, found.place())))
        .collect();
    let share = |check: &HostCheck| check.unexplained_share.abs();
    let (worst, place) = broken.iter().max_by(|a, b| share(&a.0).total_cmp(&share(&b.0)))?;
    let code = if worst.unexplained_share > 0.0 { Code::HostCpuUnseen } else { Code::HostCpuUncounted };
    Some(Notice::new(code).at(place).with("share", share(worst)).with("runs", broken.len()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series, texts};
    use crate::measure::counters::Counters;
    use crate::model::metrics::Figures;
    use crate::simulations::close;

    /// Over the 2 s of `query_step` with 500 queries a second: the host's busy and interrupt time,
    /// all processes, kernel threads.
    fn counters(user_us: i64, interrupts_us: i64, processes_us: i64, kernel_threads_us: i64) -> Counters {
        let two = |values: Vec<i64>| [(0, vec![0; values.len()]), (2_000_000, values)];
        let process = ["cpu_us", "cpu_user_us", "cpu_kernel_us"];
        let mut all = series("server", &process, &two(vec![1_000_000, 600_000, 200_000]));
        all.extend(series("client", &process, &two(vec![500_000, 90_000, 10_000])));
        all.extend(series("host", &HOST_BUSY, &two(vec![user_us, 0, 0, 0, interrupts_us])));
        let keys = ["cpu_us", "kernel_threads_cpu_us"];
        all.extend(series("processes", &keys, &two(vec![processes_us, kernel_threads_us])));
        all
    }

    fn findings(counters: Counters) -> crate::model::Findings {
        let mut step = query_step(500, 200);
        step.counters = counters;
        analyse(&run(&["a"], 2, vec![cell(1, "a", vec![step]), cell(2, "a", Vec::new())]))
    }

    fn check(counters: Counters) -> Option<HostCheck> {
        findings(counters).workloads[0].steps[1].variants[0].runs[0].host_check
    }

    #[test]
    fn the_parts_add_up_to_the_host() {
        // 2 s of CPU and 0.1 s of interrupts over 1,000 queries; processes 1.8 s, kernel threads
        // 0.1 s.
        let check = check(counters(2_000_000, 100_000, 1_800_000, 100_000)).unwrap();
        assert_eq!(
            (check.host_us, check.others_us, check.kernel_threads_us),
            (Some(2_100.0), Some(300.0), Some(100.0))
        );
        // 0.2 s are left; half of that are interrupts.
        assert_eq!((check.interrupts_us, check.unexplained_us), (Some(100.0), Some(100.0)));
        close(check.unexplained_share, 100.0 / 2_100.0, 1e-12);
        let parts = check.values().into_iter().skip(1).flatten().sum();
        close(parts, 2_100.0, 1e-9);
    }

    #[test]
    fn interrupts_that_are_within_processes_are_not_counted_twice() {
        let check = check(counters(1_900_000, 100_000, 1_950_000, 50_000)).unwrap();
        assert_eq!((check.interrupts_us, check.unexplained_us), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn few_ticks_may_miss_more() {
        // 210 ticks: 5 % and three times 1 ÷ √210.
        let check = check(counters(2_000_000, 100_000, 1_800_000, 100_000)).unwrap();
        close(check.bound_share, 0.05 + 3.0 / 210.0_f64.sqrt(), 1e-12);
        assert!(check.holds());
    }

    #[test]
    fn what_no_process_did_and_what_the_host_did_not_see_is_warned_of() {
        let reported =
            |counters| texts(&findings(counters)).into_iter().find(|line| line.starts_with("host-cpu"));
        assert_snapshot!(reported(counters(4_000_000, 0, 2_000_000, 0)).unwrap(), @"host-cpu-unseen [block 1 a qr100] runs: 1, share: 0.5");
        assert_snapshot!(reported(counters(2_000_000, 0, 3_200_000, 0)).unwrap(), @"host-cpu-uncounted [block 1 a qr100] runs: 1, share: 0.6");
        assert_eq!(reported(counters(2_000_000, 0, 2_000_000, 0)), None);
    }

    #[test]
    fn without_the_processes_there_is_no_check() {
        let mut counters = counters(2_000_000, 0, 2_000_000, 0);
        counters.remove("processes");
        assert!(check(counters).is_none());
    }
}
