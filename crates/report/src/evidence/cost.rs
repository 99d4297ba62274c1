//! CPU charged to who used it, switches, fsyncs, reads and wake-ups, for one unit of a step's headline.

use dbdyno_analyse::{Cost, StepFindings};

use super::{Column, Grid, run_columns, run_labels, runs};
use crate::number::fixed;

/// One figure of [`Cost`].
#[derive(Debug, Clone, Copy)]
pub struct CostColumn {
    /// Short name, for tables.
    pub name: &'static str,
    /// Name of the same figure in machine-readable formats.
    pub field: &'static str,
    pub unit: &'static str,
    pub decimals: usize,
    pub meaning: &'static str,
    pub value: fn(&Cost) -> Option<f64>,
}

const fn column(
    name: &'static str,
    field: &'static str,
    unit: &'static str,
    decimals: usize,
    value: fn(&Cost) -> Option<f64>,
    meaning: &'static str,
) -> CostColumn {
    CostColumn { name, field, unit, decimals, meaning, value }
}

/// The last columns of [`COSTS`], which are a table of their own: who slept and had to be woken.
const WAKE_UPS: usize = 8;

/// Every figure of [`Cost`], whose CPU it is first.
pub const COSTS: &[CostColumn] = &[
    column(
        "server",
        "server_cpu_us",
        "µs/op",
        2,
        |c| c.server_cpu_us,
        "CPU of the server process; NA when it is not visible (embedded, another host).",
    ),
    column("user", "server_user_us", "µs/op", 2, |c| c.server_user_us, "The server's CPU in user mode."),
    column(
        "kernel",
        "server_kernel_us",
        "µs/op",
        2,
        |c| c.server_kernel_us,
        "The server's CPU in the kernel.",
    ),
    column(
        "client",
        "client_cpu_us",
        "µs/op",
        2,
        |c| c.client_cpu_us,
        "CPU of the load client without polling; with an embedded database it includes the database.",
    ),
    column(
        "client user",
        "client_user_us",
        "µs/op",
        2,
        |c| c.client_user_us,
        "The client's CPU in user mode.",
    ),
    column(
        "client kernel",
        "client_kernel_us",
        "µs/op",
        2,
        |c| c.client_kernel_us,
        "The client's CPU in the kernel.",
    ),
    column(
        "polling",
        "client_polling_share",
        "of CPU",
        3,
        |c| c.client_polling_share,
        "Share of the load threads' CPU spent polling for answers. Not part of any other figure. \
         NA for a client that sleeps.",
    ),
    column(
        "rest",
        "rest_cpu_us",
        "µs/op",
        2,
        |c| c.rest_cpu_us,
        "CPU of the host used by neither server nor client.",
    ),
    column(
        "IO wait",
        "host_iowait_us",
        "µs/op",
        2,
        |c| c.host_iowait_us,
        "Time in which CPUs of the host were idle while something waited for IO.",
    ),
    column(
        "steal",
        "host_steal_share",
        "of CPUs",
        4,
        |c| c.host_steal_share,
        "Share of the host's CPU time that the hypervisor gave to others.",
    ),
    column(
        "switches",
        "server_switches",
        "1/op",
        3,
        |c| c.server_switches,
        "Context switches of the server's threads.",
    ),
    column(
        "fsyncs",
        "fsyncs_per_commit",
        "1/commit",
        3,
        |c| c.fsyncs_per_commit,
        "fsyncs of the server's files, its binary log included, for one operation that writes: each commits once.",
    ),
    column(
        "write amp.",
        "write_amplification",
        "B/B",
        2,
        |c| c.write_amplification,
        "Write amplification: bytes written to the device of the data directory for each byte of column values inserted or set.",
    ),
    column(
        "server read",
        "server_read_kib",
        "KiB/op",
        3,
        |c| c.server_read_kib,
        "Reads of the server's processes from storage, as the kernel counts them; the device's \
         rkbpq includes reads by others.",
    ),
    column(
        "others read",
        "others_read_share",
        "of device",
        3,
        |c| c.others_read_share,
        "Reads of the data's device that the server did not cause, as a share of all of them; below 0: it read from other devices too.",
    ),
    column(
        "sampler",
        "sampler_core_share",
        "core",
        4,
        |c| c.sampler_core_share,
        "CPU of the sampler itself, as a share of one core.",
    ),
    column(
        "load thread",
        "busiest_load_thread_share",
        "of time",
        3,
        |c| c.busiest_load_thread_share,
        "Part of the time in which the client's busiest load thread ran or waited for a CPU; from 0.9 on the step is invalid.",
    ),
    column(
        "thread waited",
        "load_thread_wait_share",
        "of time",
        4,
        |c| c.load_thread_wait_share,
        "Part of the time in which a load thread, the worst of them, waited for a CPU; with CPUs of its own the step is invalid from 0.1 on.",
    ),
    column(
        "sleeps",
        "server_voluntary_switches",
        "1/op",
        3,
        |c| c.server_voluntary_switches,
        "The server's threads went to sleep (voluntary switches), and were woken again.",
    ),
    column(
        "preempted",
        "server_involuntary_switches",
        "1/op",
        3,
        |c| c.server_involuntary_switches,
        "The server's threads were preempted (involuntary switches).",
    ),
    column(
        "run queue",
        "server_run_delay_us",
        "µs/op",
        2,
        |c| c.server_run_delay_us,
        "Time in which the server's threads could have run and waited for a CPU; NA where the kernel does not count it.",
    ),
    column(
        "server RES",
        "server_rescheduling_interrupts",
        "1/op",
        3,
        |c| c.server_rescheduling_interrupts,
        "Rescheduling interrupts of the server's CPUs; NA, as the next three, where server and client have no CPUs of their own.",
    ),
    column(
        "server CAL",
        "server_function_call_interrupts",
        "1/op",
        3,
        |c| c.server_function_call_interrupts,
        "Function-call interrupts of the server's CPUs; newer kernels wake idle CPUs by them.",
    ),
    column(
        "client RES",
        "client_rescheduling_interrupts",
        "1/op",
        3,
        |c| c.client_rescheduling_interrupts,
        "Rescheduling interrupts of the client's CPUs: the server pays for each answer that wakes a client by one.",
    ),
    column(
        "client CAL",
        "client_function_call_interrupts",
        "1/op",
        3,
        |c| c.client_function_call_interrupts,
        "Function-call interrupts of the client's CPUs.",
    ),
    column(
        "client sleeps",
        "load_voluntary_switches",
        "1/op",
        3,
        |c| c.load_voluntary_switches,
        "The client's load threads went to sleep, and were woken by an answer or a timer; NA of more than 64.",
    ),
];

pub(super) fn grids(step: &StepFindings) -> [Grid; 2] {
    let (costs, wake_ups) = COSTS.split_at(COSTS.len() - WAKE_UPS);
    let unit = &step.rate_label;
    let note = format!(
        "CPU time per unit of the rate ({unit}), by process; then context switches, fsyncs and reads."
    );
    let wake_note = format!(
        "Sleeps and wake-ups per unit of the rate ({unit}). The server pays for waking a client \
         that sleeps."
    );
    [grid(step, "CPU and fsyncs", &note, costs), grid(step, "Wake-ups", &wake_note, wake_ups)]
}

fn grid(step: &StepFindings, title: &str, note: &str, costs: &[CostColumn]) -> Grid {
    let figures = costs.iter().map(|cost| Column::new(cost.name, cost.unit, cost.meaning));
    let mut grid = Grid::new(title, note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let mut row = run_labels(step, variant, run);
        row.extend(costs.iter().map(|cost| fixed((cost.value)(&run.cost), cost.decimals)));
        grid.rows.push(row);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_cost_has_a_column_that_reads_it() {
        let cost = Cost {
            server_cpu_us: Some(1.0),
            server_user_us: Some(2.0),
            server_kernel_us: Some(3.0),
            client_cpu_us: Some(4.0),
            client_user_us: Some(5.0),
            client_kernel_us: Some(6.0),
            client_polling_share: Some(18.0),
            rest_cpu_us: Some(7.0),
            server_switches: Some(8.0),
            server_voluntary_switches: Some(18.0),
            server_involuntary_switches: Some(19.0),
            server_run_delay_us: Some(20.0),
            server_rescheduling_interrupts: Some(21.0),
            server_function_call_interrupts: Some(22.0),
            client_rescheduling_interrupts: Some(23.0),
            client_function_call_interrupts: Some(24.0),
            load_voluntary_switches: Some(25.0),
            fsyncs_per_commit: Some(9.0),
            sampler_core_share: Some(10.0),
            busiest_load_thread_share: Some(11.0),
            load_thread_wait_share: Some(15.0),
            host_iowait_us: Some(12.0),
            host_steal_share: Some(14.0),
            write_amplification: Some(13.0),
            server_read_kib: Some(16.0),
            others_read_share: Some(17.0),
        };
        let json = serde_json::to_value(&cost).expect("plain data");
        assert_eq!(json.as_object().expect("a struct").len(), COSTS.len());
        for column in COSTS {
            assert_eq!((column.value)(&cost), json[column.field].as_f64(), "{}", column.field);
        }
    }
}
