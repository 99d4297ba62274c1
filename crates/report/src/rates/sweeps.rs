//! Sweeps: a row a number of connections, columns of rates and response times by variant. Of more than two variants each figure has
//! a table.

use dbdyno_analyse::{Sweep, SweepRung, SweepVariant};

use super::cells::{absent, rate_text, word};
use super::{Scope, of};
use crate::document::{Cell, Column, Table};

/// What is shown of a rung: name, and value as text.
type Figure = (&'static str, fn(&SweepRung) -> Option<String>);

const FIGURES: [Figure; 4] = [
    ("rate", |rung| Some(rate_text(rung.median_rate))),
    ("p50 ms", |rung| rung.p50_us.map(milliseconds)),
    ("p95 ms", |rung| rung.p95_us.map(milliseconds)),
    ("p99 ms", |rung| rung.p99_us.map(milliseconds)),
];

pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let of_sweep = |sweep: &Sweep| {
        let at_once = if sweep.variants.len() > 2 { 1 } else { FIGURES.len() };
        FIGURES.chunks(at_once).map(|figures| table(scope, sweep, figures)).collect::<Vec<_>>()
    };
    scope.workload.sweeps.iter().flat_map(of_sweep).collect()
}

fn table(scope: Scope<'_>, sweep: &Sweep, figures: &[Figure]) -> Table {
    let columns = || figures.iter().flat_map(|figure| sweep.variants.iter().map(move |of| (figure, of)));
    let blocks = sweep.variants.iter().flat_map(|of| &of.rungs).flatten().map(|rung| rung.blocks).max();
    let over = if blocks > Some(1) { " Medians over the blocks." } else { "" };
    let (rate_of, unit) = (sweep.rate_of.text(), &sweep.rate_label);
    let note = match figures {
        [("rate", _)] => format!("Rate of {rate_of}, {unit}.{over}"),
        [_] => String::new(),
        _ => format!(
            "By number of connections: rate of {rate_of}, {unit}, then percentiles of response times.{over}"
        ),
    };
    let heads = columns().map(|((name, _), of)| Column::new(&of.variant, name, ""));
    let label = vec![Column::new("connections", "", "")];
    let title = match figures {
        [(name, _)] => format!("Connections: {}, {name}", sweep.test),
        _ => format!("Connections: {}", sweep.test),
    };
    let mut table = Table::new(&title, &note, label, heads);
    for (at, connections) in sweep.connections.iter().enumerate() {
        let cells = columns().map(|(figure, of)| cell(scope, sweep, figure, of, at));
        table.push(std::iter::once(Cell::from(connections.to_string())).chain(cells));
    }
    table
}

fn cell(scope: Scope<'_>, sweep: &Sweep, (_, text): &Figure, variant: &SweepVariant, at: usize) -> Cell {
    if let Some(rung) = variant.rungs[at] {
        return text(&rung).map_or_else(|| absent("nothing was answered"), Cell::from);
    }
    let step = scope.workload.steps.iter().find(|step| step.name == sweep.steps[at]);
    let found = step.and_then(|step| of(step, &variant.variant));
    found.map_or_else(|| absent("did not run"), |found| word(scope, found).into())
}

/// Three figures, or whole ones.
fn milliseconds(us: f64) -> String {
    match us / 1e3 {
        value if value < 1.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_have_three_figures() {
        assert_eq!(
            [61.0, 9_994.0, 12_340.0, 1_234_500.0].map(milliseconds),
            ["0.061", "9.99", "12.3", "1234"]
        );
    }
}
