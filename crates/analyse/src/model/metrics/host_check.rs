//! CPU of the whole host compared with the sum over all processes.

use super::group;

group! {
    /// CPU of the host and the parts that are known, for one unit of the step's headline.
    #[derive(Copy)]
    HostCheck {
        host_us: "host", "µs/op", 2, NotCompared, "CPU time that the host counted.";
        server_user_us: "server user", "µs/op", 2, NotCompared, "The server in user mode.";
        server_kernel_us: "server kernel", "µs/op", 2, NotCompared, "The server in the kernel.";
        client_us: "client", "µs/op", 2, NotCompared,
            "dbdyno; with an embedded database this includes the database.";
        others_us: "others", "µs/op", 2, NotCompared, "All other processes.";
        kernel_threads_us: "kernel threads", "µs/op", 2, NotCompared,
            "The kernel's own threads: write-back, encryption, network.";
        // Kernels without CONFIG_IRQ_TIME_ACCOUNTING charge them to whom they interrupt.
        interrupts_us: "interrupts", "µs/op", 2, NotCompared,
            "Interrupts, as far as they are in no process.";
        unexplained_us: "unexplained", "µs/op", 2, NotCompared,
            "Host minus all parts. Below 0 the processes used more than the host counted.";
    }
    /// Of `host_us`.
    unexplained_share: f64,
    /// Greatest share, above or below 0, that is not reported.
    bound_share: f64
}

impl HostCheck {
    /// Whether the parts explain the host.
    pub fn holds(&self) -> bool {
        self.unexplained_share.abs() <= self.bound_share
    }
}
