//! Figures of one execution of a step: the original's columns, CPU and IO, the device.

use serde::Serialize;

/// The original's 21 columns under their names; `None` prints as `NA`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MetricRow {
    pub ips: Option<f64>,
    pub qps: Option<f64>,
    pub rps: Option<f64>,
    pub rmbps: Option<f64>,
    pub wps: Option<f64>,
    pub wmbps: Option<f64>,
    pub rpq: Option<f64>,
    pub rkbpq: Option<f64>,
    pub wpi: Option<f64>,
    pub wkbpi: Option<f64>,
    pub csps: Option<f64>,
    pub cpups: Option<f64>,
    pub cspq: Option<f64>,
    pub cpupq: Option<f64>,
    pub dbgb1: Option<f64>,
    pub dbgb2: Option<f64>,
    pub rss: Option<f64>,
    pub maxop: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub tag: String,
}

/// The published figures under their names, `/` written as `_`. The operation `o` is a statement, those that begin and end a
/// transaction included; a row where the step's headline counts rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Efficiency {
    /// Operations per second.
    pub o_s: Option<f64>,
    /// Percent of the whole machine's CPU ÷ operations per second.
    pub cpu_o: Option<f64>,
    /// Context switches of the whole host.
    pub cs_o: Option<f64>,
    /// Reads of the block device.
    pub r_o: Option<f64>,
    /// KB (1024 bytes) read and written.
    pub rkb_o: Option<f64>,
    pub wkb_o: Option<f64>,
}

/// CPU and IO charged to who used them, for one unit of the step's headline.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cost {
    /// Server process, user and kernel. `None` when there is no server process (embedded, somebody else's host).
    pub server_cpu_us: Option<f64>,
    pub server_user_us: Option<f64>,
    pub server_kernel_us: Option<f64>,
    /// dbdyno itself; for an embedded database this includes the database. Without `client_polling_share`.
    pub client_cpu_us: Option<f64>,
    /// `None`, as `client_kernel_us`, of a client that spins: what it polled in vain is in both, in parts unknown.
    pub client_user_us: Option<f64>,
    pub client_kernel_us: Option<f64>,
    /// Part of the load threads' CPU time that went into asking for answers when there were none. `None` of a client that sleeps.
    pub client_polling_share: Option<f64>,
    /// Host minus server minus client.
    pub rest_cpu_us: Option<f64>,
    /// Time in which CPUs of the host had nothing to run while something waited for IO.
    pub host_iowait_us: Option<f64>,
    /// Time of the host's CPUs that a hypervisor gave to others, as a share of all their time.
    pub host_steal_share: Option<f64>,
    pub server_switches: Option<f64>,
    /// The server's threads had nothing more to do and slept: each is a wake-up before or after.
    pub server_voluntary_switches: Option<f64>,
    /// The server's threads had to make room for others.
    pub server_involuntary_switches: Option<f64>,
    /// Time in which threads of the server could have run and had no CPU.
    pub server_run_delay_us: Option<f64>,
    /// Interrupts of the server's CPUs by which other CPUs woke a thread there or had it give way. `None` as the next three where
    /// server and client have no CPUs of their own.
    pub server_rescheduling_interrupts: Option<f64>,
    /// Interrupts of the server's CPUs by which other CPUs had something else done there; newer kernels wake idle CPUs so.
    pub server_function_call_interrupts: Option<f64>,
    pub client_rescheduling_interrupts: Option<f64>,
    pub client_function_call_interrupts: Option<f64>,
    /// Load threads had nothing to do and slept; what came next had to wake them.
    pub load_voluntary_switches: Option<f64>,
    /// fsyncs of the server's files, its binary log included, for one operation that writes: each commits once.
    pub fsyncs_per_commit: Option<f64>,
    /// Bytes written to the device of the data directory for each byte of column values inserted or set. `None` of a step
    /// that brings none.
    pub write_amplification: Option<f64>,
    /// KiB that the server's processes had fetched from storage, by the kernel's account of them; of an embedded database
    /// dbdyno's own. `None` where that cannot be seen.
    pub server_read_kib: Option<f64>,
    /// Reads of the data's device that the server did not cause, as a share of all of them; below 0 where it read from other
    /// devices too.
    pub others_read_share: Option<f64>,
    /// CPU of the sampler as a share of one core.
    pub sampler_core_share: Option<f64>,
    /// Part of the window in which the client's busiest load thread ran or waited for a CPU; `None` where the database
    /// works in the load threads.
    pub busiest_load_thread_share: Option<f64>,
    /// Part of the window in which the load thread that waited longest for a CPU did so; `None` as above.
    pub load_thread_wait_share: Option<f64>,
}

/// Averages over the common window, of all that used the device. `None` where the kernel does not tell, and where there was no
/// request to take the average of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DeviceLoad {
    pub reads_per_second: Option<f64>,
    pub read_kib_per_second: Option<f64>,
    /// Of a read, as the device got it: requests that were merged are one.
    pub read_size_kib: Option<f64>,
    /// Of a read from its way into the queue to its end.
    pub read_await_ms: Option<f64>,
    pub writes_per_second: Option<f64>,
    pub written_kib_per_second: Option<f64>,
    pub write_size_kib: Option<f64>,
    pub write_await_ms: Option<f64>,
    /// Of the device's cache, asked for by fsync and its kin; of a partition those of its whole disk.
    pub flushes_per_second: Option<f64>,
    pub flush_await_ms: Option<f64>,
    /// Requests under way, on average over time: those in the queue and those that the device works at.
    pub queue_depth: Option<f64>,
    /// Part of the time in which at least one request was under way.
    pub busy_share: Option<f64>,
}

/// Ratios to the base under the names of the figures: 1.1 in `cpupq` is a tenth more CPU a query.
#[derive(Debug, Clone, Serialize)]
pub struct RelativeMetrics {
    /// Figures of which the base has none and the variant some, as `metrics.rps`. Their ratio is infinite, for which JSON has no
    /// number: it stands there as `null`, like one that is not known.
    pub infinite: Vec<String>,
    pub metrics: MetricRow,
    pub efficiency: Efficiency,
    pub cost: Cost,
}
