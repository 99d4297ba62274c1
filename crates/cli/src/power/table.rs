//! The power of a plan as a table.

use dbdyno_report::document::{Block, Column, Table};

use crate::power::{Power, StepPower};

const NOTE: &str = "noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or \
    slower, beyond the margin; as the only one: if all other comparisons are equal. same within: margin within which two equal \
    variants get the verdict same.";

pub(crate) fn blocks(power: &Power) -> Vec<Block> {
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
    let mut table = table(power, steps);
    table.title = format!("power: {what} ({from})");
    let mut blocks = vec![Block::Table(table), Block::text(NOTE)];
    if power.noise_from.is_none() {
        blocks.push(Block::text(
            "To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.",
        ));
    }
    blocks
}

fn table(power: &Power, steps: &[StepPower]) -> Table {
    let goal = match power.wanted {
        Some(wanted) => format!("blocks for {}", percent(Some(wanted))),
        None => "blocks for twice the margin".to_owned(),
    };
    let heads = [
        if power.noise_from.is_some() { "step" } else { "" }.to_owned(),
        "noise".to_owned(),
        "detects".to_owned(),
        format!("as the only one of {}", power.comparisons),
        "same within".to_owned(),
        "margin".to_owned(),
        goal,
        "blocks for same".to_owned(),
    ];
    let is_shown = |at: &usize| match at {
        0 => power.noise_from.is_some(),
        3 => power.comparisons >= 2,
        _ => true,
    };
    let shown: Vec<usize> = (0..heads.len()).filter(is_shown).collect();
    let columns = shown.iter().map(|at| Column::ranked(&heads[*at], "", RANKS[*at])).collect();
    let mut table = Table { labels: usize::from(power.noise_from.is_some()), columns, ..Table::default() };
    for step in steps {
        let row = row(step, power);
        table.push(shown.iter().map(|at| row[*at].clone()));
    }
    table
}

/// Of the columns: those of a higher rank make room first on a narrow terminal.
const RANKS: [u8; 8] = [0, 0, 0, 3, 2, 2, 1, 4];

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
    use dbdyno_report::document::terminal;

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
        insta::assert_snapshot!(terminal(&blocks(&power), 160, false), @r"
        power: what 5 blocks detect in 80 % of runs (noise: A/A of 2 runs on this host)
        step     noise  detects  as the only one of 10  same within  margin  blocks for twice the margin  blocks for same
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        l.i0     0.5 %    2.2 %                  2.2 %        0.8 %   2.0 %                            3                3
        qr100    3.0 %    5.2 %                  9.9 %        4.9 %   2.0 %                            7               22
        qp100  unknown        ?                      ?            ?   2.0 %                            ?                ?
        noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond the margin; as the only one: if all other
        comparisons are equal. same within: margin within which two equal variants get the verdict same.
        ");
    }

    #[test]
    fn on_a_narrow_terminal_columns_of_higher_rank_make_room() {
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
        let text = terminal(&blocks(&power), 90, false);
        let (table, _) = text.split_once("noise: standard").unwrap();
        insta::assert_snapshot!(table, @r"
        power: what 5 blocks detect in 80 % of runs (noise: A/A of 2 runs on this host)
        step                noise  detects  same within  margin  blocks for twice the margin
        ────────────────────────────────────────────────────────────────────────────────────
        update-non-index    0.5 %    2.2 %        0.8 %   2.0 %                            3
        qp100             unknown        ?            ?   2.0 %                            ?
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
        insta::assert_snapshot!(terminal(&blocks(&power), 160, false), @r"
        power: 1 block detects nothing (noise of this host unknown: assumed noise)
        noise  detects  same within  margin  blocks for 3.0 %  blocks for same
        ──────────────────────────────────────────────────────────────────────
        1.0 %  nothing      nothing   2.0 %                 3                4
        5.1 %  nothing      nothing   2.0 %                15               56
        noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond the margin; as the only one: if all other
        comparisons are equal. same within: margin within which two equal variants get the verdict same.
        To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.
        ");
    }
}
