//! Writes findings as OpenMetrics text, for Prometheus and compatible programs. The writer of such
//! text is here too.

use dbdyno_analyse::tables::{ComparisonRow, Key, Observation, Tables};
use dbdyno_analyse::{Bound, Findings, unique};

pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Name and value of each label.
pub type Labels<'a> = [(&'a str, &'a str)];

/// OpenMetrics text, one family after another, as
/// <https://prometheus.io/docs/specs/om/open_metrics_spec/> specifies it.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a family. `kind` is `gauge`, `counter`, `summary` or `info`. If the name ends in a
    /// unit, the family has this unit.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0 += &format!("# TYPE {name} {kind}\n");
        if let Some(unit) = ["seconds", "ratio"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")))
        {
            self.0 += &format!("# UNIT {name} {unit}\n");
        }
        self.0 += &format!("# HELP {name} {}\n", escaped(help));
    }

    /// Adds a sample to the family that was begun last. `name` is the family's name with the suffix
    /// that its kind adds.
    pub fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let value = if value == f64::INFINITY { "+Inf".to_owned() } else { value.to_string() };
        self.0 += &format!("{name}{labels} {value}\n");
    }

    #[must_use]
    pub fn end(self) -> String {
        self.0 + "# EOF\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Writes the values and ratios over all valid blocks, with one family per metric. All families are
/// gauges, even those that end in `_info`, because readers of Prometheus's older text format know
/// no other type for them.
pub fn run_openmetrics(findings: &Findings) -> String {
    let mut text = Exposition::default();
    let run = &findings.run;
    text.family("dbdyno_run_info", "gauge", "The run.");
    let labels = [("run", run.run_id.as_str()), ("plan", &run.name), ("version", &run.tool.version)];
    text.sample("dbdyno_run_info", &labels, 1.0);
    let tables = Tables::of(findings);
    let values: Vec<&Observation<'_>> =
        tables.observations.iter().filter(|one| one.key.block.is_none()).collect();
    for metric in unique(values.iter().map(|one| one.metric.as_ref())) {
        let of_metric = values.iter().filter(|one| one.metric == metric);
        add_values(&mut text, metric, &of_metric.copied().collect::<Vec<_>>());
    }
    let ratios: Vec<&ComparisonRow<'_>> =
        tables.comparisons.iter().filter(|one| one.key.is_whole()).collect();
    for metric in unique(ratios.iter().map(|one| one.metric)) {
        let of_metric = ratios.iter().filter(|one| one.metric == metric);
        add_ratios(&mut text, metric, &of_metric.copied().collect::<Vec<_>>());
    }
    text.end()
}

/// Adds a metric's values. Response times are in seconds, as Prometheus wants them; other values
/// have their unit as a label.
fn add_values(text: &mut Exposition, metric: &str, values: &[&Observation<'_>]) {
    let in_seconds = values.iter().all(|one| one.unit == "us");
    let name = match metric.strip_suffix("_us").filter(|_| in_seconds) {
        Some(name) => format!("dbdyno_step_{name}_seconds"),
        None => format!("dbdyno_step_{metric}"),
    };
    let help = match values.iter().find_map(|one| one.entry) {
        Some(entry) => format!("Median over the valid blocks. {}", entry.meaning),
        None if in_seconds => "Response times of the headline, all valid blocks together.".to_owned(),
        None => "Over the valid blocks of a step.".to_owned(),
    };
    text.family(&name, "gauge", &help);
    for one in values {
        let unit = (!in_seconds && !one.unit.is_empty()).then_some(("unit", one.unit));
        let value = if in_seconds { one.value / 1e6 } else { one.value };
        text.sample(&name, &[labels(&one.key), unit.into_iter().collect()].concat(), value);
    }
}

/// Adds a metric's ratios with their 95 % intervals, and the verdicts as a separate family. If
/// a ratio is only a bound, the label says on which side the true one lies.
fn add_ratios(text: &mut Exposition, metric: &str, ratios: &[&ComparisonRow<'_>]) {
    let metric = metric.trim_end_matches("_us");
    let name = format!("dbdyno_step_{metric}_ratio");
    text.family(&name, "gauge", "The variant's value divided by the base's, and its 95 % interval.");
    for one in ratios {
        let ends = one.interval.map_or(Vec::new(), |found| vec![("low", found.low), ("high", found.high)]);
        let bound = one.bound.map_or("value", Bound::name);
        for (bound, value) in one.ratio.map(|ratio| (bound, ratio)).into_iter().chain(ends) {
            text.sample(&name, &[labels(&one.key), vec![("bound", bound)]].concat(), value);
        }
    }
    if ratios.iter().any(|one| one.verdict.is_some()) {
        let name = format!("dbdyno_step_{metric}_verdict_info");
        text.family(&name, "gauge", "Whether the ratio is a difference.");
        for (one, verdict) in ratios.iter().filter_map(|one| Some((one, one.verdict?))) {
            text.sample(&name, &[labels(&one.key), vec![("verdict", verdict.word())]].concat(), 1.0);
        }
    }
}

fn labels<'a>(key: &Key<'a>) -> Vec<(&'static str, &'a str)> {
    let setup = key.setup.map(|setup| ("setup", setup));
    let all = [("workload", key.workload), ("step", key.step), ("variant", key.variant)];
    all.into_iter().chain(setup).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_figure_is_a_sample_with_escaped_labels() {
        let text = run_openmetrics(&fixture::findings());
        let lines = |begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
        assert!(text.ends_with("\n# EOF\n") && lines("dbdyno_run_info{") == 1, "{text}");
        assert!(lines("dbdyno_step_rate{") > 10 && lines("dbdyno_step_rate_ratio{") > 5, "{text}");
        assert!(lines("dbdyno_step_response_p99_seconds{") > 5, "times are in seconds");
        assert!(lines("dbdyno_step_server_cpu_us{") > 5, "of one operation: {text}");
        assert!(text.contains("dbdyno_step_rps_ratio{workload") && text.contains(" +Inf\n"), "{text}");
        assert!(text.contains(r#"variant="<b>&\"""#), "{text}");
    }
}
