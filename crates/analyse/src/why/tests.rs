use super::*;
use crate::fixtures::{cell, load_step, run, series};
use crate::simulations::close;

/// A profile block of `l.i0`, in which 100,000 rows per second take `cpu_us` of the server each.
/// `stacks` has the stacks with their shares of the samples.
fn profiled_step(cpu_us: i64, stacks: &[(&str, f64)]) -> StepRecord {
    const ROWS: i64 = 10_000;
    let second_us = ROWS * cpu_us;
    let mut step = load_step(ROWS.unsigned_abs());
    let samples = [0, 1, 2].map(|second| (second * 1_000_000, vec![second * second_us, 0, 0])).to_vec();
    step.counters.extend(series("server", &["cpu_us", "cpu_user_us", "cpu_kernel_us"], &samples));
    let all = 499.0 * 2.0 * second_us as f64 / 1e6;
    step.stacks =
        stacks.iter().map(|(stack, share)| ((*stack).to_owned(), (all * share).round() as u64)).collect();
    let profiled = Profiled {
        event_sampled: "cpu-clock".to_owned(),
        samples_per_second: 499,
        call_chains: "frame-pointer".to_owned(),
        profiler: "perf version 6.1".to_owned(),
        merged: 0,
    };
    let end = step.events.len() - 1;
    step.events.insert(end, StepEvent::Profiled(profiled));
    step
}

const BASE: [(&str, f64); 3] =
    [("mysqld;do_command;row_search_mvcc", 0.5), ("mysqld;do_command;MYSQLparse", 0.3), ("mysqld;schedule_[k]", 0.2)];

/// A run of `a` and `b` with two measured blocks, and five profile blocks of which `b`'s are given.
fn profiled_run(of_variant: impl Fn(u32) -> StepRecord) -> Run {
    let measured = |block| ["a", "b"].map(|name| cell(block, name, vec![load_step(10_000)]));
    let mut run = run(&["a", "b"], 2, (1..=2).flat_map(measured).collect());
    let blocks = 3..=7;
    run.profiled_cells = blocks
        .flat_map(|block| {
            let base = cell(block, "a", vec![profiled_step(60 + i64::from(block % 2), &BASE)]);
            [base, cell(block, "b", vec![of_variant(block)])]
        })
        .collect();
    run
}

fn why(run: &Run) -> Why {
    crate::analyse(run).why.expect("the run has profile blocks")
}

/// `b` searches for 20 µs longer, and parses with another function.
fn slower(block: u32) -> StepRecord {
    let stacks = [
        ("mysqld;do_command;row_search_mvcc", 50.0 / 80.0),
        ("mysqld;do_command;my_sql_parser_parse(THD*)", 18.0 / 80.0),
        ("mysqld;schedule_[k]", 12.0 / 80.0),
    ];
    profiled_step(80 + i64::from(block % 2), &stacks)
}

#[test]
fn functions_add_up_to_the_cpu_time_per_operation() {
    let why = why(&profiled_run(slower));
    let profile = why.steps[0].variant("b").unwrap();
    assert_eq!((profile.fault.as_ref(), profile.blocks), (None, 5));
    let all: f64 = profile.functions.iter().map(|function| function.own_us).sum();
    close(all, profile.cpu_us, 1e-6);
    let whole = profile.functions.iter().find(|function| function.function == "row_search_mvcc").unwrap();
    close(whole.whole_us, whole.own_us, 1e-9);
    assert_eq!(whole.area, "rows and records");
}

#[test]
fn the_function_that_makes_the_difference_is_first_and_others_are_new_or_gone() {
    let why = why(&profiled_run(slower));
    let found = &why.steps[0].differences[0];
    close(found.difference_us(), 20.0, 1e-6);
    let first = &found.functions[0];
    assert_eq!((first.own.name.as_str(), first.area.as_str()), ("row_search_mvcc", "rows and records"));
    close(first.own.difference_us, 20.0, 0.5);
    let presence = |name: &str| found.functions.iter().find(|one| one.own.name == name).map(|one| one.own.presence);
    assert_eq!(presence("my_sql_parser_parse"), Some(Presence::New));
    assert_eq!(presence("MYSQLparse"), Some(Presence::Gone));
    let parse = found.areas.iter().find(|area| area.name == "parse").unwrap();
    assert!(!parse.is_decided() && parse.difference_us.abs() < 0.5, "one takes the place of the other: {parse:?}");
    let shown: f64 = found.functions.iter().map(|one| one.own.difference_us).sum();
    close(shown + found.rest_us, found.difference_us(), 1e-9);
}

#[test]
fn samples_that_are_not_all_of_the_cpu_time_are_not_used() {
    let half = |block| {
        let mut step = slower(block);
        step.stacks.iter_mut().for_each(|(_, count)| *count /= 2);
        step
    };
    let why = why(&profiled_run(half));
    let fault = why.steps[0].variant("b").unwrap().fault.clone().unwrap();
    assert!(matches!(fault, ProfileFault::Incomplete { share, .. } if (share - 0.5).abs() < 0.01), "{fault:?}");
    assert!(why.steps[0].differences.is_empty());
}

#[test]
fn a_step_without_samples_says_why() {
    let refused = |_| {
        let mut step = load_step(10_000);
        let end = step.events.len() - 1;
        step.events.insert(end, StepEvent::NotProfiled { reason: "perf is not installed".to_owned() });
        step
    };
    let why = why(&profiled_run(refused));
    let fault = why.steps[0].variant("b").unwrap().fault.clone();
    assert_eq!(fault, Some(ProfileFault::NotProfiled("perf is not installed".to_owned())));
}

#[test]
fn profile_blocks_belong_to_no_rate() {
    let run = profiled_run(slower);
    let found = crate::analyse(&run);
    let runs = found.workloads[0].steps[0].runs_of("b");
    assert_eq!(runs.iter().map(|run| run.block).collect::<Vec<_>>(), [1, 2]);
    assert!(crate::analyse(&Run { profiled_cells: Vec::new(), ..run }).why.is_none());
}

#[test]
fn the_allocators_time_is_that_of_its_callers() {
    let stacks = [
        ("mysqld;JOIN::exec;my_malloc;malloc;_int_malloc", 0.25),
        ("mysqld;JOIN::exec;free", 0.25),
        ("mysqld;row_search_mvcc", 0.5),
    ];
    let why = why(&profiled_run(|_| profiled_step(100, &stacks)));
    let allocations = &why.steps[0].variant("b").unwrap().allocations;
    assert_eq!((allocations.len(), allocations[0].function.as_str()), (1, "JOIN::exec"));
    close(allocations[0].own_us, 50.0, 0.1);
}
