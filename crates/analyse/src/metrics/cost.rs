//! Computes CPU, switches, fsyncs, reads and wake-ups per unit of a step's headline (a row or a
//! query, say), charged to server, client or the rest of the host.

use dbdyno_record::{StatementClass, StepEvent, Unit};

use super::fsyncs::{self, Binlog};
use super::{group, reads};
use crate::window::counters::{CounterChange, STATUS};
use crate::window::cpu::{self, BusiestThread, CpuShares};
use crate::window::{Hosting, Span, WindowSummary};

/// If a server made more than this number of new threads per reopened connection, the step's
/// switches are not known, because those of the threads that ended are missing.
const NEW_THREADS_SHARE: f64 = 0.01;

group! {
    /// CPU and IO per unit of the step's headline, charged to the process that used them.
    Cost: |c: Charged<'_>| {
        // Reports on microbenchmarks have a table for each metric with `is_published`. Tables and
        // CSV files have the metrics with `is_last` after the others.
        server_cpu_us: "server", "µs/op", 2, Less, c.server.total_us, is_published = true,
            "CPU of the server process; NA when it is not visible (embedded, another host).";
        server_user_us: "user", "µs/op", 2, Less, c.server.user_us, "The server's CPU in user mode.";
        server_kernel_us: "kernel", "µs/op", 2, Less, c.server.kernel_us, "The server's CPU in the kernel.";
        client_cpu_us: "client", "µs/op", 2, Less, c.client.total_us, is_published = true,
            "CPU of the load client without polling; with an embedded database it includes the database.";
        // This and the next figure are unknown for a client that spins, because both contain polls
        // that found nothing.
        client_user_us: "client user", "µs/op", 2, Less, c.client.user_us, "The client's CPU in user mode.";
        client_kernel_us: "client kernel", "µs/op", 2, Less, c.client.kernel_us,
            "The client's CPU in the kernel.";
        client_polling_share: "polling", "of CPU", 3, NotCompared, cpu::polling_share(c.step),
            "Share of the load threads' CPU spent polling for answers. Not part of any other figure. NA for a client that sleeps.";
        rest_cpu_us: "rest", "µs/op", 2, Less, c.rest(), "CPU of the host used by neither server nor client.";
        host_iowait_us: "IO wait", "µs/op", 2, Less, c.step.per_unit("host", &["cpu_iowait_us"]),
            "Time in which CPUs of the host were idle while something waited for IO.";
        host_steal_share: "steal", "of CPUs", 4, NotCompared, stolen_share(c.step),
            "Share of the host's CPU time that the hypervisor gave to others.";
        foreign_cpu_share: "foreign", "of CPU", 4, NotCompared,
            cpu::cpu_shares(c.step).map(CpuShares::foreign_share),
            "CPU time that other programs took on the CPUs of server and client, as a share of the CPU time available to the server or the client, whichever has fewer CPUs; NA when the server is not visible.";
        server_switches: "switches", "1/op", 3, Less,
            c.of_threads(&["voluntary_switches", "involuntary_switches"]),
            "Context switches of the server's threads.";
        server_voluntary_switches: "sleeps", "1/op", 3, Less, c.of_threads(&["voluntary_switches"]),
            is_last = true, "How often the server's threads went to sleep (voluntary switches).";
        server_involuntary_switches: "preempted", "1/op", 3, Less,
            c.of_threads(&["involuntary_switches"]), is_last = true,
            "How often the server's threads were preempted (involuntary switches).";
        server_run_delay_us: "run queue", "µs/op", 2, Less, c.of_threads(&["run_delay_us"]), is_last = true,
            "Time in which the server's threads could have run but waited for a CPU; NA where \
             the kernel does not count it.";
        server_rescheduling_interrupts: "server RES", "1/op", 3, Less,
            c.step.per_unit("interrupts", &["server_rescheduling"]), is_last = true,
            "Rescheduling interrupts of the server's CPUs; NA, like the next three, where server \
             and client have no CPUs of their own.";
        server_function_call_interrupts: "server CAL", "1/op", 3, Less,
            c.step.per_unit("interrupts", &["server_function_call"]), is_last = true,
            "Function-call interrupts of the server's CPUs; newer kernels wake idle CPUs with them.";
        client_rescheduling_interrupts: "client RES", "1/op", 3, Less,
            c.step.per_unit("interrupts", &["client_rescheduling"]), is_last = true,
            "Rescheduling interrupts of the client's CPUs: the server pays for one with each answer that wakes a client.";
        client_function_call_interrupts: "client CAL", "1/op", 3, Less,
            c.step.per_unit("interrupts", &["client_function_call"]), is_last = true,
            "Function-call interrupts of the client's CPUs.";
        load_voluntary_switches: "client sleeps", "1/op", 3, Less,
            c.step.per_unit("load", &["voluntary_switches"]).filter(|_| c.has_server), is_last = true,
            "How often the client's load threads went to sleep, until an answer or a timer woke them; NA for more than 64 load threads.";
        fsyncs_per_commit: "fsyncs", "1/commit", 3, Less, fsyncs::per_commit(c.step, c.syncs), is_published = true,
            "fsyncs of the server's files, its binary log included, per commit that changed \
             something.";
        write_amplification: "write amp.", "B/B", 2, Less, write_amplification(c.step), is_published = true,
            "Write amplification: bytes written to the device of the data directory for each \
             byte of column values inserted or set.";
        server_read_kib: "server read", "KiB/op", 3, Less, reads::server_read_kib(c.step),
            "Reads of the server's processes from storage, as the kernel counts them; the device's rkbpq includes reads by others.";
        others_read_share: "others read", "of device", 3, NotCompared, reads::others_share(c.step),
            "Reads of the data's device that the server did not cause, as a share of all its reads; below 0 where the server read from other devices too.";
        sampler_core_share: "sampler", "core", 4, Less,
            Some(c.step.per_second("sampler", &["cpu_us"])? / 1e6),
            "CPU of the sampler itself, as a share of one core.";
        busiest_load_thread_share: "load thread", "of time", 3, Less,
            cpu::busiest_thread(c.step).map(BusiestThread::wanted),
            "Part of the time in which the client's busiest load thread ran or waited for a CPU; \
             from 0.9 on the step is invalid.";
        load_thread_wait_share: "thread waited", "of time", 4, NotCompared,
            cpu::longest_wait(c.step),
            "Share of the time that the longest-waiting load thread spent waiting for a CPU; where the client has CPUs of its own, the step is invalid from 0.1 on.";
    }
}

/// CPU time of one process per unit of the headline, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    pub(crate) total_us: Option<f64>,
    pub(crate) user_us: Option<f64>,
    pub(crate) kernel_us: Option<f64>,
}

/// What the figures are computed from.
struct Charged<'a> {
    step: &'a WindowSummary<'a>,
    /// How often the server syncs its binary log. These syncs are added to those of the engine's
    /// files, so this is `None` where the server does not count all of the latter: the sum is then
    /// unknown.
    syncs: Option<Binlog>,
    server: Cpu,
    client: Cpu,
    has_server: bool,
    /// There is a server, and the context switches of all its threads were sampled.
    sees_threads: bool,
}

/// Computes the figures. Each is `None` where its source was not sampled or nothing was done.
/// `syncs` says how often the server syncs its binary log; see `Charged::syncs`.
pub(crate) fn cost(step: &WindowSummary<'_>, syncs: Option<Binlog>) -> Cost {
    let has_server = step.hosting == Hosting::Process;
    let server = if has_server { process(step, "server", step.window) } else { Cpu::default() };
    let client = client_hosts_cpu(step).unwrap_or_else(|| client(step));
    let sees_threads = has_server && !loses_switches(step);
    Cost::of(&Charged { step, syncs, server, client, has_server, sees_threads })
}

impl Charged<'_> {
    /// Counters of the server's threads, summed, per unit of the headline.
    fn of_threads(&self, keys: &[&str]) -> Option<f64> {
        self.step.per_unit("switches", keys).filter(|_| self.sees_threads)
    }

    /// CPU time of the host minus server minus client, which is that of the kernel's own threads
    /// and other programs. The host counts in ticks and the processes exactly, so the difference
    /// may be slightly negative; it then counts as 0. `None` for someone else's server, which may
    /// or may not be on this host.
    fn rest(&self) -> Option<f64> {
        let known = match self.step.hosting {
            Hosting::Process => self.server.total_us? + self.client.total_us?,
            Hosting::Embedded | Hosting::Nothing => self.client.total_us?,
            Hosting::External => return None,
        };
        let host = self.step.per_headline_unit(cpu::host_busy(self.step)?)?;
        Some((host - known).max(0.0))
    }
}

/// Share of the time of all the host's CPUs that the hypervisor took while they had something to
/// run; `None` where the host was not sampled.
fn stolen_share(step: &WindowSummary<'_>) -> Option<f64> {
    let stolen = step.change("host", &["cpu_steal_us"])?;
    Some(stolen.value / (f64::from(step.cpus) * stolen.between.seconds() * 1e6))
}

/// CPU time of the client hosts, for a step whose load other hosts made; `None` otherwise.
fn client_hosts_cpu(step: &WindowSummary<'_>) -> Option<Cpu> {
    let value = cpu::client_hosts_us_per_second(step.events)? * step.window.seconds();
    let total_us = step.per_headline_unit(CounterChange { value, between: step.window });
    Some(Cpu { total_us, ..Cpu::default() })
}

/// CPU time of the client, without the load threads' polls that found nothing.
fn client(step: &WindowSummary<'_>) -> Cpu {
    let whole = process(step, "client", step.window);
    if cpu::polled(step, step.window).is_none() {
        return whole;
    }
    let work = step.change("client", &["cpu_us"]).map(|cpu| cpu::without_polls(step, cpu));
    Cpu { total_us: work.and_then(|work| step.per_headline_unit(work)), ..Cpu::default() }
}

/// Whether context switches are missing because connections of the load ended in the step. The
/// switches of a process or thread between its last sample and its end are in no sample. PostgreSQL
/// has one process per connection. Other servers keep threads for the next connection, and report
/// how many new threads they have made.
fn loses_switches(step: &WindowSummary<'_>) -> bool {
    let reopened: u64 = step.events.iter().map(reopened).sum();
    let by_process = || {
        step.counters.get("server").is_some_and(|server| server.header.about.contains_key("with_children"))
    };
    let by_new_thread = || {
        let created = step.change(STATUS, &["Threads_created"]);
        created.is_some_and(|created| created.value > NEW_THREADS_SHARE * reopened as f64)
    };
    reopened > 0 && (by_process() || by_new_thread())
}

/// Connections that an event says were opened again.
fn reopened(event: &StepEvent) -> u64 {
    match event {
        StepEvent::Reconnected { .. } => 1,
        StepEvent::Statement { statement, done, .. }
            if StatementClass::of(statement) == StatementClass::Reconnect =>
        {
            *done
        }
        _ => 0,
    }
}

/// Bytes written to the device ÷ bytes of column values inserted or set. At most one of the step's
/// kinds of operation writes column values: the inserts, or the whole transaction.
fn write_amplification(step: &WindowSummary<'_>) -> Option<f64> {
    let writer = step.kinds.iter().find(|kind| kind.spec.user_bytes_per_operation > 0.0)?;
    let written = step.per_unit_of(writer, step.change("disk", &["written_bytes"])?)?;
    let user_bytes = match writer.unit {
        Unit::Rows => writer.spec.user_bytes_per_operation / f64::from(writer.spec.rows_per_operation),
        Unit::Operations | Unit::Seconds | Unit::Elapsed => writer.spec.user_bytes_per_operation,
    };
    Some(written / user_bytes)
}

/// CPU time that a process used between the samples nearest to `span`. It is the process's exact
/// CPU clock, split in proportion to its user and kernel times in ticks. The clock has no split,
/// and the ticks (10 ms each) do not add up to the clock.
pub(crate) fn process(step: &WindowSummary<'_>, source: &str, span: Span) -> Cpu {
    let used = |key: &str| step.change_over(source, &[key], span);
    let total_us = used("cpu_us").and_then(|used| step.per_headline_unit(used));
    let user = used("cpu_user_us").map(|used| used.value);
    let kernel = used("cpu_kernel_us").map(|used| used.value);
    let Some(((total, user), kernel)) = total_us.zip(user).zip(kernel) else {
        return Cpu { total_us, ..Cpu::default() };
    };
    let ticks = user + kernel;
    if ticks <= 0.0 {
        return Cpu { total_us, ..Cpu::default() };
    }
    Cpu { total_us, user_us: Some(total * user / ticks), kernel_us: Some(total * kernel / ticks) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{series, summary, with_counters};
    use crate::window::counters::{Counters, HOST_BUSY};

    const PROCESS: [&str; 3] = ["cpu_us", "cpu_user_us", "cpu_kernel_us"];
    const SWITCHES: [&str; 3] = ["voluntary_switches", "involuntary_switches", "run_delay_us"];
    const INTERRUPTS: [&str; 4] =
        ["server_rescheduling", "server_function_call", "client_rescheduling", "client_function_call"];

    /// The samples are at 0 and at the window's end (2.5 s). 500 queries, 10 inserts and 10 deletes
    /// lie between them.
    fn counters() -> Counters {
        let two = |values: Vec<i64>| [(0, vec![0; values.len()]), (2_500_000, values)];
        let mut all = series("server", &PROCESS, &two(vec![1_000_000, 600_000, 200_000]));
        all.extend(series("switches", &SWITCHES, &two(vec![900, 100, 50_000])));
        all.extend(series("interrupts", &INTERRUPTS, &two(vec![500, 50, 1_000, 100])));
        all.extend(series("load", &["voluntary_switches"], &two(vec![450])));
        all.extend(series("client", &PROCESS, &two(vec![250_000, 90_000, 10_000])));
        all.extend(series("host", &HOST_BUSY, &two(vec![1_500_000, 0, 0, 0, 0])));
        all.extend(series("status", &["Innodb_data_fsyncs", "Innodb_os_log_fsyncs"], &two(vec![50, 40])));
        all.extend(series("sampler", &["cpu_us"], &two(vec![5_000])));
        all
    }

    fn cost_of(hosting: Hosting, counters: &Counters) -> Cost {
        let step = with_counters(counters);
        cost(&WindowSummary::of(&step, hosting, 4), Some(Binlog::NotSynced))
    }

    #[test]
    fn the_exact_clock_is_split_in_the_proportion_of_ticks() {
        let cost = cost_of(Hosting::Process, &counters());
        assert_eq!(cost.server_cpu_us, Some(2_000.0)); // 1e6 / 500
        assert_eq!((cost.server_user_us, cost.server_kernel_us), (Some(1_500.0), Some(500.0))); // 3 : 1
        assert_eq!(cost.client_cpu_us, Some(500.0)); // 250000 / 500
        assert_eq!((cost.client_user_us, cost.client_kernel_us), (Some(450.0), Some(50.0))); // 9 : 1
    }

    #[test]
    fn switches_of_connections_that_ended_meanwhile_are_not_known() {
        let statement = |done| StepEvent::Statement {
            kind: "query".to_owned(),
            statement: "reconnect".to_owned(),
            from_us: 0,
            to_us: 2_500_000,
            done,
            empty: done,
            rows: 0,
        };
        let found = |counters: &Counters, done| {
            let mut step = with_counters(counters);
            step.events.push(statement(done));
            cost(&summary(&step), None).server_switches
        };
        let mut counters = counters();
        assert_eq!(
            (found(&counters, 0), found(&counters, 9)),
            (Some(2.0), Some(2.0)),
            "threads that are kept"
        );
        let created = |count| [(0, vec![6]), (2_500_000, vec![count])];
        counters.extend(series("status", &["Threads_created"], &created(7)));
        assert_eq!(found(&counters, 100), Some(2.0), "one of a hundred");
        counters.extend(series("status", &["Threads_created"], &created(8)));
        assert_eq!((found(&counters, 0), found(&counters, 100)), (Some(2.0), None));
        counters.remove("status");
        counters.get_mut("server").unwrap().header.about.insert("with_children".to_owned(), true.into());
        assert_eq!((found(&counters, 0), found(&counters, 9)), (Some(2.0), None));
    }

    #[test]
    fn the_rest_is_what_neither_server_nor_client_used() {
        let mut counters = counters();
        // The rest is 1.5e6 - 1e6 - 0.25e6 = 0.25e6 over 500 queries.
        assert_eq!(cost_of(Hosting::Process, &counters).rest_cpu_us, Some(500.0));
        assert_eq!(cost_of(Hosting::External, &counters).rest_cpu_us, None);
        counters.extend(series("host", &HOST_BUSY, &[(0, vec![0; 5]), (2_500_000, vec![9, 0, 0, 0, 0])]));
        assert_eq!(cost_of(Hosting::Process, &counters).rest_cpu_us, Some(0.0));
    }

    #[test]
    fn an_embedded_database_has_no_server_and_its_rest_is_host_minus_client() {
        let cost = cost_of(Hosting::Embedded, &counters());
        assert_eq!((cost.server_cpu_us, cost.server_switches), (None, None));
        assert_eq!((cost.server_run_delay_us, cost.load_voluntary_switches), (None, None));
        assert_eq!(cost.rest_cpu_us, Some(2_500.0)); // (1.5e6 - 0.25e6) / 500
    }

    #[test]
    fn written_bytes_are_divided_by_the_bytes_that_came_in() {
        let mut counters = counters();
        counters.extend(series("disk", &["written_bytes"], &[(0, vec![0]), (2_500_000, vec![200_000])]));
        assert_eq!(cost_of(Hosting::Process, &counters).write_amplification, None, "nothing came in");
        let mut step = with_counters(&counters);
        let insert = step.spec.kinds.iter_mut().find(|kind| kind.kind == "insert").unwrap();
        insert.user_bytes_per_operation = 2_000.0;
        let found = cost(&summary(&step), Some(Binlog::NotSynced));
        // There are 400 bytes for each of 500 rows, and each row has 2000 / 50 bytes.
        assert_eq!(found.write_amplification, Some(10.0));
    }

    #[test]
    fn switches_fsyncs_and_the_samplers_own_cost_follow_their_formulas() {
        let cost = cost_of(Hosting::Process, &counters());
        assert_eq!(cost.server_switches, Some(2.0)); // (900 + 100) / 500
        assert_eq!(
            (cost.server_voluntary_switches, cost.server_involuntary_switches),
            (Some(1.8), Some(0.2))
        );
        assert_eq!(cost.server_run_delay_us, Some(100.0)); // 50,000 / 500
        assert_eq!(cost.fsyncs_per_commit, Some(2.5)); // 50 of Innodb_data_fsyncs / 20 statements
        assert_eq!(cost.sampler_core_share, Some(0.002)); // 5000 us / 2.5 s
    }

    #[test]
    fn wake_ups_are_charged_to_the_side_whose_cpus_were_interrupted() {
        let cost = cost_of(Hosting::Process, &counters());
        let server = (cost.server_rescheduling_interrupts, cost.server_function_call_interrupts);
        let client = (cost.client_rescheduling_interrupts, cost.client_function_call_interrupts);
        assert_eq!((server, client), ((Some(1.0), Some(0.1)), (Some(2.0), Some(0.2))));
        assert_eq!(cost.load_voluntary_switches, Some(0.9)); // 450 / 500
        let mut fewer = counters();
        fewer.extend(series("switches", &SWITCHES[..2], &[(0, vec![0, 0]), (2_500_000, vec![900, 100])]));
        for source in ["interrupts", "load"] {
            fewer.remove(source);
        }
        let cost = cost_of(Hosting::Process, &fewer);
        assert_eq!((cost.server_voluntary_switches, cost.server_run_delay_us), (Some(1.8), None));
        assert_eq!((cost.client_rescheduling_interrupts, cost.load_voluntary_switches), (None, None));
    }

    #[test]
    fn fsyncs_of_log_and_data_files_are_found_in_the_views_of_every_postgres_version() {
        let fsyncs = |keys: &[&str], values: Vec<i64>| {
            let mut counters = counters();
            // Sessions report their counts when they end, so the counts are complete only if the
            // last sample finds no session of the load left.
            let keys = [keys, &["load_sessions"]].concat();
            let samples = [(0, vec![0; values.len()]), (2_500_000, [values, vec![0]].concat())];
            counters.extend(series("status", &keys, &samples));
            cost_of(Hosting::Process, &counters).fsyncs_per_commit
        };
        let (log, files) = ("pg_stat_wal.wal_sync", "pg_stat_io.fsyncs");
        assert_eq!(fsyncs(&[log, "other"], vec![20, 7]), Some(1.0));
        assert_eq!(fsyncs(&[log, files], vec![20, 10]), Some(1.5));
        assert_eq!(fsyncs(&[files, "other"], vec![40, 7]), Some(2.0));
        assert_eq!(fsyncs(&["other"], vec![7]), None);
    }

    #[test]
    fn a_server_that_does_not_count_fsyncs_has_none() {
        let mut counters = counters();
        counters.remove("status");
        assert_eq!(cost_of(Hosting::Process, &counters).fsyncs_per_commit, None);
    }

    #[test]
    fn numerator_and_denominator_cover_the_time_between_the_same_samples() {
        // The last sample came at 2.25 s, after 450 queries. 900,000 us are therefore 2000 us each,
        // not 1800.
        let samples = [(0, vec![0; 3]), (2_250_000, vec![900_000, 0, 0])];
        let cost = cost_of(Hosting::Process, &series("server", &PROCESS, &samples));
        assert_eq!(cost.server_cpu_us, Some(2_000.0));
        assert_eq!((cost.server_user_us, cost.client_cpu_us, cost.rest_cpu_us), (None, None, None));
    }
}
