//! CPU time that other programs took on the CPUs that server and client may use.

use crate::window::counters::{Counters, HOST_BUSY};
use crate::window::{Hosting, Span, WindowSummary, client_hosts};

/// Share of the host's CPU below which an unexplained rest is not reported. Published tables do not
/// colour such a difference either. Above it, a figure of the whole host (`cpups`, `cpupq`) may
/// differ between variants because of something that is neither server nor client.
const BOUND: f64 = 0.05;
/// The host counts busy ticks, which is a second source of error: of n ticks, about √n may be
/// chance. A rest of three standard errors is taken as certain.
const STANDARD_ERRORS: f64 = 3.0;
/// Length of the ticks that users see, 10 ms (USER_HZ). The kernel's own are as long or shorter.
const TICK_US: f64 = 10_000.0;
/// CPU time of processes that is not reported. Processes are counted in ticks of 10 ms, and some of
/// these come at once.
const UNSEEN_US: f64 = 30_000.0;

/// CPU time within one stretch of a step, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuShares {
    pub(crate) foreign_us: f64,
    /// CPU time of server and client.
    pub(crate) own_us: f64,
    /// What the CPUs of server or client could have given, whichever of the two has fewer CPUs.
    pub(crate) capacity_us: f64,
}

impl CpuShares {
    /// Share of the CPU time that server or client could have had and that others took, at most 1.
    /// Where the two have CPUs of their own, others may have been on those of one of them.
    pub(crate) fn foreign_share(self) -> f64 {
        if self.capacity_us > 0.0 { (self.foreign_us / self.capacity_us).min(1.0) } else { 0.0 }
    }
}

/// `None` where it was not sampled. `None` also for someone else's server that cannot be seen: if
/// it is on this host, its CPU time is not foreign.
pub(crate) fn cpu_shares(step: &WindowSummary<'_>) -> Option<CpuShares> {
    let processes = step.change("processes", &["cpu_us"])?;
    let over = processes.between;
    let value = |source, keys: &[&str]| Some(step.change_over(source, keys, over)?.value);
    let server_us = match step.hosting {
        Hosting::Process => value("server", &["cpu_us"])?,
        Hosting::Embedded | Hosting::Nothing => 0.0,
        Hosting::External => return None,
    };
    let hosts_here_us = client_hosts::here_cpu_us_per_second(step.events) * over.seconds();
    let own_us = server_us + value("client", &["cpu_us"])? + hosts_here_us;
    let host = Host {
        busy_us: value("host", &HOST_BUSY)?,
        interrupts_us: value("host", &["cpu_irq_us", "cpu_softirq_us"])?,
        processes_us: processes.value,
        kernel_threads_us: value("processes", &["kernel_threads_cpu_us"])?,
    };
    let foreign_us = match has_all_cpus(step.counters) {
        true => host.foreign_us(own_us),
        false => host.foreign_us_on(ours(step, over)?, own_us),
    };
    let capacity_us = f64::from(fewest_cpus(step)) * 1e6 * over.seconds();
    Some(CpuShares { foreign_us, own_us, capacity_us })
}

/// Highest share of `busy_us` that may belong to no process without a reason, given how the host
/// counts.
pub(crate) fn bound_share(busy_us: f64) -> f64 {
    BOUND + STANDARD_ERRORS / (busy_us / TICK_US).max(1.0).sqrt()
}

/// Time that belongs to no known process, where it is more than measuring errors explain; otherwise
/// 0.
fn unexplained(rest_us: f64, busy_us: f64) -> f64 {
    if rest_us > bound_share(busy_us) * busy_us { rest_us } else { 0.0 }
}

/// Whether server and client may use all CPUs of the host.
fn has_all_cpus(counters: &Counters) -> bool {
    let about = counters.get("host").map(|series| &series.header.about);
    about.is_none_or(|about| about.get("our_cpus") == about.get("cpus_online"))
}

/// Number of CPUs that server or client may use, whichever is fewer.
fn fewest_cpus(step: &WindowSummary<'_>) -> u32 {
    let about = step.counters.get("host").and_then(|series| series.header.about.get("fewest_cpus")?.as_u64());
    about.and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(step.cpus)
}

/// What ran on the CPUs of server and client: programs first, then interrupts.
fn ours(step: &WindowSummary<'_>, over: Span) -> Option<[f64; 2]> {
    let value = |key| Some(step.change_over("host", &[key], over)?.value);
    Some([value("our_cpus_programs_us")?, value("our_cpus_interrupts_us")?])
}

/// CPU time on all CPUs of the host.
struct Host {
    busy_us: f64,
    interrupts_us: f64,
    /// All processes, including server and client.
    processes_us: f64,
    kernel_threads_us: f64,
}

impl Host {
    fn rest_us(&self) -> f64 {
        self.busy_us - self.processes_us - self.kernel_threads_us
    }

    /// Interrupts that are counted in no process. Some kernels charge interrupts to the process
    /// that they interrupt.
    fn lone_interrupts_us(&self) -> f64 {
        self.rest_us().clamp(0.0, self.interrupts_us)
    }

    /// Foreign CPU time where all CPUs are ours: other processes, and what belongs to none that is
    /// seen.
    fn foreign_us(&self, own_us: f64) -> f64 {
        let others_us = self.processes_us - own_us - UNSEEN_US;
        others_us.max(0.0) + unexplained(self.rest_us() - self.lone_interrupts_us(), self.busy_us)
    }

    /// Foreign CPU time where only some CPUs are ours. It is not known which process ran on these,
    /// so it is all time but that of server, client, kernel threads and interrupts.
    fn foreign_us_on(&self, [programs_us, interrupts_us]: [f64; 2], own_us: f64) -> f64 {
        let lone_share =
            if self.interrupts_us > 0.0 { self.lone_interrupts_us() / self.interrupts_us } else { 0.0 };
        let busy_us = programs_us + interrupts_us * (1.0 - lone_share);
        unexplained(busy_us - own_us - self.kernel_threads_us, busy_us)
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{ClientHost, CounterSeries, StepEvent};

    use super::*;
    use crate::fixtures::{client_host, series, with_counters};
    use crate::simulations::close;

    /// 2.5 s on a host with four CPUs: 2 s are the server's, 1 s the client's, `others_us` other
    /// processes', 0.1 s kernel threads', 0.2 s interrupts, and `unseen_us` belong to no process.
    fn counters(others_us: i64, unseen_us: i64) -> Counters {
        let two = |values: &[i64]| [(0, vec![0; values.len()]), (2_500_000, values.to_vec())];
        let mut all = series("server", &["cpu_us"], &two(&[2_000_000]));
        all.extend(series("client", &["cpu_us"], &two(&[1_000_000])));
        let processes_us = 3_000_000 + others_us;
        let keys = ["cpu_us", "kernel_threads_cpu_us"];
        all.extend(series("processes", &keys, &two(&[processes_us, 100_000])));
        let programs_us = processes_us + 100_000 + unseen_us;
        let keys = [&HOST_BUSY[..], &["our_cpus_programs_us", "our_cpus_interrupts_us"]].concat();
        // Two CPUs are ours, and others ran on these only.
        let values = [programs_us, 0, 0, 0, 200_000, programs_us, 100_000];
        all.extend(series("host", &keys, &two(&values)));
        all
    }

    fn shares(counters: &Counters, hosting: Hosting, events: &[StepEvent]) -> Option<CpuShares> {
        let mut step = with_counters(counters);
        step.events.extend_from_slice(events);
        cpu_shares(&WindowSummary::of(&step, hosting, 4))
    }

    fn foreign_us(others_us: i64, unseen_us: i64) -> f64 {
        shares(&counters(others_us, unseen_us), Hosting::Process, &[]).unwrap().foreign_us
    }

    #[test]
    fn processes_that_are_neither_server_nor_client_are_foreign_beyond_what_ticks_can_tell() {
        assert_eq!(foreign_us(20_000, 0), 0.0);
        assert_eq!(foreign_us(1_030_000, 0), 1_000_000.0);
    }

    #[test]
    fn their_share_is_of_what_the_cpus_could_give_and_not_of_what_was_used() {
        let found = shares(&counters(1_030_000, 0), Hosting::Process, &[]).unwrap();
        // Four CPUs could give 10 s in 2.5 s. Others took 1 s of it; server and client used 3 s.
        close(found.foreign_share(), 0.1, 1e-12);
        let taken = CpuShares { foreign_us: 9e6, ..found };
        close(taken.foreign_share(), 0.9, 1e-12);
        close(CpuShares { foreign_us: 11e6, ..found }.foreign_share(), 1.0, 0.0);
    }

    #[test]
    fn what_the_host_counts_beyond_all_processes_is_foreign_where_it_is_more_than_chance() {
        assert_eq!(foreign_us(0, 500_000), 0.0);
        assert_eq!(foreign_us(0, 1_500_000), 1_500_000.0);
    }

    #[test]
    fn an_embedded_database_is_the_client_and_one_out_of_sight_may_be_any_process() {
        let counters = counters(30_000, 0);
        let embedded = shares(&counters, Hosting::Embedded, &[]).unwrap();
        assert_eq!((embedded.own_us, embedded.foreign_us), (1_000_000.0, 2_000_000.0));
        assert_eq!(shares(&counters, Hosting::External, &[]), None);
    }

    #[test]
    fn a_client_host_on_this_machine_is_not_foreign() {
        let host = |is_here| StepEvent::ClientHost(ClientHost { is_here, ..client_host() });
        let found = |is_here| shares(&counters(1_280_000, 0), Hosting::Process, &[host(is_here)]).unwrap();
        // Others used half a CPU for 2.5 s.
        assert_eq!((found(false).foreign_us, found(true).foreign_us), (1_250_000.0, 0.0));
    }

    #[test]
    fn of_some_cpus_only_what_ran_there_counts() {
        let mut counters = counters(2_000_000, 0);
        let host = &counters["host"];
        let mut header = host.header.clone();
        let about = serde_json::json!({"cpus_online": 4, "our_cpus": 2, "fewest_cpus": 1});
        header.about = about.as_object().unwrap().clone();
        let lines = [0, 1].map(|sample| dbdyno_record::CounterLine {
            at_us: [0, 2_500_000][sample],
            values: host.keys().map(|key| (key.to_owned(), host.value(key, sample).unwrap())).collect(),
        });
        counters.insert("host".to_owned(), CounterSeries::new(header, &lines));
        // The interrupts are in no process, and are not any program's.
        let found = shares(&counters, Hosting::Process, &[]).unwrap();
        assert_eq!(found.foreign_us, 2_000_000.0);
        // All of it may have been on the client's one CPU.
        close(found.foreign_share(), 0.8, 1e-12);
    }
}
