//! CPU, switches, fsyncs, reads and wake-ups for one unit of a step's headline, charged to who
//! caused them.

use super::group;

group! {
    /// CPU and IO charged to who used them, for one unit of the step's headline.
    Cost {
        server_cpu_us: "server", "µs/op", 2, Less,
            "CPU of the server process; NA when it is not visible (embedded, another host).";
        server_user_us: "user", "µs/op", 2, Less, "The server's CPU in user mode.";
        server_kernel_us: "kernel", "µs/op", 2, Less, "The server's CPU in the kernel.";
        client_cpu_us: "client", "µs/op", 2, Less,
            "CPU of the load client without polling; with an embedded database it includes the database.";
        // This and the next are unknown of a client that spins: what it polled in vain is in both.
        client_user_us: "client user", "µs/op", 2, Less, "The client's CPU in user mode.";
        client_kernel_us: "client kernel", "µs/op", 2, Less, "The client's CPU in the kernel.";
        client_polling_share: "polling", "of CPU", 3, NotCompared,
            "Share of the load threads' CPU spent polling for answers. Not part of any other figure. NA for a client that sleeps.";
        rest_cpu_us: "rest", "µs/op", 2, Less,
            "CPU of the host used by neither server nor client.";
        host_iowait_us: "IO wait", "µs/op", 2, Less,
            "Time in which CPUs of the host were idle while something waited for IO.";
        host_steal_share: "steal", "of CPUs", 4, NotCompared,
            "Share of the host's CPU time that the hypervisor gave to others.";
        server_switches: "switches", "1/op", 3, Less, "Context switches of the server's threads.";
        server_voluntary_switches: "sleeps", "1/op", 3, Less, is_last = true,
            "The server's threads went to sleep (voluntary switches), and were woken again.";
        server_involuntary_switches: "preempted", "1/op", 3, Less, is_last = true,
            "The server's threads were preempted (involuntary switches).";
        server_run_delay_us: "run queue", "µs/op", 2, Less, is_last = true,
            "Time in which the server's threads could have run and waited for a CPU; NA where \
             the kernel does not count it.";
        server_rescheduling_interrupts: "server RES", "1/op", 3, Less, is_last = true,
            "Rescheduling interrupts of the server's CPUs; NA, as the next three, where server \
             and client have no CPUs of their own.";
        server_function_call_interrupts: "server CAL", "1/op", 3, Less, is_last = true,
            "Function-call interrupts of the server's CPUs; newer kernels wake idle CPUs by them.";
        client_rescheduling_interrupts: "client RES", "1/op", 3, Less, is_last = true,
            "Rescheduling interrupts of the client's CPUs: the server pays for each answer that \
             wakes a client by one.";
        client_function_call_interrupts: "client CAL", "1/op", 3, Less, is_last = true,
            "Function-call interrupts of the client's CPUs.";
        load_voluntary_switches: "client sleeps", "1/op", 3, Less, is_last = true,
            "The client's load threads went to sleep, and were woken by an answer or a timer; NA \
             of more than 64.";
        fsyncs_per_commit: "fsyncs", "1/commit", 3, Less,
            "fsyncs of the server's files, its binary log included, for one operation that \
             writes: each commits once.";
        write_amplification: "write amp.", "B/B", 2, Less,
            "Write amplification: bytes written to the device of the data directory for each \
             byte of column values inserted or set.";
        server_read_kib: "server read", "KiB/op", 3, Less,
            "Reads of the server's processes from storage, as the kernel counts them; the device's rkbpq includes reads by others.";
        others_read_share: "others read", "of device", 3, NotCompared,
            "Reads of the data's device that the server did not cause, as a share of all of \
             them; below 0: it read from other devices too.";
        sampler_core_share: "sampler", "core", 4, Less,
            "CPU of the sampler itself, as a share of one core.";
        busiest_load_thread_share: "load thread", "of time", 3, Less,
            "Part of the time in which the client's busiest load thread ran or waited for a CPU; \
             from 0.9 on the step is invalid.";
        load_thread_wait_share: "thread waited", "of time", 4, NotCompared,
            "Part of the time in which a load thread, the worst of them, waited for a CPU; with \
             CPUs of its own the step is invalid from 0.1 on.";
    }
}
