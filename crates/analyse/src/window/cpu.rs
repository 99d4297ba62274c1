//! Computes CPU times in a step's window:
//!
//! * the time that other programs took on the CPUs that server and client may use,
//! * the time that the load client's threads ran or waited for a CPU,
//! * the time that a busy-polling client spent on polls that found no answer,
//! * the CPU time that each of several client hosts measured for itself.
//!
//! A load thread serves its connections one after the other. While it is on a CPU, or waits for
//! one, an answer that arrives waits for the thread, and this wait is not the server's time. Polls
//! that find no answer are not work, so figures for client CPU leave them out.

use dbdyno_record::{ClientHost, StepEvent};

use crate::window::counters::{CounterChange, Counters, HOST_BUSY};
use crate::window::{Hosting, Span, WindowSummary};

/// Share of the host's CPU below which unexplained CPU time is not reported. Published tables do
/// not colour such a difference either. Above it, a figure of the whole host (`cpups`, `cpupq`) may
/// differ between variants because of something that is neither server nor client.
const BOUND: f64 = 0.05;
/// The host counts busy ticks, which is a second source of error: of n ticks, about √n may be
/// chance. An unexplained time of three standard errors is taken as real.
const STANDARD_ERRORS: f64 = 3.0;
/// Length of a tick as the kernel reports it to programs, 10 ms (USER_HZ). The kernel's internal
/// ticks are as long or shorter.
const TICK_US: f64 = 10_000.0;
/// CPU time of other processes that is too short to be reported. The kernel counts it in ticks of
/// 10 ms and may add several ticks at once.
const UNSEEN_US: f64 = 30_000.0;

/// CPU time within one stretch of a step, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuShares {
    pub(crate) foreign_us: f64,
    /// CPU time of server and client.
    pub(crate) own_us: f64,
    /// CPU time that was available on the server's CPUs or on the client's, whichever are fewer.
    pub(crate) capacity_us: f64,
}

impl CpuShares {
    /// Foreign CPU time as a share of `capacity_us`, at most 1. Where server and client have
    /// separate CPUs, the share is the worst case: all foreign programs may have run on the CPUs of
    /// the side that has fewer.
    pub(crate) fn foreign_share(self) -> f64 {
        if self.capacity_us > 0.0 { (self.foreign_us / self.capacity_us).min(1.0) } else { 0.0 }
    }
}

/// The CPU time of server, client and other programs in the window. `None` where it was not
/// sampled. `None` also for a server that others run and that was not sampled: if it is on this
/// host, its CPU time is not foreign.
pub(crate) fn cpu_shares(step: &WindowSummary<'_>) -> Option<CpuShares> {
    let processes = step.change("processes", &["cpu_us"])?;
    let over = processes.between;
    let value = |source, keys: &[&str]| Some(step.change_over(source, keys, over)?.value);
    let server_us = match step.hosting {
        Hosting::Process => value("server", &["cpu_us"])?,
        Hosting::Embedded | Hosting::Nothing => 0.0,
        Hosting::External => return None,
    };
    let hosts_here_us = local_hosts_us_per_second(step.events) * over.seconds();
    let own_us = server_us + value("client", &["cpu_us"])? + hosts_here_us;
    let host = HostTimes {
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

/// Highest share of `busy_us` that errors of measurement alone may leave without a process.
pub(crate) fn bound_share(busy_us: f64) -> f64 {
    BOUND + STANDARD_ERRORS / (busy_us / TICK_US).max(1.0).sqrt()
}

/// Time that belongs to no known process, where it is more than errors of measurement explain, and
/// otherwise 0.
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

/// CPU time on the CPUs of server and client: that of programs first, then that of interrupts.
fn ours(step: &WindowSummary<'_>, over: Span) -> Option<[f64; 2]> {
    let value = |key| Some(step.change_over("host", &[key], over)?.value);
    Some([value("our_cpus_programs_us")?, value("our_cpus_interrupts_us")?])
}

/// CPU time on all CPUs of the host.
struct HostTimes {
    busy_us: f64,
    interrupts_us: f64,
    /// All processes, including server and client.
    processes_us: f64,
    kernel_threads_us: f64,
}

impl HostTimes {
    fn rest_us(&self) -> f64 {
        self.busy_us - self.processes_us - self.kernel_threads_us
    }

    /// Interrupts that are counted in no process. Some kernels charge interrupts to the process
    /// that they interrupt.
    fn lone_interrupts_us(&self) -> f64 {
        self.rest_us().clamp(0.0, self.interrupts_us)
    }

    /// Foreign CPU time where all CPUs are ours. It is the time of other processes, and the time
    /// that belongs to no process that was sampled.
    fn foreign_us(&self, own_us: f64) -> f64 {
        let others_us = self.processes_us - own_us - UNSEEN_US;
        others_us.max(0.0) + unexplained(self.rest_us() - self.lone_interrupts_us(), self.busy_us)
    }

    /// Foreign CPU time where only some CPUs are ours. It is not known which process ran on these,
    /// so it is all time except that of server, client, kernel threads and interrupts.
    fn foreign_us_on(&self, [programs_us, interrupts_us]: [f64; 2], own_us: f64) -> f64 {
        let lone_share =
            if self.interrupts_us > 0.0 { self.lone_interrupts_us() / self.interrupts_us } else { 0.0 };
        let busy_us = programs_us + interrupts_us * (1.0 - lone_share);
        unexplained(busy_us - own_us - self.kernel_threads_us, busy_us)
    }
}

/// The load thread that was busiest in the common window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BusiestThread {
    /// Share of the window in which it was on a CPU, without polls that found nothing.
    pub(crate) on_cpu: f64,
    /// Share of the window in which it waited for a CPU.
    pub(crate) waiting: f64,
}

impl BusiestThread {
    /// Share of the window in which it had work to do.
    pub(crate) fn wanted(self) -> f64 {
        self.on_cpu + self.waiting
    }
}

/// The load thread that had work to do for most of the window. `None` where load threads were not
/// sampled, and where the database works in these threads, because they are then the server.
pub(crate) fn busiest_thread(step: &WindowSummary<'_>) -> Option<BusiestThread> {
    of_threads(step).into_iter().max_by(|a, b| a.wanted().total_cmp(&b.wanted()))
}

/// Share of the window for which a load thread waited for a CPU, for the thread that waited
/// longest. `None` as for [`busiest_thread`].
pub(crate) fn longest_wait(step: &WindowSummary<'_>) -> Option<f64> {
    of_threads(step).into_iter().map(|thread| thread.waiting).max_by(f64::total_cmp)
}

/// Every load thread whose CPU time was seen to rise.
fn of_threads(step: &WindowSummary<'_>) -> Vec<BusiestThread> {
    if matches!(step.hosting, Hosting::Embedded | Hosting::Nothing) {
        return Vec::new();
    }
    let of_thread = |thread: &str| {
        let cpu = format!("{thread}.cpu_us");
        // Load threads end with the window. A sample after that repeats their last values.
        let seen_us = last_change_us(step.counters, &cpu)?;
        let window = Span { to_us: step.window.to_us.min(seen_us), ..step.window };
        let share = |key: &str| Some(step.change_over("load", &[key], window)?.per_second() / 1e6);
        // A thread that spins is always on its CPU. Polls that found nothing are not work.
        let polled = share(&format!("{thread}.polled_us")).unwrap_or(0.0);
        let on_cpu = (share(&cpu)? - polled).max(0.0);
        Some(BusiestThread { on_cpu, waiting: share(&format!("{thread}.run_delay_us"))? })
    };
    threads(step.counters).iter().filter_map(|thread| of_thread(thread)).collect()
}

/// When a counter of the source `load` was last seen to have risen; `None` when it never was.
fn last_change_us(counters: &Counters, key: &str) -> Option<i64> {
    let values: Vec<(i64, i64)> = counters.get("load")?.values(key).collect();
    values.windows(2).filter(|pair| pair[1].1 != pair[0].1).map(|pair| pair[1].0).next_back()
}

/// Names of the load threads that were sampled.
fn threads(counters: &Counters) -> Vec<String> {
    let Some(load) = counters.get("load") else { return Vec::new() };
    load.keys().filter_map(|key| Some(key.strip_suffix(".cpu_us")?.to_owned())).collect()
}

/// CPU time of the load threads' polls that found nothing, between the samples nearest to `span`.
/// `None` for a client that sleeps.
pub(crate) fn polled(step: &WindowSummary<'_>, span: Span) -> Option<CounterChange> {
    step.change_over("load", &["polled_us"], span)
}

/// CPU time of the client or the host, without the polls in that time that found nothing.
pub(crate) fn without_polls(step: &WindowSummary<'_>, busy: CounterChange) -> CounterChange {
    let polled_us =
        polled(step, busy.between).map_or(0.0, |polled| polled.per_second() * busy.between.seconds());
    CounterChange { value: (busy.value - polled_us).max(0.0), ..busy }
}

/// CPU time that the host was busy, without polls that found nothing.
pub(crate) fn host_busy(step: &WindowSummary<'_>) -> Option<CounterChange> {
    Some(without_polls(step, step.change("host", &HOST_BUSY)?))
}

/// Share of the load threads' CPU time that was spent on polls that found nothing.
pub(crate) fn polling_share(step: &WindowSummary<'_>) -> Option<f64> {
    let polled = polled(step, step.window)?;
    let cpu = step.change("load", &["cpu_us"]).filter(|cpu| cpu.value > 0.0)?;
    Some((polled.per_second() / cpu.per_second()).min(1.0))
}

/// The client hosts of a step, where it has several.
pub(crate) fn client_hosts(events: &[StepEvent]) -> impl Iterator<Item = &ClientHost> {
    events.iter().filter_map(|event| match event {
        StepEvent::ClientHost(host) => Some(host),
        _ => None,
    })
}

/// CPU of all client hosts per second, in microseconds; `None` where this host was the client.
pub(crate) fn client_hosts_us_per_second(events: &[StepEvent]) -> Option<f64> {
    let all: Option<Vec<f64>> = client_hosts(events).map(host_us_per_second).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// CPU per second, in microseconds, of those client hosts that are this machine.
fn local_hosts_us_per_second(events: &[StepEvent]) -> f64 {
    client_hosts(events).filter(|host| host.is_here).filter_map(host_us_per_second).sum()
}

fn host_us_per_second(host: &ClientHost) -> Option<f64> {
    (host.measured_us > 0).then(|| host.cpu_us as f64 * 1e6 / host.measured_us as f64)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{ClientHost, CounterSeries, StepEvent};

    use super::*;
    use crate::fixtures::{client_host, read_write_step, series, summary, with_counters};
    use crate::metrics::cost::cost;
    use crate::metrics::original::metric_row;
    use crate::simulations::close;
    use crate::window::WindowSummary;
    use crate::window::counters::{Counters, HOST_BUSY};

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
    fn processes_that_are_neither_server_nor_client_are_foreign_beyond_the_error_of_ticks() {
        assert_eq!(foreign_us(20_000, 0), 0.0);
        assert_eq!(foreign_us(1_030_000, 0), 1_000_000.0);
    }

    #[test]
    fn the_foreign_share_is_of_the_available_cpu_time_and_not_of_the_used() {
        let found = shares(&counters(1_030_000, 0), Hosting::Process, &[]).unwrap();
        // Four CPUs could give 10 s in 2.5 s. Others took 1 s of it; server and client used 3 s.
        close(found.foreign_share(), 0.1, 1e-12);
        let taken = CpuShares { foreign_us: 9e6, ..found };
        close(taken.foreign_share(), 0.9, 1e-12);
        close(CpuShares { foreign_us: 11e6, ..found }.foreign_share(), 1.0, 0.0);
    }

    #[test]
    fn busy_time_beyond_all_processes_is_foreign_where_it_is_more_than_chance() {
        assert_eq!(foreign_us(0, 500_000), 0.0);
        assert_eq!(foreign_us(0, 1_500_000), 1_500_000.0);
    }

    #[test]
    fn an_embedded_database_is_the_client_and_an_external_one_may_be_any_process() {
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
    fn where_only_some_cpus_are_ours_only_work_on_these_counts() {
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

    const KEYS: [&str; 6] = [
        "cpu_us",
        "run_delay_us",
        "load-0.cpu_us",
        "load-0.run_delay_us",
        "load-1.cpu_us",
        "load-1.run_delay_us",
    ];

    fn busiest_of(hosting: Hosting, end: Vec<i64>) -> Option<BusiestThread> {
        let counters = series("load", &KEYS, &[(0, vec![0; 6]), (2_500_000, end)]);
        busiest_thread(&WindowSummary::of(&with_counters(&counters), hosting, 4))
    }

    #[test]
    fn the_busiest_thread_decides_and_its_waits_count() {
        let end = vec![3_250_000, 1_500_000, 1_500_000, 250_000, 1_750_000, 1_250_000];
        let busiest = busiest_of(Hosting::Process, end).unwrap();
        assert_eq!((busiest.on_cpu, busiest.waiting), (0.7, 0.5)); // 1.75 s and 1.25 s of 2.5 s
        assert_eq!(busiest.wanted(), 1.2);
    }

    #[test]
    fn polls_that_found_nothing_are_not_work() {
        let keys = ["load-0.cpu_us", "load-0.run_delay_us", "load-0.polled_us"];
        let counters = series("load", &keys, &[(0, vec![0; 3]), (2_500_000, vec![2_500_000, 0, 1_875_000])]);
        let found = busiest_thread(&summary(&with_counters(&counters)));
        assert_eq!(found, Some(BusiestThread { on_cpu: 0.25, waiting: 0.0 }));
    }

    #[test]
    fn the_thread_that_waited_longest_need_not_be_the_busiest() {
        let counters = |delay_us| {
            series("load", &KEYS, &[(0, vec![0; 6]), (2_500_000, vec![0, 0, 500_000, delay_us, 900_000, 10])])
        };
        let waits = |hosting, delay_us| {
            longest_wait(&WindowSummary::of(&with_counters(&counters(delay_us)), hosting, 4))
        };
        // The second thread is the busier one.
        assert_eq!(waits(Hosting::Process, 500_000), Some(0.2));
        assert_eq!(waits(Hosting::Embedded, 500_000), None);
    }

    #[test]
    fn where_the_database_works_in_the_load_threads_they_are_not_judged() {
        let end = vec![0, 0, 2_500_000, 0, 0, 0];
        assert!(busiest_of(Hosting::Embedded, end.clone()).is_none());
        assert!(busiest_of(Hosting::Nothing, end.clone()).is_none());
        assert!(busiest_of(Hosting::Process, end).is_some());
    }

    #[test]
    fn samples_after_the_end_of_a_thread_do_not_dilute_its_share() {
        let keys = &KEYS[2..4];
        let samples =
            [(0, vec![0; 2]), (1_000_000, vec![800_000, 150_000]), (2_500_000, vec![800_000, 150_000])];
        let of = |samples: &[(i64, Vec<i64>)]| {
            busiest_thread(&summary(&with_counters(&series("load", keys, samples))))
        };
        assert_eq!(of(&samples), Some(BusiestThread { on_cpu: 0.8, waiting: 0.15 }));
        // A thread that was never seen at work gives no figure.
        assert_eq!(of(&[(0, vec![0; 2]), (2_500_000, vec![0; 2])]), None);
    }

    #[test]
    fn a_record_without_load_threads_is_not_judged() {
        assert_eq!(busiest_thread(&summary(&read_write_step())), None);
    }

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
    fn polls_that_found_nothing_count_in_no_other_figure() {
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

    #[test]
    fn cpu_of_client_hosts_is_summed_where_each_was_measured() {
        let host = |measured_us| StepEvent::ClientHost(ClientHost { measured_us, ..client_host() });
        assert_eq!(client_hosts_us_per_second(&[host(2_000_000), host(2_000_000)]), Some(1e6));
        assert_eq!(client_hosts_us_per_second(&[host(2_000_000), host(0)]), None);
        assert_eq!(client_hosts_us_per_second(&[]), None);
        let here = StepEvent::ClientHost(ClientHost { is_here: true, ..client_host() });
        assert_eq!(local_hosts_us_per_second(&[host(2_000_000), here]), 500_000.0);
    }
}
