//! Whether the parts explain the host's CPU, run by run.

use dbdyno_analyse::{HostCheck, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::fixed;

/// One figure of [`HostCheck`].
#[derive(Debug, Clone, Copy)]
pub struct HostCheckColumn {
    /// Short name, for tables.
    pub name: &'static str,
    /// Name of the same figure in machine-readable formats.
    pub field: &'static str,
    pub meaning: &'static str,
    /// µs for one unit of the headline.
    pub value: fn(&HostCheck) -> Option<f64>,
}

const fn column(
    name: &'static str,
    field: &'static str,
    value: fn(&HostCheck) -> Option<f64>,
    meaning: &'static str,
) -> HostCheckColumn {
    HostCheckColumn { name, field, meaning, value }
}

/// The host and its parts.
pub const HOST_CHECK: &[HostCheckColumn] = &[
    column("host", "host_us", |c| Some(c.host_us), "CPU time that the host counted."),
    column("server user", "server_user_us", |c| c.server_user_us, "The server in user mode."),
    column("server kernel", "server_kernel_us", |c| c.server_kernel_us, "The server in the kernel."),
    column(
        "client",
        "client_us",
        |c| Some(c.client_us),
        "dbdyno; with an embedded database this includes the database.",
    ),
    column("others", "others_us", |c| Some(c.others_us), "All other processes."),
    column(
        "kernel threads",
        "kernel_threads_us",
        |c| Some(c.kernel_threads_us),
        "The kernel's own threads: write-back, encryption, network.",
    ),
    column(
        "interrupts",
        "interrupts_us",
        |c| Some(c.interrupts_us),
        "Interrupts, as far as they are in no process.",
    ),
    column(
        "unexplained",
        "unexplained_us",
        |c| Some(c.unexplained_us),
        "Host minus all parts. Below 0 the processes used more than the host counted.",
    ),
];

pub(super) fn grid(step: &StepFindings) -> Table {
    let figures = HOST_CHECK.iter().map(|column| Column::new(column.name, "µs/op", column.meaning)).chain([
        Column::new("unexplained", "% of host", ""),
        Column::new("bound", "%", "5 %, and three standard errors of the host's count of ticks."),
    ]);
    let note = "CPU of the whole host compared with the sum over all processes. If unexplained \
                exceeds the bound, do not trust figures of the whole host. Figures of server and \
                client come from their own clocks.";
    let mut grid = Table::new("Host CPU by process", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        let Some(check) = &run.host_check else { continue };
        let mut row = run_labels(step, variant, run);
        row.extend(HOST_CHECK.iter().map(|column| fixed((column.value)(check), 2)));
        row.push(fixed(Some(100.0 * check.unexplained_share), 1));
        row.push(format!("±{}", fixed(Some(100.0 * check.bound_share), 1)));
        grid.push(row);
    }
    grid
}
