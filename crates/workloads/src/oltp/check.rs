//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions, data_problem};

use crate::oltp::check_tables::tables_problem;
use crate::oltp::options::{Distribution, LoadMethod, Oltp, OltpPace, OltpTest, existing_warning};
use crate::oltp::{estimate, prepared};
use crate::options::{
    self, Number, exponent_problem, number_problem, pareto_problem, repeated, time_cap_problem,
    warmup_problem,
};
use crate::settle::both_problem;

/// More than any range is worth.
const MOST_RANGE: u64 = i32::MAX as u64;
/// More connections than a server of any product takes.
pub(crate) const MOST_CONNECTIONS: u32 = 65_536;

impl WorkloadOptions for Oltp {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        tables_problem(self)
            .or_else(|| number_problem(numbers(self)))
            .or_else(|| ladder_problem("connections", &self.connections, MOST_CONNECTIONS))
            .or_else(|| tests_problem(self))
            .or_else(|| statements_problem(self))
            .or_else(|| pace_problem(self))
            .or_else(|| fraction_problem(self))
            .or_else(|| zipfian_problem(self))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| data_problem(self.data, &self.cold, &self.step_names()[self.load_steps()..], false))
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
            data: self.data,
            cold: self.cold.clone(),
            existing_tables: self.use_existing,
            row_streams: self.load_method == LoadMethod::Stream && !self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        prepared::most(self, with_begin)
    }

    fn steps(&self) -> Vec<StepOutline> {
        let mut steps = StepOutline::of_names(self.step_names(), self.load_steps());
        for (step, (test, ..)) in steps.iter_mut().skip(self.load_steps()).zip(self.test_steps()) {
            step.changes_data = test.writes();
        }
        steps
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}

/// The first option of pace or time that does not go with the others.
pub(crate) fn pace_problem(oltp: &Oltp) -> Option<Mistake> {
    rates_problem(oltp).or_else(|| time_problem(oltp))
}

/// Key, value, least and greatest allowed value of every whole number.
fn numbers(oltp: &Oltp) -> [Number; 13] {
    let statements = 10_000;
    [
        ("range_size", oltp.range_size.into(), 1, MOST_RANGE),
        ("point_selects", oltp.point_selects.into(), 0, statements),
        ("simple_ranges", oltp.simple_ranges.into(), 0, statements),
        ("sum_ranges", oltp.sum_ranges.into(), 0, statements),
        ("order_ranges", oltp.order_ranges.into(), 0, statements),
        ("distinct_ranges", oltp.distinct_ranges.into(), 0, statements),
        ("count_ranges", oltp.count_ranges.into(), 0, statements),
        ("events", oltp.events.unwrap_or(1), 1, u64::MAX),
        ("index_updates", oltp.index_updates.into(), 0, statements),
        ("non_index_updates", oltp.non_index_updates.into(), 0, statements),
        ("delete_inserts", oltp.delete_inserts.into(), 0, statements),
        ("special_iterations", oltp.special_iterations.into(), 1, 1000),
        ("special_percent", oltp.special_percent.into(), 1, 100),
    ]
}

pub(crate) fn ladder_problem(key: &'static str, rungs: &[u32], most: u32) -> Option<Mistake> {
    if rungs.is_empty() {
        return Some((key, format!("{key} is empty: name at least one, e.g. [1, 16, 64]")));
    }
    if let Some(rung) = rungs.iter().find(|rung| !(1..=most).contains(*rung)) {
        return Some((key, format!("{key} holds {rung}, but must be 1 to {most}")));
    }
    Some((key, format!("{key} holds {} twice: each gives a step of its own name", repeated(rungs)?)))
}

fn tests_problem(oltp: &Oltp) -> Option<Mistake> {
    let name = repeated(&oltp.tests)?.name();
    Some(("tests", format!("tests holds {name} twice: each gives steps of its own name")))
}

/// A test whose operations hold no statement: its rate would be that of the client's empty loop.
fn statements_problem(oltp: &Oltp) -> Option<Mistake> {
    let find = |&test: &OltpTest| {
        let (key, why) = what_empties(test, oltp)?;
        let remedy = "ask for at least one, or leave the test out of tests";
        Some((key, format!("the test {} has no statement, because {why}: {remedy}", test.name())))
    };
    oltp.tests.iter().find_map(find)
}

/// The option that leaves operations of `test` without a statement, and what makes it so.
fn what_empties(test: OltpTest, oltp: &Oltp) -> Option<(&'static str, &'static str)> {
    let ranges =
        [oltp.simple_ranges, oltp.sum_ranges, oltp.order_ranges, oltp.distinct_ranges, oltp.count_ranges];
    let has_reads = oltp.point_selects > 0 || (oltp.range_selects && ranges.iter().any(|&count| count > 0));
    let has_writes = oltp.index_updates > 0 || oltp.non_index_updates > 0 || oltp.delete_inserts > 0;
    let (key, is_empty, why) = match test {
        OltpTest::PointSelect | OltpTest::Insert | OltpTest::Delete => return None,
        OltpTest::UpdateIndex => ("index_updates", oltp.index_updates == 0, "index_updates is 0"),
        OltpTest::UpdateNonIndex => {
            ("non_index_updates", oltp.non_index_updates == 0, "non_index_updates is 0")
        }
        OltpTest::ReadOnly => (
            "skip_trx",
            !has_reads,
            "skip_trx leaves out BEGIN and COMMIT, and point selects and ranges are off",
        ),
        OltpTest::WriteOnly => {
            ("skip_trx", !has_writes, "skip_trx leaves out BEGIN and COMMIT, and all writes are off")
        }
        OltpTest::ReadWrite => (
            "skip_trx",
            !has_reads && !has_writes,
            "skip_trx leaves out BEGIN and COMMIT, and all reads and writes are off",
        ),
    };
    (is_empty && (oltp.skip_trx || !test.is_transaction())).then_some((key, why))
}

fn rates_problem(oltp: &Oltp) -> Option<Mistake> {
    match oltp.pace {
        OltpPace::Constant | OltpPace::Poisson if oltp.events.is_some() => Some((
            "events",
            "events is for pace = \"closed\"; with a rate, time says how many there are".to_owned(),
        )),
        OltpPace::Closed if !oltp.rates.is_empty() => {
            let paces = "pace = \"constant\" and pace = \"poisson\"";
            Some(("rates", format!("rates are for {paces}; a closed loop has none")))
        }
        OltpPace::Closed if oltp.max_backlog.is_some() => Some((
            "max_backlog",
            "max_backlog is for a step with a rate; in a closed loop nothing waits".to_owned(),
        )),
        OltpPace::Closed => None,
        OltpPace::Constant | OltpPace::Poisson if !oltp.think_time.0.is_zero() => Some((
            "think_time",
            "think_time is for pace = \"closed\"; a rate does not wait for answers".to_owned(),
        )),
        pace @ (OltpPace::Constant | OltpPace::Poisson) if oltp.rates.is_empty() => {
            let pace = if pace == OltpPace::Poisson { "poisson" } else { "constant" };
            let message = format!(
                "pace = \"{pace}\" needs rates: name at least one number of operations a second, e.g. rates = [1000, 5000]"
            );
            Some(("rates", message))
        }
        OltpPace::Constant | OltpPace::Poisson => ladder_problem("rates", &oltp.rates, 100_000_000),
    }
}

fn time_problem(oltp: &Oltp) -> Option<Mistake> {
    options::time_problem("time", oltp.time)
        .or_else(|| warmup_problem(oltp.warmup))
        .or_else(|| time_cap_problem(oltp.time_cap, "time"))
}

fn fraction_problem(oltp: &Oltp) -> Option<Mistake> {
    if oltp.special_share > 99 {
        let message = format!("special_share is {}, but must be 0 to 99", oltp.special_share);
        return Some(("special_share", message));
    }
    pareto_problem("pareto_h", oltp.pareto_h)
        .or_else(|| exponent_problem("zipfian_exponent", oltp.zipfian_exponent))
}

fn zipfian_problem(oltp: &Oltp) -> Option<Mistake> {
    (oltp.zipfian_scrambled && oltp.distribution != Distribution::Zipfian)
        .then(|| ("zipfian_scrambled", "zipfian_scrambled is for distribution = \"zipfian\"".to_owned()))
}
