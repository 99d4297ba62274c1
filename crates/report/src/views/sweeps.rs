//! Sweeps: a row a number of connections, columns of rates and response times by variant. Of more
//! than two variants each figure has a table.

use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{Sweep, SweepPoint, SweepVariant};

use super::Scope;
use super::cells::{absent, placeholder};
use crate::document::{Cell, Table};
use crate::number::{count, milliseconds, rate};

/// What is shown of a rung: name, value, ends over the blocks, and how both are written.
type Figure =
    (&'static str, fn(&SweepPoint) -> Option<f64>, fn(&SweepPoint) -> Option<Interval>, fn(f64) -> String);

const FIGURES: [Figure; 6] = [
    ("rate", |rung| Some(rung.median_rate), |rung| rung.spread.rate, |figure| rate(Some(figure))),
    ("mean ms", |rung| rung.mean_us, |_| None, time),
    ("p50 ms", |rung| rung.p50_us, |rung| rung.spread.p50_us, time),
    ("p95 ms", |rung| rung.p95_us, |rung| rung.spread.p95_us, time),
    ("p99 ms", |rung| rung.p99_us, |rung| rung.spread.p99_us, time),
    ("max ms", |rung| rung.max_us, |_| None, time),
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
    let note = match figures {
        [("rate", ..)] => format!("{}.", sweep.rate_label),
        [_] => String::new(),
        _ => {
            format!("{} and response times by number of connections, all blocks together.", sweep.rate_label)
        }
    };
    let heads = columns().map(|((name, ..), of)| (of.variant.as_str(), *name, ""));
    let title = match figures {
        [(name, ..)] => format!("Connections: {}, {name}", sweep.test),
        _ => format!("Connections: {}", sweep.test),
    };
    let mut table = Table::new(&title, &note, ["connections"], heads);
    for (at, connections) in sweep.connections.iter().enumerate() {
        let cells = columns().map(|(figure, of)| cell(scope, sweep, figure, of, at));
        table.push(std::iter::once(Cell::from(count(*connections))).chain(cells));
    }
    table
}

fn cell(
    scope: Scope<'_>,
    sweep: &Sweep,
    (_, value, spread, text): &Figure,
    variant: &SweepVariant,
    at: usize,
) -> Cell {
    if let Some(rung) = variant.rungs[at] {
        let Some(value) = value(&rung) else { return absent("nothing was answered") };
        let blocks =
            spread(&rung).map(|ends| format!("blocks from {} to {}", text(ends.low), text(ends.high)));
        return Cell { note: blocks.unwrap_or_default(), ..Cell::from(text(value)) };
    }
    let step = scope.workload.steps.iter().find(|step| step.name == sweep.steps[at]);
    let found = step.and_then(|step| step.variant(&variant.variant));
    found.map_or_else(|| absent("did not run"), |found| placeholder(scope, found).into())
}

fn time(us: f64) -> String {
    milliseconds(us.round() as u64)
}
