//! What a plan asks about the options: checks of what goes together, needs, steps, a forecast.

use std::ops::RangeInclusive;

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};

use crate::oltp::list::ROW_BYTES;
use crate::oltp::mix::{places, prepared};
use crate::oltp::options::{
    Distribution, IdType, LoadMethod, OltpOptions, OltpArrivals, OltpTest, existing_warning,
};
use crate::options::{Protocol, first_problem, schema_problem, table_options_problem};
use crate::settle::both_problem;
use crate::step::{StepOptions, forecast, outlines};

/// Highest id where column `id` is a 32-bit number, which it is unless the plan says otherwise.
const MOST_ID: u64 = i32::MAX as u64;
/// Highest id otherwise. No one has the disks for more, and sums of such ids fit into 64 bits for
/// millions of rows.
const MOST_BIG_ID: u64 = 1_000_000_000_000;

impl WorkloadOptions for OltpOptions {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        tables_problem(self)
            .or_else(|| schema_problem(self))
            .or_else(|| statements_problem(self))
            .or_else(|| rates_problem(self))
            .or_else(|| distribution_problem(self))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let writes = self.tests.iter().filter(|test| test.writes() && self.use_existing);
        existing_warning(writes.map(|test| test.name().to_owned()).collect())
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.most_connections(),
            data_bytes: Some(self.loaded_rows().saturating_mul(ROW_BYTES)),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != Protocol::Text,
            existing_tables: self.use_existing,
            row_streams: self.load_method == LoadMethod::Stream && !self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        let most = self.connections.iter().copied().max().unwrap_or(0);
        let tests = self.tests.iter().filter(|test| self.prepares(**test));
        let of_test = |test: &OltpTest| prepared(&places(*test, self, false), self.tables, with_begin);
        u64::from(most) * tests.map(of_test).max().unwrap_or(0)
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

/// Finds a test whose operations hold no statement. Its rate would be that of the client's empty loop.
fn statements_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let test = oltp.tests.iter().find(|test| places(**test, oltp, false).is_empty())?;
    let (key, why) = match test {
        OltpTest::PointSelect | OltpTest::Insert | OltpTest::Delete => return None,
        OltpTest::UpdateIndex => ("index_updates", "index_updates is 0"),
        OltpTest::UpdateNonIndex => ("non_index_updates", "non_index_updates is 0"),
        OltpTest::ReadOnly => {
            ("skip_trx", "skip_trx leaves out BEGIN and COMMIT, and point selects and ranges are off")
        }
        OltpTest::WriteOnly => ("skip_trx", "skip_trx leaves out BEGIN and COMMIT, and all writes are off"),
        OltpTest::ReadWrite => {
            ("skip_trx", "skip_trx leaves out BEGIN and COMMIT, and all reads and writes are off")
        }
    };
    let remedy = "ask for at least one, or leave the test out of tests";
    Some((key, format!("the test {} has no statement, because {why}: {remedy}", test.name())))
}

/// Returns the first option about arrivals that does not go with the others.
pub(crate) fn rates_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let is_closed = oltp.arrivals == OltpArrivals::Closed;
    let events = "events is for arrivals = \"closed\"; with a rate, time says how many there are";
    let rates = "rates are for arrivals = \"constant\" and arrivals = \"poisson\"; a closed loop has none";
    let backlog = "max_backlog is for a step with a rate; in a closed loop nothing waits";
    let thinks = "think_time is for arrivals = \"closed\"; a rate does not wait for answers";
    let contradiction = first_problem([
        (!is_closed && oltp.events.is_some(), "events", events),
        (is_closed && !oltp.rates.is_empty(), "rates", rates),
        (is_closed && oltp.max_backlog.is_some(), "max_backlog", backlog),
        (!is_closed && !oltp.think_time.0.is_zero(), "think_time", thinks),
    ]);
    let message = format!(
        "arrivals = \"{}\" needs rates: name at least one number of operations per second, e.g. rates = [1000, 5000]",
        oltp.arrivals.name()
    );
    contradiction.or_else(|| first_problem([(!is_closed && oltp.rates.is_empty(), "rates", &message)]))
}

fn distribution_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let is_lost = oltp.zipfian_scrambled && oltp.distribution != Distribution::Zipfian;
    first_problem([(is_lost, "zipfian_scrambled", "zipfian_scrambled is for distribution = \"zipfian\"")])
}

/// Returns the first option of the tables that is out of its range, or that contradicts another. The
/// result has its key inside `[workload.NAME]`, and what to write. `oltp` may be the part of another
/// workload that describes its tables.
pub(crate) fn tables_problem(oltp: &OltpOptions) -> Option<Mistake> {
    table_number_problem(oltp)
        .or_else(|| first_id_problem(oltp))
        .or_else(|| {
            let message = "index_before_load wants an index on k, and create_secondary = false wants none";
            first_problem([(oltp.index_before_load && !oltp.create_secondary, "index_before_load", message)])
        })
        .or_else(|| table_options_problem(&oltp.create_table_options))
}

fn table_number_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let most = most_id(oltp);
    [("table_size", oltp.table_size), ("first_id", oltp.first_id)].into_iter().find_map(|(key, value)| {
        let message = number_problem(key, value, &(1..=most))?;
        let help = if most == MOST_ID && value > most { WIDER } else { "" };
        Some((key, message + help))
    })
}

/// Returns what to write when `value` is outside `range`.
fn number_problem(key: &str, value: u64, range: &RangeInclusive<u64>) -> Option<String> {
    (!range.contains(&value))
        .then(|| format!("{key} is {value}, but must be {} to {}", range.start(), range.end()))
}

const WIDER: &str = "; with id = \"bigint\" it may be greater";

fn most_id(oltp: &OltpOptions) -> u64 {
    if oltp.id == IdType::Bigint { MOST_BIG_ID } else { MOST_ID }
}

/// Checks the last id. Both numbers fit by themselves.
fn first_id_problem(oltp: &OltpOptions) -> Option<Mistake> {
    let (last, most) = (oltp.last_id(), most_id(oltp));
    (last > most).then(|| {
        let help = if most == MOST_ID { WIDER } else { "" };
        let message =
            format!("first_id and table_size make {last} the last id, but it must be at most {most}");
        ("first_id", message + help)
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::warnings;

    use crate::plans::parse;

    fn most(workload: &str) -> u64 {
        let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n{workload}\n");
        parse(&text, "p.toml")
            .unwrap_or_else(|error| panic!("{error}"))
            .workload
            .most_prepared_statements(true)
    }

    #[test]
    fn each_connection_has_each_kind_on_each_table() {
        let sweep = "tests = [\"read-write\"]\ntables = 4\nconnections = \"1..4096\"";
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}")), (9 * 4 + 2) * 4096);
        assert_eq!(most(&format!("[workload.oltp]\n{sweep}\nprotocol = \"text\"")), 0);
        assert_eq!(most("[workload.oltp]\ntests = [\"point-select\"]\nconnections = [16]\ntables = 2"), 32);
        let micro = "[workload.microbenchmarks]\ntables = 2\nconnections = [8]\nsteps = ";
        let counts = "tests = [\"read-only\"]\ncount_ranges = 1\nconnections = [8]\ntables = 2";
        assert_eq!(most(&format!("[workload.oltp]\n{counts}")), (6 * 2 + 2) * 8);
        assert_eq!(most(&format!("{micro}[\"point-query\", \"insert\"]")), 16);
        assert_eq!(most(&format!("{micro}[\"read-write*\"]")), (9 * 2 + 2) * 8);
        let sum = "[\"read-only-sum*\"]\nsequence = \"32\"";
        assert_eq!(most(&format!("{micro}{sum}")), (2 * 2 + 2) * 8);
        assert_eq!(most("[workload.insert-benchmark]"), 0);
    }

    #[test]
    fn what_is_around_a_transaction_counts_where_it_is_prepared() {
        let plan = |options: &str| {
            let text = format!(
                "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.oltp]\n{options}\n"
            );
            parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
        };
        let transaction = plan("tests = [\"read-write\"]\nconnections = [1000]");
        assert_eq!(transaction.workload.most_prepared_statements(true), 11_000);
        assert_eq!(transaction.workload.most_prepared_statements(false), 10_000);
        let without =
            plan("tests = [\"read-write\"]\nconnections = [1000]\nskip_trx = true\nrange_selects = false");
        assert_eq!(without.workload.most_prepared_statements(true), 5_000);
    }

    #[test]
    fn steps_that_write_into_tables_of_others_are_reported() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\naddress = \"mysql://root@localhost/sbtest\"\n[workload.oltp]\n\
             use_existing = true\ntests = [\"read-only\", \"insert\"]\n[workload.microbenchmarks]\nuse_existing = true\n\
             steps = [\"scan\", \"update-one\"]\n",
            "test.toml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        insta::assert_snapshot!(warnings(&plan).join("\n"), @r"
        update-one will change rows of tables that are not dbdyno's (use_existing)
        insert will change rows of tables that are not dbdyno's (use_existing)
        ");
    }
}
