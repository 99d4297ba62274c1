//! Table cells for the views: rates, times, ratios, and the placeholder where there is none. A
//! table cell that is made from a number keeps it unrounded, for JSON.

use dbdyno_analyse::{
    Bound, Decided, Ratio, RunSummary, StepFindings, StepRun, Undecided, Validity, VariantStep, Verdict,
    Warning, failure_words, p_text,
};
use dbdyno_model::Colours;

use super::{Scope, colours};
use crate::document::{Cell, Tone};
use crate::number::{fixed, milliseconds, percent, rate, rate_or_seconds, ratio_text, seconds_text};
use crate::warnings::reasons_text;
use crate::words::{missed_text, reached_rate_text, undecided_text, zero_rate_text};

/// What is shown for a variant that has no valid run of a step, and why.
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

/// The placeholder for the worst that happened: `failed`, `invalid`, `not run` or `n/a`.
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

/// A variant's ratio, or the placeholder that says why it has none.
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

impl From<Placeholder> for Cell {
    fn from(placeholder: Placeholder) -> Self {
        Self { note: reasons_text(&placeholder.why), ..Self::from(placeholder.text) }
    }
}

pub(super) fn absent(why: &str) -> Cell {
    Cell { note: why.to_owned(), ..Cell::from("n/a") }
}

pub(super) fn number(value: f64, text: String) -> Cell {
    Cell { value: Some(value), ..Cell::from(text) }
}

/// A number that may be unknown, which its text says too.
pub(super) fn known(value: Option<f64>, text: String) -> Cell {
    Cell { value, ..Cell::from(text) }
}

/// A number with a fixed number of decimals.
pub(super) fn fixed_cell(value: f64, decimals: usize) -> Cell {
    number(value, fixed(Some(value), decimals))
}

/// A rate per second.
pub(super) fn rate_cell(value: f64) -> Cell {
    number(value, rate(Some(value)))
}

pub(super) fn seconds_cell(seconds: f64) -> Cell {
    number(seconds, seconds_text(seconds))
}

/// Microseconds as milliseconds.
pub(super) fn milliseconds_cell(us: f64) -> Cell {
    number(us / 1e3, milliseconds(us.round() as u64))
}

/// A fraction in percent.
pub(super) fn percent_cell(fraction: f64) -> Cell {
    number(100.0 * fraction, percent(fraction))
}

/// As [`headline_text`].
pub(super) fn headline_cell(step: &StepFindings, figure: f64, cut_off: bool) -> Cell {
    let bound = cut_off.then_some(Bound::MoreThan);
    Cell { bound, ..number(figure, headline_text(step, figure, cut_off)) }
}

/// A step's rate, or its seconds. Seconds that were cut off are written as `> 7200`.
pub(crate) fn headline_text(step: &StepFindings, figure: f64, cut_off: bool) -> String {
    let bound = if cut_off && step.less_is_better { "> " } else { "" };
    format!("{bound}{}", rate_or_seconds(Some(figure), step.less_is_better))
}

/// What is shown in place of a ratio where both times were cut off.
const BOTH_CUT_OFF: &str = "both cut off";

/// The ratio, or the bound: `0.97`; `> 3.10` where a time limit cut off the variant, `< 0.32` where
/// it cut off the base, and `≷ 1.10` where it cut off the one in some blocks and the other in
/// others.
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

/// A cell of a ratio that may be a bound: without a colour where the true ratio may lie on the
/// other side.
pub(super) fn bounded(cell: Cell, ratio: f64, bound: Option<Bound>) -> Cell {
    if bound.is_none() {
        return cell;
    }
    let cell = Cell { text: format!("{}{}", sign_of(bound), cell.text), bound, ..cell };
    match bound {
        Some(Bound::MoreThan) if ratio > 1.0 => cell,
        Some(Bound::LessThan) if ratio < 1.0 => cell,
        _ => Cell { tone: Tone::Plain, sign: "", note: String::new(), ..cell },
    }
}

/// Table cell for a ratio without a verdict, of rates or of times. It is coloured by threshold
/// only.
pub(super) fn ratio_cell(value: f64, decimals: usize, is_time: bool, colours: Colours) -> Cell {
    let tone = match colours {
        Colours::Verdict => Tone::Plain,
        Colours::Threshold => colours::by_threshold(value, is_time),
    };
    Cell { tone, sign: ratio_sign(tone), ..number(value, ratio_text(value, decimals)) }
}

/// The sign of a ratio. Grey is for ratios near 1, and needs no sign.
fn ratio_sign(tone: Tone) -> &'static str {
    if tone == Tone::Missed { "" } else { tone.sign() }
}

pub(super) fn judged_cell(
    ratio: &Ratio,
    verdict: Option<Verdict>,
    decided: Option<Decided>,
    is_time: bool,
    run: &RunSummary,
) -> Cell {
    let (base, colours) = (&run.base, run.colours);
    let mut cell = ratio_cell(ratio.value, 2, is_time, colours);
    if colours == Colours::Verdict {
        cell.tone = colours::by_verdict(verdict);
        cell.sign = ratio_sign(cell.tone);
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

/// A variant's ratio in a step, or the reason why it has none.
pub(super) fn variant_cell(scope: Scope<'_>, step: &StepFindings, variant: &VariantStep) -> Cell {
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
            if step.misses_target_of(base, &variant.variant) {
                cell.note = joined([Some(cell.note), missed_text(step, variant)]);
            }
            if step.misses_schedule_of(base, &variant.variant) {
                cell.note = step.reached_rate(variant).map_or_else(String::new, reached_rate_text);
            } else if variant.to_base.verdict == Some(Verdict::Paced) {
                cell.note = "the rate is the plan's".to_owned();
            }
            cell
        }
        None if !variant.to_base.zero_rates.is_empty() => {
            Cell { verdict: variant.to_base.verdict, ..absent("") }
        }
        None if variant.to_base.undecided.is_some() => {
            Cell { verdict: variant.to_base.verdict, ..absent("") }
        }
        None if variant.cut_off => Cell {
            note: format!("both it and {base} were cut off at the time limit"),
            ..Cell::from(BOTH_CUT_OFF)
        },
        None if variant.rate == Some(0.0) => absent("nothing was done"),
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

/// The notes that have a text, separated by semicolons.
pub(super) fn joined<const N: usize>(notes: [Option<String>; N]) -> String {
    let notes = notes.into_iter().flatten().filter(|note| !note.is_empty());
    notes.collect::<Vec<_>>().join("; ")
}
