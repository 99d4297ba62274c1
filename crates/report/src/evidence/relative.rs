//! Every metric of a variant divided by the base's.

use dbdyno_analyse::{RelativeMetrics, StepFindings};

use super::{COSTS, Column, EFFICIENCY, Grid, METRICS};
use crate::number::ratio;

/// One metric's name, and its ratio.
type Figure = (&'static str, Box<dyn Fn(&RelativeMetrics) -> Option<f64>>);

/// Relative versions of the metric row, of the efficiency and of the costs, without figures that no variant has.
pub(super) fn grids(step: &StepFindings) -> [Grid; 3] {
    let metrics = METRICS.iter().map(|column| -> Figure {
        (column.name, Box::new(|found: &RelativeMetrics| (column.value)(&found.metrics)))
    });
    let efficiency = EFFICIENCY.iter().map(|column| -> Figure {
        (column.name, Box::new(|found: &RelativeMetrics| (column.value)(&found.efficiency)))
    });
    let costs = COSTS.iter().map(|column| -> Figure {
        (column.name, Box::new(|found: &RelativeMetrics| (column.value)(&found.cost)))
    });
    [
        grid(step, "Metrics, relative", metrics.collect()),
        grid(step, "Hardware efficiency, relative", efficiency.collect()),
        grid(step, "CPU and fsyncs, relative", costs.collect()),
    ]
}

fn grid(step: &StepFindings, title: &str, figures: Vec<Figure>) -> Grid {
    let note = "Ratio to the base, geometric mean over the blocks; inf where the base has 0.";
    let known = |(_, figure): &Figure| {
        step.variants
            .iter()
            .filter_map(|variant| variant.relative.as_ref())
            .any(|found| figure(found).is_some())
    };
    let figures: Vec<Figure> = figures.into_iter().filter(known).collect();
    let columns = figures.iter().map(|(name, _)| Column::new(name, "", ""));
    let mut grid = Grid::new(title, note, vec![Column::new("variant", "", "")], columns);
    for variant in &step.variants {
        let Some(found) = &variant.relative else { continue };
        let ratios = figures.iter().map(|(_, figure)| ratio_text(figure(found)));
        grid.rows.push(std::iter::once(variant.variant.clone()).chain(ratios).collect());
    }
    grid
}

/// Two decimals, as published; three figures below 0.1.
fn ratio_text(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_infinite() => "inf".to_owned(),
        value => ratio(value, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_metric_has_its_ratio_and_the_base_has_none() {
        let mut findings = fixture::with_blocks(2);
        let step = &mut findings.workloads[0].steps[0];
        let found = step.variants[1].relative.as_mut().expect("in the fixture");
        (found.metrics.rps, found.cost.rest_cpu_us) = (Some(f64::INFINITY), None);
        let text = |grid: &Grid| {
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
