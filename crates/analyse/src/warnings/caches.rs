//! Warnings about caches that answer queries in place of the engine. Times and rates are then the
//! cache's, even where all variants have one.

use std::collections::BTreeMap;

use dbdyno_record::Run;

use crate::model::runs::valid_runs;
use crate::model::{Code, Execution, Warning, WorkloadFindings};
use crate::parity::keeps_answers;
use crate::statistics::describe::median;

/// A repeated query that is this many times faster than its first execution was not executed: warm
/// pages save reads, but not the work on the rows.
const TIMES_FASTER: f64 = 100.0;

/// Warnings for the variants for which `is_asked` holds.
pub(crate) fn warnings(
    run: &Run,
    workloads: &[WorkloadFindings],
    is_asked: impl Fn(&str) -> bool,
) -> Vec<Warning> {
    let names = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    let cached: Vec<&str> = names.filter(|name| is_asked(name) && keeps_answers(run, name)).collect();
    let cached = (!cached.is_empty()).then(|| Warning::new(Code::QueryCache).at_all(cached));
    cached.into_iter().chain(repeated(workloads, is_asked)).collect()
}

/// One warning for all queries whose repetitions were not executed. It names the clearest case.
fn repeated(workloads: &[WorkloadFindings], is_asked: impl Fn(&str) -> bool) -> Option<Warning> {
    let runs = valid_runs(workloads).filter(|found| is_asked(&found.variant.variant));
    let all: Vec<(f64, String)> =
        runs.filter_map(|found| Some((times_faster(&found.run.executions)?, found.place()))).collect();
    let (times, place) = all.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let more = Some(all.len() - 1).filter(|more| *more > 0);
    Some(Warning::new(Code::AnsweredByCache).at(place).with("times", *times).with_some("more", more))
}

/// How many times faster a query's repetitions were than its first execution, for the query with
/// the largest factor; `None` where all were executed.
fn times_faster(executions: &[Execution]) -> Option<f64> {
    let mut by_query: BTreeMap<(u32, &str), Vec<&Execution>> = BTreeMap::new();
    for execution in executions.iter().filter(|execution| !execution.cut_off) {
        by_query.entry((execution.client, &execution.name)).or_default().push(execution);
    }
    let of_query = |mut all: Vec<&Execution>| {
        all.sort_by_key(|execution| execution.repetition);
        let [first, others @ ..] = all.as_slice() else { return None };
        let others: Vec<f64> = others.iter().map(|execution| execution.seconds).collect();
        // The record's times are whole microseconds.
        let times = first.seconds / median(&others)?.max(1e-6);
        (times >= TIMES_FASTER).then_some(times)
    };
    by_query.into_values().filter_map(of_query).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellEvent, Run};

    use crate::analyse;
    use crate::fixtures::{cell, query_seconds_step, run, texts};

    fn said(run: &Run) -> Vec<String> {
        let about = |text: &String| text.starts_with("query-cache") || text.starts_with("answered-by-cache");
        texts(&analyse(run)).into_iter().filter(about).collect()
    }

    /// A run with the first execution of a query and three more.
    fn run_of(first: f64, others: f64) -> Run {
        let seconds = [(first, false), (others, false), (others, false), (others, false)];
        let cells = ["a", "b"].map(|name| cell(1, name, vec![query_seconds_step("q1", &seconds)]));
        run(&["a", "b"], 1, cells.to_vec())
    }

    #[test]
    fn repetitions_a_hundred_times_faster_than_the_first_execution_are_named() {
        assert_eq!(said(&run_of(0.125, 0.000_5)), ["answered-by-cache [block 1 b q1] more: 1, times: 250.0"]);
        assert_eq!(said(&run_of(0.15, 0.002)), [""; 0], "warm pages");
    }

    #[test]
    fn a_query_cache_is_named_though_all_variants_have_it() {
        let set = |name: &str, kind: &str, bytes: &str| {
            let mut run = run_of(0.15, 0.14);
            let cells = run.cells.iter_mut().filter(|cell| cell.id.variant == name || name.is_empty());
            for event in cells.flat_map(|cell| &mut cell.events) {
                if let CellEvent::Server { server, .. } = event {
                    server.product = "MariaDB".to_owned();
                    for (key, value) in [("query_cache_type", kind), ("query_cache_size", bytes)] {
                        server.settings.insert(key.to_owned(), value.to_owned());
                    }
                }
            }
            said(&run)
        };
        assert_eq!(set("", "ON", "67108864"), ["query-cache [a, b]"]);
        assert_eq!(set("b", "ON", "67108864"), ["query-cache [b]"]);
        assert_eq!(set("", "ON", "0"), [""; 0], "it has no memory");
        assert_eq!(set("", "OFF", "67108864"), [""; 0]);
        assert_eq!(set("", "DEMAND", "67108864"), [""; 0], "no query of ours demands it");
    }
}
