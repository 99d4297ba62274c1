//! The power of a plan as an aligned table.

use crate::power::{Power, StepPower};

/// What the columns say, in lines for files and pipes.
const NOTE: &str = "\
noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond
the margin; as the only one: if all other comparisons are equal. same within: margin within which two equal variants
get the verdict same.";
/// Characters of the widest of these lines.
const NOTE_WIDTH: usize = 118;
/// Characters that heads on several lines are broken at.
const HEAD: usize = 10;

/// A heading, the table and what its columns say. Heads that are wider than `width` all together stand on several lines.
pub(super) fn text(power: &Power, width: usize) -> String {
    let what = match power.blocks {
        blocks if let Some(most) = power.most_blocks => {
            format!(
                "what up to {most} blocks within the budget detect, as {blocks} fixed ones, in 80 % of runs"
            )
        }
        1 => "1 block detects nothing".to_owned(),
        blocks => format!("what {blocks} blocks detect in 80 % of runs"),
    };
    let (from, steps) = match &power.noise_from {
        Some(from) => (format!("noise: {from}"), &power.steps),
        None => ("noise of this host unknown: assumed noise".to_owned(), &power.assumed),
    };
    let mut text = format!("power: {what} ({from})\n");
    for line in table(power, steps, width) {
        text.push_str(&line);
        text.push('\n');
    }
    // On a narrow terminal it is folded as one paragraph.
    text.push_str(&if width < NOTE_WIDTH { NOTE.replace('\n', " ") } else { NOTE.to_owned() });
    text.push('\n');
    if power.noise_from.is_none() {
        text.push_str(
            "To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.\n",
        );
    }
    text
}

fn table(power: &Power, steps: &[StepPower], most: usize) -> Vec<String> {
    let goal = |what: &str| match power.wanted {
        Some(wanted) => format!("blocks for {}{what}", percent(Some(wanted))),
        None => format!("blocks for twice the margin{what}"),
    };
    let mut heads = vec![
        if power.noise_from.is_some() { "step" } else { "" }.to_owned(),
        "noise".to_owned(),
        "detects".to_owned(),
        format!("as the only one of {}", power.comparisons),
        "same within".to_owned(),
        "margin".to_owned(),
        goal(""),
        "blocks for same".to_owned(),
    ];
    if power.comparisons < 2 {
        heads[3] = String::new();
    }
    let keep: Vec<usize> =
        (0..heads.len()).filter(|column| *column == 0 || !heads[*column].is_empty()).collect();
    let of_steps: Vec<Vec<String>> = steps.iter().map(|step| row(step, power)).collect();
    let rows: Vec<Vec<String>> = [heads.clone()].into_iter().chain(of_steps.clone()).collect();
    let whole = aligned(&rows, &keep);
    if whole.iter().all(|line| line.chars().count() <= most) {
        return whole;
    }
    aligned(&stacked(&heads).into_iter().chain(of_steps).collect::<Vec<_>>(), &keep)
}

/// The columns that are kept, the first on the left and figures on the right.
fn aligned(rows: &[Vec<String>], keep: &[usize]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = keep.iter().map(|column| {
            let (cell, width) = (&row[*column], widths[*column]);
            if *column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("  {}", cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Heads broken at spaces into lines, the last at the bottom.
fn stacked(heads: &[String]) -> Vec<Vec<String>> {
    let broken = |head: &String| -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in head.split(' ') {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= HEAD => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines
    };
    let all: Vec<Vec<String>> = heads.iter().map(broken).collect();
    let height = all.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| -> Vec<String> {
        let of = |lines: &Vec<String>| (at + lines.len()).checked_sub(height).map(|at| lines[at].clone());
        all.iter().map(|lines| of(lines).unwrap_or_default()).collect()
    };
    (0..height).map(line).collect()
}

fn row(step: &StepPower, power: &Power) -> Vec<String> {
    let seen = step.forecast.as_ref();
    let blocks = |count: Option<Option<u32>>| match count {
        None => "?".to_owned(),
        Some(None) if power.wanted.is_some_and(|wanted| wanted <= step.margin) => {
            "within the margin".to_owned()
        }
        Some(None) => ">1000".to_owned(),
        Some(Some(count)) => count.to_string(),
    };
    vec![
        step.step.clone().unwrap_or_default(),
        percent_or(step.noise, "unknown"),
        percent_or(seen.and_then(|seen| seen.detects), none_of(step, power)),
        percent_or(seen.and_then(|seen| seen.detects_alone), none_of(step, power)),
        percent_or(seen.and_then(|seen| seen.same_within), none_of(step, power)),
        percent(Some(step.margin)),
        blocks(seen.map(|seen| seen.blocks_for_difference)),
        blocks(seen.map(|seen| seen.blocks_for_same)),
    ]
}

fn none_of(step: &StepPower, power: &Power) -> &'static str {
    if step.noise.is_some() && power.blocks < 2 { "nothing" } else { "?" }
}

fn percent_or(fraction: Option<f64>, otherwise: &str) -> String {
    if fraction.is_some() { percent(fraction) } else { otherwise.to_owned() }
}

/// `0.53 %`, `12 %`: two figures are as many as noise of a few blocks is worth.
fn percent(fraction: Option<f64>) -> String {
    match fraction.map(|fraction| 100.0 * fraction) {
        None => String::new(),
        Some(value) if value < 9.95 => format!("{value:.1} %"),
        // Who plans for twice the rate need not know more exactly.
        Some(value) if value >= 100.0 => ">100 %".to_owned(),
        Some(value) => format!("{value:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::forecast;

    use super::*;

    fn step(name: Option<&str>, deviation: Option<f64>, blocks: u32) -> StepPower {
        StepPower {
            step: name.map(str::to_owned),
            noise: deviation.map(f64::exp_m1),
            margin: 0.02,
            forecast: deviation.map(|deviation| forecast(deviation, blocks, 10, 0.04, 0.02)),
        }
    }

    #[test]
    fn a_plan_of_known_noise_shows_what_each_step_can_tell() {
        let power = Power {
            most_blocks: None,
            blocks: 5,
            comparisons: 10,
            wanted: None,
            noise_from: Some("A/A of 2 runs on this host".to_owned()),
            steps: vec![
                step(Some("l.i0"), Some(0.005), 5),
                step(Some("qr100"), Some(0.03), 5),
                step(Some("qp100"), None, 5),
            ],
            assumed: Vec::new(),
        };
        insta::assert_snapshot!(text(&power, usize::MAX), @r"
        power: what 5 blocks detect in 80 % of runs (noise: A/A of 2 runs on this host)
          step     noise  detects  as the only one of 10  same within  margin  blocks for twice the margin  blocks for same
          l.i0     0.5 %    2.2 %                  2.2 %        0.8 %   2.0 %                            3                3
          qr100    3.0 %    5.2 %                  9.9 %        4.9 %   2.0 %                            7               22
          qp100  unknown        ?                      ?            ?   2.0 %                            ?                ?
        noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond
        the margin; as the only one: if all other comparisons are equal. same within: margin within which two equal variants
        get the verdict same.
        ");
    }

    #[test]
    fn on_a_narrow_terminal_heads_stand_on_several_lines() {
        let steps = vec![step(Some("update-non-index"), Some(0.005), 5), step(Some("qp100"), None, 5)];
        let noise_from = Some("A/A of 2 runs on this host".to_owned());
        let power = Power {
            most_blocks: None,
            blocks: 5,
            comparisons: 10,
            wanted: None,
            noise_from,
            steps,
            assumed: Vec::new(),
        };
        let text = text(&power, 90);
        let (table, note) = text.split_once("noise: standard").unwrap();
        assert_eq!(note.lines().count(), 1, "one paragraph, to be folded");
        insta::assert_snapshot!(table, @r"
        power: what 5 blocks detect in 80 % of runs (noise: A/A of 2 runs on this host)
                                                as the                  blocks for
                                              only one    same           twice the  blocks for
          step                noise  detects     of 10  within  margin      margin        same
          update-non-index    0.5 %    2.2 %     2.2 %   0.8 %   2.0 %           3           3
          qp100             unknown        ?         ?       ?   2.0 %           ?           ?
        ");
    }

    #[test]
    fn without_noise_a_plan_shows_a_table_by_assumed_noise() {
        let power = Power {
            most_blocks: None,
            blocks: 1,
            comparisons: 1,
            wanted: Some(0.03),
            noise_from: None,
            steps: Vec::new(),
            assumed: vec![step(None, Some(0.01), 1), step(None, Some(0.05), 1)],
        };
        insta::assert_snapshot!(text(&power, usize::MAX), @r"
        power: 1 block detects nothing (noise of this host unknown: assumed noise)
          noise  detects  same within  margin  blocks for 3.0 %  blocks for same
          1.0 %  nothing      nothing   2.0 %                 3                4
          5.1 %  nothing      nothing   2.0 %                15               56
        noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond
        the margin; as the only one: if all other comparisons are equal. same within: margin within which two equal variants
        get the verdict same.
        To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.
        ");
    }
}
