//! The catalogue of metrics: each figure's name, unit, formula and meaning.
//!
//! A group is a file with one entry per metric. The macro `group!` makes the group's struct from
//! them, with one field per entry. Code that uses all entries goes over the list of groups,
//! [`MetricGroup::ALL`](crate::MetricGroup::ALL). The group `original` has the columns that the
//! original Insert Benchmark prints as its result row. The modules `fsyncs` and `reads` are no
//! groups; they compute figures whose formulas are too long for an entry.

pub(crate) mod cost;
pub(crate) mod device;
pub(crate) mod efficiency;
pub(crate) mod fsyncs;
pub(crate) mod hardware;
pub(crate) mod host_check;
pub(crate) mod original;
mod reads;

use serde::Serialize;

pub use cost::Cost;
pub use device::DeviceLoad;
pub use efficiency::Efficiency;
pub use hardware::HardwareUse;
pub use host_check::HostCheck;
pub use original::MetricRow;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Name in CSV files and other tables that programs read. These tables put `device_` before the
    /// names of the device's metrics, and `host_check_` before those of the host check.
    pub id: &'static str,
    /// Short name for tables.
    pub name: &'static str,
    pub unit: &'static str,
    pub meaning: &'static str,
    pub better: Better,
    /// Number of decimals in tables.
    pub decimals: usize,
    /// The factor by which tables multiply the value.
    pub factor: f64,
    /// Tables and CSV files have this metric after the others in its group.
    pub is_last: bool,
    /// Reports on microbenchmarks have a table of this metric over all steps.
    pub is_published: bool,
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
    is_published: false,
};

/// Says which direction is better for a metric, all other things being equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Less,
    More,
    Neither,
    /// The figure does not describe the variant, so it has no ratio to the base. Examples are the
    /// time for which the client polls, and the CPU time that the hypervisor gave to others.
    NotCompared,
}

/// A group of figures, any of which may be unknown.
pub trait Figures {
    /// Returns the group's metrics in the order of the fields.
    fn metrics(&self) -> &'static [Metric];

    /// Returns the values in the same order.
    fn values(&self) -> Vec<Option<f64>>;

    /// Returns each metric with its value, in the order of tables and CSV files.
    fn figures(&self) -> Vec<(&'static Metric, Option<f64>)> {
        let mut figures: Vec<_> = self.metrics().iter().zip(self.values()).collect();
        figures.sort_by_key(|(metric, _)| metric.is_last);
        figures
    }

    /// Returns the value of one metric in the group.
    fn value(&self, metric: &Metric) -> Option<f64> {
        let place = self.metrics().iter().position(|known| known.id == metric.id)?;
        self.values()[place]
    }
}

/// Makes the struct of a group from its entries: `id: name, unit, decimals, better, formula,
/// meaning;`. A formula is an expression over the variable that the group's head names. Where a `?`
/// in the formula returns early, the figure is unknown. Fields after the entries are not metrics.
macro_rules! group {
    (
        $(#[$about:meta])*
        $group:ident: |$from:ident: $source:ty| {
            $($id:ident: $name:literal, $unit:literal, $decimals:literal, $better:ident, $formula:expr,
                $($option:ident = $value:expr,)* $meaning:literal;)*
        }
        $($(#[$note:meta])* $field:ident: $type:ty),*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $group {
            $(#[doc = $meaning] pub $id: Option<f64>,)*
            $($(#[$note])* pub $field: $type,)*
        }

        impl $group {
            pub const METRICS: &'static [super::Metric] = &[$(super::Metric {
                id: stringify!($id),
                name: $name,
                unit: $unit,
                meaning: $meaning,
                better: super::Better::$better,
                decimals: $decimals,
                $($option: $value,)*
                ..super::USUAL
            }),*];

            /// Computes all metrics by their formulas. Other fields have their defaults.
            fn of($from: &$source) -> Self {
                Self { $($id: Self::$id($from),)* $($field: <$type>::default(),)* }
            }

            $(fn $id($from: &$source) -> Option<f64> {
                $formula
            })*
        }

        impl super::Figures for $group {
            fn metrics(&self) -> &'static [super::Metric] {
                Self::METRICS
            }

            fn values(&self) -> Vec<Option<f64>> {
                vec![$(self.$id),*]
            }
        }
    };
}
pub(crate) use group;
