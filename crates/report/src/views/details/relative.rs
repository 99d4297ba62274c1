//! Every metric of a variant divided by the base's.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{MetricGroup, StepFindings};

use crate::document::Table;
use crate::number::ratio;
use crate::words::table;

/// Says what a 0 in a block makes of a geometric mean over the blocks.
pub(crate) const ZEROS: &str = "a block with 0 on both sides counts as 1; on one side it gives 0, inf or NA";

/// Makes the table of a group's ratios, without metrics that no variant has. It is `None` for a
/// group that is not compared.
pub(super) fn grid(step: &StepFindings, group: &MetricGroup) -> Option<Table> {
    let title = format!("{}, relative", table(group.name).title);
    let note = format!("Ratio to the base, geometric mean over the blocks; {ZEROS}.");
    let found = step.variants.iter();
    let rows: Vec<_> =
        found.filter_map(|variant| Some((variant, variant.to_base.relative.as_ref()?))).collect();
    let is_known = |metric: &&Metric| rows.iter().any(|(_, ratios)| ratios.of(metric).is_some());
    let known: Vec<&Metric> = group.in_tables().filter(is_known).collect();
    let mut grid = Table::new(&title, &note, ["variant"], known.iter().map(|metric| metric.name));
    for (variant, ratios) in &rows {
        let texts = known.iter().map(|metric| ratio_text(ratios.of(metric)));
        grid.push(std::iter::once(variant.variant.clone()).chain(texts));
    }
    group.is_compared.then_some(grid)
}

/// Writes a ratio with two decimals, as published, or with three significant figures below 0.1.
pub(crate) fn ratio_text(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_infinite() => "inf".to_owned(),
        value => ratio(value, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::pair;
    use crate::views::small::{heads, rows};

    fn grids(step: &StepFindings) -> Vec<Table> {
        MetricGroup::ALL.iter().filter_map(|group| grid(step, group)).collect()
    }

    #[test]
    fn zeros_are_shown_as_the_words_say_here_and_in_the_documentation() {
        let shown = [Some(1.0), Some(0.0), Some(f64::INFINITY), None].map(ratio_text);
        assert_eq!(shown, ["1.00", "0.00", "inf", "NA"]);
        let tables = grids(&pair("l.i0", 1.02, 1));
        assert!(tables.iter().all(|table| table.note.contains(ZEROS)));
        let page = include_str!("../../../../../docs/concepts/statistics-methods.md").replace('`', "");
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(words.join(" ").contains(ZEROS));
    }

    #[test]
    fn each_metric_has_its_ratio_and_the_base_has_none() {
        let text = |grid: &Table| format!("{}\n{}", heads(grid).join(" | "), rows(grid));
        let texts: Vec<String> = grids(&pair("l.i0", 1.02, 1)).iter().map(text).collect();
        insta::assert_snapshot!(texts.join("\n"), @r#"
        variant | ips | rps | cpupq
        <b>&" | 1.02 | inf | 0.98
        variant | cpu/o | o/s
        <b>&" | 0.98 | 1.02
        variant | server
        <b>&" | 0.98
        "#);
    }
}
