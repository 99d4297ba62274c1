//! One metric of the long tables as a grid: steps in rows, variants in columns.

use std::collections::BTreeMap;

use dbdyno_analyse::tables::{ComparisonRow, Tables};
use dbdyno_analyse::unique;

/// Step and variant.
type Place<'a> = (&'a str, &'a str);

/// One metric's values and ratios over all valid blocks.
pub(super) struct Pivot<'t, 'a> {
    values: BTreeMap<Place<'a>, f64>,
    ratios: BTreeMap<Place<'a>, &'t ComparisonRow<'a>>,
}

impl<'t, 'a> Pivot<'t, 'a> {
    pub(super) fn of(tables: &'t Tables<'a>, metric: &str) -> Self {
        let values = tables.observations.iter().filter(|one| one.metric == metric && one.key.block.is_none());
        let ratios = tables.comparisons.iter().filter(|one| one.metric == metric && one.key.is_whole());
        Self {
            values: values.map(|one| ((one.key.step, one.key.variant), one.value)).collect(),
            ratios: ratios.map(|one| ((one.key.step, one.key.variant), one)).collect(),
        }
    }

    pub(super) fn value(&self, step: &'a str, variant: &'a str) -> Option<f64> {
        self.values.get(&(step, variant)).copied()
    }

    pub(super) fn comparison(&self, step: &'a str, variant: &'a str) -> Option<&'t ComparisonRow<'a>> {
        self.ratios.get(&(step, variant)).copied()
    }
}

/// Returns the steps in the order of the table.
pub(super) fn steps<'a>(tables: &Tables<'a>) -> Vec<&'a str> {
    unique(tables.observations.iter().map(|one| one.key.step))
}

/// Returns the variants in the order of the table.
pub(super) fn variants<'a>(tables: &Tables<'a>) -> Vec<&'a str> {
    unique(tables.observations.iter().map(|one| one.key.variant))
}
