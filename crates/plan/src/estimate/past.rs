//! Learns from finished runs: how long their steps took, compared with the forecast by the shipped
//! figures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dbdyno_model::Variant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CellEstimate, Plan, StepEstimate, WorkloadOptions, seconds};

/// Key for all time that belongs neither to a step nor to settling: servers, their data, and checks
/// of contents.
const AROUND: &str = "around the steps";
/// Key for the work that brings a server to rest, wherever it occurs.
const SETTLE: &str = "settle";

/// A variant's cells of one workload in a run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastCell {
    /// The server's name, base directory or address.
    server: String,
    /// The variant's table in the plan as TOML, without its name and its name in published figures.
    variant: String,
    /// The workload's name without its set-up.
    workload: String,
    options: Map<String, Value>,
    /// Times by step. Each is the mean over the blocks.
    steps: BTreeMap<String, Took>,
}

/// Seconds that a step took and seconds that were forecast, both without its certain part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Took {
    forecast: f64,
    measured: f64,
}

/// The measured times of one cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredCell {
    pub total: Duration,
    pub steps: BTreeMap<String, Duration>,
    pub settling: Duration,
}

impl PastCell {
    /// Summarises the cells of `variant`, one per block, which `estimate` had forecast by the
    /// shipped figures. It is `None` where there is nothing to learn.
    pub fn of(
        plan: &Plan,
        variant: &Variant,
        estimate: &CellEstimate,
        blocks: &[MeasuredCell],
    ) -> Option<Self> {
        let options = plan.workload.get(&estimate.workload)?;
        let names = Keys::of(options);
        let mut forecast: BTreeMap<String, (Duration, f64)> = BTreeMap::new();
        let count = blocks.len() as f64;
        for step in &estimate.steps {
            let key = names.key(&step.name);
            // Work that only the first block does is spread over all blocks, because the measured
            // time is a mean over all blocks. The time of a step is measured only in blocks that
            // run it, so it is not spread.
            let is_part = estimate.once.contains(&step.name) && [AROUND, SETTLE].contains(&key);
            let share = if is_part { 1.0 / count.max(1.0) } else { 1.0 };
            let (length, guessed) = forecast.entry(key.to_owned()).or_default();
            *length += step.length.mul_f64(share);
            *guessed += step.guessed().as_secs_f64() * share;
        }
        let mut steps = BTreeMap::new();
        for (key, (length, guessed)) in forecast {
            let of_block = |block: &MeasuredCell| match key.as_str() {
                AROUND => Some(block.around()),
                SETTLE => Some(block.settling),
                step => block.steps.get(step).copied(),
            };
            let times: Vec<f64> = blocks.iter().filter_map(of_block).map(|time| time.as_secs_f64()).collect();
            if times.is_empty() || guessed <= 0.0 {
                continue;
            }
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let measured = (mean - length.as_secs_f64()).max(0.0);
            steps.insert(key, Took { forecast: guessed, measured });
        }
        (!steps.is_empty()).then(|| Self {
            server: server(variant),
            variant: definition(variant),
            workload: workload(&estimate.workload).to_owned(),
            options: options.values(),
            steps,
        })
    }
}

impl MeasuredCell {
    fn around(&self) -> Duration {
        let steps: Duration = self.steps.values().sum();
        self.total.saturating_sub(steps).saturating_sub(self.settling)
    }
}

/// Tells which steps of a forecast are steps of the workload.
struct Keys(BTreeSet<String>);

impl Keys {
    fn of(options: &dyn WorkloadOptions) -> Self {
        Self(options.steps().into_iter().map(|step| step.name).collect())
    }

    fn key<'a>(&self, name: &'a str) -> &'a str {
        match name {
            step if self.0.contains(step) => step,
            settle if settle.starts_with(SETTLE) => SETTLE,
            _ => AROUND,
        }
    }
}

/// Corrects the guessed parts of `steps` by measurements of past runs. Measurements of the same
/// variant with the same options come first. Otherwise a measurement counts if it had about as much
/// work, and is of the same variant, of the same server, or of the same kind of server, in this
/// order.
pub(super) fn correct(
    steps: &mut [StepEstimate],
    past: &[PastCell],
    (variant, name): (&Variant, &str),
    options: &dyn WorkloadOptions,
) {
    let own = past.iter().filter(|cell| cell.workload == workload(name)).collect::<Vec<_>>();
    if own.is_empty() {
        return;
    }
    let keys = Keys::of(options);
    let (values, wanted) = (options.values(), definition(variant));
    let server = server(variant);
    let mut guessed: BTreeMap<String, f64> = BTreeMap::new();
    for step in steps.iter() {
        *guessed.entry(keys.key(&step.name).to_owned()).or_default() += step.guessed().as_secs_f64();
    }
    let levels: [&dyn Fn(&PastCell) -> bool; 4] = [
        &|cell| cell.variant == wanted && cell.options == values,
        &|cell| cell.variant == wanted,
        &|cell| cell.server == server,
        &|cell| kind(&cell.server) == kind(&server),
    ];
    for step in steps {
        let key = keys.key(&step.name);
        let now = guessed.get(key).copied().unwrap_or(0.0);
        let factor = levels.iter().enumerate().find_map(|(level, fits)| {
            let took = own.iter().filter(|cell| fits(cell)).filter_map(|cell| cell.steps.get(key));
            let factors = took.filter(|took| level == 0 || took.is_alike(now)).map(Took::factor);
            median(factors.collect())
        });
        if let Some(factor) = factor {
            let work = step.guessed().as_secs_f64() * factor;
            step.duration = step.length.saturating_add(seconds(work));
        }
    }
}

impl Took {
    fn factor(&self) -> f64 {
        self.measured / self.forecast
    }

    /// Returns whether the past forecast is near enough to `now` to scale it. A step with little
    /// work does not predict a step with much work.
    fn is_alike(&self, now: f64) -> bool {
        const MOST: f64 = 10.0;
        (self.forecast / MOST..=self.forecast * MOST).contains(&now)
    }
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().saturating_sub(1) / 2)?, all.get(all.len() / 2)?);
    Some((low + high) / 2.0)
}

fn workload(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn server(variant: &Variant) -> String {
    let basedir = variant.basedir.as_ref().map(|folder| folder.display().to_string());
    basedir.or_else(|| variant.address.clone()).or_else(|| variant.server.clone()).unwrap_or_default()
}

/// Returns the product, because names in the catalogue are PRODUCT-VERSION.
fn kind(server: &str) -> &str {
    server.split('-').next().unwrap_or(server)
}

fn definition(variant: &Variant) -> String {
    let text = toml::to_string(variant).unwrap_or_default();
    let is_label = |line: &&str| !(line.starts_with("name = ") || line.starts_with("published = "));
    text.lines().filter(is_label).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Basis, estimate, fake};

    fn plan(server: &str, rows: u64) -> Plan {
        let variant = format!("[[variant]]\nname = \"v\"\nserver = \"{server}\"\n");
        let text = format!("name = \"p\"\nblocks = 2\n{variant}[workload.fake]\nrows = {rows}\n");
        fake::parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the past cell from a run of this plan. The load took `times` as long as forecast,
    /// and the servers took twice as long.
    fn ran(server: &str, rows: u64, times: u32) -> PastCell {
        let plan = plan(server, rows);
        let forecast = estimate(&plan, &Basis::default());
        let cell = &forecast.cells[0];
        let of = |name: &str| {
            cell.steps.iter().find(|step| step.name == name).map_or(Duration::ZERO, |step| step.duration)
        };
        let load = of("load") * times;
        let steps = BTreeMap::from([("load".to_owned(), load), ("test".to_owned(), of("test"))]);
        let total = load + of("test") + of("prepare") * 2;
        let block = MeasuredCell { total, steps, settling: Duration::ZERO };
        PastCell::of(&plan, &plan.variants[0], cell, &[block.clone(), block])
            .expect("there is something to learn")
    }

    /// Returns the seconds of `prepare`, `load` and `test`, divided by those of the shipped
    /// figures.
    fn ratios(server: &str, rows: u64, past: Vec<PastCell>) -> [f64; 3] {
        let plan = plan(server, rows);
        let steps = |past| estimate(&plan, &Basis { past, ..Basis::default() }).cells.remove(0).steps;
        let (now, shipped) = (steps(past), steps(Vec::new()));
        let ratio = |name: &str| {
            let of = |steps: &[StepEstimate]| {
                steps.iter().find(|step| step.name == name).map_or(0.0, |step| step.duration.as_secs_f64())
            };
            (of(&now) / of(&shipped) * 1000.0).round() / 1000.0
        };
        ["prepare", "load", "test"].map(ratio)
    }

    #[test]
    fn measured_times_correct_the_guessed_parts_and_no_certain_length() {
        let past = || vec![ran("mysql-8.0.31", 1_000_000, 3)];
        assert_eq!(ratios("mysql-8.0.31", 1_000_000, Vec::new()), [1.0; 3]);
        assert_eq!(ratios("mysql-8.0.31", 1_000_000, past()), [2.0, 3.0, 1.0]);
        assert_eq!(ratios("mysql-8.0.31", 3_000_000, past()), [2.0, 3.0, 1.0], "it grows with the rows");
        assert_eq!(ratios("mysql-5.7.22", 1_000_000, past()), [2.0, 3.0, 1.0], "of the same product");
        assert_eq!(ratios("mariadb-10.11.5", 1_000_000, past()), [1.0; 3], "another product");
        assert_eq!(
            ratios("mysql-8.0.31", 1_000_000_000, past())[1],
            1.0,
            "a small load says nothing of a large one"
        );
    }

    #[test]
    fn the_same_plan_comes_before_others_and_the_median_of_runs_counts() {
        let same = |times| ran("mysql-8.0.31", 1_000_000, times);
        let past = vec![
            same(2),
            same(4),
            same(40),
            ran("mysql-8.0.31", 2_000_000, 9),
            ran("mysql-5.7.22", 1_000_000, 7),
        ];
        assert_eq!(ratios("mysql-8.0.31", 1_000_000, past.clone())[1], 4.0);
        assert_eq!(ratios("mysql-8.0.31", 2_000_000, past.clone())[1], 9.0);
        assert_eq!(ratios("mysql-9.7", 1_000_000, past)[1], 7.0);
    }
}
