//! The summary's tables of sweeps: a row a number of connections, columns of rates and response times by variant.

use dbdyno_record::CellRecord;

use crate::model::{Cell, StepFindings, Sweep, SweepRung, SweepVariant, Table, TableRow};
use crate::tables::cells::{absent, missing, rate_text};

/// What is shown of a rung: name, and value in its unit.
type Figure = (&'static str, fn(&SweepRung) -> Option<f64>);

const FIGURES: [Figure; 4] = [
    ("", |rung| Some(rung.median_rate)),
    ("p50", |rung| rung.p50_us.map(milliseconds)),
    ("p95", |rung| rung.p95_us.map(milliseconds)),
    ("p99", |rung| rung.p99_us.map(milliseconds)),
];

fn milliseconds(us: f64) -> f64 {
    us / 1e3
}

/// One table for each sweep.
pub(crate) fn tables(sweeps: &[Sweep], steps: &[StepFindings], cells: &[&CellRecord]) -> Vec<Table> {
    sweeps.iter().map(|sweep| table(sweep, steps, cells)).collect()
}

fn table(sweep: &Sweep, steps: &[StepFindings], cells: &[&CellRecord]) -> Table {
    let columns = || FIGURES.iter().flat_map(|figure| sweep.variants.iter().map(move |of| (figure, of)));
    let row = |(at, connections): (usize, &u32)| TableRow {
        label: connections.to_string(),
        is_target: false,
        cells: columns().map(|(figure, of)| cell(figure, of, at, (sweep, steps, cells))).collect(),
    };
    let blocks = sweep.variants.iter().flat_map(|of| &of.rungs).flatten().map(|rung| rung.blocks).max();
    let over = if blocks > Some(1) { " Medians over the blocks." } else { "" };
    Table {
        title: format!("Connections: {}", sweep.test),
        caption: format!(
            "By number of connections: rate of {}, {}, then percentiles of response times in ms.{over}",
            sweep.rate_of.text(),
            sweep.rate_label
        ),
        columns: columns()
            .map(|((name, _), of)| format!("{name} {}", of.variant).trim().to_owned())
            .collect(),
        rows: sweep.connections.iter().enumerate().map(row).collect(),
    }
}

fn cell(
    (name, value): &Figure,
    of: &SweepVariant,
    at: usize,
    (sweep, steps, cells): (&Sweep, &[StepFindings], &[&CellRecord]),
) -> Cell {
    if let Some(rung) = of.rungs[at] {
        let Some(value) = value(&rung) else { return absent("n/a", "nothing was answered".to_owned()) };
        let text = if name.is_empty() { rate_text(value) } else { time_text(value) };
        return Cell { value: Some(value), ..absent(&text, String::new()) };
    }
    let step = steps.iter().find(|step| step.name == sweep.steps[at]);
    let variant = step.and_then(|step| step.variants.iter().find(|found| found.variant == of.variant));
    variant.map_or_else(|| absent("n/a", "did not run".to_owned()), |variant| missing(variant, cells))
}

/// Milliseconds in three figures, or whole ones.
fn time_text(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Clock, HistogramSpan};

    use super::*;
    use crate::fixtures::{cell, load_step, run};

    #[test]
    fn rates_of_all_variants_come_before_their_response_times() {
        let ladder = |rate: u64| {
            [1, 2, 4].map(|number: u32| {
                let mut step = load_step(rate * u64::from(number));
                step.name = format!("ro.c{number}");
                step.spec.name = step.name.clone();
                step.spec.clients = number;
                step
            })
        };
        let mut times = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).unwrap();
        for (us, count) in [(61, 60), (5_000, 36), (250_000, 4)] {
            times.record_n(us, count).unwrap();
        }
        let response = HistogramSpan::new("insert", Clock::Response, 0, 2_000_000, &times).unwrap();
        let answered = ladder(1_000).map(|mut step| {
            step.histograms.push(response.clone());
            step
        });
        let mut broken = ladder(200).to_vec();
        broken[1].events.push(dbdyno_record::StepEvent::Invalid { reason: "clock jumped".to_owned() });
        let cells = vec![cell(1, "a", answered.to_vec()), cell(1, "b", broken)];
        let found = crate::analyse(&run(&["a", "b"], 1, cells));
        let table = &found.workloads[0].summary.sweeps[0];
        let row = |row: &TableRow| {
            let texts: Vec<&str> = row.cells.iter().map(|cell| cell.text.as_str()).collect();
            format!("{}: {}", row.label, texts.join(" | "))
        };
        let text = table.rows.iter().map(row).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(format!("{}\n{}\n{text}", table.title, table.columns.join(" | ")), @"
        Connections: ro
        a | b | p50 a | p50 b | p95 a | p95 b | p99 a | p99 b
        1: 1000 | 200 | 0.061 | n/a | 5.00 | n/a | 250 | n/a
        2: 2000 | invalid | 0.061 | invalid | 5.00 | invalid | 250 | invalid
        4: 4000 | 800 | 0.061 | n/a | 5.00 | n/a | 250 | n/a
        ");
        assert_eq!(table.rows[1].cells[1].note, "clock jumped");
    }

    #[test]
    fn response_times_have_three_figures() {
        assert_eq!([0.061, 9.994, 12.34, 1234.5].map(time_text), ["0.061", "9.99", "12.3", "1234"]);
    }
}
