//! Every metric of a variant divided by the base's.

use dbdyno_analyse::{MetricGroup, StepFindings, VariantStep};

use crate::document::Table;
use crate::number::ratio;
use crate::words::table;

/// What a 0 in a block makes of a geometric mean over the blocks.
pub(crate) const ZEROS: &str = "a block with 0 on both sides counts as 1; on one side it gives 0, inf or NA";

/// Ratios of a group's metrics, without those that no variant has; `None` for a group that is not
/// compared.
pub(super) fn grid(step: &StepFindings, group: &MetricGroup) -> Option<Table> {
    let (of, _) = group.relative?;
    let title = format!("{}, relative", table(group.name).title);
    let note = format!("Ratio to the base, geometric mean over the blocks; {ZEROS}.");
    let found =
        step.variants.iter().filter_map(|variant| Some((variant, variant.to_base.relative.as_ref()?)));
    let rows: Vec<(&VariantStep, Vec<Option<f64>>)> = found
        .map(|(variant, found)| (variant, of(found).figures().into_iter().map(|(_, ratio)| ratio).collect()))
        .collect();
    let is_known = |index: usize| rows.iter().any(|(_, ratios)| ratios[index].is_some());
    let heads = group.in_tables().enumerate().filter(|(index, _)| is_known(*index));
    let mut grid = Table::new(&title, &note, ["variant"], heads.map(|(_, metric)| metric.name));
    for (variant, ratios) in &rows {
        let known = ratios.iter().enumerate().filter(|(index, _)| is_known(*index));
        let texts = known.map(|(_, value)| ratio_text(*value));
        grid.push(std::iter::once(variant.variant.clone()).chain(texts));
    }
    Some(grid)
}

/// Two decimals, as published; three figures below 0.1.
pub(crate) fn ratio_text(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_infinite() => "inf".to_owned(),
        value => ratio(value, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn grids(step: &StepFindings) -> Vec<Table> {
        MetricGroup::ALL.iter().filter_map(|group| grid(step, group)).collect()
    }

    #[test]
    fn zeros_are_shown_as_the_words_say_here_and_in_the_documentation() {
        let shown = [Some(1.0), Some(0.0), Some(f64::INFINITY), None].map(ratio_text);
        assert_eq!(shown, ["1.00", "0.00", "inf", "NA"]);
        let tables = grids(&fixture::with_blocks(2).workloads[0].steps[0]);
        assert!(tables.iter().all(|table| table.note.contains(ZEROS)));
        let page = include_str!("../../../../../docs/concepts/statistics.md").replace('`', "");
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(words.join(" ").contains(ZEROS));
    }

    #[test]
    fn each_metric_has_its_ratio_and_the_base_has_none() {
        let mut findings = fixture::with_blocks(2);
        let step = &mut findings.workloads[0].steps[0];
        let found = step.variants[1].to_base.relative.as_mut().expect("in the fixture");
        (found.metrics.rps, found.cost.rest_cpu_us) = (Some(f64::INFINITY), None);
        let text = |grid: &Table| {
            let rows = grid.rows.iter().map(|row| row.join(" "));
            std::iter::once(
                grid.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(" "),
            )
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
        };
        let texts: Vec<String> = grids(step).iter().map(text).collect();
        insta::assert_snapshot!(texts.join("\n"), @r#"
        variant ips rps cpupq
        <b>&" 1.02 inf 0.98
        variant cpu/o o/s
        <b>&" 0.98 1.02
        variant server
        <b>&" 0.98
        "#);
    }
}
