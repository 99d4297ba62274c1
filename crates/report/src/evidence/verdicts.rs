//! What the blocks say of each ratio: intervals by three methods, p-values, power.

use dbdyno_analyse::{Inference, Paired, StepFindings, VariantStep, p_text};

use crate::document::{Column, Table};
use crate::number::{NOT_AVAILABLE, fixed, interval_text, percent};

pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Ratio to the base, paired by block. t: Student's, on log ratios; the verdict comes \
                from it. BCa: bootstrap, too narrow for few blocks. Hodges–Lehmann: robust against \
                one outlying block.";
    let figures = [
        (
            "verdict",
            "",
            "From the adjusted p-values and the margin; with the interim analysis that \
                         reached it.",
        ),
        ("margin", "%", "Differences below it count as none."),
        ("blocks", "", "Blocks in which variant and base are both valid."),
        ("ratio", "", "Geometric mean of the blocks' ratios."),
        ("t", "95 %", "Interval of the ratio by Student's t."),
        ("BCa", "95 %", "Interval of the ratio by the BCa bootstrap."),
        ("Hodges–Lehmann", "", "Median of all pairwise means of log ratios."),
        ("its interval", "", "By the signed-rank distribution; the confidence is exact."),
        ("p difference", "", "Probability of such a difference if there is none."),
        (
            "adjusted",
            "",
            "p of a difference, adjusted over all comparisons of the run (Benjamini \
                          and Hochberg).",
        ),
        ("p same", "", "Probability of so small a difference if the true one equals the margin."),
        ("adjusted", "", "p of equivalence, adjusted over all comparisons of the run."),
        ("noise", "%", "Standard deviation of a block's ratio."),
        ("detectable", "%", "A difference of this size gets its verdict in 80 % of such studies."),
        (
            "needed",
            "blocks",
            "Blocks needed to detect a difference of twice the margin in 80 % of \
                              studies.",
        ),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Verdict", note, vec![Column::new("variant", "", "")], figures);
    for variant in &step.variants {
        let Some((ratio, inference)) =
            variant.ratio.as_ref().and_then(|ratio| Some((ratio, ratio.inference.as_ref()?)))
        else {
            continue;
        };
        let mut row = vec![variant.variant.clone()];
        row.push(verdict_text(variant));
        row.push(fixed(Some(100.0 * step.margin), 1));
        row.extend([ratio.blocks.len().to_string(), fixed(Some(ratio.value), 4)]);
        row.extend(figures_of(inference));
        grid.push(row);
    }
    grid
}

/// `faster`, or `faster, look 2 of 4` in a run with a budget.
fn verdict_text(variant: &VariantStep) -> String {
    let word = variant.verdict.map_or("", |verdict| verdict.word());
    match variant.decided {
        Some(at) => format!("{word}, interim analysis {} of {}", at.look, at.of),
        None => word.to_owned(),
    }
}

fn figures_of(inference: &Inference) -> Vec<String> {
    let paired = inference.paired.as_ref();
    let of = |text: fn(&Paired) -> String| paired.map_or_else(|| NOT_AVAILABLE.to_owned(), text);
    let mut row = vec![interval_text(inference.interval)];
    row.push(of(|paired| interval_text(paired.bootstrap)));
    row.push(of(|paired| fixed(Some(paired.robust_value), 4)));
    row.push(of(|paired| {
        let confidence = fixed(Some(100.0 * paired.robust_confidence), 1);
        format!("{} ({confidence} %)", interval_text(paired.robust_interval))
    }));
    row.extend(
        [inference.p_difference, inference.q_difference, inference.p_same, inference.q_same].map(p_text),
    );
    row.push(of(|paired| percent(paired.deviation.exp_m1())));
    row.push(of(|paired| percent(paired.detectable_ratio - 1.0)));
    row.push(of(|paired| {
        paired.blocks_for_twice_margin.map_or_else(|| "over 1000".to_owned(), |blocks| blocks.to_string())
    }));
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_base_and_a_single_block_have_no_row() {
        let several = grid(&fixture::with_blocks(3).workloads[0].steps[0]);
        assert_eq!(several.rows.len(), 1);
        assert_eq!(several.rows[0][..4].join(" "), "<b>&\" undecided 2.0 3");
        assert!(grid(&fixture::findings().workloads[0].steps[0]).rows.is_empty());
    }
}
