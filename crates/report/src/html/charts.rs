//! The charts of a report on a run, as blocks of its document.

use dbdyno_analyse::{Findings, StepFindings, WorkloadFindings};

use super::bars::bars;
use super::second_charts::second_charts;
use super::svg::swatch;
use super::sweep_charts::sweep_charts;
use crate::document::{Block, Chart, Tone};

/// Points of a line at most: about one a pixel and a half.
const LINE_POINTS: usize = 600;
/// However many lines there are: a line of fewer points shows too little of where it rose and fell.
const LEAST_POINTS: usize = 18;
/// Points of all lines together, so that a big run's page stays below 5 MB.
const PAGE_POINTS: usize = 80_000;

/// What all charts of a report have in common.
pub(crate) struct Charts {
    /// The variants in the order of their colours.
    names: Vec<String>,
    base: String,
    /// Of each line of a headline.
    points: usize,
}

impl Charts {
    pub(crate) fn new(findings: &Findings) -> Self {
        Self {
            names: findings.variants.iter().map(|variant| variant.name.clone()).collect(),
            base: findings.run.base.clone(),
            points: points_a_line(findings),
        }
    }

    /// The variants in the order of their colours.
    pub(crate) fn key(&self) -> Block {
        Block::Key(self.names.iter().enumerate().map(|(at, name)| (name.clone(), swatch(at))).collect())
    }

    /// Ratios of all steps, and sweeps.
    pub(crate) fn of_workload(&self, workload: &WorkloadFindings, number: usize) -> Vec<Block> {
        let bars = bars(&workload.summary.relative, &self.base, &self.names);
        let bars = bars.map(|picture| ("Rate of each step, divided by the base's.".to_owned(), picture));
        let sweeps = workload.sweeps.iter().flat_map(|sweep| sweep_charts(sweep, &self.names));
        blocks(&format!("w{number}c"), bars.into_iter().chain(sweeps))
    }

    /// By second, or why there are none.
    pub(crate) fn of_step(&self, step: &StepFindings, id: &str) -> Vec<Block> {
        let found = second_charts(step, &self.names, self.points);
        if !found.none.is_empty() {
            return vec![Block::Text(Tone::Muted, found.none)];
        }
        let mut all = vec![self.key()];
        all.extend(blocks(&format!("{id}c"), found.charts));
        all.extend((!found.notes.is_empty()).then_some(Block::List(Tone::Doubt, found.notes)));
        for (at, (kind, charts)) in found.further.into_iter().enumerate() {
            all.push(Block::Fold(format!("By second: {kind}"), blocks(&format!("{id}k{at}c"), charts)));
        }
        all
    }
}

fn blocks(id: &str, drawn: impl IntoIterator<Item = (String, String)>) -> Vec<Block> {
    let chart = |(at, (title, picture))| {
        Block::Chart(Chart { id: format!("{id}{at}"), title, picture, ..Chart::default() })
    };
    drawn.into_iter().enumerate().map(chart).collect()
}

/// From how many lines there are: each kind of a run has two, its rate and its longest response time, and those of kinds that are
/// not the headline have half the points.
fn points_a_line(findings: &Findings) -> usize {
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let runs = steps.flat_map(|step| &step.variants).flat_map(|variant| &variant.runs);
    let lines: usize = runs.map(|run| run.kinds.len() + 1).sum();
    (PAGE_POINTS / lines.max(1)).clamp(LEAST_POINTS, LINE_POINTS)
}
