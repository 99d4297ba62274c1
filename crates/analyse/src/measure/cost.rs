//! CPU, context switches and fsyncs charged to who caused them, for one unit of the headline.

use dbdyno_record::{StatementClass, StepEvent, Unit};

use crate::measure::counters::{Change, STATUS, change};
use crate::measure::fsyncs::{self, Binlog};
use crate::measure::headroom::{self, Busiest};
use crate::measure::measured::{Hosting, Measured};
use crate::measure::metrics::HOST_BUSY;
use crate::measure::rates::unit_of;
use crate::measure::span::Span;
use crate::measure::{client_hosts, polling, reads};
use crate::model::Cost;

/// New threads for each connection that was opened again, from which on the switches of those that
/// ended are missed.
const NEW_THREADS_SHARE: f64 = 0.01;

/// CPU of one process for one unit of the headline, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    pub(crate) total_us: Option<f64>,
    pub(crate) user_us: Option<f64>,
    pub(crate) kernel_us: Option<f64>,
}

/// Each figure is `None` where its source was not sampled or nothing was done. `syncs` and `events`
/// are what [`fsyncs::per_commit`] asks for.
pub(crate) fn cost(step: &Measured<'_>, syncs: Option<Binlog>, events: &[StepEvent]) -> Cost {
    let has_server = step.hosting == Hosting::Process;
    let server = if has_server { process(step, "server", step.window) } else { Cpu::default() };
    let client = elsewhere(step, events).unwrap_or_else(|| client(step));
    let sees_threads = has_server && !loses_switches(step, events);
    let of_threads = |keys: &[&str]| per_unit(step, "switches", keys).filter(|_| sees_threads);
    let interrupts = |key| per_unit(step, "interrupts", &[key]);
    Cost {
        server_cpu_us: server.total_us,
        server_user_us: server.user_us,
        server_kernel_us: server.kernel_us,
        client_cpu_us: client.total_us,
        client_user_us: client.user_us,
        client_kernel_us: client.kernel_us,
        client_polling_share: polling::share(step),
        rest_cpu_us: rest(step, server, client),
        host_iowait_us: per_unit(step, "host", &["cpu_iowait_us"]),
        host_steal_share: stolen_share(step),
        server_switches: of_threads(&["voluntary_switches", "involuntary_switches"]),
        server_voluntary_switches: of_threads(&["voluntary_switches"]),
        server_involuntary_switches: of_threads(&["involuntary_switches"]),
        server_run_delay_us: of_threads(&["run_delay_us"]),
        server_rescheduling_interrupts: interrupts("server_rescheduling"),
        server_function_call_interrupts: interrupts("server_function_call"),
        client_rescheduling_interrupts: interrupts("client_rescheduling"),
        client_function_call_interrupts: interrupts("client_function_call"),
        load_voluntary_switches: per_unit(step, "load", &["voluntary_switches"]).filter(|_| has_server),
        fsyncs_per_commit: fsyncs::per_commit(step, syncs, events),
        write_amplification: write_amplification(step),
        server_read_kib: reads::server_read_kib(step),
        others_read_share: reads::others_share(step),
        sampler_core_share: step.change("sampler", &["cpu_us"]).map(|change| change.per_second() / 1e6),
        busiest_load_thread_share: headroom::busiest(step).map(Busiest::wanted),
        load_thread_wait_share: headroom::longest_wait(step),
    }
}

/// The increase of a sum of counters for one unit of the headline.
fn per_unit(step: &Measured<'_>, source: &str, keys: &[&str]) -> Option<f64> {
    step.change(source, keys).and_then(|change| step.per_headline_unit(change))
}

/// Share of the time of all the host's CPUs in which they had something to run and were not there
/// for it; `None` where the host was not sampled.
fn stolen_share(step: &Measured<'_>) -> Option<f64> {
    let stolen = step.change("host", &["cpu_steal_us"])?;
    Some(stolen.value / (f64::from(step.cpus) * stolen.between.seconds() * 1e6))
}

/// CPU of the hosts that put the load on, where this one did not.
fn elsewhere(step: &Measured<'_>, events: &[StepEvent]) -> Option<Cpu> {
    let value = client_hosts::cpu_us_per_second(events)? * step.window.seconds();
    let total_us = step.per_headline_unit(Change { value, between: step.window });
    Some(Cpu { total_us, ..Cpu::default() })
}

/// The client's CPU for its work.
fn client(step: &Measured<'_>) -> Cpu {
    let whole = process(step, "client", step.window);
    if polling::polled(step, step.window).is_none() {
        return whole;
    }
    let work = step.change("client", &["cpu_us"]).map(|cpu| polling::without(step, cpu));
    Cpu { total_us: work.and_then(|work| step.per_headline_unit(work)), ..Cpu::default() }
}

/// Whether connections of the load ended in the step and took their switches along: what a process
/// or thread did between the last reading and its end is seen by no one. PostgreSQL has a process
/// for each. Other servers keep threads for the next connection, and report how many they have made
/// anew.
fn loses_switches(step: &Measured<'_>, events: &[StepEvent]) -> bool {
    let reopened: u64 = events.iter().map(reopened).sum();
    let by_process = || {
        step.counters.get("server").is_some_and(|server| server.header.about.contains_key("with_children"))
    };
    let by_new_thread = || {
        let created = step.change(STATUS, &["Threads_created"]);
        created.is_some_and(|created| created.value > NEW_THREADS_SHARE * reopened as f64)
    };
    reopened > 0 && (by_process() || by_new_thread())
}

/// Connections that an event says were opened anew.
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

/// At most one kind of a step brings bytes: inserts, or a whole transaction.
fn write_amplification(step: &Measured<'_>) -> Option<f64> {
    let writer = step.spec.kinds.iter().find(|kind| kind.user_bytes_per_operation > 0.0)?;
    let written = step.per_unit_of(&writer.kind, step.change("disk", &["written_bytes"])?)?;
    let user_bytes = match unit_of(step.spec, &writer.kind) {
        Unit::Rows => writer.user_bytes_per_operation / f64::from(writer.rows_per_operation),
        Unit::Operations | Unit::Seconds | Unit::Elapsed => writer.user_bytes_per_operation,
    };
    Some(written / user_bytes)
}

/// What a process used between the samples nearest to `span`: its exact CPU clock, split in the
/// proportion of its tick-based user and kernel times. The clock knows no split, and the ticks (10
/// ms each) do not add up to the clock.
pub(crate) fn process(step: &Measured<'_>, source: &str, span: Span) -> Cpu {
    let change = |key: &str| change(step.counters, source, &[key], span);
    let total_us = change("cpu_us").and_then(|change| step.per_headline_unit(change));
    let user = change("cpu_user_us").map(|change| change.value);
    let kernel = change("cpu_kernel_us").map(|change| change.value);
    let Some(((total, user), kernel)) = total_us.zip(user).zip(kernel) else {
        return Cpu { total_us, ..Cpu::default() };
    };
    let ticks = user + kernel;
    if ticks <= 0.0 {
        return Cpu { total_us, ..Cpu::default() };
    }
    Cpu { total_us, user_us: Some(total * user / ticks), kernel_us: Some(total * kernel / ticks) }
}

/// Host minus server minus client: the kernel's own threads and other programs. Not below 0, since
/// the host counts in ticks and the processes exactly. `None` for another's server: it may or may
/// not be on this host.
fn rest(step: &Measured<'_>, server: Cpu, client: Cpu) -> Option<f64> {
    let known = match step.hosting {
        Hosting::Process => server.total_us? + client.total_us?,
        Hosting::Embedded | Hosting::Nothing => client.total_us?,
        Hosting::External => return None,
    };
    let busy = polling::without(step, step.change("host", &HOST_BUSY)?);
    let host = step.per_headline_unit(busy)?;
    Some((host - known).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{read_write_step, series};
    use crate::measure::counters::Counters;
    use crate::measure::span::Span;

    const PROCESS: [&str; 3] = ["cpu_us", "cpu_user_us", "cpu_kernel_us"];
    const SWITCHES: [&str; 3] = ["voluntary_switches", "involuntary_switches", "run_delay_us"];
    const INTERRUPTS: [&str; 4] =
        ["server_rescheduling", "server_function_call", "client_rescheduling", "client_function_call"];

    /// Samples at 0 and at the window's end (2.5 s): 500 queries, 10 inserts and 10 deletes between
    /// them.
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
        let step = read_write_step();
        let (spec, intervals) = (&step.spec, step.intervals.as_slice());
        let window = Span::new(0, 2_500_000);
        cost(&Measured { spec, intervals, counters, window, hosting, cpus: 4 }, Some(Binlog::NotSynced), &[])
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
        let step = read_write_step();
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
            let (spec, intervals, hosting) = (&step.spec, step.intervals.as_slice(), Hosting::Process);
            let measured =
                Measured { spec, intervals, counters, window: Span::new(0, 2_500_000), hosting, cpus: 4 };
            cost(&measured, None, &[statement(done)]).server_switches
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
        // 1.5e6 - 1e6 - 0.25e6 = 0.25e6 over 500 queries
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
    fn written_bytes_are_set_against_the_bytes_that_came_in() {
        let mut counters = counters();
        counters.extend(series("disk", &["written_bytes"], &[(0, vec![0]), (2_500_000, vec![200_000])]));
        assert_eq!(cost_of(Hosting::Process, &counters).write_amplification, None, "nothing came in");
        let mut step = read_write_step();
        let insert = step.spec.kinds.iter_mut().find(|kind| kind.kind == "insert").unwrap();
        insert.user_bytes_per_operation = 2_000.0;
        let (spec, intervals, hosting) = (&step.spec, step.intervals.as_slice(), Hosting::Process);
        let window = Span::new(0, 2_500_000);
        let measured = Measured { spec, intervals, counters: &counters, window, hosting, cpus: 4 };
        let found = cost(&measured, Some(Binlog::NotSynced), &[]);
        // 400 bytes for each of 500 rows, each of which brings 2000 / 50 bytes.
        assert_eq!(found.write_amplification, Some(10.0));
    }

    #[test]
    fn switches_fsyncs_and_the_samplers_own_cost() {
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
        let mut older = counters();
        older.extend(series("switches", &SWITCHES[..2], &[(0, vec![0, 0]), (2_500_000, vec![900, 100])]));
        for source in ["interrupts", "load"] {
            older.remove(source);
        }
        let cost = cost_of(Hosting::Process, &older);
        assert_eq!((cost.server_voluntary_switches, cost.server_run_delay_us), (Some(1.8), None));
        assert_eq!((cost.client_rescheduling_interrupts, cost.load_voluntary_switches), (None, None));
    }

    #[test]
    fn postgres_counts_fsyncs_of_log_and_data_files_in_each_versions_way() {
        let fsyncs = |keys: &[&str], values: Vec<i64>| {
            let mut counters = counters();
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
        // The last sample came at 2.25 s: 450 queries by then, so 900,000 us are 2000 us each, not
        // 1800.
        let samples = [(0, vec![0; 3]), (2_250_000, vec![900_000, 0, 0])];
        let cost = cost_of(Hosting::Process, &series("server", &PROCESS, &samples));
        assert_eq!(cost.server_cpu_us, Some(2_000.0));
        assert_eq!((cost.server_user_us, cost.client_cpu_us, cost.rest_cpu_us), (None, None, None));
    }
}
