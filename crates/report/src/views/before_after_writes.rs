//! What writing does to reads: a row a test, a column a variant.

use dbdyno_analyse::{BeforeAfterVariant, BeforeAfterWrites};
use serde_json::Value;

use super::cells::{absent, joined, placeholder, ratio_cell};
use super::{BY_THRESHOLD, Scope, explained};
use crate::document::{Cell, Table};
use crate::notices::reasons_text;
use crate::words::blocks_text;

/// Data modes in which each step has tables of its own, so that none ages.
const FRESH: [&str; 2] = ["reset", "restore-each-step"];

/// None without a test that ran before and after the steps that write.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let aging = &scope.workload.aging;
    let Some(first) = aging.first() else { return Vec::new() };
    let heads = first.variants.iter().map(|variant| variant.variant.as_str());
    let mut table = Table::new("After ÷ before writes", &note(scope), ["test"], heads);
    for test in aging {
        let cells = test.variants.iter().map(|variant| cell(scope, test, variant));
        table.push(std::iter::once(Cell::from(test.after.as_str())).chain(cells));
    }
    vec![explained(table, &BY_THRESHOLD)]
}

fn note(scope: Scope<'_>) -> String {
    let mut variants = scope.workload.aging.iter().flat_map(|test| &test.variants);
    let over = match variants.any(|variant| variant.interval.is_some()) {
        true => "the geometric mean over the blocks with its 95 % interval",
        false => "the geometric mean where there are several blocks",
    };
    let mode = scope.workload.options.get("data").and_then(Value::as_str);
    let fresh = mode.filter(|mode| FRESH.contains(mode)).map_or_else(String::new, |mode| {
        format!(
            " No writes lie between them in this run: each step began on fresh tables (data = \"{mode}\")."
        )
    });
    format!(
        "Rate of each test after the steps that write ÷ its rate before them (.pre) in the same \
         block; {over}.{fresh}"
    )
}

fn cell(scope: Scope<'_>, test: &BeforeAfterWrites, variant: &BeforeAfterVariant) -> Cell {
    let without = (!variant.without.is_empty()).then(|| {
        format!("without {}, in which one of the two steps answered nothing", blocks_text(&variant.without))
    });
    let Some(ratio) = variant.ratio else {
        return match without {
            Some(_) => absent("one of the two steps answered nothing"),
            None => gap(scope, test, &variant.variant),
        };
    };
    let cell = ratio_cell(ratio, 2, false, scope.run.colours);
    Cell { interval: variant.interval, note: joined([Some(cell.note.clone()), without]), ..cell }
}

/// Why there is no ratio: what has happened to the first of the two steps that has no rate.
fn gap(scope: Scope<'_>, test: &BeforeAfterWrites, variant: &str) -> Cell {
    let found = |name: &str| {
        let step = scope.workload.steps.iter().find(|step| step.name == name)?;
        Some((name.to_owned(), step.variant(variant).filter(|found| found.rate.is_none())?))
    };
    match [&test.before, &test.after].into_iter().find_map(|name| found(name)) {
        Some((name, found)) => {
            let placeholder = placeholder(scope, found);
            Cell {
                note: format!("{name}: {}", reasons_text(&placeholder.why)),
                ..Cell::from(placeholder.text)
            }
        }
        None => absent("no block in which both are valid"),
    }
}
