//! The catalogue of metrics: what each figure of a step is called, its unit and its meaning.
//!
//! A group is a file with one entry a metric; the entry makes the field of the group's struct, so
//! its name is the key in JSON. Formulas are in `measure`, one struct literal a group. CSV columns,
//! tables, ratios to the base and `dbdyno list metrics` are made from the entries.

mod cost;
mod device;
mod efficiency;
mod original;

use serde::Serialize;

pub use cost::Cost;
pub use device::DeviceLoad;
pub use efficiency::Efficiency;
pub use original::MetricRow;

/// Every group by its name, in the order of a report.
pub fn all() -> [(&'static str, Vec<&'static Metric>); 4] {
    [
        ("metrics", MetricRow::in_tables().collect()),
        ("efficiency", Efficiency::in_tables().collect()),
        ("cost", Cost::in_tables().collect()),
        ("device", DeviceLoad::in_tables().collect()),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Name in JSON and CSV.
    pub id: &'static str,
    /// Short name, for tables.
    pub name: &'static str,
    pub unit: &'static str,
    pub meaning: &'static str,
    pub better: Better,
    /// Of tables.
    pub decimals: usize,
    /// By which tables multiply it.
    pub factor: f64,
    /// Tables and CSV have it after the others of its group.
    pub is_last: bool,
}

const USUAL: Metric = Metric {
    id: "",
    name: "",
    unit: "",
    meaning: "",
    better: Better::Neither,
    decimals: 0,
    factor: 1.0,
    is_last: false,
};

/// Which way a metric is better, all else equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Less,
    More,
    Neither,
    /// It is what others did, not the variant, so it has no ratio to the base.
    NotCompared,
}

/// A group of figures, each of which may be unknown.
pub trait Figures: Default + 'static {
    /// In the order of the fields.
    const METRICS: &'static [Metric];

    /// In the same order.
    fn values(&self) -> Vec<Option<f64>>;

    /// From values in that order; other fields are empty.
    fn from_values(values: impl IntoIterator<Item = Option<f64>>) -> Self;

    /// Each metric with its value, in the order of tables and CSV.
    fn figures(&self) -> impl Iterator<Item = (&'static Metric, Option<f64>)> {
        let mut figures: Vec<_> = Self::METRICS.iter().zip(self.values()).collect();
        figures.sort_by_key(|(metric, _)| metric.is_last);
        figures.into_iter()
    }

    /// Of one of its metrics.
    fn value(&self, metric: &Metric) -> Option<f64> {
        let place = Self::METRICS.iter().position(|known| known.id == metric.id)?;
        self.values()[place]
    }

    /// The metrics in that order.
    fn in_tables() -> impl Iterator<Item = &'static Metric> {
        let of = |is_last| Self::METRICS.iter().filter(move |metric| metric.is_last == is_last);
        of(false).chain(of(true))
    }
}

/// Makes the struct of a group from its entries: `id: name, unit, decimals, better, meaning;`.
/// Fields after the entries are no metrics.
macro_rules! group {
    (
        $(#[$about:meta])*
        $group:ident {
            $($id:ident: $name:literal, $unit:literal, $decimals:literal, $better:ident,
                $($option:ident = $value:expr,)* $meaning:literal;)*
        }
        $($field:ident: $type:ty),*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
        pub struct $group {
            $(#[doc = $meaning] pub $id: Option<f64>,)*
            $(pub $field: $type,)*
        }

        impl super::Figures for $group {
            const METRICS: &'static [super::Metric] = &[$(super::Metric {
                id: stringify!($id),
                name: $name,
                unit: $unit,
                meaning: $meaning,
                better: super::Better::$better,
                decimals: $decimals,
                $($option: $value,)*
                ..super::USUAL
            }),*];

            fn values(&self) -> Vec<Option<f64>> {
                vec![$(self.$id),*]
            }

            fn from_values(values: impl IntoIterator<Item = Option<f64>>) -> Self {
                let mut values = values.into_iter();
                Self { $($id: values.next().flatten(),)* $($field: <$type>::default(),)* }
            }
        }
    };
}
pub(crate) use group;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Each value reaches the field of its own name, and each field has an entry.
    fn check<G: Figures + Serialize>(other_fields: usize) {
        let numbers = (0..G::METRICS.len()).map(|number| Some(number as f64));
        let group = G::from_values(numbers.clone());
        assert_eq!(group.values(), numbers.collect::<Vec<_>>());
        let json = serde_json::to_value(&group).unwrap();
        assert_eq!(json.as_object().unwrap().len(), G::METRICS.len() + other_fields);
        for (metric, value) in group.figures() {
            assert_eq!(json[metric.id].as_f64(), value, "{}", metric.id);
        }
    }

    #[test]
    fn every_figure_has_an_entry_under_its_name() {
        check::<MetricRow>(1);
        check::<Efficiency>(0);
        check::<Cost>(0);
        check::<DeviceLoad>(0);
    }

    #[test]
    fn no_two_metrics_of_one_unit_share_a_name() {
        let [original, efficiency, cost, device] = all().map(|(_, group)| group);
        for groups in [vec![original, efficiency, cost], vec![device]] {
            let all: Vec<&Metric> = groups.concat();
            let ids: BTreeSet<&str> = all.iter().map(|metric| metric.id).collect();
            let names: BTreeSet<&str> = all.iter().map(|metric| metric.name).collect();
            assert_eq!((ids.len(), names.len()), (all.len(), all.len()));
        }
    }
}
