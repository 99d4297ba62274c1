//! The original's metric row.

use super::group;

group! {
    /// The original's 21 columns under their names; `None` prints as `NA`. Names with `q` mean "per
    /// insert" in `l.*` steps, as in the original.
    MetricRow {
        ips: "ips", "rows/s", 0, More, "Inserts per second; in l.x indexed rows per second.";
        qps: "qps", "1/s", 0, More, "Queries per second.";
        rps: "rps", "1/s", 0, Neither, "Reads per second of the block device.";
        rmbps: "rmbps", "MiB/s", 1, Neither, "MiB read per second from the block device.";
        wps: "wps", "1/s", 0, Neither, "Writes per second of the block device.";
        wmbps: "wmbps", "MiB/s", 1, Neither, "MiB written per second to the block device.";
        rpq: "rpq", "1/op", 3, Less, "Device reads per query (per insert in l.* steps).";
        rkbpq: "rkbpq", "KiB/op", 3, Less, "KiB read per query (per insert in l.* steps).";
        wpi: "wpi", "1/row", 3, Less, "Device writes per insert, in query steps too.";
        wkbpi: "wkbpi", "KiB/row", 3, Less, "KiB written per insert, in query steps too.";
        csps: "csps", "1/s", 0, Neither, "Context switches per second of the whole host.";
        cpups: "cpups", "%", 1, Neither,
            "User and kernel CPU of the whole host, in percent of all cores.";
        cspq: "cspq", "1/op", 3, Less,
            "Context switches of the host per query (per insert in l.* steps).";
        cpupq: "cpupq", "µs/op", 0, Less,
            "CPU of the whole host, client included, per query (per insert in l.* steps).";
        dbgb1: "dbgb1", "GiB", 3, Less, "Size of the database's tables and indexes.";
        dbgb2: "dbgb2", "GiB", 3, Less, "Size of the whole data directory with its logs.";
        rss: "rss", "GiB", 3, Less, "Greatest resident memory of the server process.";
        maxop: "maxop", "s", 3, Less, "Longest service time of an insert (l.*) or a query (q*).";
        median_second_rate: "p50", "1/s", 0, More,
            "Rate of client 1 in its median second: it was at least this fast in half of the \
             seconds. Not a response time.";
        slow_second_rate: "p99", "1/s", 0, More,
            "Rate of client 1 in a slow second: it was at least this fast in 99 % of them. Not a \
             response time.";
    }
    tag: String
}
