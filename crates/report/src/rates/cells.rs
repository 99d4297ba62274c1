//! Cells of the tables of rates: rates, ratios, and the word where there is none.

use dbdyno_analyse::{Decided, Ratio, Validity, VariantStep, Verdict, failure_words, p_text, ratio_text};

use super::{Scope, colours};
use crate::document::{Cell, Tone};

/// What is shown of a variant that has no valid run of a step, and why.
pub(crate) struct Word {
    pub(crate) text: &'static str,
    pub(crate) why: String,
}

/// The worst that happened: `failed`, `invalid` or `n/a`.
pub(crate) fn word(scope: Scope<'_>, variant: &VariantStep) -> Word {
    let find =
        |text: fn(&Validity) -> Option<String>| variant.runs.iter().find_map(|run| text(&run.validity));
    if let Some(why) = find(|validity| match validity {
        Validity::Failed { message } => Some(failure_words(message)),
        _ => None,
    }) {
        return Word { text: "failed", why };
    }
    if let Some(why) = find(|validity| match validity {
        Validity::Invalid { reasons } => Some(reasons.join("; ")),
        _ => None,
    }) {
        return Word { text: "invalid", why };
    }
    let is_of = |of: &(&str, &str)| *of == (variant.variant.as_str(), scope.workload.name.as_str());
    let failure = scope.failures.iter().find(|failure| is_of(&(&failure.variant, &failure.workload)));
    let why = match failure {
        Some(failure) => {
            let why = format!("the cell failed before or in this step: {}", failure.message);
            return Word { text: "failed", why };
        }
        None if variant.runs.is_empty() => "did not run",
        None => "interrupted",
    };
    Word { text: "n/a", why: why.to_owned() }
}

/// The ratio of a variant, or the word for why it has none.
pub(crate) fn ratio_word(scope: Scope<'_>, found: &VariantStep) -> String {
    match &found.ratio {
        Some(ratio) => ratio_text(ratio.value, 2),
        None if found.rate.is_some() || !found.standstills.is_empty() => "n/a".to_owned(),
        None => word(scope, found).text.to_owned(),
    }
}

impl From<Word> for Cell {
    fn from(word: Word) -> Self {
        Self { note: word.why, ..Self::from(word.text) }
    }
}

/// Without a value.
pub(super) fn absent(why: &str) -> Cell {
    Cell { note: why.to_owned(), ..Cell::from("n/a") }
}

/// Whole numbers as in the original; decimals only where a slow step would lose its figures.
pub(super) fn rate_text(rate: f64) -> String {
    match rate {
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

/// A ratio in the colour of its value; `base` is what it is a ratio to.
pub(super) fn ratio_cell(value: f64, decimals: usize, base: &str) -> Cell {
    let tone = colours::relative(value);
    let note = match tone {
        Tone::Above => format!("more than 5 % above {base}"),
        Tone::Below => format!("more than 5 % below {base}"),
        _ => String::new(),
    };
    Cell { sign: tone.sign(), note, ..Cell::toned(ratio_text(value, decimals), tone) }
}

/// A ratio with its interval and verdict.
pub(super) fn judged_cell(
    ratio: &Ratio,
    verdict: Option<Verdict>,
    decided: Option<Decided>,
    base: &str,
) -> Cell {
    let mut cell = ratio_cell(ratio.value, 2, base);
    let inference = ratio.inference.as_ref().map(|inference| {
        format!(
            "{} blocks; adjusted p of a difference {}, of equivalence {}",
            ratio.blocks.len(),
            p_text(inference.q_difference),
            p_text(inference.q_same)
        )
    });
    let decided = decided.map(|at| format!("decided at interim analysis {} of {}", at.look, at.of));
    cell.note = joined([Some(cell.note), inference, decided]);
    cell.interval = ratio.inference.as_ref().map(|inference| inference.interval);
    cell.verdict = verdict;
    cell
}

/// Those that say something, parted by semicolons.
pub(super) fn joined<const N: usize>(notes: [Option<String>; N]) -> String {
    let notes = notes.into_iter().flatten().filter(|note| !note.is_empty());
    notes.collect::<Vec<_>>().join("; ")
}
