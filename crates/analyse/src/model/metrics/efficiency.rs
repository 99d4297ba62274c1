//! Hardware efficiency as published for microbenchmarks.

use super::group;

group! {
    /// The published figures under their names, `/` written as `_`. The operation `o` is a
    /// statement, those that begin and end a transaction included; a row where the step's headline
    /// counts rows.
    #[derive(Copy)]
    Efficiency {
        o_s: "o/s", "1/s", 0, More, is_last = true,
            "Operations per second: statements, BEGIN and COMMIT included; rows where the step \
             counts rows.";
        cpu_o: "cpu/o", "%·s/op", 6, Less,
            "Percent of the whole machine's CPU, divided by operations per second. × CPUs × 10⁴ \
             = µs per operation.";
        cs_o: "cs/o", "1/op", 3, Less, "Context switches of the whole host for one operation.";
        r_o: "r/o", "1/op", 3, Less, "Reads of the block device for one operation.";
        rkb_o: "rKB/o", "KiB/op", 3, Less, "KiB read from the block device for one operation.";
        wkb_o: "wKB/o", "KiB/op", 3, Less, "KiB written to the block device for one operation.";
    }
}
