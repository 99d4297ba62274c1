//! Charts as data: what the page's script draws, with exact values. A chart takes the table of a
//! view or its points, so that a page without scripts has its figures too. Seconds, curves of
//! percentiles and values by run are drawn as they were measured, because no table has as many
//! rows.

mod seconds;
mod topics;
mod workload;

use dbdyno_analyse::{Bound, Findings, StepFindings, StepRun, VariantStep, VariantSummary, Verdict};
use dbdyno_model::Colours;
use serde_json::{Value, json};

use crate::document::{Block, Chart, Table, TableCell, Tone};
use crate::views::cells::sign_of;
use crate::views::sweeps::sweeps;
use crate::views::{Scope, Topic};
use crate::words::RATIO_TABLES;

/// Number of colours in `page.css`, and of markers. Further variants use them again in other pairs.
const COLOURS: usize = 8;
/// Largest number of points in a line, which is about one per pixel and a half.
const LINE_POINTS: usize = 600;
/// Smallest number of points in a line. With fewer, a line shows too little of where it rises and
/// falls.
const MIN_POINTS: usize = 60;
/// Largest number of points in all lines together. It keeps the page of a large run below 5 MB.
const PAGE_POINTS: usize = 60_000;

/// Data that all charts in a report share.
pub(crate) struct Charts<'a> {
    findings: &'a Findings,
    /// The variants in the order of their colours.
    names: Vec<&'a str>,
    /// Number of points in each line of the headline's kind.
    points: usize,
    /// Whether each block has its own line.
    has_all_blocks: bool,
}

impl<'a> Charts<'a> {
    pub(crate) fn new(findings: &'a Findings) -> Self {
        let names = findings.variants.iter().map(|variant| variant.name.as_str()).collect();
        let of_all = PAGE_POINTS / lines(findings, false).max(1);
        let has_all_blocks = of_all >= MIN_POINTS;
        let points = if has_all_blocks { of_all } else { PAGE_POINTS / lines(findings, true).max(1) };
        Self { findings, names, points: points.clamp(MIN_POINTS, LINE_POINTS), has_all_blocks }
    }

    /// Lists the variants in the order of their colours.
    pub(crate) fn key(&self, what: impl Fn(&VariantSummary) -> String) -> Block {
        let dot = |at: usize| {
            format!("<span class=\"dot k{} m{}\"></span>", at % COLOURS, (at + at / COLOURS) % COLOURS)
        };
        let variants = self.findings.variants.iter().enumerate();
        Block::Key(variants.map(|(at, variant)| (variant.name.clone(), what(variant), dot(at))).collect())
    }

    /// Returns a workload's charts. The ratios of all steps to the base come first, with one chart
    /// per group and set-up. After them come the seconds of queries, and rates and response times
    /// against connections.
    pub(crate) fn of_workload(&self, scope: Scope<'_>, id: &str) -> Vec<Block> {
        let sweeps = sweeps(scope.workload);
        let mut blocks = numbered(&format!("{id}r"), workload::ratios(self, scope, &sweeps));
        blocks.extend(numbered(&format!("{id}q"), workload::queries(self, scope)));
        let sweeps = sweeps.iter().map(|found| workload::sweep(self, found));
        blocks.extend(numbered(&format!("{id}c"), sweeps));
        blocks
    }

    /// Returns the id by which links lead to a step's section. It is empty where the step has none.
    pub(crate) fn step_id(&self, workload: &str, step: &str) -> String {
        let workloads = &self.findings.workloads;
        let found = workloads.iter().position(|known| known.name == workload).and_then(|number| {
            let at = workloads[number].steps.iter().position(|known| known.name == step)?;
            Some(format!("w{number}s{at}"))
        });
        found.unwrap_or_default()
    }

    /// Returns the charts of the headline by second, or the reason why it is not drawn. The second
    /// list has the charts of the other kinds of operation, which are shown next to latency.
    pub(crate) fn of_step(&self, step: &StepFindings, id: &str) -> (Vec<Block>, Vec<Block>) {
        let found = seconds::seconds(self, step, id);
        if !found.none.is_empty() {
            return (vec![Block::Text(Tone::Muted, found.none)], Vec::new());
        }
        let mut all = numbered(&format!("{id}c"), found.headline);
        all.extend((!found.notes.is_empty()).then_some(Block::List(Tone::Doubt, found.notes)));
        (all, numbered(&format!("{id}k"), found.further))
    }

    pub(crate) fn of_topic(&self, step: &StepFindings, topic: Topic, id: &str) -> Vec<Block> {
        let (letter, charts) = match topic {
            Topic::Latency => ("l", vec![topics::percentiles(self, step)]),
            Topic::Cost => ("o", vec![topics::cost(self, step)]),
            Topic::Statistics => ("b", vec![topics::blocks(self, step), topics::interaction(self, step)]),
            Topic::Io | Topic::Sql => return Vec::new(),
        };
        numbered(&format!("{id}{letter}"), charts.into_iter().flatten())
    }

    /// Returns the page's data for the script: the variants, the base, and the rates that it
    /// needs when the reader chooses another base, or the variants of the overall score.
    pub(crate) fn page_data(&self) -> Value {
        let mut steps = Vec::new();
        let is_mostly_decided = self.is_mostly_decided();
        for (number, workload) in self.findings.workloads.iter().enumerate() {
            for (at, step) in workload.steps.iter().enumerate() {
                let rates = |name: &&str| step.variant(name).map_or_else(Vec::new, block_rates);
                // A rate that the plan sets does not say how fast a variant is.
                let is_fixed_rate = self.names.iter().any(|name| step.is_fixed_rate(name));
                steps.push(json!({
                    "id": format!("w{number}s{at}"),
                    "name": step.name,
                    "groups": step.groups.values().collect::<Vec<_>>(),
                    "is_time": step.less_is_better,
                    "is_scored": is_mostly_decided && !step.is_warm_up && !is_fixed_rate,
                    "rates": self.names.iter().map(rates).collect::<Vec<_>>(),
                }));
            }
        }
        json!({
            "variants": self.names,
            "base": self.variant(&self.findings.run.base),
            "relative": RATIO_TABLES,
            "colours": match self.findings.run.colours {
                Colours::Verdict => "verdicts",
                Colours::Threshold => "thresholds",
            },
            "steps": steps,
        })
    }

    /// Whether at least half of the comparisons are decided. An overall score of others would be an
    /// order by chance.
    fn is_mostly_decided(&self) -> bool {
        let base = &self.findings.run.base;
        let variants = self.findings.variants_of_steps().map(|(_, _, variant)| variant);
        let verdicts: Vec<_> = variants
            .filter(|variant| variant.variant != *base && variant.to_base.ratio.is_some())
            .map(|variant| variant.to_base.verdict)
            .collect();
        let is_decided = |verdict: &&Option<Verdict>| {
            matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Same))
        };
        2 * verdicts.iter().filter(is_decided).count() >= verdicts.len()
    }

    /// Returns the number by which the script knows the variant.
    fn variant(&self, name: &str) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or(0)
    }
}

/// Turns the charts into blocks, each with its own id.
fn numbered(id: &str, charts: impl IntoIterator<Item = Chart>) -> Vec<Block> {
    let with_id = |(at, chart)| Block::Chart(Chart { id: format!("{id}{at}"), ..chart });
    charts.into_iter().enumerate().map(with_id).collect()
}

pub(crate) fn chart(title: impl Into<String>, data: Value) -> Chart {
    Chart { title: title.into(), data, ..Chart::default() }
}

/// Finds a variant's rate in a table of rates.
fn rate_of<'t>(rates: &'t Table, variant: &str) -> Option<&'t TableCell> {
    rates.rows_of(variant).find_map(|row| rates.cell(row, "rate"))
}

/// Returns `>`, `<` or `≷` for a value that is only a bound.
fn bound_sign(bound: Option<Bound>) -> Option<&'static str> {
    bound.map(|bound| sign_of(Some(bound)).trim_end())
}

/// Returns block and rate of each valid run. A time that was cut off has `true` as a third item.
fn block_rates(variant: &VariantStep) -> Vec<Value> {
    let of_run = |run: &StepRun| match run.cut_off {
        true => json!([run.block, figure(run.rate), true]),
        false => json!([run.block, figure(run.rate)]),
    };
    variant.valid_runs().map(of_run).collect()
}

/// Makes a number for the data. A whole number is written without `.0`, because a large run has
/// 80,000 whole numbers.
pub(crate) fn figure(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

/// Makes a number rounded to `decimals`, for figures that are means of samples.
fn rounded(value: f64, decimals: i32) -> Value {
    let factor = 10_f64.powi(decimals);
    figure((value * factor).round() / factor)
}

/// Writes a time in µs as exact ms.
fn milliseconds(time_us: u64) -> Value {
    figure(time_us as f64 / 1e3)
}

/// Counts the lines by second. In each run the headline's kind has two lines, the rate and the
/// longest response time. Every other kind has two lines with half as many points, which count as
/// one. The device has three lines with half as many points, which count as two.
fn lines(findings: &Findings, of_one_block: bool) -> usize {
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let runs = steps
        .flat_map(|step| &step.variants)
        .flat_map(|variant| variant.runs.iter().take(if of_one_block { 1 } else { usize::MAX }));
    runs.map(|run| run.kinds.len() + if run.device_seconds.is_empty() { 1 } else { 3 }).sum()
}

#[cfg(test)]
mod tests;
