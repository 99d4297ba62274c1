//! A comparison of two variants from one run or from two runs, as a short table for a terminal, a
//! pull request or a program.

use dbdyno_analyse::statistics::describe::Group;
use dbdyno_analyse::{
    ComparedStep, Comparison, Exclusion, ExclusionKind, PercentileRatio, Verdict, grouped, numbered, p_text,
    unique,
};

use crate::document::html::escaped;
use crate::document::text::{cut, one_line};
use crate::document::{self, Block, Column, Table, Tone};
use crate::number::{
    NOT_AVAILABLE, fixed, interval_text, margins_text, milliseconds, rate_or_seconds, ratio, shared_unit,
};
use crate::views::summary::{NONE, arrow};
use crate::views::why;
use crate::warnings::{add_words, reasons_text, texts};
use crate::words::undecided_text;
use crate::{TerminalOptions, json};

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
    blocks.push(Block::heading(3, summary(comparison)));
    blocks.extend(comparison.ratios.as_ref().and_then(group_line).map(Block::text));
    blocks.extend(why::sentences_of(&comparison.why).into_iter().map(Block::text));
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

/// Largest number of characters in a comment. GitHub accepts 65,536.
const COMMENT_MAX: usize = 59_999;

fn markdown(comparison: &Comparison, steps: &[&ComparedStep], has_details: bool) -> String {
    let mut blocks = vec![Block::heading(3, title(comparison))];
    blocks.push(Block::Text(Tone::Strong, summary(comparison)));
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
    if has_details {
        blocks.extend(why::sentences_of(&comparison.why).into_iter().map(Block::text));
    }
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
    let lines = lines(comparison);
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
        let (fewest, most) =
            (blocks.iter().min().copied().unwrap_or(0), blocks.iter().max().copied().unwrap_or(0));
        let count = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
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

fn summary(comparison: &Comparison) -> String {
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
        Verdict::OnSchedule,
        Verdict::Undecided,
        Verdict::Invalid,
    ];
    // These verdicts are named only where a comparison has them, because few comparisons do.
    let rare = [Verdict::Missed, Verdict::Stalled, Verdict::OnSchedule, Verdict::Invalid];
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

/// Says why a block is left out, such as `not run, because its cell failed: server went away`.
pub fn exclusion_text(one: &Exclusion) -> String {
    match reasons_text(&one.reasons).as_str() {
        "" => words(one.kind).to_owned(),
        reasons => format!("{}: {reasons}", words(one.kind)),
    }
}

fn words(kind: ExclusionKind) -> &'static str {
    match kind {
        ExclusionKind::Invalid => "invalid",
        ExclusionKind::Failed => "failed",
        ExclusionKind::CellFailed => "not run, because its cell failed",
        ExclusionKind::Interrupted => "interrupted",
        ExclusionKind::DidNotRun => "its cell did not run",
        ExclusionKind::ZeroRate => "rate of zero",
    }
}

/// Lists what is left out, in lines such as `qr100 to qp1000 of new my57: not run, because its cell
/// failed in block 1: ...`. Steps that have the same line share it.
pub(crate) fn lines(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, step) in comparison.steps.iter().enumerate() {
        let sides = [
            (format!("base {}", comparison.base.variant), &step.base_left_out),
            (format!("new {}", comparison.new.variant), &step.new_left_out),
        ];
        for (side, left_out) in sides {
            for text in by_kind(left_out) {
                let line = format!("{side}: {text}");
                match all.iter_mut().find(|(known, _)| *known == line) {
                    Some((_, steps)) => steps.push(at),
                    None => all.push((line, vec![at])),
                }
            }
        }
    }
    let line = |(line, steps): &(String, Vec<usize>)| {
        one_line(&format!("{} of {line}", steps_text(comparison, steps)))
    };
    all.iter().map(line).collect()
}

/// Names neighbouring steps as `first to last`, and others one by one.
fn steps_text(comparison: &Comparison, steps: &[usize]) -> String {
    let name = |at: &usize| step_name(comparison, &comparison.steps[*at]);
    match steps {
        [first, .., last] if steps.len() > 2 && last - first + 1 == steps.len() => {
            format!("{} to {}", name(first), name(last))
        }
        _ => steps.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

/// Puts blocks of one kind together, with the first one's reason. The reasons of all blocks would
/// push the table out of sight.
fn by_kind(left_out: &[Exclusion]) -> Vec<String> {
    let text = |kind: ExclusionKind| {
        let blocks: Vec<&Exclusion> = left_out.iter().filter(|one| one.kind == kind).collect();
        let numbers: Vec<String> = blocks.iter().map(|one| one.block.to_string()).collect();
        let first = blocks.first().map_or(&[][..], |first| first.reasons.as_slice());
        let noun = if numbers.len() == 1 { "block" } else { "blocks" };
        let because = match reasons_text(first) {
            reason if reason.is_empty() => reason,
            reason if blocks.iter().all(|one| one.reasons == first) => format!(": {reason}"),
            reason => format!("; block {}: {reason}", numbers[0]),
        };
        format!("{} in {noun} {}{because}", words(kind), numbers.join(", "))
    };
    unique(left_out.iter().map(|one| one.kind)).into_iter().map(text).collect()
}

/// Name, unit and rank of the columns. On a narrow terminal, columns with a higher rank are left
/// out first.
const HEADS: [(&str, &str, u8); 10] = [
    ("step", "", 0),
    ("base", "", 1),
    ("new", "", 1),
    ("unit", "", 1),
    ("ratio", "", 0),
    ("95 %", "interval", 1),
    ("verdict", "", 0),
    ("adjusted p", "", 4),
    ("p99", "base → new, ms", 2),
    ("p99 ratio", "", 4),
];
/// Index of the column with the unit of the rates. Where all rates have the same unit, the table's
/// note says it and the column is left out.
const UNIT: usize = 3;
/// Index of the column that is coloured.
const VERDICT: usize = 6;
/// Makes the table for these steps.
pub(crate) fn table(comparison: &Comparison, steps: &[&ComparedStep]) -> Table {
    let units = comparison.steps.iter().map(|step| step.rate_label.as_str());
    let unit = shared_unit(units).filter(|unit| !unit.is_empty());
    let note = rates_and_ratios(comparison, unit);
    let columns = HEADS.iter().map(|(head, unit, rank)| Column::ranked(head, unit, *rank)).collect();
    let mut table = Table { note, labels: 1, columns, ..Table::default() };
    for step in steps {
        table.push(row(comparison, step));
        if let Some(cell) = table.rows.last_mut().and_then(|row| row.get_mut(VERDICT)) {
            cell.tone = Tone::of(step.to_base.verdict);
        }
    }
    if unit.is_some() {
        table.columns.remove(UNIT);
        table.rows.iter_mut().for_each(|row| drop(row.remove(UNIT)));
    }
    table
}

/// Returns the step's name, with its workload's name before it where there are several workloads.
fn step_name(comparison: &Comparison, step: &ComparedStep) -> String {
    let several = comparison.steps.iter().any(|other| other.workload != step.workload);
    if several { format!("{} {}", step.workload, step.step) } else { step.step.clone() }
}

/// Returns the texts of a row, with the unit.
pub(crate) fn row(comparison: &Comparison, step: &ComparedStep) -> [String; HEADS.len()] {
    let none = || NOT_AVAILABLE.to_owned();
    let (ratio_to_base, inference) = (step.to_base.ratio.as_ref(), step.to_base.inference());
    [
        step_name(comparison, step),
        rate_or_seconds(step.base_rate, step.less_is_better),
        rate_or_seconds(step.new_rate, step.less_is_better),
        step.rate_label.clone(),
        ratio(ratio_to_base.map(|found| found.value), 3),
        inference.map_or_else(none, |inference| interval_text(inference.interval)),
        step.to_base.verdict.map_or("none", Verdict::word).to_owned(),
        inference.map_or_else(none, |inference| p_text(inference.q_difference)),
        p99(step),
        step.to_base.p99.as_ref().map_or(NONE.to_owned(), p99_ratio),
    ]
}

/// Returns words such as `1.250 1.102–1.418 slower`, for the ratio of two p99.
fn p99_ratio(found: &PercentileRatio) -> String {
    let value = Some(ratio(Some(found.ratio.value), 3));
    let interval = found.ratio.interval().map(interval_text);
    let verdict = found.verdict.map(|verdict| verdict.word().to_owned());
    value.into_iter().chain(interval).chain(verdict).collect::<Vec<_>>().join(" ")
}

/// Returns both p99, and the direction where they certainly differ.
fn p99(step: &ComparedStep) -> String {
    let text = |p99: Option<u64>| p99.map_or(NONE.to_owned(), milliseconds);
    match (step.base_p99_us, step.new_p99_us) {
        (None, None) => NONE.to_owned(),
        (base, new) => {
            let verdict = step.to_base.p99.as_ref().and_then(|found| found.verdict);
            format!("{} → {}{}", text(base), text(new), arrow(verdict))
        }
    }
}

/// Says what the columns of rates contain, and why their quotient is not the ratio.
fn rates_and_ratios(comparison: &Comparison, unit: Option<&str>) -> String {
    let blocks = comparison.steps.iter().map(|step| step.base_blocks.max(step.new_blocks)).max();
    let what = match (comparison.paired, blocks.unwrap_or(0)) {
        (_, 0 | 1) => "rate of the one block. Ratio: new ÷ base.",
        (true, _) => {
            "median rate of the blocks. Ratio: new ÷ base of each block, geometric mean over the \
             blocks. It may differ from the quotient of the two medians."
        }
        (false, _) => {
            "median rate of the blocks. Ratio: geometric mean of new's blocks ÷ that of base's. It \
             may differ from the quotient of the two medians."
        }
    };
    let unit = unit.map_or_else(String::new, |unit| format!(" in {unit}"));
    format!("Base and new{unit}: {what}")
}

#[cfg(test)]
mod tests;
