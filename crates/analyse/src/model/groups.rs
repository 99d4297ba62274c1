//! The groups in the catalogue of metrics, and where each group is in the findings.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::metrics::{Cost, DeviceLoad, Efficiency, Figures, Metric, MetricRow};
use crate::model::step_run::StepRun;

/// A variant's metrics ÷ the base's, under the metrics' ids: 1.1 for `cpupq` is a tenth more CPU
/// per query. A ratio that is not known is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RelativeMetrics(pub BTreeMap<&'static str, f64>);

impl RelativeMetrics {
    pub fn of(&self, metric: &Metric) -> Option<f64> {
        self.0.get(metric.id).copied()
    }
}

/// Writes an infinite ratio as the text `infinite`, because JSON has no number for it. A ratio is
/// infinite where the base has 0 and the variant more.
impl Serialize for RelativeMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |ratio: &f64| match ratio.is_finite() {
            true => serde_json::Value::from(*ratio),
            false => serde_json::Value::from("infinite"),
        };
        serializer.collect_map(self.0.iter().map(|(id, ratio)| (id, value(ratio))))
    }
}

pub struct MetricGroup {
    pub name: &'static str,
    /// The group's metrics in the order of the fields.
    pub metrics: &'static [Metric],
    /// Reads the group from a run, or gives `None` where it was not sampled.
    pub of: fn(&StepRun) -> Option<&dyn Figures>,
    /// Whether the group's metrics are compared with the base's.
    pub is_compared: bool,
}

impl MetricGroup {
    /// All groups, in the order of a report.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "metrics",
            metrics: MetricRow::METRICS,
            of: |run| Some(&run.metrics),
            is_compared: true,
        },
        Self {
            name: "efficiency",
            metrics: Efficiency::METRICS,
            of: |run| Some(&run.efficiency),
            is_compared: true,
        },
        Self { name: "cost", metrics: Cost::METRICS, of: |run| Some(&run.cost), is_compared: true },
        Self {
            name: "device",
            metrics: DeviceLoad::METRICS,
            of: |run| Some(run.device.as_ref()?),
            is_compared: false,
        },
    ];

    /// Returns the metrics in the order of tables and CSV files.
    pub fn in_tables(&self) -> impl Iterator<Item = &'static Metric> + use<> {
        let metrics = self.metrics;
        let of = move |is_last| metrics.iter().filter(move |metric| metric.is_last == is_last);
        of(false).chain(of(true))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::Better;

    #[test]
    fn no_two_metrics_of_one_unit_share_a_name() {
        let (per_unit, device): (Vec<&MetricGroup>, Vec<_>) =
            MetricGroup::ALL.iter().partition(|group| group.is_compared);
        for groups in [per_unit, device] {
            let all: Vec<&Metric> = groups.iter().flat_map(|group| group.metrics).collect();
            let ids: BTreeSet<&str> = all.iter().map(|metric| metric.id).collect();
            let names: BTreeSet<&str> = all.iter().map(|metric| metric.name).collect();
            assert_eq!((ids.len(), names.len()), (all.len(), all.len()));
        }
    }

    /// With `DBDYNO_UPDATE=1` this test writes the tables again.
    #[test]
    fn the_page_on_metrics_has_the_catalogue() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut wanted = page.clone();
        for group in MetricGroup::ALL {
            let begin =
                format!("<!-- {}: DBDYNO_UPDATE=1 cargo test -p dbdyno-analyse groups -->\n", group.name);
            let (before, rest) = wanted.split_once(&begin).expect("the page has a place for the group");
            let (_, after) = rest.split_once(END).expect("the table has an end");
            wanted = format!("{before}{begin}\n{}\n{END}{after}", table(group));
        }
        if std::env::var_os("DBDYNO_UPDATE").is_some() {
            std::fs::write(path, wanted).unwrap();
        } else {
            assert!(page == wanted, "the tables are not the catalogue's; write them again: DBDYNO_UPDATE=1");
        }
    }

    const END: &str = "<!-- end -->\n";

    fn table(group: &MetricGroup) -> String {
        let row = |metric: &Metric| {
            let Metric { id, name, unit, meaning, .. } = metric;
            let meaning = meaning.replace('*', "\\*");
            let better = match metric.better {
                Better::Less => "less",
                Better::More => "more",
                Better::Neither | Better::NotCompared => "",
            };
            format!("| {name} | `{id}` | {unit} | {better} | {meaning} |\n")
        };
        let rows: String = group.in_tables().map(row).collect();
        format!("| name | field | unit | better | meaning |\n|---|---|---|---|---|\n{rows}")
    }
}
