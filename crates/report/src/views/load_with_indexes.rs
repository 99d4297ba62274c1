//! The load and the building of its indexes as one rate: a column a variant.

use super::cells::{absent, ratio_cell};
use super::{BY_THRESHOLD, Scope, explained};
use crate::document::{Cell, Table};
use crate::number::rate;

/// None without a load that is followed by the building of its indexes.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    let Some(found) = &scope.workload.load_with_indexes else { return Vec::new() };
    let title = format!("{} and {} as one rate", found.load, found.index);
    let note = "Rows a second over both steps, as published load rates count them; the ratio is the geometric mean over the blocks.";
    let heads = found.variants.iter().map(|variant| variant.variant.as_str());
    let mut table = Table::new(&title, note, ["figure"], heads);
    let rates = found.variants.iter().map(|variant| match variant.rate {
        None => absent("no block in which both are valid"),
        known => Cell::from(rate(known)),
    });
    table.push(std::iter::once(Cell::from("rows/s")).chain(rates));
    if found.variants.len() > 1 {
        let ratios = found.variants.iter().map(|variant| match variant.ratio {
            None => absent("no block in which both are valid"),
            Some(ratio) => {
                let interval = variant.interval.filter(|_| variant.variant != scope.run.base);
                Cell { interval, ..ratio_cell(ratio, 2, false, scope.run.colours) }
            }
        });
        table.push(std::iter::once(Cell::from(format!("÷ {}", scope.run.base))).chain(ratios));
    }
    vec![explained(table, &BY_THRESHOLD)]
}
