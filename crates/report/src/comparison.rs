//! A comparison of two variants as a short table, for a terminal, a pull request or a program.

mod exclusions;

use dbdyno_analyse::statistics::describe::Group;
use dbdyno_analyse::{ComparedStep, Comparison, Verdict, grouped, numbered};

use crate::document::html::escaped;
use crate::document::text::{cut, one_line};
use crate::document::{self, Block, Tone};
use crate::number::{fixed, margins_text, ratio};
use crate::views::compared::{row, step_name, table};
use crate::warnings::{add_words, texts};
use crate::words::undecided_text;
use crate::{TerminalOptions, json};

pub use exclusions::exclusion_text;

/// Number of notes in a comment on a pull request.
const NOTES: usize = 20;

/// Writes the comparison for a terminal. Its summary comes last.
pub fn comparison_terminal(comparison: &Comparison, options: &TerminalOptions) -> String {
    let steps: Vec<&ComparedStep> = comparison.steps.iter().collect();
    let mut blocks = vec![Block::heading(1, title(comparison))];
    blocks.extend(notes(comparison, usize::MAX));
    blocks.push(Block::text(method(comparison)));
    blocks.push(Block::Table(table(comparison, &steps)));
    blocks.extend(undecided(comparison));
    blocks.extend(exclusions(comparison));
    blocks.push(Block::heading(3, answer(comparison)));
    blocks.extend(comparison.ratios.as_ref().and_then(group_line).map(Block::text));
    document::terminal(&blocks, options.width, options.colour)
}

/// Writes the comparison as Markdown, for a comment on a pull request, in at most [`COMMENT_MAX`]
/// characters. Where it would be longer, steps that are the same are left out first, then details,
/// then all but the first steps.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let all: Vec<&ComparedStep> = comparison.steps.iter().collect();
    let others: Vec<&ComparedStep> =
        all.iter().copied().filter(|step| step.to_base.verdict != Some(Verdict::Same)).collect();
    let text = markdown(comparison, &all, true);
    if fits(&text) {
        return text;
    }
    let mut shown = others.len();
    loop {
        let text = markdown(comparison, &others[..shown], false);
        if fits(&text) {
            return text;
        }
        if shown == 0 {
            return cut(&text, COMMENT_MAX - CUT.len()) + CUT;
        }
        shown -= shown.div_ceil(10);
    }
}

fn fits(text: &str) -> bool {
    text.chars().count() <= COMMENT_MAX
}

/// The end of a comment that is cut because its names and notes are too long.
const CUT: &str = "\n\nThe rest is not shown.\n";

/// Largest size of a comment. GitHub accepts 65,536.
const COMMENT_MAX: usize = 59_999;

fn markdown(comparison: &Comparison, steps: &[&ComparedStep], has_details: bool) -> String {
    let mut blocks = vec![Block::heading(3, title(comparison))];
    blocks.push(Block::Text(Tone::Strong, answer(comparison)));
    blocks.extend(notes(comparison, NOTES));
    blocks.push(Block::Table(table(comparison, steps)));
    let missing = comparison.steps.len() - steps.len();
    if missing > 0 {
        blocks.push(Block::text(format!(
            "{} of {} are not shown.",
            grouped(&missing.to_string()),
            numbered(comparison.steps.len(), "step")
        )));
    }
    if has_details {
        blocks.extend(undecided(comparison));
        blocks.extend(exclusions(comparison));
    }
    blocks.extend(comparison.ratios.as_ref().and_then(group_line).map(Block::text));
    blocks.push(Block::text(method(comparison)));
    document::markdown(&blocks)
}

fn notes(comparison: &Comparison, most: usize) -> Option<Block> {
    let notes: Vec<String> = texts(comparison.notes.iter().take(most));
    (!notes.is_empty()).then_some(Block::Warnings("Read this first", notes))
}

/// Lists the steps that more blocks would not decide, each with the reason.
fn undecided(comparison: &Comparison) -> Option<Block> {
    let line = |step: &ComparedStep| {
        let why = undecided_text(step.to_base.undecided.as_ref()?);
        Some(format!("{} is undecided: {why}.", step_name(comparison, step)))
    };
    let lines: Vec<String> = comparison.steps.iter().filter_map(line).collect();
    (!lines.is_empty()).then_some(Block::List(Tone::Plain, lines))
}

fn exclusions(comparison: &Comparison) -> Vec<Block> {
    let lines = exclusions::lines(comparison);
    match lines.is_empty() {
        true => Vec::new(),
        false => vec![Block::text("Left out:"), Block::List(Tone::Plain, lines)],
    }
}

/// Writes the comparison as JUnit XML, which CI systems show, with one test case per step. Steps
/// for which `is_failure` holds have failed. Steps without a verdict, or with an undecided one, are
/// skipped.
pub fn comparison_junit(comparison: &Comparison, is_failure: impl Fn(&ComparedStep) -> bool) -> String {
    let xml = |text: &str| escaped(&one_line(text));
    let cases: Vec<(bool, String)> = comparison
        .steps
        .iter()
        .map(|step| {
            let [_, base, new, unit, ratio, interval, verdict, _, p99, _] = row(comparison, step);
            let said = format!("{verdict}: {base} → {new} {unit}, ratio {ratio} ({interval}), p99 {p99} ms");
            let failed = is_failure(step);
            let element = match step.to_base.verdict {
                _ if failed => "failure",
                None | Some(Verdict::Undecided | Verdict::Invalid) => "skipped",
                _ => "",
            };
            let inner = match element {
                "" => format!("<system-out>{}</system-out>", xml(&said)),
                element => format!("<{element} message=\"{}\"/>", xml(&said)),
            };
            let (workload, name) = (xml(&step.workload), xml(&step.step));
            (failed, format!("  <testcase classname=\"{workload}\" name=\"{name}\">{inner}</testcase>\n"))
        })
        .collect();
    let failures = cases.iter().filter(|(failed, _)| *failed).count();
    let lines: String = cases.iter().map(|(_, line)| line.as_str()).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\">\n{lines}</testsuite>\n",
        xml(&title(comparison)),
        cases.len()
    )
}

/// Writes the comparison as one JSON object, with `schema` first. Each note and reason has its
/// words among its figures.
pub fn comparison_json(comparison: &Comparison) -> String {
    let mut with_words = comparison.clone();
    add_words(&mut with_words.notes);
    let left_out = with_words
        .steps
        .iter_mut()
        .flat_map(|step| step.base_left_out.iter_mut().chain(&mut step.new_left_out));
    add_words(left_out.flat_map(|one| &mut one.reasons));
    json::document(&with_words)
}

fn title(comparison: &Comparison) -> String {
    one_line(&format!("dbdyno compare: {} against {}", comparison.new.variant, comparison.base.variant))
}

/// Says which two were compared, over how many blocks, and with which margin and family of tests.
fn method(comparison: &Comparison) -> String {
    let side = |side: &dbdyno_analyse::ComparedSide| {
        let parts = [side.version_text.clone(), format!("run {}", side.run_id)];
        // A variant that never started has reported no version.
        let known: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{} ({})", side.variant, known.join(", "))
    };
    let how = if comparison.paired {
        let blocks: Vec<usize> =
            comparison.steps.iter().map(|step| step.base_blocks).filter(|n| *n > 0).collect();
        let (least, most) =
            (blocks.iter().min().copied().unwrap_or(0), blocks.iter().max().copied().unwrap_or(0));
        let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
        format!("{count} {}, paired by block", if most == 1 { "block" } else { "blocks" })
    } else {
        "two runs, unpaired (Welch)".to_owned()
    };
    let margins = comparison.steps.iter().map(|step| (step.step.as_str(), step.margin));
    // Within one run, each comparison has the verdict that the run's report has.
    let family = if comparison.paired { "all comparisons of the plan" } else { "all steps" };
    one_line(&format!(
        "Base {}; new {}. {how}; margin {}; p adjusted over {family}.",
        side(&comparison.base),
        side(&comparison.new),
        margins_text(comparison.margin, margins)
    ))
}

fn answer(comparison: &Comparison) -> String {
    let verdicts = comparison.steps.iter().map(|step| step.to_base.verdict);
    let of_p99 = comparison.steps.iter().filter_map(|step| step.to_base.p99.as_ref()?.verdict);
    let p99 = match of_p99.clone().count() {
        0 => String::new(),
        _ => format!(" p99: {}.", counted(of_p99.map(Some))),
    };
    format!("Steps: {}.{p99}", counted(verdicts))
}

fn counted(verdicts: impl Iterator<Item = Option<Verdict>>) -> String {
    let verdicts: Vec<Option<Verdict>> = verdicts.collect();
    let of = |verdict: Verdict| verdicts.iter().filter(|found| **found == Some(verdict)).count();
    let words = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Same,
        Verdict::Missed,
        Verdict::Stalled,
        Verdict::Paced,
        Verdict::Undecided,
        Verdict::Invalid,
    ];
    // These are named only where a comparison has them, because few do.
    let rare = [Verdict::Missed, Verdict::Stalled, Verdict::Paced, Verdict::Invalid];
    let shown = words.into_iter().filter(|verdict| !rare.contains(verdict) || of(*verdict) > 0);
    let counts: Vec<String> = shown.map(|verdict| format!("{} {}", of(verdict), verdict.word())).collect();
    let without = verdicts.iter().filter(|verdict| verdict.is_none()).count();
    let without = if without > 0 { format!(", {without} without a verdict") } else { String::new() };
    format!("{}{without}", counts.join(", "))
}

/// Returns one line for all steps. An average over steps summarises a table and is not a finding,
/// so that it has no verdict. There is no line for a single step, which is in the table already.
fn group_line(ratios: &Group) -> Option<String> {
    let text = |value: f64| ratio(Some(value), 3);
    (ratios.count > 1).then(|| {
        format!(
            "Ratios of {} steps: geometric mean {}, average {}, median {}, {} to {}, standard deviation {}.",
            ratios.count,
            ratio(ratios.geometric_mean, 3),
            text(ratios.average),
            text(ratios.median),
            text(ratios.min),
            text(ratios.max),
            fixed(ratios.deviation, 3)
        )
    })
}

#[cfg(test)]
mod tests;
