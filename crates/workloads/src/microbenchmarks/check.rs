//! Checks the options of the microbenchmarks: ranges, and patterns that choose something.

use dbdyno_plan::{Mistake, data_problem};

use crate::microbenchmarks::options::{MicroStep, MicroTest, Microbenchmarks};
use crate::microbenchmarks::pattern::fits;
use crate::oltp::check::{MOST_CONNECTIONS, ladder_problem};
use crate::oltp::check_tables::tables_problem;
use crate::options::{self, exponent_problem, number_problem, time_cap_problem, warmup_problem};
use crate::settle::both_problem;

/// Ids in a list that every product takes in one statement.
const MOST_IDS: u64 = 10_000;

/// The first option out of its range: its key inside `[workload.microbenchmarks]`, and what to
/// write.
pub(crate) fn problem(options: &Microbenchmarks) -> Option<Mistake> {
    tables_problem(&options.tables_part())
        .or_else(|| {
            let ids = ("update_inlist_ids", options.update_inlist_ids.into(), 1, MOST_IDS);
            number_problem([ids, ("operations", options.operations.unwrap_or(1), 1, u64::MAX)])
        })
        .or_else(|| ladder_problem("connections", &options.connections, MOST_CONNECTIONS))
        .or_else(|| steps_problem(options))
        .or_else(|| hot_problem(options))
        .or_else(|| time_problem(options))
        .or_else(|| both_problem(options.settle.as_ref(), options.settle_wait.is_some()))
        .or_else(|| refill_problem(options))
        .or_else(|| {
            data_problem(options.data, &options.cold, &options.step_names()[options.load_steps()..], false)
        })
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
    options.rungs().is_empty().then(|| {
        ("steps", "steps choose none: name at least one, e.g. [\"point-query*\", \"!*.warm\"]".to_owned())
    })
}

/// The rows of hot-points lie after the middle of the table.
fn hot_problem(options: &Microbenchmarks) -> Option<Mistake> {
    let rungs = options.rungs();
    let hot = rungs.iter().find(|rung| rung.step.test == MicroTest::HotPoints)?;
    let least = 2 * u64::from(hot.step.range);
    (options.table_size < least).then(|| {
        let advice = "make tables larger, or leave the step out with steps = [\"!hot-points\"]";
        (
            "table_size",
            format!("table_size is {}, but hot-points needs {least} rows: {advice}", options.table_size),
        )
    })
}

fn time_problem(options: &Microbenchmarks) -> Option<Mistake> {
    let times = [
        ("read_time", options.read_time),
        ("write_time", options.write_time),
        ("warm_scan_time", options.warm_scan_time),
    ];
    let mut times = times.into_iter();
    times
        .find_map(|(key, time)| options::time_problem(key, time))
        .or_else(|| warmup_problem(options.warmup))
        .or_else(|| time_cap_problem(options.time_cap, "a step's length"))
        .or_else(|| exponent_problem("zipfian_exponent", options.zipfian_exponent))
}

/// Rows are put back as the load has made them, where nothing else brings them back.
fn refill_problem(options: &Microbenchmarks) -> Option<Mistake> {
    if !options.delete_refill {
        return None;
    }
    let message = if options.use_existing {
        "delete_refill puts rows back as the load makes them, and with use_existing there is no load: leave it out"
            .to_owned()
    } else if options.data.puts_back_each_step() {
        let mode = options.data.name();
        format!(
            "delete_refill is for tables that go on; with data = \"{mode}\" each step begins on full ones: leave it out"
        )
    } else {
        return None;
    };
    Some(("delete_refill", message))
}

/// What a plan asks for that will not measure what its names say.
pub(crate) fn warnings(options: &Microbenchmarks) -> Vec<String> {
    let count = options.rungs().iter().filter(|rung| rung.step.test == MicroTest::Delete).count();
    if count > 1 && !options.delete_refill && !options.data.puts_back_each_step() {
        return vec![format!(
            "microbenchmarks: {count} delete steps follow each other, each on what the one before left; with \
             delete_refill = true, or data = \"restore-each-step\", each begins with full tables"
        )];
    }
    Vec::new()
}
