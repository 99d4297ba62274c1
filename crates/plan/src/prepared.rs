//! How many prepared statements a plan holds open at once: MySQL and MariaDB have a limit for all connections together.

use crate::{MicroTest, Microbenchmarks, Oltp, OltpTest, Plan, Protocol};

impl Plan {
    /// Prepared statements of the step that has the most, all connections together: one for each kind of statement, table
    /// and connection. BEGIN and COMMIT and the Insert Benchmark's few are not in it.
    pub fn most_prepared_statements(&self) -> u64 {
        let oltp = self.workload.oltp.as_ref().map_or(0, of_oltp);
        oltp.max(self.workload.microbenchmarks.as_ref().map_or(0, of_microbenchmarks))
    }
}

fn of_oltp(options: &Oltp) -> u64 {
    if options.protocol == Protocol::Text {
        return 0;
    }
    let reads = [
        options.point_selects,
        options.simple_ranges,
        options.sum_ranges,
        options.order_ranges,
        options.distinct_ranges,
    ];
    let writes = [options.index_updates, options.non_index_updates];
    let used = |counts: &[u32]| counts.iter().filter(|count| **count > 0).count() as u64;
    // A DELETE and the INSERT of the same row.
    let replaced = if options.delete_inserts > 0 { 2 } else { 0 };
    let kinds = |test: &OltpTest| match test {
        OltpTest::Insert if options.protocol == Protocol::Auto => 0,
        OltpTest::ReadOnly => used(&reads),
        OltpTest::WriteOnly => used(&writes) + replaced,
        OltpTest::ReadWrite => used(&reads) + used(&writes) + replaced,
        _ => 1,
    };
    let connections = options.connections.iter().copied().max().unwrap_or(0);
    let most = options.tests.iter().map(kinds).max().unwrap_or(0);
    u64::from(connections).saturating_mul(options.tables.into()).saturating_mul(most)
}

fn of_microbenchmarks(options: &Microbenchmarks) -> u64 {
    if options.protocol == Protocol::Text {
        return 0;
    }
    let kinds = |test: MicroTest| match test {
        MicroTest::ReadOnly => 5,
        MicroTest::WriteOnly => 4,
        MicroTest::ReadWrite => 9,
        MicroTest::Insert | MicroTest::Scan if options.protocol == Protocol::Auto => 0,
        _ => 1,
    };
    let rungs = options.rungs();
    let most =
        rungs.iter().map(|rung| u64::from(rung.connections) * kinds(rung.step.test)).max().unwrap_or(0);
    most.saturating_mul(options.tables.into())
}

#[cfg(test)]
mod tests {
    use crate::parse;

    fn most(workload: &str) -> u64 {
        let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n{workload}\n");
        parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}")).most_prepared_statements()
    }

    #[test]
    fn each_connection_has_each_kind_on_each_table() {
        let sweep = "tests = [\"read-write\"]\ntables = 4\nconnections = \"1..4096\"";
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}")), 9 * 4 * 4096);
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}\nprotocol = \"text\"")), 0);
        assert_eq!(most("[workload.oltp]\ntests = [\"point-select\"]\nconnections = [16]\ntables = 2"), 32);
        let micro = "[workload.microbenchmarks]\ntables = 2\nconnections = [8]\nsteps = ";
        assert_eq!(most(&format!("{micro}[\"point-query\", \"insert\"]")), 16);
        assert_eq!(most(&format!("{micro}[\"read-write*\"]")), 9 * 2 * 8);
        assert_eq!(most("[workload.insert-benchmark]"), 0);
    }
}
