//! Sweeps: one test on a ladder of connections, rung by rung, as published comparisons of scaling show it.

use serde::Serialize;

use crate::ratio::valid;
use crate::statistics::describe::median;
use crate::{StepFindings, StepRun};

/// Fewer rungs than this are a pair of steps, not a sweep.
const LEAST_RUNGS: usize = 3;

/// A test that ran with three or more numbers of connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// The steps' common name: `read-only` of `read-only.c1`, `read-only.c2`, ...
    pub test: String,
    /// `transactions/s`
    pub rate_label: String,
    /// Ascending.
    pub connections: Vec<u32>,
    /// Names of the steps, a rung each.
    pub steps: Vec<String>,
    pub variants: Vec<SweepVariant>,
}

/// One variant on all rungs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepVariant {
    pub variant: String,
    /// As many as there are rungs; `None` without a valid run.
    pub rungs: Vec<Option<SweepRung>>,
}

/// One variant on one rung: medians over the valid blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SweepRung {
    /// Of the median second of the window; of the whole window where it has no whole second.
    pub median_rate: f64,
    /// Response times of the headline's kind; `None` where nothing was answered.
    pub p50_us: Option<f64>,
    pub p95_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub blocks: usize,
}

/// All sweeps of a workload, in the order in which their first steps ran.
pub(crate) fn sweeps(steps: &[StepFindings]) -> Vec<Sweep> {
    let mut ladders: Vec<(String, Vec<&StepFindings>)> = Vec::new();
    for step in steps {
        let Some(test) = test_of(step) else { continue };
        match ladders.iter_mut().find(|(name, _)| *name == test) {
            Some((_, rungs)) => rungs.push(step),
            None => ladders.push((test, vec![step])),
        }
    }
    ladders.retain(|(_, rungs)| rungs.len() >= LEAST_RUNGS);
    ladders.into_iter().map(|(test, rungs)| sweep(test, rungs)).collect()
}

/// The name of a step without its number of connections: `read-only.c16` is `read-only`, `read-only.c16.r500` is
/// `read-only.r500`. `None` for a step that has none in its name.
fn test_of(step: &StepFindings) -> Option<String> {
    let rung = format!("c{}", step.connections);
    let mut parts: Vec<&str> = step.name.split('.').collect();
    let at = parts.iter().rposition(|part| *part == rung)?;
    parts.remove(at);
    Some(parts.join("."))
}

fn sweep(test: String, mut rungs: Vec<&StepFindings>) -> Sweep {
    rungs.sort_by_key(|step| step.connections);
    let variants = rungs[0].variants.iter().map(|variant| variant.variant.clone());
    let of_variant = |name: String| SweepVariant {
        rungs: rungs.iter().map(|step| rung(step, &name)).collect(),
        variant: name,
    };
    Sweep {
        test,
        rate_label: rungs[0].rate_label.clone(),
        connections: rungs.iter().map(|step| step.connections).collect(),
        steps: rungs.iter().map(|step| step.name.clone()).collect(),
        variants: variants.map(of_variant).collect(),
    }
}

fn rung(step: &StepFindings, variant: &str) -> Option<SweepRung> {
    let found = step.variants.iter().find(|found| found.variant == variant)?;
    let runs: Vec<&StepRun> = valid(&found.runs).collect();
    let rates: Vec<f64> = runs.iter().map(|run| median_second(run, &step.headline_kind)).collect();
    let of_time = |time: fn(&crate::Latency) -> u64| {
        let kinds =
            runs.iter().filter_map(|run| run.kinds.iter().find(|kind| kind.kind == step.headline_kind));
        let times = kinds.map(|kind| &kind.response).filter(|response| response.count > 0);
        median(&times.map(|response| time(response) as f64).collect::<Vec<_>>())
    };
    Some(SweepRung {
        median_rate: median(&rates)?,
        p50_us: of_time(|times| times.p50_us),
        p95_us: of_time(|times| times.p95_us),
        p99_us: of_time(|times| times.p99_us),
        blocks: runs.len(),
    })
}

fn median_second(run: &StepRun, headline_kind: &str) -> f64 {
    let of_headline = run.seconds.iter().filter(|point| point.kind == headline_kind);
    median(&of_headline.map(|point| point.rate).collect::<Vec<_>>()).unwrap_or(run.rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};
    use dbdyno_record::{Interval, Run, StepRecord};

    /// A step of the load's kind on so many connections, whose seconds have these rows.
    fn rung(name: &str, connections: u32, rows: [u64; 2]) -> StepRecord {
        let mut step = load_step(100);
        step.name = name.to_owned();
        step.spec.name = name.to_owned();
        step.spec.clients = connections;
        for (interval, rows) in step.intervals.iter_mut().zip(rows) {
            *interval = Interval { rows, ..interval.clone() };
        }
        step
    }

    fn found(blocks: Vec<Vec<StepRecord>>) -> Vec<Sweep> {
        let count = u32::try_from(blocks.len()).unwrap();
        let cells = (1..).zip(blocks).map(|(block, steps)| cell(block, "a", steps)).collect();
        let run: Run = run(&["a"], count, cells);
        analyse(&run).workloads[0].sweeps.clone()
    }

    #[test]
    fn a_test_on_three_rungs_is_a_sweep_in_the_order_of_connections() {
        let ladder = [4, 1, 16].map(|number| rung(&format!("ro.c{number}"), number, [100, 100]));
        let mut steps = ladder.to_vec();
        steps.extend([rung("rw.c1", 1, [5, 5]), rung("rw.c4", 4, [5, 5]), rung("load", 8, [5, 5])]);
        let sweeps = found(vec![steps]);
        assert_eq!(sweeps.len(), 1, "two rungs are none: {sweeps:?}");
        assert_eq!((sweeps[0].test.as_str(), &sweeps[0].connections[..]), ("ro", &[1, 4, 16][..]));
        assert_eq!(sweeps[0].steps, ["ro.c1", "ro.c4", "ro.c16"]);
    }

    #[test]
    fn each_rate_has_a_sweep_of_its_own() {
        let names = ["ro.c1.r10", "ro.c2.r10", "ro.c4.r10", "ro.c1.r90", "ro.c2.r90", "ro.c4.r90"];
        let steps = names.map(|name| rung(name, name[4..5].parse().unwrap(), [5, 5])).to_vec();
        let tests: Vec<String> = found(vec![steps]).into_iter().map(|sweep| sweep.test).collect();
        assert_eq!(tests, ["ro.r10", "ro.r90"]);
    }

    #[test]
    fn a_rung_has_the_median_second_of_its_median_block() {
        let block = |last: [u64; 2]| {
            vec![rung("ro.c1", 1, [100, 300]), rung("ro.c2", 2, [10, 10]), rung("ro.c4", 4, last)]
        };
        let sweeps = found(vec![block([1, 3]), block([5, 7]), block([900, 900])]);
        let rates: Vec<f64> =
            sweeps[0].variants[0].rungs.iter().map(|rung| rung.unwrap().median_rate).collect();
        // Medians of two seconds are their means: 200; 10; of 2, 6 and 900 the middle one.
        assert_eq!(rates, [200.0, 10.0, 6.0]);
        assert_eq!(sweeps[0].variants[0].rungs[2].unwrap().blocks, 3);
    }

    #[test]
    fn a_rung_without_a_valid_run_stays_empty() {
        let mut broken = rung("ro.c4", 4, [1, 1]);
        broken.events.push(dbdyno_record::StepEvent::Invalid { reason: "x".to_owned() });
        let sweeps = found(vec![vec![rung("ro.c1", 1, [1, 1]), rung("ro.c2", 2, [1, 1]), broken]]);
        assert_eq!(sweeps[0].variants[0].rungs.iter().filter(|rung| rung.is_none()).count(), 1);
    }
}
