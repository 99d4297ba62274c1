//! The groups in the catalogue of metrics, and where each group is in the findings.

use serde::Serialize;

use crate::metrics::{Cost, DeviceLoad, Efficiency, Figures, Metric, MetricRow};
use crate::model::step_run::StepRun;

/// A variant's metrics ÷ the base's, under the metrics' names: 1.1 in `cpupq` is a tenth more CPU
/// per query.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RelativeMetrics {
    /// Metrics that are 0 for the base and not for the variant, written as `metrics.rps`. Their
    /// ratio is infinite. JSON has no number for that, so it is `null` there, like a ratio that is
    /// not known.
    pub infinite: Vec<String>,
    pub metrics: MetricRow,
    pub efficiency: Efficiency,
    pub cost: Cost,
}

/// Two functions: one reads a group's ratios, and one lets a caller set them.
type Ratios = (fn(&RelativeMetrics) -> &dyn Figures, fn(&mut RelativeMetrics) -> &mut dyn Figures);

pub struct MetricGroup {
    /// The group's key in JSON.
    pub name: &'static str,
    /// The group's metrics in the order of the fields.
    pub metrics: &'static [Metric],
    /// Reads the group from a run; `None` where it was not sampled.
    pub of: fn(&StepRun) -> Option<&dyn Figures>,
    /// `None` for a group that is not compared with the base.
    pub relative: Option<Ratios>,
}

impl MetricGroup {
    /// All groups, in the order of a report.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "metrics",
            metrics: MetricRow::METRICS,
            of: |run| Some(&run.metrics),
            relative: Some((|ratios| &ratios.metrics, |ratios| &mut ratios.metrics)),
        },
        Self {
            name: "efficiency",
            metrics: Efficiency::METRICS,
            of: |run| Some(&run.efficiency),
            relative: Some((|ratios| &ratios.efficiency, |ratios| &mut ratios.efficiency)),
        },
        Self {
            name: "cost",
            metrics: Cost::METRICS,
            of: |run| Some(&run.cost),
            relative: Some((|ratios| &ratios.cost, |ratios| &mut ratios.cost)),
        },
        Self {
            name: "device",
            metrics: DeviceLoad::METRICS,
            of: |run| Some(run.device.as_ref()?),
            relative: None,
        },
    ];

    /// The metrics in the order of tables and CSV files.
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
            MetricGroup::ALL.iter().partition(|group| group.relative.is_some());
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
            assert!(page == wanted, "the tables are not the catalogue's; write them anew: DBDYNO_UPDATE=1");
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
