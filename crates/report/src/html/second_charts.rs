//! Charts of a step by second: rate and longest response time, and in words which runs are not in them.

use std::collections::BTreeMap;

use dbdyno_analyse::{StepFindings, StepRun, Validity, VariantStep, numbered};

use super::chart::{Line, chart};
use super::downsample::Point;
use crate::evidence::{has_blocks, kinds};

/// Whole seconds that a line needs.
const LEAST_SECONDS: usize = 2;

/// A chart's caption and SVG.
type Drawn = (String, String);

/// The charts of a step, or why it has none.
#[derive(Debug, Default)]
pub(super) struct SecondCharts {
    /// Of the headline's kind.
    pub(super) charts: Vec<Drawn>,
    /// Of each further kind, such as the background writers of a step that reads: its name, and its charts.
    pub(super) further: Vec<(String, Vec<Drawn>)>,
    /// Runs that are not drawn, by variant.
    pub(super) notes: Vec<String>,
    /// Empty where there are charts.
    pub(super) none: String,
}

/// Rate and longest response time of each kind, second by second. `names` are all variants of the report in their order; a
/// line of the headline has `points` at most, one of another kind half of them.
///
/// Only a slow run of a fixed amount of work lasts for seconds, so a chart of those few that can be drawn would be a selection:
/// where most valid runs are too short, there is none. All kinds are drawn of the same runs.
pub(super) fn second_charts(step: &StepFindings, names: &[String], points: usize) -> SecondCharts {
    if let Some(none) = why_none(step) {
        return SecondCharts { none, ..SecondCharts::default() };
    }
    let further = kinds(step).into_iter().filter(|kind| *kind != step.headline_kind);
    SecondCharts {
        charts: kind_charts(step, &step.headline_kind, names, points),
        further: further
            .map(|kind| (kind.clone(), kind_charts(step, &kind, names, points / 2)))
            .filter(|(_, charts)| !charts.is_empty())
            .collect(),
        notes: step.variants.iter().filter_map(|variant| note(variant, step)).collect(),
        none: String::new(),
    }
}

/// Rate and longest response time of one kind.
fn kind_charts(step: &StepFindings, kind: &str, names: &[String], points: usize) -> Vec<Drawn> {
    let (mut rates, mut times) = (Vec::new(), Vec::new());
    for variant in &step.variants {
        let number = names.iter().position(|name| *name == variant.variant).unwrap_or(0);
        for run in variant.runs.iter().filter(|run| why_not(run, &step.headline_kind).is_none()) {
            let line =
                |points| Line { variant: number, name: variant.variant.clone(), block: run.block, points };
            let (rate, time) = series(run, kind);
            rates.push(line(rate));
            times.push(line(time));
        }
    }
    let (of_kind, unit) = match kind {
        headline if headline == step.headline_kind => (step.name.clone(), step.rate_label.as_str()),
        "query" => (format!("{}, {kind}", step.name), "queries/s"),
        _ => (format!("{}, {kind}", step.name), "rows/s"),
    };
    let blocks = if has_blocks(step) { " One line a block." } else { "" };
    let has_gaps = times.iter().flat_map(|line| &line.points).any(|point| point.1.is_none());
    let gaps = if has_gaps { " A gap: no answer in that second." } else { "" };
    let rate_caption = format!("{of_kind}: {unit} by second.{blocks}");
    let time_caption = format!("{of_kind}: longest response time of each second, in ms.{blocks}{gaps}");
    let rate = chart(&rate_caption, unit, &rates, points);
    let time = chart(&time_caption, "ms", &times, points);
    let charts = [(rate_caption, rate), (time_caption, time)];
    charts.into_iter().filter_map(|(caption, svg)| Some((caption, svg?))).collect()
}

/// Why most valid runs, or all, cannot be drawn.
fn why_none(step: &StepFindings) -> Option<String> {
    let runs = || step.variants.iter().flat_map(|variant| &variant.runs);
    let valid: Vec<&StepRun> = runs().filter(|run| run.validity == Validity::Valid).collect();
    if valid.is_empty() {
        return Some("No chart: no run of this step is valid.".to_owned());
    }
    let mut reasons: Vec<&str> = valid.iter().filter_map(|run| why_not(run, &step.headline_kind)).collect();
    let left_out = reasons.len();
    if left_out * 2 <= valid.len() {
        return None;
    }
    reasons.sort_unstable();
    reasons.dedup();
    let of = numbered(valid.len(), "valid run");
    Some(format!("No chart: {left_out} of {of} cannot be drawn by second ({}).", reasons.join("; ")))
}

/// Why a run has no line; `None` for one that has.
fn why_not(run: &StepRun, headline_kind: &str) -> Option<&'static str> {
    match run.validity {
        Validity::Invalid { .. } => return Some("invalid"),
        Validity::Failed { .. } => return Some("failed"),
        Validity::Interrupted => return Some("interrupted"),
        Validity::Valid => {}
    }
    let seconds = run.seconds.iter().filter(|point| point.kind == headline_kind).count();
    if seconds < LEAST_SECONDS {
        return Some("less than two whole seconds");
    }
    (!run.has_telling_seconds).then_some("too few answers for single seconds to say something")
}

/// The runs of a variant that are not drawn, by reason, and whether it has no line at all.
fn note(variant: &VariantStep, step: &StepFindings) -> Option<String> {
    let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for run in &variant.runs {
        if let Some(reason) = why_not(run, &step.headline_kind) {
            left_out.entry(reason).or_default().push(run.block.to_string());
        }
    }
    let of_reason = |(reason, blocks): (&&str, &Vec<String>)| match has_blocks(step) {
        true => format!("block {}: {reason}", blocks.join(", ")),
        false => (*reason).to_owned(),
    };
    let reasons = left_out.iter().map(of_reason).collect::<Vec<_>>().join("; ");
    let name = &variant.variant;
    let count: usize = left_out.values().map(Vec::len).sum();
    match (variant.runs.len(), count) {
        (0, _) => Some(format!("{name} has no line: it has no run of this step.")),
        (_, 0) => None,
        (runs, count) if runs == count => Some(format!("{name} has no line: {reasons}.")),
        _ => Some(format!("Not drawn: {name} {reasons}.")),
    }
}

type Points = Vec<Point>;

/// Rate and longest response time (ms) of one kind in a run; a second without an answer has no time.
#[expect(clippy::cast_precision_loss, reason = "drawn to a tenth of a pixel")]
fn series(run: &StepRun, kind: &str) -> (Points, Points) {
    let of_kind = run.seconds.iter().filter(|point| point.kind == kind);
    let both = of_kind.map(|point| {
        let second = point.second as f64;
        let time_ms = point.response_max_us.map(|time_us| time_us as f64 / 1e3);
        ((second, Some(point.rate)), (second, time_ms))
    });
    both.unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// `qr100` of two variants in three blocks, 30 seconds each.
    fn step() -> StepFindings {
        fixture::with_blocks(3).workloads[0].steps[4].clone()
    }

    fn drawn(step: &StepFindings) -> SecondCharts {
        second_charts(step, &fixture::NAMES.map(str::to_owned), 600)
    }

    fn cut(step: &mut StepFindings, variant: usize, runs: usize) {
        for run in &mut step.variants[variant].runs[..runs] {
            run.seconds.truncate(1);
        }
    }

    #[test]
    fn runs_that_cannot_be_drawn_are_named() {
        let mut step = step();
        assert!(drawn(&step).notes.is_empty());
        cut(&mut step, 0, 2);
        step.variants[1].runs[2].validity = Validity::Invalid { reasons: vec!["wrong rows".to_owned()] };
        let found = drawn(&step);
        assert_eq!(
            found.notes,
            [
                "Not drawn: rollback block 1, 2: less than two whole seconds.",
                "Not drawn: <b>&\" block 3: invalid."
            ]
        );
        assert_eq!(found.charts.len(), 2);
        for (_, svg) in &found.charts {
            assert_eq!(svg.matches("class=\"l s0").count(), 1);
            assert_eq!(svg.matches("class=\"l s1").count(), 2, "an invalid run has no line");
        }
    }

    #[test]
    fn a_variant_without_a_line_is_named() {
        let mut step = step();
        cut(&mut step, 1, 3);
        let found = drawn(&step);
        assert_eq!(found.notes, ["<b>&\" has no line: block 1, 2, 3: less than two whole seconds."]);
        assert_eq!(found.charts[0].1.matches("class=\"l s").count(), 3);
    }

    #[test]
    fn a_chart_of_the_few_slow_runs_is_left_out() {
        let mut step = step();
        cut(&mut step, 1, 3);
        cut(&mut step, 0, 1);
        let found = drawn(&step);
        assert!(found.charts.is_empty());
        let why = "No chart: 4 of 6 valid runs cannot be drawn by second (less than two whole seconds).";
        assert_eq!(found.none, why);
    }

    #[test]
    fn seconds_that_say_nothing_are_not_drawn() {
        let mut step = step();
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.has_telling_seconds = false;
        }
        let found = drawn(&step);
        assert!(found.charts.is_empty() && found.none.contains("too few answers"), "{found:?}");
    }

    #[test]
    fn a_stall_of_the_background_writers_shows_in_charts_of_their_own() {
        let mut step = step();
        let run = &mut step.variants[1].runs[2];
        for point in run.seconds.iter_mut().filter(|point| point.kind == "delete" && point.second == 7) {
            (point.rate, point.response_max_us) = (0.0, None);
        }
        let found = drawn(&step);
        let kinds: Vec<&str> = found.further.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["delete", "insert"]);
        let captions =
            |at: usize| found.further[at].1.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>();
        assert_eq!(
            captions(0),
            [
                "qr100, delete: rows/s by second. One line a block.",
                "qr100, delete: longest response time of each second, in ms. One line a block. A gap: no answer in that second."
            ]
        );
        assert!(captions(1)[1].ends_with("in ms. One line a block."), "the inserts went on");
        for (_, svg) in found.further.iter().flat_map(|(_, charts)| charts) {
            assert_eq!(svg.matches("class=\"l s").count(), 6, "each variant in each block");
        }
    }

    #[test]
    fn runs_that_are_not_in_the_headlines_charts_are_in_no_others() {
        let mut step = step();
        step.variants[1].runs[2].validity = Validity::Interrupted;
        for (_, svg) in drawn(&step).further.iter().flat_map(|(_, charts)| charts) {
            assert_eq!(svg.matches("class=\"l s").count(), 5);
        }
    }

    #[test]
    fn a_second_without_an_answer_is_a_gap_in_the_times_and_0_in_the_rates() {
        let mut step = step();
        step.variants.truncate(1);
        step.variants[0].runs.truncate(1);
        let stalled = &mut step.variants[0].runs[0].seconds[10];
        (stalled.rate, stalled.response_max_us) = (0.0, None);
        let found = drawn(&step);
        let moves = |svg: &str| {
            let path = svg.split("class=\"l s0\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
            path.map_or(0, |path| path.matches('M').count())
        };
        assert_eq!(found.charts.iter().map(|(_, svg)| moves(svg)).collect::<Vec<_>>(), [1, 2]);
        assert!(found.charts[1].0.ends_with("A gap: no answer in that second."));
    }
}
