//! Checks the host's CPU time: whether server, client and the other processes add up to what the
//! host counted.

use super::cost::{Cpu, process};
use super::group;
use crate::window::counters::HOST_BUSY;
use crate::window::cpu::bound_share;
use crate::window::{Hosting, WindowSummary};

group! {
    /// CPU time of the host and of its known parts, per unit of the step's headline.
    #[derive(Copy)]
    HostCheck: |c: Counted| {
        host_us: "host", "µs/op", 2, NotCompared, Some(c.host_us), "CPU time that the host counted.";
        server_user_us: "server user", "µs/op", 2, NotCompared, c.server.user_us, "The server in user mode.";
        server_kernel_us: "server kernel", "µs/op", 2, NotCompared, c.server.kernel_us,
            "The server in the kernel.";
        client_us: "client", "µs/op", 2, NotCompared, Some(c.client_us),
            "dbdyno; with an embedded database this includes the database.";
        // The sum of processes counts in ticks; the clocks of server and client do not.
        others_us: "others", "µs/op", 2, NotCompared,
            Some((c.processes_us - c.server.total_us? - c.client_us).max(0.0)), "All other processes.";
        kernel_threads_us: "kernel threads", "µs/op", 2, NotCompared, Some(c.kernel_threads_us),
            "The kernel's own threads: write-back, encryption, network.";
        // Kernels without CONFIG_IRQ_TIME_ACCOUNTING charge interrupts to the process that they
        // interrupt.
        interrupts_us: "interrupts", "µs/op", 2, NotCompared, Some(c.rest_us().clamp(0.0, c.interrupts_us)),
            "Interrupts, as far as they are in no process.";
        unexplained_us: "unexplained", "µs/op", 2, NotCompared, Some(c.rest_us() - Self::interrupts_us(c)?),
            "Host minus all parts. Below 0 the processes used more than the host counted.";
    }
    /// Unexplained share of `host_us`.
    unexplained_share: f64,
    /// Largest share, above or below 0, that is not reported.
    bound_share: f64
}

impl HostCheck {
    /// Whether the parts add up to the host's time.
    pub fn holds(&self) -> bool {
        self.unexplained_share.abs() <= self.bound_share
    }
}

/// Counted CPU times per unit of the headline.
struct Counted {
    host_us: f64,
    server: Cpu,
    client_us: f64,
    /// All processes, including server and client.
    processes_us: f64,
    kernel_threads_us: f64,
    interrupts_us: f64,
}

impl Counted {
    /// Time that is in no process.
    fn rest_us(&self) -> f64 {
        self.host_us - self.processes_us - self.kernel_threads_us
    }
}

/// Makes the check; `None` where processes were not sampled, and for a server process whose CPU
/// time was not sampled.
pub(crate) fn host_check(step: &WindowSummary<'_>) -> Option<HostCheck> {
    // Processes are sampled rarely, so all figures cover the time between two of their samples.
    let processes = step.change("processes", &["cpu_us"])?;
    let over = processes.between;
    let per_unit = |source, keys: &[&str]| step.per_headline_unit(step.change_over(source, keys, over)?);
    let server = match step.hosting {
        Hosting::Process => process(step, "server", over),
        // A server that cannot be seen counts among the other processes, if it is on this host.
        Hosting::Embedded | Hosting::Nothing | Hosting::External => {
            Cpu { total_us: Some(0.0), ..Cpu::default() }
        }
    };
    // Without the server's CPU time, the time of the other processes is not known either.
    server.total_us?;
    let busy = step.change_over("host", &HOST_BUSY, over)?;
    let counted = Counted {
        host_us: step.per_headline_unit(busy).filter(|us| *us > 0.0)?,
        server,
        client_us: process(step, "client", over).total_us?,
        processes_us: step.per_headline_unit(processes)?,
        kernel_threads_us: per_unit("processes", &["kernel_threads_cpu_us"])?,
        interrupts_us: per_unit("host", &["cpu_irq_us", "cpu_softirq_us"])?,
    };
    Some(HostCheck {
        unexplained_share: HostCheck::unexplained_us(&counted)? / counted.host_us,
        bound_share: bound_share(busy.value),
        ..HostCheck::of(&counted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, query_step, run, series};
    use crate::metrics::Figures;
    use crate::simulations::close;
    use crate::window::counters::Counters;

    /// Counters over the 2 s of `query_step` with 500 queries per second: the host's busy and
    /// interrupt time, all processes, kernel threads.
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

    fn check(counters: Counters) -> Option<HostCheck> {
        let mut step = query_step(500, 200);
        step.counters = counters;
        analyse(&run(&["a"], 1, vec![cell(1, "a", vec![step])])).workloads[0].steps[1].variants[0].runs[0]
            .host_check
    }

    #[test]
    fn the_parts_add_up_to_the_host() {
        // 1,000 queries used 2 s of CPU and 0.1 s of interrupts. Processes have 1.8 s and kernel
        // threads 0.1 s.
        let check = check(counters(2_000_000, 100_000, 1_800_000, 100_000)).unwrap();
        assert_eq!(
            (check.host_us, check.others_us, check.kernel_threads_us),
            (Some(2_100.0), Some(300.0), Some(100.0))
        );
        // 0.2 s remain, and half of this time is interrupts.
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
        // There are 210 ticks, so the bound is 5 % and three times 1 ÷ √210.
        let check = check(counters(2_000_000, 100_000, 1_800_000, 100_000)).unwrap();
        close(check.bound_share, 0.05 + 3.0 / 210.0_f64.sqrt(), 1e-12);
        assert!(check.holds());
    }

    #[test]
    fn without_the_processes_there_is_no_check() {
        let mut counters = counters(2_000_000, 0, 2_000_000, 0);
        counters.remove("processes");
        assert!(check(counters).is_none());
    }
}
