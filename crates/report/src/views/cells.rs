//! Table cells for the views: rates, times, ratios, and the placeholder where there is none. A
//! table cell that is made from a number keeps it unrounded, for JSON. [`Pivot`] has one metric
//! from the long tables, by step and variant.
//!
//! The colours of rates are those in the reports of the original Insert Benchmark. They were
//! checked against every table cell that its author has published. They say what is unusual in a
//! column, not what is significant, so that they are for plans that want thresholds. In other
//! plans, rates have no colour and ratios are coloured by their verdicts.

use std::collections::BTreeMap;

use dbdyno_analyse::tables::{ComparisonRow, Tables};
use dbdyno_analyse::{
    Bound, Decided, Ratio, RunSummary, StepFindings, StepRun, Undecided, Validity, VariantStep, Verdict,
    Warning, failure_words, p_text, unique,
};
use dbdyno_model::Colours;

use super::Scope;
use crate::document::text::one_line;
use crate::document::{TableCell, Tone};
use crate::number::{fixed, milliseconds, percent, rate, rate_or_seconds, ratio_text, seconds_text};
use crate::warnings::{brief, reasons_text};
use crate::words::{missed_text, reached_rate_text, undecided_text, zero_rate_text};

/// Text for a variant that has no valid run of a step, and the reason.
#[derive(Clone)]
pub(crate) struct Placeholder {
    pub(crate) text: &'static str,
    pub(crate) why: Vec<Warning>,
}

impl Placeholder {
    pub(crate) fn new(text: &'static str, why: &str) -> Self {
        Self { text, why: vec![Warning::quoted(why)] }
    }
}

/// Returns the placeholder for the worst that happened: `failed`, `invalid`, `not run` or `n/a`.
pub(crate) fn placeholder(scope: Scope<'_>, variant: &VariantStep) -> Placeholder {
    let failed = |run: &StepRun| match &run.validity {
        Validity::Failed { message } => Some(Placeholder::new("failed", &failure_words(message))),
        _ => None,
    };
    let invalid = |run: &StepRun| match &run.validity {
        Validity::Invalid { reasons } => Some(Placeholder { text: "invalid", why: reasons.clone() }),
        _ => None,
    };
    let runs = || variant.runs.iter();
    if let Some(placeholder) = runs().find_map(failed).or_else(|| runs().find_map(invalid)) {
        return placeholder;
    }
    let is_of = |of: &(&str, &str)| *of == (variant.variant.as_str(), scope.workload.name.as_str());
    let failure = scope.failures.iter().find(|failure| is_of(&(&failure.variant, &failure.workload)));
    match failure {
        Some(failure) => {
            Placeholder::new("not run", &format!("its cell failed before it: {}", failure.message))
        }
        None if variant.runs.is_empty() => Placeholder::new("n/a", "did not run"),
        None => Placeholder::new("n/a", "interrupted"),
    }
}

/// Returns a variant's ratio, or the placeholder that says why it has none.
pub(crate) fn ratio_or_placeholder(scope: Scope<'_>, found: &VariantStep) -> String {
    match &found.to_base.ratio {
        Some(ratio) => bounded_text(ratio),
        None if found.cut_off => BOTH_CUT_OFF.to_owned(),
        None if found.rate.is_some()
            || !found.to_base.zero_rates.is_empty()
            || found.to_base.undecided.is_some() =>
        {
            "n/a".to_owned()
        }
        None => placeholder(scope, found).text.to_owned(),
    }
}

impl From<Placeholder> for TableCell {
    fn from(placeholder: Placeholder) -> Self {
        Self { note: reasons_text(&placeholder.why), ..Self::from(placeholder.text) }
    }
}

pub(super) fn absent(why: &str) -> TableCell {
    TableCell { note: why.to_owned(), ..TableCell::from("n/a") }
}

pub(super) fn number(value: f64, text: String) -> TableCell {
    TableCell { value: Some(value), ..TableCell::from(text) }
}

/// Makes a table cell for a number that may be unknown. For an unknown number, `text` says so.
pub(super) fn known(value: Option<f64>, text: String) -> TableCell {
    TableCell { value, ..TableCell::from(text) }
}

/// Makes a table cell for a number with a fixed number of decimals.
pub(super) fn fixed_cell(value: f64, decimals: usize) -> TableCell {
    number(value, fixed(Some(value), decimals))
}

/// Makes a table cell for a rate per second.
pub(super) fn rate_cell(value: f64) -> TableCell {
    number(value, rate(Some(value)))
}

pub(super) fn seconds_cell(seconds: f64) -> TableCell {
    number(seconds, seconds_text(seconds))
}

/// Makes a table cell for microseconds, which are shown as milliseconds.
pub(super) fn milliseconds_cell(us: f64) -> TableCell {
    number(us / 1e3, milliseconds(us.round() as u64))
}

/// Makes a table cell for a fraction, which is shown in percent.
pub(super) fn percent_cell(fraction: f64) -> TableCell {
    number(100.0 * fraction, percent(fraction))
}

/// Makes a table cell with the text of [`headline_text`].
pub(super) fn headline_cell(step: &StepFindings, figure: f64, cut_off: bool) -> TableCell {
    let bound = cut_off.then_some(Bound::MoreThan);
    TableCell { bound, ..number(figure, headline_text(step, figure, cut_off)) }
}

/// Writes a step's rate, or its seconds. Seconds that were cut off are written as `> 7200`.
pub(crate) fn headline_text(step: &StepFindings, figure: f64, cut_off: bool) -> String {
    let bound = if cut_off && step.less_is_better { "> " } else { "" };
    format!("{bound}{}", rate_or_seconds(Some(figure), step.less_is_better))
}

/// Text in place of a ratio where both times were cut off.
const BOTH_CUT_OFF: &str = "both cut off";

/// Writes a ratio or a bound of it: `0.97`; `> 3.10` where a time limit cut off the variant;
/// `< 0.32` where it cut off the base; and `≷ 1.10` where it cut off the variant in some blocks and
/// the base in others.
pub(crate) fn bounded_text(ratio: &Ratio) -> String {
    format!("{}{}", sign_of(ratio.bound), ratio_text(ratio.value, 2))
}

pub(crate) fn sign_of(bound: Option<Bound>) -> &'static str {
    match bound {
        Some(Bound::MoreThan) => "> ",
        Some(Bound::LessThan) => "< ",
        Some(Bound::Both) => "≷ ",
        None => "",
    }
}

/// Marks the table cell of a ratio as a bound. It loses its colour where the true ratio may lie on
/// the other side of 1.
pub(super) fn bounded(cell: TableCell, ratio: f64, bound: Option<Bound>) -> TableCell {
    if bound.is_none() {
        return cell;
    }
    let cell = TableCell { text: format!("{}{}", sign_of(bound), cell.text), bound, ..cell };
    match is_open(ratio, bound) {
        false => cell,
        true => TableCell { tone: Tone::Plain, sign: "", note: String::new(), ..cell },
    }
}

/// Whether the true ratio may lie on the other side of 1 from the bound.
pub(super) fn is_open(ratio: f64, bound: Option<Bound>) -> bool {
    match bound {
        None => false,
        Some(Bound::MoreThan) => ratio <= 1.0,
        Some(Bound::LessThan) => ratio >= 1.0,
        Some(Bound::Both) => true,
    }
}

/// Makes a table cell for a ratio of rates or of times that has no verdict. Only thresholds can
/// colour it.
pub(super) fn ratio_cell(value: f64, decimals: usize, is_time: bool, colours: Colours) -> TableCell {
    let tone = match colours {
        Colours::Verdict => Tone::Plain,
        Colours::Threshold => by_threshold(value, is_time),
    };
    TableCell { tone, sign: ratio_sign(tone), ..number(value, ratio_text(value, decimals)) }
}

/// Returns the sign of a ratio. Grey is for ratios near 1, and needs no sign.
fn ratio_sign(tone: Tone) -> &'static str {
    if tone == Tone::Missed { "" } else { tone.sign() }
}

/// Returns the sign of an undecided ratio that is coloured by threshold.
fn undecided_sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Highest => "▲ ?",
        Tone::Lowest => "▼ ?",
        _ => Tone::Undecided.sign(),
    }
}

pub(super) fn judged_cell(
    ratio: &Ratio,
    verdict: Option<Verdict>,
    decided: Option<Decided>,
    is_time: bool,
    run: &RunSummary,
) -> TableCell {
    let (base, colours) = (&run.base, run.colours);
    let mut cell = ratio_cell(ratio.value, 2, is_time, colours);
    match colours {
        Colours::Verdict => {
            cell.tone = by_verdict(verdict);
            cell.sign = ratio_sign(cell.tone);
        }
        Colours::Threshold if matches!(verdict, None | Some(Verdict::Undecided)) => {
            cell.sign = undecided_sign(cell.tone);
        }
        Colours::Threshold => {}
    }
    let mut cell = bounded(cell, ratio.value, ratio.bound);
    let bound = ratio.bound.map(|bound| match bound {
        Bound::MoreThan => "it was cut off at its time limit".to_owned(),
        Bound::LessThan => format!("{base} was cut off at its time limit"),
        Bound::Both => format!("it was cut off in some blocks and {base} in others"),
    });
    let inference = ratio.inference.as_ref().map(|inference| {
        format!(
            "{} blocks; adjusted p of a difference {}, of equivalence {}",
            ratio.blocks.len(),
            p_text(inference.q_difference),
            p_text(inference.q_same)
        )
    });
    let decided = decided.map(|at| format!("decided at interim analysis {} of {}", at.look, at.of));
    cell.note = joined([bound, inference, decided]);
    cell.interval = ratio.interval();
    cell.verdict = verdict;
    cell
}

/// Makes a table cell with a variant's ratio in a step, or with the reason why it has none.
pub(super) fn variant_cell(scope: Scope<'_>, step: &StepFindings, variant: &VariantStep) -> TableCell {
    let base = scope.run.base.as_str();
    let mut cell = match &variant.to_base.ratio {
        Some(ratio) => {
            let mut cell = judged_cell(
                ratio,
                variant.to_base.verdict,
                variant.to_base.decided,
                step.less_is_better,
                scope.run,
            );
            if variant.variant == base {
                // The base's ratio to itself needs no verdict.
                cell.sign = ratio_sign(cell.tone);
            }
            if step.only_variant_misses_target(base, &variant.variant) {
                cell.note = joined([Some(cell.note), missed_text(step, variant)]);
            }
            if step.only_variant_misses_schedule(base, &variant.variant) {
                cell.note = step.reached_rate(variant).map_or_else(String::new, reached_rate_text);
            } else if variant.to_base.verdict == Some(Verdict::OnSchedule) {
                cell.note = "the plan sets the rate".to_owned();
            }
            cell
        }
        None if !variant.to_base.zero_rates.is_empty() => {
            TableCell { verdict: variant.to_base.verdict, ..absent("") }
        }
        None if variant.to_base.undecided.is_some() => {
            TableCell { verdict: variant.to_base.verdict, ..absent("") }
        }
        None if variant.cut_off => TableCell {
            note: format!("both it and {base} were cut off at the time limit"),
            ..TableCell::from(BOTH_CUT_OFF)
        },
        None if variant.rate == Some(0.0) => absent("no operation completed"),
        None if variant.rate.is_some() => absent(&format!("no block in which {base} is valid too")),
        None => placeholder(scope, variant).into(),
    };
    // Blocks in which the base stalled are named below.
    let why = variant.to_base.undecided.as_ref().filter(|why| **why != Undecided::BaseStalled);
    cell.note = joined([why.map(undecided_text), Some(cell.note)]);
    // The note says what a ratio leaves out, or why there is none. A variant that stalled has no
    // other colour.
    if let Some(text) = zero_rate_text(&variant.to_base.zero_rates, base) {
        let others =
            variant.to_base.ratio.as_ref().map(|_| "the ratio is that of the other blocks".to_owned());
        if variant.to_base.verdict == Some(Verdict::Stalled) {
            (cell.tone, cell.sign, cell.note) = (Tone::Lowest, Tone::Lowest.sign(), String::new());
        }
        cell.note = joined([Some(text), others, Some(cell.note)]);
    }
    cell
}

/// Joins the notes that have a text, separated by semicolons.
pub(super) fn joined<const N: usize>(notes: [Option<String>; N]) -> String {
    let notes = notes.into_iter().flatten().filter(|note| !note.is_empty());
    notes.collect::<Vec<_>>().join("; ")
}

/// Lowest ÷ highest rate from which on no rate is red. Red would cover most of a column whose
/// values hardly differ.
const RED_OFF_ABOVE: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rated {
    pub(super) rate: f64,
    /// Whether the background rate was kept; `true` for a step without a target.
    pub(super) kept: bool,
}

/// Returns the colours for the rates of one step, in their order. A missing rate has no colour.
///
/// They are computed on whole numbers, as the original Insert Benchmark prints them. lo is the
/// lowest of all, hi is the highest of those that kept their target (lo when none did), and q =
/// floor((hi − lo) / 4). The rules apply in this order: at most lo + q is red, unless lo ≥ 0.8 hi;
/// a missed target is grey; at least hi − q is green. Red comes before grey, so that a miss in the
/// lowest quarter is red.
///
/// Unlike in the original, a single value is not green, because it is not above any other.
pub(super) fn absolute(column: &[Option<Rated>]) -> Vec<Tone> {
    let rounded = || column.iter().flatten().map(|cell| Rated { rate: cell.rate.round(), ..*cell });
    let Some(lo) = rounded().map(|cell| cell.rate).reduce(f64::min) else {
        return vec![Tone::Plain; column.len()];
    };
    let hi = rounded().filter(|cell| cell.kept).map(|cell| cell.rate).reduce(f64::max).unwrap_or(lo);
    let quarter = (0.25 * (hi - lo)).floor();
    let red = lo < RED_OFF_ABOVE * hi;
    let is_alone = rounded().count() < 2;
    let tone = |cell: &Rated| match cell.rate.round() {
        rate if red && rate <= lo + quarter => Tone::Lowest,
        _ if !cell.kept => Tone::Missed,
        rate if rate >= hi - quarter && !is_alone => Tone::Highest,
        _ => Tone::Plain,
    };
    column.iter().map(|cell| cell.as_ref().map_or(Tone::Plain, tone)).collect()
}

/// Returns the colours for times. They are those of speeds, and the longer time has the lower
/// speed. Speeds are in millionths, because whole numbers are compared.
pub(super) fn absolute_times(seconds: &[Option<f64>]) -> Vec<Tone> {
    let speed = |seconds: &Option<f64>| {
        seconds.filter(|seconds| *seconds > 0.0).map(|seconds| Rated { rate: 1e6 / seconds, kept: true })
    };
    absolute(&seconds.iter().map(speed).collect::<Vec<_>>())
}

/// Says how far a ratio is from 1 on two decimals: more than 5 % above, more than 5 % below, or
/// near. For times it is the distance of the ratio of their speeds.
pub(crate) fn distance(ratio: f64, is_time: bool) -> Tone {
    match speed_percent(ratio, is_time) {
        percent if percent > 105.0 => Tone::Above,
        percent if percent < 95.0 => Tone::Below,
        _ => Tone::Plain,
    }
}

/// Returns the colour by threshold, as in published reports: 0.95 and less is red, 1.05 and more is
/// green, and between them it is grey.
fn by_threshold(ratio: f64, is_time: bool) -> Tone {
    match speed_percent(ratio, is_time) {
        percent if percent >= 105.0 => Tone::Highest,
        percent if percent <= 95.0 => Tone::Lowest,
        _ => Tone::Missed,
    }
}

/// Returns the colour by verdict. Only a decided verdict has a colour.
fn by_verdict(verdict: Option<Verdict>) -> Tone {
    match verdict {
        Some(Verdict::Faster) => Tone::Above,
        Some(Verdict::Slower) => Tone::Below,
        Some(Verdict::Missed) => Tone::Missed,
        _ => Tone::Plain,
    }
}

fn speed_percent(ratio: f64, is_time: bool) -> f64 {
    let ratio = if is_time && ratio > 0.0 { 1.0 / ratio } else { ratio };
    (100.0 * ratio).round()
}

/// Step and variant.
type StepVariant<'a> = (&'a str, &'a str);

/// One metric's values and ratios over all valid blocks.
pub(super) struct Pivot<'t, 'a> {
    values: BTreeMap<StepVariant<'a>, f64>,
    ratios: BTreeMap<StepVariant<'a>, &'t ComparisonRow<'a>>,
}

impl<'t, 'a> Pivot<'t, 'a> {
    pub(super) fn of(tables: &'t Tables<'a>, metric: &str) -> Self {
        let values = tables.observations.iter().filter(|one| one.metric == metric && one.key.block.is_none());
        let ratios = tables.comparisons.iter().filter(|one| one.metric == metric && one.key.is_whole());
        Self {
            values: values.map(|one| ((one.key.step, one.key.variant), one.value)).collect(),
            ratios: ratios.map(|one| ((one.key.step, one.key.variant), one)).collect(),
        }
    }

    pub(super) fn value(&self, step: &'a str, variant: &'a str) -> Option<f64> {
        self.values.get(&(step, variant)).copied()
    }

    pub(super) fn comparison(&self, step: &'a str, variant: &'a str) -> Option<&'t ComparisonRow<'a>> {
        self.ratios.get(&(step, variant)).copied()
    }
}

/// Returns the steps in the order of the table.
pub(super) fn steps<'a>(tables: &Tables<'a>) -> Vec<&'a str> {
    unique(tables.observations.iter().map(|one| one.key.step))
}

/// Returns the variants in the order of the table.
pub(super) fn variants<'a>(tables: &Tables<'a>) -> Vec<&'a str> {
    unique(tables.observations.iter().map(|one| one.key.variant))
}

/// Steps and variants without a value that share a reason.
struct Reason {
    /// The placeholder of the first step.
    placeholder: Placeholder,
    differ: bool,
    /// Each variant with the indexes of its steps.
    variants: Vec<(String, Vec<usize>)>,
}

/// Returns one line per reason: `qr100, wal: failed: server went away`. Neighbouring steps are
/// named as a range, `l.i0 to qr100, wal: ...`. A variant without any value is named alone.
pub(super) fn missing_values(scope: Scope<'_>) -> Vec<String> {
    let mut reasons: Vec<Reason> = Vec::new();
    for variant in scope.variants() {
        for (at, step) in scope.steps().enumerate() {
            let Some(placeholder) = step.variant(variant).and_then(|found| match found.rate {
                None => Some(placeholder(scope, found)),
                Some(rate)
                    if found.to_base.ratio.is_none() && found.to_base.zero_rates.is_empty() && rate > 0.0 =>
                {
                    Some(Placeholder::new(
                        "n/a",
                        &format!("no block in which {} is valid too", scope.run.base),
                    ))
                }
                Some(_) => None,
            }) else {
                continue;
            };
            let is_alike = |known: &Reason| {
                known.placeholder.text == placeholder.text
                    && Warning::are_alike(&known.placeholder.why, &placeholder.why)
            };
            let known = reasons.iter().position(is_alike).unwrap_or_else(|| {
                reasons.push(Reason {
                    placeholder: placeholder.clone(),
                    differ: false,
                    variants: Vec::new(),
                });
                reasons.len() - 1
            });
            let reason = &mut reasons[known];
            reason.differ |= reason.placeholder.why != placeholder.why;
            match reason.variants.last_mut() {
                Some((last, steps)) if last == variant => steps.push(at),
                _ => reason.variants.push((variant.to_owned(), vec![at])),
            }
        }
    }
    let steps: Vec<&str> = scope.steps().map(|step| step.name.as_str()).collect();
    reasons.iter().map(|reason| reason.line(&steps)).collect()
}

impl Reason {
    fn line(&self, steps: &[&str]) -> String {
        let of_variant = |(variant, indexes): &(String, Vec<usize>)| {
            if indexes.len() == steps.len() && steps.len() > 1 {
                return variant.clone();
            }
            format!("{}, {variant}", named(steps, indexes))
        };
        let variants: Vec<String> = self.variants.iter().map(of_variant).collect();
        // The warnings and the step's own section have the full reason.
        let Placeholder { text, why } = &self.placeholder;
        let why =
            if *text == "invalid" { why.first().map_or_else(String::new, brief) } else { reasons_text(why) };
        let others = if self.differ { " (the first of these; all are listed by step)" } else { "" };
        one_line(&format!("{}: {text}: {why}{others}", variants.join("; ")))
    }
}

/// Names the steps at these indexes. Neighbouring steps are `first to last`. Of more than three
/// others, the first two are named and the rest counted.
fn named(steps: &[&str], indexes: &[usize]) -> String {
    const NAMED: usize = 3;
    let names: Vec<&str> = indexes.iter().map(|index| steps[*index]).collect();
    match names.as_slice() {
        [first, .., last] if indexes[indexes.len() - 1] - indexes[0] + 1 == indexes.len() => {
            format!("{first} to {last}")
        }
        [first, second, rest @ ..] if rest.len() + 2 > NAMED => {
            format!("{first}, {second} and {} more", rest.len())
        }
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::Validity;

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing;

    fn column(cells: &[(u32, bool)]) -> Vec<Tone> {
        absolute(
            &cells
                .iter()
                .map(|(rate, kept)| Some(Rated { rate: f64::from(*rate), kept: *kept }))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_lowest_quarter_is_red_and_the_highest_green() {
        // lo is 1000, hi is 2003 and q = floor(250.75) = 250, so that it is red up to 1250 and
        // green from 1753.
        let cells = [(1000, true), (1250, true), (1251, true), (1752, true), (1753, true), (2003, true)];
        let (r, n, g) = (Tone::Lowest, Tone::Plain, Tone::Highest);
        assert_eq!(column(&cells), [r, r, n, n, g, g]);
    }

    #[test]
    fn red_is_off_when_the_lowest_is_at_least_four_fifths_of_the_highest() {
        assert_eq!(column(&[(800, true), (1000, true)]), [Tone::Plain, Tone::Highest]);
        assert_eq!(column(&[(799, true), (1000, true)]), [Tone::Lowest, Tone::Highest]);
    }

    #[test]
    fn red_comes_before_grey_and_grey_before_green() {
        // 2660 missed its target and lies in the lowest quarter. 9000 missed it too, and would be
        // green. hi is 8000.
        let cells = [(2660, false), (6000, false), (9000, false), (8000, true)];
        assert_eq!(column(&cells), [Tone::Lowest, Tone::Missed, Tone::Missed, Tone::Highest]);
    }

    #[test]
    fn a_column_in_which_no_variant_kept_the_target_is_grey() {
        assert_eq!(column(&[(100, false), (900, false)]), [Tone::Missed, Tone::Missed]);
    }

    #[test]
    fn equal_values_are_the_highest() {
        assert_eq!(column(&[(500, true), (500, true)]), [Tone::Highest, Tone::Highest]);
        let rounded = [Some(Rated { rate: 500.4, kept: true }), Some(Rated { rate: 499.6, kept: true })];
        assert_eq!(absolute(&rounded), [Tone::Highest, Tone::Highest]);
    }

    #[test]
    fn a_cell_without_a_value_has_no_colour_and_no_influence() {
        let cells = [None, Some(Rated { rate: 5.0, kept: true })];
        let kept = |rate| Some(Rated { rate, kept: true });
        assert_eq!(absolute(&[None, kept(5.0), kept(5.0)]), [Tone::Plain, Tone::Highest, Tone::Highest]);
        assert_eq!(absolute(&cells), [Tone::Plain, Tone::Plain]);
        assert_eq!(absolute(&[None, None]), [Tone::Plain, Tone::Plain]);
    }

    #[test]
    fn a_single_value_is_not_highest_but_says_that_it_missed_its_target() {
        assert_eq!(column(&[(500, true)]), [Tone::Plain]);
        assert_eq!(column(&[(500, false)]), [Tone::Missed]);
    }

    #[test]
    fn the_shortest_time_is_the_best_and_a_ratio_of_times_below_1_is_faster() {
        let (low, plain, high) = (Tone::Lowest, Tone::Plain, Tone::Highest);
        assert_eq!(absolute_times(&[Some(0.05), Some(0.07), Some(0.2), None]), [high, plain, low, plain]);
        assert_eq!([0.94, 1.0, 1.2].map(|ratio| distance(ratio, true)), [Tone::Above, plain, Tone::Below]);
        assert_eq!([0.94, 1.0, 1.2].map(|ratio| by_threshold(ratio, true)), [high, Tone::Missed, low]);
    }

    #[test]
    fn five_percent_either_way_is_near_and_reaches_the_threshold() {
        let ratios = [1.05, 0.95, 1.0549, 1.055, 0.9449, 1.0];
        let (n, b, y) = (Tone::Plain, Tone::Above, Tone::Below);
        assert_eq!(ratios.map(|ratio| distance(ratio, false)), [n, n, n, b, y, n]);
        let (green, red, grey) = (Tone::Highest, Tone::Lowest, Tone::Missed);
        let colours = ratios.map(|ratio| by_threshold(ratio, false));
        assert_eq!(colours, [green, red, green, green, red, grey]);
    }

    #[test]
    fn only_verdicts_of_a_difference_have_a_colour() {
        let of = [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Undecided, Verdict::OnSchedule];
        let (n, b, y) = (Tone::Plain, Tone::Above, Tone::Below);
        assert_eq!(of.map(|verdict| by_verdict(Some(verdict))), [b, y, n, n, n]);
        assert_eq!(by_verdict(None), n, "one block");
    }

    fn invalid(reason: &str) -> Validity {
        Validity::Invalid { reasons: vec![Warning::quoted(reason)] }
    }

    /// Returns the lines where the variants' runs of these steps are not valid, each for its
    /// reason.
    fn said(runs: &[(usize, usize, Validity)]) -> Vec<String> {
        let names = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500"];
        let mut steps = names.map(|name| pair(name, 1.0, 1)).to_vec();
        for (step, variant, validity) in runs {
            let found = &mut steps[*step].variants[*variant];
            (found.rate, found.to_base.ratio) = (None, None);
            found.runs[0].validity = validity.clone();
        }
        missing_values(testing::scope(&of_steps(steps)))
    }

    #[test]
    fn a_step_without_a_value_says_why() {
        let failed = Validity::Failed { message: "server went away".to_owned() };
        let lines = ["qp100, <b>&\": invalid: rows of table 1", "qr500, <b>&\": failed: server went away"];
        assert_eq!(said(&[(5, 1, invalid("rows of table 1")), (6, 1, failed)]), lines);
    }

    #[test]
    fn neighbours_share_a_name_and_a_whole_variant_has_its_own() {
        let runs = (1..4).map(|step| (step, 0, invalid("x")));
        let runs: Vec<_> = runs.chain((0..7).map(|step| (step, 1, invalid("y")))).collect();
        assert_eq!(said(&runs), ["l.x to l.i2, rollback: invalid: x", "<b>&\": invalid: y"]);
    }

    #[test]
    fn reasons_that_differ_in_figures_are_one_line_over_all_variants() {
        let runs = [
            (0, 0, "busy in 91 %"),
            (2, 0, "busy in 92 %"),
            (4, 0, "busy in 93.5 %"),
            (6, 1, "busy in 9 %"),
            (1, 1, "lost"),
        ];
        assert_eq!(
            said(&runs.map(|(step, variant, reason)| (step, variant, invalid(reason)))),
            [
                "l.i0, l.i1, qr100, rollback; qr500, <b>&\": invalid: busy in 91 % (the first of these; all are \
                 listed by step)",
                "l.x, <b>&\": invalid: lost"
            ]
        );
    }
}
