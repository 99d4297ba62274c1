//! The device of the data directory in the figures of iostat: reads, writes, flushes, then all.

use super::group;

group! {
    /// Averages over the common window, of all that used the device. `None` where the kernel does
    /// not count, and where there was no request to take the average of.
    #[derive(Copy)]
    DeviceLoad {
        reads_per_second: "r/s", "1/s", 1, Neither, "Reads that were completed.";
        read_kib_per_second: "rKB/s", "KiB/s", 1, Neither, "Read.";
        read_size_kib: "rareq-sz", "KiB", 1, Neither, "Mean size of a read.";
        read_await_ms: "r_await", "ms", 2, Less,
            "Mean time of a read, in the queue and at the device.";
        writes_per_second: "w/s", "1/s", 1, Neither, "Writes that were completed.";
        written_kib_per_second: "wKB/s", "KiB/s", 1, Neither, "Written.";
        write_size_kib: "wareq-sz", "KiB", 1, Neither, "Mean size of a write.";
        write_await_ms: "w_await", "ms", 2, Less,
            "Mean time of a write, in the queue and at the device.";
        flushes_per_second: "f/s", "1/s", 1, Neither,
            "Flushes of the device's cache, as fsync asks for; of a partition those of its whole \
             disk.";
        flush_await_ms: "f_await", "ms", 2, Less, "Mean time of a flush.";
        queue_depth: "aqu-sz", "requests", 2, Neither,
            "Requests under way, on average over time: in the queue and at the device.";
        busy_share: "util", "% of time", 1, Neither, factor = 100.0,
            "Time in which at least one request was under way. A device that works at many at \
             once may do more at 100 %.";
    }
}
