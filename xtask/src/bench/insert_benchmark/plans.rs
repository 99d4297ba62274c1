//! The plans that are run, and which of their figures have a target.

/// A plan of the Insert Benchmark with one variant and one block.
pub(super) struct BenchPlan {
    pub(super) name: &'static str,
    clients: u32,
    load_rows: u32,
    write_rows: u32,
    /// Rows of a statement and commit in l.i1; the workload's default when `None`.
    rows_per_commit: Option<u32>,
    read_write_seconds: u32,
}

/// A figure with a target.
pub(super) struct Case {
    pub(super) plan: &'static str,
    pub(super) step: &'static str,
    pub(super) what: &'static str,
    /// What is done once for one count of the rate.
    pub(super) unit: &'static str,
    /// Client CPU for one unit, at most; `None` for figures that are only shown.
    pub(super) target_us: Option<f64>,
    /// It is compared with the floor: rows of each INSERT, next to each of which goes a DELETE.
    pub(super) floor_rows: Option<u32>,
}

pub(super) const ALL: &[BenchPlan] = &[
    // Long enough that a sample a second at both ends of l.i0 weighs little, and in l.i1 the first
    // seconds on a server whose indexes were just built: the steady state is what that step is for.
    write("write", None),
    write("write-100", Some(100)),
    BenchPlan {
        name: "query",
        clients: 4,
        load_rows: 100_000,
        write_rows: 10_000,
        rows_per_commit: None,
        read_write_seconds: 10,
    },
];

const fn write(name: &'static str, rows_per_commit: Option<u32>) -> BenchPlan {
    BenchPlan {
        name,
        clients: 1,
        load_rows: 1_000_000,
        write_rows: 1_200_000,
        rows_per_commit,
        read_write_seconds: 1,
    }
}

pub(super) const CASES: &[Case] = &[
    Case { step: "l.i0", what: "l.i0: 1 client, 100 rows a commit", target_us: Some(0.5), ..WRITE },
    Case { what: "l.i1: 1 client, 50 rows a commit, as many deleted", floor_rows: Some(50), ..WRITE },
    Case {
        plan: "write-100",
        what: "l.i1: 1 client, 100 rows a commit, as many deleted",
        target_us: Some(0.6),
        floor_rows: Some(100),
        ..WRITE
    },
    Case { step: "qr100", what: "qr100: range queries, 4 clients", ..QUERY },
    Case { step: "qp100", what: "qp100: point queries, 4 clients", ..QUERY },
];

const WRITE: Case =
    Case { plan: "write", step: "l.i1", what: "", unit: "row", target_us: None, floor_rows: None };
const QUERY: Case = Case { plan: "query", unit: "query", target_us: Some(12.0), ..WRITE };

/// The server's option file: everything in memory, and no commit waits for the disk, so that the
/// client is asked to be as fast as it can.
pub(super) const MY_CNF: &str = "[mysqld]
innodb_buffer_pool_size = 1G
innodb_log_file_size = 1G
innodb_flush_log_at_trx_commit = 0
skip_log_bin
";

impl BenchPlan {
    /// The plan as TOML: the server on the first half of `cpus` CPUs, the client on the rest, or
    /// both everywhere when there is only one.
    pub(super) fn text(&self, server: &str, cpus: usize) -> String {
        let Self { name, clients, load_rows, write_rows, rows_per_commit, read_write_seconds } = self;
        let commit = rows_per_commit.map_or_else(String::new, |rows| {
            format!("\n[workload.insert-benchmark.rows_per_commit]\nwrite_1 = {rows}\n")
        });
        let half = cpus / 2;
        let host = match half {
            0 => String::new(),
            _ => format!("server_cpus = \"0-{}\"\nclient_cpus = \"{half}-{}\"\n", half - 1, cpus - 1),
        };
        format!(
            "name = \"bench-{name}\"

[host]
{host}
[[variant]]
name = \"server\"
server = \"{server}\"
my_cnf = \"bench.cnf\"

[workload.insert-benchmark]
clients = {clients}
load_rows = {load_rows}
write_rows = {write_rows}
rates = [100]
read_write_time = \"{read_write_seconds}s\"
settle_wait = \"1s\"
{commit}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_gives_half_of_the_cpus_to_the_server() {
        insta::assert_snapshot!(ALL[0].text("mariadb-10.11.5", 4), @r#"
        name = "bench-write"

        [host]
        server_cpus = "0-1"
        client_cpus = "2-3"

        [[variant]]
        name = "server"
        server = "mariadb-10.11.5"
        my_cnf = "bench.cnf"

        [workload.insert-benchmark]
        clients = 1
        load_rows = 1000000
        write_rows = 1200000
        rates = [100]
        read_write_time = "1s"
        settle_wait = "1s"
        "#);
        let hundred = ALL[1].text("x", 5);
        assert!(hundred.contains("server_cpus = \"0-1\"\nclient_cpus = \"2-4\"\n"));
        assert!(hundred.ends_with("\n\n[workload.insert-benchmark.rows_per_commit]\nwrite_1 = 100\n"));
        assert!(!ALL[2].text("x", 1).contains("cpus"));
    }

    #[test]
    fn every_figure_is_of_a_plan_that_runs() {
        assert!(CASES.iter().all(|case| ALL.iter().any(|plan| plan.name == case.plan)));
    }
}
