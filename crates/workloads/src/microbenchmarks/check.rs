//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};

use crate::cards::context;
use crate::microbenchmarks::options::{MicroRung, MicroStep, MicroTest, Microbenchmarks};
use crate::microbenchmarks::pattern::fits;
use crate::microbenchmarks::steps::Step;
use crate::oltp::check::{MOST_CONNECTIONS, ladder_problem};
use crate::oltp::check_tables::tables_problem;
use crate::oltp::list::ROW_BYTES;
use crate::oltp::mix::prepared;
use crate::oltp::options::existing_warning;
use crate::options::{
    self, Protocol, exponent_problem, first_problem, range_problem, time_cap_problem, warmup_problem,
};
use crate::settle::both_problem;
use crate::step::{StepOptions, forecast, outlines};

impl WorkloadOptions for Microbenchmarks {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        tables_problem(&self.tables_part())
            .or_else(|| range_problem(self))
            .or_else(|| ladder_problem("connections", &self.connections, MOST_CONNECTIONS))
            .or_else(|| steps_problem(self))
            .or_else(|| hot_problem(self))
            .or_else(|| time_problem(self))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| refill_problem(self))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = warnings(self);
        if self.use_existing {
            let writes = self.rungs().into_iter().filter(|rung| rung.step.test.writes());
            warnings.extend(existing_warning(writes.map(|rung| rung.name).collect()));
        }
        warnings
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.most_connections(),
            data_bytes: Some(self.loaded_rows().saturating_mul(ROW_BYTES)),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != Protocol::Text,
            existing_tables: self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        let of_rung = |rung: &MicroRung| {
            let step = Step::new(self, rung, &context());
            let each = prepared(&step.places(), self.tables, with_begin);
            if step.is_prepared() { u64::from(rung.connections) * each } else { 0 }
        };
        self.rungs().iter().map(of_rung).max().unwrap_or(0)
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

/// Each pattern must fit a step: a misspelt one would leave steps out without a word.
fn steps_problem(options: &Microbenchmarks) -> Option<Mistake> {
    let steps = options.sequence.steps();
    let is_met = |pattern: &&String| {
        let pattern = pattern.strip_prefix('!').unwrap_or(pattern);
        steps.iter().any(|step| fits(pattern, &step.name()) || fits(pattern, &step.published_name()))
    };
    if let Some(pattern) = options.steps.iter().find(|pattern| !is_met(pattern)) {
        let known: Vec<String> = steps.iter().map(MicroStep::name).collect();
        let message = format!("`{pattern}` fits no step of this sequence; steps: {}", known.join(" "));
        return Some(("steps", message));
    }
    let none = "steps choose none: name at least one, e.g. [\"point-query*\", \"!*.warm\"]";
    first_problem([(options.rungs().is_empty(), "steps", none)])
}

/// The rows of hot-points lie after the middle of the table.
fn hot_problem(options: &Microbenchmarks) -> Option<Mistake> {
    let rungs = options.rungs();
    let hot = rungs.iter().find(|rung| rung.step.test == MicroTest::HotPoints)?;
    let least = 2 * u64::from(hot.step.range);
    let message = format!(
        "table_size is {}, but hot-points needs {least} rows: make tables larger, or leave the step out with steps = [\"!hot-points\"]",
        options.table_size
    );
    first_problem([(options.table_size < least, "table_size", &message)])
}

fn time_problem(options: &Microbenchmarks) -> Option<Mistake> {
    options::time_problem("read_time", options.read_time)
        .or_else(|| options::time_problem("write_time", options.write_time))
        .or_else(|| options::time_problem("warm_scan_time", options.warm_scan_time))
        .or_else(|| warmup_problem(options.warmup))
        .or_else(|| time_cap_problem(options.time_cap, "a step's length"))
        .or_else(|| exponent_problem("zipfian_exponent", options.zipfian_exponent))
}

/// Rows are put back as the load has made them, where nothing else brings them back.
fn refill_problem(options: &Microbenchmarks) -> Option<Mistake> {
    let again = format!(
        "delete_refill is for tables that go on; with data = \"{}\" each step begins on full ones: leave it out",
        options.data.name()
    );
    let no_load = "delete_refill puts rows back as the load makes them, and with use_existing there is no load: leave it out";
    first_problem([
        (options.delete_refill && options.use_existing, "delete_refill", no_load),
        (options.delete_refill && options.data.puts_back_each_step(), "delete_refill", &again),
    ])
}

/// What a plan asks for that will not measure what its names say.
fn warnings(options: &Microbenchmarks) -> Vec<String> {
    let count = options.rungs().iter().filter(|rung| rung.step.test == MicroTest::Delete).count();
    if count > 1 && !options.delete_refill && !options.data.puts_back_each_step() {
        return vec![format!(
            "microbenchmarks: {count} delete steps follow each other, each on what the one before left; with \
             delete_refill = true, or data = \"restore-each-step\", each begins with full tables"
        )];
    }
    Vec::new()
}
