//! What is measured, and what it must reach.

use std::fmt::Write as _;

use super::peer::Used;
use super::{ROWS, SECONDS};
use crate::bench::machine;
use crate::bench::spread::Spread;

/// One kind of transaction at one concurrency.
pub(super) struct Case {
    /// dbdyno's step.
    pub(super) test: &'static str,
    /// sysbench's test.
    pub(super) peer_test: &'static str,
    /// What the tables call it.
    pub(super) title: &'static str,
    /// Options of the plan's workload in addition to those of every case, and the same for
    /// sysbench.
    pub(super) options: &'static str,
    pub(super) peer_options: &'static [&'static str],
    pub(super) connections: u32,
    /// Client CPU over sysbench's, at most.
    pub(super) most_cpu: f64,
    /// Rate over sysbench's, at least.
    pub(super) least_rate: Option<f64>,
    /// It is also compared with the bare loop, which speaks MySQL only.
    pub(super) has_floor: bool,
}

/// Client CPU over that of the bare loop, at most, and the connections for which that is asked.
pub(super) const MOST_OVER_FLOOR: f64 = 1.25;
const FLOOR_ASKED_AT: u32 = 16;

/// Simple ranges of 100 rows alone, each a transaction of its own.
const RANGE: (&str, &[&str]) = (
    "point_selects = 0\nsum_ranges = 0\norder_ranges = 0\ndistinct_ranges = 0\nskip_trx = true\n",
    &["--point-selects=0", "--sum-ranges=0", "--order-ranges=0", "--distinct-ranges=0", "--skip-trx=on"],
);

const fn point(connections: u32, most_cpu: f64, least_rate: Option<f64>) -> Case {
    let (test, peer_test) = ("point-select", "oltp_point_select");
    Case { connections, most_cpu, least_rate, has_floor: true, ..step(test, peer_test) }
}

const fn read_write(connections: u32) -> Case {
    Case { connections, ..step("read-write", "oltp_read_write") }
}

const fn range() -> Case {
    let (options, peer_options) = RANGE;
    Case { title: "range", options, peer_options, ..step("read-only", "oltp_read_only") }
}

/// A test with its own options at 16 connections.
const fn step(test: &'static str, peer_test: &'static str) -> Case {
    let (options, peer_options) = ("", &[] as &[&str]);
    let (connections, most_cpu, least_rate, has_floor) = (16, 0.70, None, false);
    Case { test, peer_test, title: test, options, peer_options, connections, most_cpu, least_rate, has_floor }
}

pub(super) const CASES: &[Case] = &[
    point(1, 0.75, None),
    point(16, 0.60, Some(1.10)),
    point(64, 0.60, Some(1.10)),
    read_write(1),
    read_write(16),
    read_write(64),
    range(),
    step("update-index", "oltp_update_index"),
    step("update-non-index", "oltp_update_non_index"),
    step("insert", "oltp_insert"),
];

/// By the beginning of their names.
pub(super) const SERVERS: [&str; 2] = ["mariadb-10.11", "pg-15"];

impl Case {
    pub(super) fn what(&self) -> String {
        let plural = if self.connections == 1 { "" } else { "s" };
        format!("{}, {} connection{plural}", self.title, self.connections)
    }
}

/// dbdyno's plan for a case, on the table that sysbench has made.
pub(super) fn plan(name: &str, address: &str, case: &Case, client_cpus: Option<&[u32]>) -> String {
    let mut text = format!("name = \"{name}\"\n\n");
    if let Some(cpus) = client_cpus {
        let _ = write!(text, "[host]\nclient_cpus = \"{}\"\n\n", machine::list(Some(cpus)));
    }
    let Case { test, connections, options, .. } = case;
    let _ = write!(
        text,
        "[[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n[workload.oltp]\ntests = [\"{test}\"]\n\
         connections = [{connections}]\nuse_existing = true\ntables = 1\ntable_size = {ROWS}\ntime = \"{SECONDS}s\"\ndistribution = \"uniform\"\n{options}"
    );
    text
}

/// A case with its measurements, one a round.
pub(super) struct Figure {
    pub(super) case: &'static Case,
    pub(super) server: String,
    pub(super) own: Vec<Used>,
    pub(super) peers: Vec<Used>,
    pub(super) floors: Vec<Used>,
}

impl Figure {
    pub(super) fn new(case: &'static Case, server: &str) -> Self {
        Self { case, server: server.to_owned(), own: Vec::new(), peers: Vec::new(), floors: Vec::new() }
    }

    pub(super) fn cpu_ratio(&self) -> Spread {
        Spread::ratio(&self.own, &self.peers, |used| used.cpu_us)
    }

    pub(super) fn rate_ratio(&self) -> Spread {
        Spread::ratio(&self.own, &self.peers, |used| used.rate_per_second)
    }

    /// Client CPU over the bare loop's; `None` where that is not measured.
    pub(super) fn floor_ratio(&self) -> Option<Spread> {
        (!self.floors.is_empty()).then(|| Spread::ratio(&self.own, &self.floors, |used| used.cpu_us))
    }

    pub(super) fn is_cpu_met(&self) -> bool {
        !self.own.is_empty() && self.cpu_ratio().median <= self.case.most_cpu
    }

    pub(super) fn is_rate_met(&self) -> bool {
        self.case.least_rate.is_none_or(|least| self.rate_ratio().median >= least)
    }

    pub(super) fn has_floor_target(&self) -> bool {
        self.case.connections == FLOOR_ASKED_AT
    }

    pub(super) fn is_floor_met(&self) -> bool {
        !self.has_floor_target() || self.floor_ratio().is_none_or(|ratio| ratio.median <= MOST_OVER_FLOOR)
    }

    pub(super) fn is_met(&self) -> bool {
        self.is_cpu_met() && self.is_rate_met() && self.is_floor_met()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(cpu_us: f64, rate_per_second: f64) -> Used {
        Used { cpu_us, rate_per_second }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut figure = Figure::new(&CASES[1], "MariaDB");
        assert!(!figure.is_met(), "nothing measured is nothing met");
        figure.own = vec![used(5.0, 120.0), used(10.0, 60.0)];
        figure.peers = vec![used(10.0, 100.0), used(20.0, 50.0)];
        figure.floors = vec![used(5.0, 120.0), used(8.0, 60.0)];
        assert_eq!(figure.cpu_ratio(), Spread { least: 0.5, median: 0.5, greatest: 0.5 });
        assert_eq!(figure.rate_ratio().median, 1.2);
        assert_eq!(figure.floor_ratio().map(|ratio| ratio.median), Some(1.125));
        assert!(figure.is_met());
        figure.floors = vec![used(2.0, 120.0), used(2.0, 60.0)];
        assert!(figure.is_cpu_met() && figure.is_rate_met() && !figure.is_met());
    }

    #[test]
    fn the_plan_asks_for_one_step_on_the_same_server() {
        let text = plan("x", "mysql://root@localhost/dbdyno?socket=/run/s", &CASES[1], Some(&[2, 3]));
        insta::assert_snapshot!(text, @r#"
        name = "x"

        [host]
        client_cpus = "2,3"

        [[variant]]
        name = "server"
        address = "mysql://root@localhost/dbdyno?socket=/run/s"

        [workload.oltp]
        tests = ["point-select"]
        connections = [16]
        use_existing = true
        tables = 1
        table_size = 10000
        time = "5s"
        distribution = "uniform"
        "#);
    }
}
