//! Service and response time of one kind of operation.

use dbdyno_analyse::{Latency, PercentileRatio, StepFindings};

use super::{kind_of, run_columns, run_labels, runs};
use crate::document::{Cell, Column, Table, Tone};
use crate::number::{count, duration_us, duration_whole_us, ratio};

/// Response times of the headline operations of several steps, a row a variant.
pub(crate) fn of_all(steps: &[&StepFindings]) -> Table {
    let has_ratios = steps.iter().flat_map(|step| &step.variants).any(|variant| variant.p99.is_some());
    let ratio = if has_ratios { " p99 ÷ base: geometric mean over the blocks." } else { "" };
    let note = format!(
        "Response time of each step's headline operation: all clients and all valid blocks together.{ratio}"
    );
    let labels = vec![Column::new("step", "", ""), Column::new("variant", "", "")];
    let figures = ["count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]
        .into_iter()
        .chain(has_ratios.then_some("p99 ÷ base"));
    let figures = figures.map(|name| Column::new(name, "", ""));
    let mut grid = Table::new("Latency", &note, labels, figures);
    for step in steps {
        for variant in &step.variants {
            let Some(latency) = &variant.latency else { continue };
            let mut row = vec![Cell::from(step.name.as_str()), Cell::from(variant.variant.as_str())];
            row.extend(figures_of(latency).into_iter().map(Cell::from));
            row.extend(has_ratios.then(|| variant.p99.as_ref().map_or(Cell::from(""), p99_ratio)));
            grid.push(row);
        }
    }
    grid
}

fn p99_ratio(found: &PercentileRatio) -> Cell {
    Cell {
        interval: found.ratio.inference.as_ref().map(|inference| inference.interval),
        verdict: found.verdict,
        ..Cell::toned(ratio(Some(found.ratio.value), 2), Tone::of(found.verdict))
    }
}

pub(super) fn grid(step: &StepFindings, kind: &str) -> Table {
    let note = "Service time: from sending to answer. Response time: from when the operation was \
                due to answer, so it includes queueing. All clients merged.";
    let mut labels = run_columns(step);
    labels.push(Column::new("time", "", ""));
    let figures =
        ["count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"].map(|name| Column::new(name, "", ""));
    let mut grid = Table::new(&format!("Service and response time: {kind}"), note, labels, figures);
    for (variant, run) in runs(step) {
        let Some(result) = kind_of(run, kind) else { continue };
        for (time, latency) in [("service", &result.service), ("response", &result.response)] {
            let mut row = run_labels(step, variant, run);
            row.push(time.to_owned());
            row.extend(figures_of(latency));
            grid.push(row);
        }
    }
    grid
}

fn figures_of(latency: &Latency) -> Vec<String> {
    let mut row = vec![count(latency.count)];
    if latency.count == 0 {
        row.resize(8, crate::number::NOT_AVAILABLE.to_owned());
        return row;
    }
    row.push(duration_us(latency.mean_us));
    row.extend(
        [latency.p50_us, latency.p90_us, latency.p95_us, latency.p99_us, latency.p999_us, latency.max_us]
            .map(duration_whole_us),
    );
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        assert_eq!(figures_of(&Latency::default()), ["0", "NA", "NA", "NA", "NA", "NA", "NA", "NA"]);
    }

    #[test]
    fn each_value_chooses_its_own_unit() {
        let latency = Latency {
            count: 9,
            mean_us: 104.5,
            p50_us: 90,
            p90_us: 200,
            p95_us: 310,
            p99_us: 1_520,
            p999_us: 80_000,
            max_us: 2_310_000,
            curve: Vec::new(),
        };
        assert_eq!(
            figures_of(&latency),
            ["9", "104.5 µs", "90 µs", "200 µs", "310 µs", "1.52 ms", "80.0 ms", "2.31 s"]
        );
    }
}
