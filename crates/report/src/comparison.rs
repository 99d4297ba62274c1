//! A comparison of two variants as a short table: for a terminal, a pull request or a program.

use dbdyno_analyse::statistics::describe::Group;
use dbdyno_analyse::{ComparedStep, Comparison, Verdict, p_text};
use serde::Serialize;

use crate::facts::one_line;
use crate::markdown::{escaped, table};
use crate::number::{NOT_AVAILABLE, fixed, margins_text, rate, ratio};
use crate::summary::interval_text;
use crate::text_table::{Paint, TextCell, TextTable, wrapped};
use crate::{Error, SCHEMA, TerminalOptions};

const HEADS: [&str; 8] = ["step", "base", "new", "unit", "ratio", "95 % interval", "verdict", "adjusted p"];
/// The column that is painted.
const VERDICT: usize = 6;

/// The comparison for a terminal.
pub fn comparison_terminal(comparison: &Comparison, options: TerminalOptions) -> String {
    let mut lines = vec![title(comparison)];
    for note in &comparison.notes {
        lines.extend(wrapped(&one_line(&format!("Note: {note}")), options.width, "  "));
    }
    lines.extend(wrapped(&method(comparison), options.width, "  "));
    lines.extend(wrapped(rates_and_ratios(comparison), options.width, "  "));
    lines.push(String::new());
    let rows = comparison.steps.iter().map(|step| {
        let paint = paint(step.verdict);
        let cell = |(at, text): (usize, String)| TextCell {
            text: one_line(&text),
            paint: if at == VERDICT { paint } else { Paint::Plain },
        };
        row(comparison, step).into_iter().enumerate().map(cell).collect()
    });
    let heads = HEADS.map(|head| (head.to_owned(), String::new())).to_vec();
    lines.extend(TextTable { labels: 1, heads, rows: rows.collect() }.lines(options.width, options.colour));
    lines.push(String::new());
    lines.push(answer(comparison));
    lines.extend(comparison.ratios.as_ref().map(group_line));
    lines.join("\n") + "\n"
}

/// The comparison as Markdown, for a comment on a pull request.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let mut blocks = vec![format!("### {}", escaped(&title(comparison)))];
    blocks.push(format!("**{}**", escaped(&answer(comparison))));
    blocks.extend(comparison.notes.iter().map(|note| format!("> {}", escaped(note))));
    let rows: Vec<Vec<String>> = comparison
        .steps
        .iter()
        .map(|step| row(comparison, step).iter().map(|text| escaped(text)).collect())
        .collect();
    blocks.push(rates_and_ratios(comparison).to_owned());
    blocks.push(table(1, &HEADS.map(str::to_owned), &rows));
    blocks.extend(comparison.ratios.as_ref().map(|ratios| escaped(&group_line(ratios))));
    blocks.push(escaped(&method(comparison)));
    blocks.join("\n\n") + "\n"
}

/// The comparison as one JSON object, `schema` first.
///
/// # Errors
/// [`Error::Json`] when it cannot be written as JSON.
pub fn comparison_json(comparison: &Comparison) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        #[serde(flatten)]
        comparison: &'a Comparison,
    }
    let failed = |source| Error::Json { run_id: comparison.new.run_id.clone(), source };
    let text = serde_json::to_string_pretty(&Document { schema: SCHEMA, comparison }).map_err(failed)?;
    Ok(text + "\n")
}

fn title(comparison: &Comparison) -> String {
    one_line(&format!("dbdyno compare: {} against {}", comparison.new.variant, comparison.base.variant))
}

/// Who, how often, and what interval and verdict are.
fn method(comparison: &Comparison) -> String {
    let side = |side: &dbdyno_analyse::ComparedSide| {
        format!("{} ({}, run {})", side.variant, side.version_text, side.run_id)
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
    one_line(&format!(
        "Base {}; new {}. {how}; margin {}; p adjusted over all steps.",
        side(&comparison.base),
        side(&comparison.new),
        margins(comparison)
    ))
}

/// What stands in the columns of rates, and why their quotient is not the ratio.
fn rates_and_ratios(comparison: &Comparison) -> &'static str {
    let most = comparison.steps.iter().map(|step| step.base_blocks.max(step.new_blocks)).max();
    match (comparison.paired, most.unwrap_or(0)) {
        (_, 0 | 1) => "Base and new: rate of the one block. Ratio: new ÷ base.",
        (true, _) => {
            "Base and new: median rate of the blocks. Ratio: new ÷ base of each block, geometric mean over the blocks; so it \
             need not be the quotient of the two medians."
        }
        (false, _) => {
            "Base and new: median rate of the blocks. Ratio: geometric mean of new's blocks ÷ that of base's; so it need not be \
             the quotient of the two medians."
        }
    }
}

fn margins(comparison: &Comparison) -> String {
    margins_text(comparison.margin, comparison.steps.iter().map(|step| (step.step.as_str(), step.margin)))
}

fn answer(comparison: &Comparison) -> String {
    let of = |verdict: Verdict| comparison.steps.iter().filter(|step| step.verdict == Some(verdict)).count();
    let words = [
        Verdict::Slower,
        Verdict::Faster,
        Verdict::Same,
        Verdict::Missed,
        Verdict::Undecided,
        Verdict::Invalid,
    ];
    // Few comparisons have a word for targets.
    let shown = words.into_iter().filter(|verdict| *verdict != Verdict::Missed || of(*verdict) > 0);
    let counts: Vec<String> = shown.map(|verdict| format!("{} {}", of(verdict), verdict.word())).collect();
    let without = comparison.steps.iter().filter(|step| step.verdict.is_none()).count();
    let without = if without > 0 { format!(", {without} without a verdict") } else { String::new() };
    format!("Steps: {}{without}.", counts.join(", "))
}

/// All steps in one line. An average over steps is a summary of a table, not a finding: it has no verdict.
fn group_line(ratios: &Group) -> String {
    let text = |value: f64| ratio(Some(value), 3);
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
}

fn row(comparison: &Comparison, step: &ComparedStep) -> Vec<String> {
    let none = || NOT_AVAILABLE.to_owned();
    let inference = step.inference.as_ref();
    let several = comparison.steps.iter().any(|other| other.workload != step.workload);
    vec![
        if several { format!("{} {}", step.workload, step.step) } else { step.step.clone() },
        rate(step.base_rate),
        rate(step.new_rate),
        step.rate_label.clone(),
        ratio(step.ratio, 3),
        inference.map_or_else(none, |inference| interval_text(inference.interval)),
        step.verdict.map_or("none", Verdict::word).to_owned(),
        inference.map_or_else(none, |inference| p_text(inference.q_difference)),
    ]
}

fn paint(verdict: Option<Verdict>) -> Paint {
    match verdict {
        Some(Verdict::Faster) => Paint::Cyan,
        Some(Verdict::Slower | Verdict::Missed) => Paint::Yellow,
        Some(Verdict::Invalid) => Paint::Red,
        _ => Paint::Plain,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::ComparedSide;
    use dbdyno_analyse::statistics::describe::group;

    use super::*;
    use crate::fixture;

    fn comparison() -> Comparison {
        let findings = fixture::with_blocks(3);
        let workload = &findings.workloads[0];
        let side = |variant: usize| ComparedSide {
            run_id: findings.run.run_id.clone(),
            variant: findings.variants[variant].name.clone(),
            version_text: findings.variants[variant].version_text.clone(),
        };
        let step = |step: &dbdyno_analyse::StepFindings| {
            let (base, new) = (&step.variants[0], &step.variants[1]);
            ComparedStep {
                workload: workload.name.clone(),
                step: step.name.clone(),
                rate_label: step.rate_label.clone(),
                margin: 0.02,
                ratios: Vec::new(),
                target_missed: false,
                decided: None,
                base_rate: base.rate,
                new_rate: new.rate,
                base_blocks: 3,
                new_blocks: 3,
                ratio: new.ratio.as_ref().map(|ratio| ratio.value),
                inference: new.ratio.as_ref().and_then(|ratio| ratio.inference.clone()),
                verdict: new.verdict.or(Some(Verdict::Invalid)),
            }
        };
        let steps: Vec<ComparedStep> = workload.steps.iter().skip(4).map(step).collect();
        let notes =
            vec!["Measured with a debug build of dbdyno: its numbers are not worth comparing.".to_owned()];
        let ratios = group(&steps.iter().filter_map(|step| step.ratio).collect::<Vec<_>>());
        Comparison { base: side(0), new: side(1), paired: true, margin: 0.02, notes, ratios, steps }
    }

    #[test]
    fn a_terminal_gets_the_table_and_the_count_last() {
        insta::assert_snapshot!(comparison_terminal(&comparison(), TerminalOptions::PLAIN), @r#"
        dbdyno compare: <b>&" against rollback
        Note: Measured with a debug build of dbdyno: its numbers are not worth comparing.
        Base rollback (3.50.2, run 20240401T101112Z-quickstart); new <b>&" (3.50.2, run
          20240401T101112Z-quickstart). 3 blocks, paired by block; margin 2.0 %; p adjusted over all steps.
        Base and new: median rate of the blocks. Ratio: new ÷ base of each block, geometric mean over the
          blocks; so it need not be the quotient of the two medians.

        step    base    new       unit  ratio  95 % interval    verdict  adjusted p
        ───────────────────────────────────────────────────────────────────────────
        qr100   9000   9360  queries/s  1.040    0.988–1.095  undecided       0.123
        qp100   9400  12220  queries/s  1.300    1.274–1.327     faster       0.012
        qr500   8100   7857  queries/s  0.970    0.921–1.021  undecided       0.123
        qp500   8500     NA  queries/s     NA             NA    invalid          NA
        qr1000  7000   5600  queries/s  0.800    0.784–0.816     slower       0.012
        qp1000  7100     NA  queries/s     NA             NA    invalid          NA

        Steps: 1 slower, 1 faster, 0 same, 2 undecided, 2 invalid.
        Ratios of 4 steps: geometric mean 1.012, average 1.027, median 1.005, 0.800 to 1.300, standard deviation 0.208.
        "#);
    }

    #[test]
    fn steps_that_missed_their_target_are_counted_where_there_are_some() {
        let mut comparison = comparison();
        comparison.steps[1].verdict = Some(Verdict::Missed);
        assert_eq!(
            answer(&comparison),
            "Steps: 1 slower, 0 faster, 0 same, 1 missed, 2 undecided, 2 invalid."
        );
    }

    #[test]
    fn a_pull_request_gets_the_count_first() {
        insta::assert_snapshot!(comparison_markdown(&comparison()), @r#"
        ### dbdyno compare: &lt;b>&amp;" against rollback

        **Steps: 1 slower, 1 faster, 0 same, 2 undecided, 2 invalid.**

        > Measured with a debug build of dbdyno: its numbers are not worth comparing.

        Base and new: median rate of the blocks. Ratio: new ÷ base of each block, geometric mean over the blocks; so it need not be the quotient of the two medians.

        | step | base | new | unit | ratio | 95 % interval | verdict | adjusted p |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | qr100 | 9000 | 9360 | queries/s | 1.040 | 0.988–1.095 | undecided | 0.123 |
        | qp100 | 9400 | 12220 | queries/s | 1.300 | 1.274–1.327 | faster | 0.012 |
        | qr500 | 8100 | 7857 | queries/s | 0.970 | 0.921–1.021 | undecided | 0.123 |
        | qp500 | 8500 | NA | queries/s | NA | NA | invalid | NA |
        | qr1000 | 7000 | 5600 | queries/s | 0.800 | 0.784–0.816 | slower | 0.012 |
        | qp1000 | 7100 | NA | queries/s | NA | NA | invalid | NA |

        Ratios of 4 steps: geometric mean 1.012, average 1.027, median 1.005, 0.800 to 1.300, standard deviation 0.208.

        Base rollback (3.50.2, run 20240401T101112Z-quickstart); new &lt;b>&amp;" (3.50.2, run 20240401T101112Z-quickstart). 3 blocks, paired by block; margin 2.0 %; p adjusted over all steps.
        "#);
    }

    #[test]
    fn what_rates_and_ratios_are_is_said_of_each_way_to_compare() {
        let mut comparison = comparison();
        comparison.paired = false;
        assert!(rates_and_ratios(&comparison).contains("geometric mean of new's blocks"));
        for step in &mut comparison.steps {
            (step.base_blocks, step.new_blocks) = (1, 1);
        }
        assert!(rates_and_ratios(&comparison).starts_with("Base and new: rate of the one block."));
    }

    #[test]
    fn steps_with_a_margin_of_their_own_are_named() {
        let mut comparison = comparison();
        comparison.steps[1].margin = 0.05;
        assert_eq!(margins(&comparison), "2.0 % (qp100 5.0 %)");
    }

    #[test]
    fn a_program_gets_everything_unrounded() {
        let text = comparison_json(&comparison()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(text.starts_with("{\n  \"schema\": 1,\n  \"base\""), "{text}");
        assert_eq!(value["steps"][0]["verdict"], "undecided");
        assert_eq!(value["steps"][0]["inference"]["q_difference"], 0.123);
    }
}
