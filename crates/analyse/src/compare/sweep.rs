//! Sweeps: one test on a ladder of connections, rung by rung, as published comparisons of scaling
//! show it.

use crate::model::runs::valid;
use crate::model::{Latency, StepFindings, StepRun, Sweep, SweepPoint, SweepSpread, SweepVariant};
use crate::statistics::Interval;

/// Of one rung there is nothing to compare.
const LEAST_RUNGS: usize = 2;

/// A step of a test that ran with several numbers of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The steps' common name: of `read-only.c16` it is `read-only`, of `read-only.c16.r500` it is
    /// `read-only.r500`.
    pub(crate) test: String,
    pub(crate) connections: u32,
}

impl Rung {
    /// `None` for a step that does not have its number of connections in its name.
    pub(crate) fn of(step: &StepFindings) -> Option<Self> {
        let connections = step.connections;
        Some(Self { test: test_of(&step.name, connections)?, connections })
    }
}

fn test_of(name: &str, connections: u32) -> Option<String> {
    let number = format!("c{connections}");
    let mut parts: Vec<&str> = name.split('.').collect();
    let at = parts.iter().rposition(|part| *part == number)?;
    parts.remove(at);
    Some(parts.join("."))
}

/// All sweeps of a workload, in the order in which their first steps ran.
pub(crate) fn sweeps(steps: &[StepFindings]) -> Vec<Sweep> {
    let mut ladders: Vec<(String, Vec<&StepFindings>)> = Vec::new();
    for step in steps {
        let Some(Rung { test, .. }) = Rung::of(step) else { continue };
        match ladders.iter_mut().find(|(name, _)| *name == test) {
            Some((_, rungs)) => rungs.push(step),
            None => ladders.push((test, vec![step])),
        }
    }
    ladders.retain(|(_, rungs)| rungs.len() >= LEAST_RUNGS);
    ladders.into_iter().map(|(test, rungs)| sweep(test, rungs)).collect()
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

fn rung(step: &StepFindings, variant: &str) -> Option<SweepPoint> {
    let found = step.variant(variant)?;
    let latency = found.latency.as_ref().filter(|latency| latency.count > 0);
    let time = |of: fn(&Latency) -> u64| latency.map(|latency| of(latency) as f64);
    let of_block = |run: &StepRun, of: fn(&Latency) -> u64| {
        let kind = run.kind(&step.headline_kind)?;
        (kind.response.count > 0).then(|| of(&kind.response) as f64)
    };
    let times = |of: fn(&Latency) -> u64| spread(valid(&found.runs).filter_map(|run| of_block(run, of)));
    Some(SweepPoint {
        spread: SweepSpread {
            rate: spread(valid(&found.runs).map(|run| run.rate)),
            p50_us: times(|latency| latency.p50_us),
            p95_us: times(|latency| latency.p95_us),
            p99_us: times(|latency| latency.p99_us),
        },
        median_rate: found.rate?,
        mean_us: latency.map(|latency| latency.mean_us),
        p50_us: time(|latency| latency.p50_us),
        p95_us: time(|latency| latency.p95_us),
        p99_us: time(|latency| latency.p99_us),
        max_us: time(|latency| latency.max_us),
        blocks: valid(&found.runs).count(),
    })
}

/// Least and greatest; `None` for fewer than two.
fn spread(values: impl Iterator<Item = f64>) -> Option<Interval> {
    let values: Vec<f64> = values.collect();
    let (low, high) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    (values.len() > 1).then_some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Interval as Counted, Run, StepRecord};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run, scan_step};

    /// A step of the load's kind on so many connections, whose seconds have these rows.
    fn rung(name: &str, connections: u32, rows: [u64; 2]) -> StepRecord {
        let mut step = load_step(100);
        step.name = name.to_owned();
        step.spec.name = name.to_owned();
        step.spec.clients = connections;
        for (interval, rows) in step.intervals.iter_mut().zip(rows) {
            *interval = Counted { rows, ..interval.clone() };
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
    fn the_number_of_connections_may_stand_anywhere_in_the_name() {
        let of = |name| test_of(name, 16);
        assert_eq!(of("read-only.c16").as_deref(), Some("read-only"));
        assert_eq!(of("read-only.c16.r500").as_deref(), Some("read-only.r500"));
        assert_eq!([of("read-only"), of("read-only.c1"), of("read-only.c160")], [None, None, None]);
    }

    #[test]
    fn a_test_on_several_rungs_is_a_sweep_in_the_order_of_connections() {
        let ladder = [4, 1, 16].map(|number| rung(&format!("ro.c{number}"), number, [100, 100]));
        let mut steps = ladder.to_vec();
        steps.extend([rung("rw.c1", 1, [5, 5]), rung("rw.c4", 4, [5, 5])]);
        steps.extend([rung("wo.c1", 1, [5, 5]), rung("load", 8, [5, 5])]);
        let sweeps = found(vec![steps]);
        let tests: Vec<&str> = sweeps.iter().map(|sweep| sweep.test.as_str()).collect();
        assert_eq!(tests, ["ro", "rw"], "one rung is none");
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
    fn a_rung_has_the_rate_of_its_median_block() {
        let block = |last: [u64; 2]| {
            vec![rung("ro.c1", 1, [100, 300]), rung("ro.c2", 2, [10, 10]), rung("ro.c4", 4, last)]
        };
        let sweeps = found(vec![block([1, 3]), block([5, 7]), block([900, 900])]);
        let rates: Vec<f64> =
            sweeps[0].variants[0].rungs.iter().map(|rung| rung.unwrap().median_rate).collect();
        // Of 2, 6 and 900 rows a second the middle one.
        assert_eq!(rates, [200.0, 10.0, 6.0]);
        let last = sweeps[0].variants[0].rungs[2].unwrap();
        assert_eq!((last.blocks, last.spread.rate), (3, Some(Interval { low: 2.0, high: 900.0 })));
        let once = found(vec![block([1, 3])]);
        assert_eq!(once[0].variants[0].rungs[2].unwrap().spread, SweepSpread::default());
    }

    #[test]
    fn a_rung_without_a_valid_run_stays_empty() {
        let mut broken = rung("ro.c4", 4, [1, 1]);
        broken.events.push(dbdyno_record::StepEvent::Invalid { reason: "x".to_owned() });
        let sweeps = found(vec![vec![rung("ro.c1", 1, [1, 1]), rung("ro.c2", 2, [1, 1]), broken]]);
        assert_eq!(sweeps[0].variants[0].rungs.iter().filter(|rung| rung.is_none()).count(), 1);
    }

    /// Millions of rows a second of each rung of 1, 2 and 4 connections, whose scans of a million
    /// rows each take so long.
    fn scan_rates(scan_us: u64, window: (u64, u64)) -> Vec<f64> {
        let ladder = [1, 2, 4].map(|connections| {
            let mut step = scan_step(&vec![(scan_us, 1_000_000); connections], window);
            step.name = format!("scan.c{connections}");
            step.spec.name = step.name.clone();
            step
        });
        let sweeps = found(vec![ladder.to_vec()]);
        sweeps[0].variants[0].rungs.iter().map(|rung| rung.unwrap().median_rate / 1e6).collect()
    }

    #[test]
    fn a_rung_of_scans_has_the_rate_of_the_window_which_counts_their_parts() {
        // Scans of 37.8 s, in most seconds of which nothing is answered; of 0.6 s and 90 ms; and of
        // 70 s, of which the window has no answer at all.
        for scan_us in [37_800_000, 600_000, 90_000, 70_000_000] {
            let rates = scan_rates(scan_us, (0, 60_000_000));
            for (rate, connections) in rates.iter().zip([1.0, 2.0, 4.0]) {
                let truth = connections * 1e6 / scan_us as f64;
                assert!((rate / truth - 1.0).abs() < 1e-6, "{scan_us} µs: {rates:?}");
            }
        }
    }
}
