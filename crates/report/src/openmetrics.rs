//! Findings as OpenMetrics text, for Prometheus and what speaks its language; and the writer of
//! such text.

use dbdyno_analyse::tables::{ComparisonRow, Key, Observation, Source, Tables};
use dbdyno_analyse::{Findings, unique};

pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Name and value of each label.
pub type Labels<'a> = [(&'a str, &'a str)];

/// OpenMetrics text, family after family. <https://prometheus.io/docs/specs/om/open_metrics_spec/>
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a family: `kind` is `gauge`, `counter`, `summary` or `info`. A name that ends in a
    /// unit has this unit.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0 += &format!("# TYPE {name} {kind}\n");
        if let Some(unit) = ["seconds", "ratio"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")))
        {
            self.0 += &format!("# UNIT {name} {unit}\n");
        }
        self.0 += &format!("# HELP {name} {}\n", escaped(help));
    }

    /// A sample of the family that was begun last. `name` is the family's with what its kind adds.
    pub fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
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

/// The values and ratios over all valid blocks, a family for each metric.
pub fn run_openmetrics(findings: &Findings) -> String {
    let mut text = Exposition::default();
    let run = &findings.run;
    text.family("dbdyno_run", "info", "The run.");
    let labels = [("run", run.run_id.as_str()), ("plan", &run.name), ("version", &run.tool.version)];
    text.sample("dbdyno_run_info", &labels, 1.0);
    let tables = Tables::of(findings);
    let values: Vec<&Observation<'_>> =
        tables.observations.iter().filter(|one| one.key.block.is_none()).collect();
    for metric in unique(values.iter().map(|one| one.metric.as_ref())) {
        let of_metric = values.iter().filter(|one| one.metric == metric);
        add_values(&mut text, metric, &of_metric.copied().collect::<Vec<_>>());
    }
    let is_whole = |key: &Key<'_>| key.block.is_none() && key.machine.is_none() && key.source == Source::Run;
    let ratios: Vec<&ComparisonRow<'_>> =
        tables.comparisons.iter().filter(|one| is_whole(&one.key) && one.base == run.base).collect();
    for metric in unique(ratios.iter().map(|one| one.metric)) {
        let of_metric = ratios.iter().filter(|one| one.metric == metric);
        add_ratios(&mut text, metric, &of_metric.copied().collect::<Vec<_>>());
    }
    text.end()
}

/// Times are in seconds, as Prometheus wants them.
fn add_values(text: &mut Exposition, metric: &str, values: &[&Observation<'_>]) {
    let (name, factor) = match metric.strip_suffix("_us") {
        Some(name) => (format!("dbdyno_step_{name}_seconds"), 1e-6),
        None => (format!("dbdyno_step_{metric}"), 1.0),
    };
    let entry = values.iter().find_map(|one| one.entry);
    let meaning = entry.map_or("", |entry| entry.meaning);
    text.family(&name, "gauge", format!("Over the valid blocks of a step. {meaning}").trim_end());
    for one in values {
        let unit = (factor == 1.0 && !one.unit.is_empty()).then_some(("unit", one.unit));
        text.sample(&name, &[labels(&one.key), unit.into_iter().collect()].concat(), factor * one.value);
    }
}

/// With the 95 % interval, and the verdict as a family of its own.
fn add_ratios(text: &mut Exposition, metric: &str, ratios: &[&ComparisonRow<'_>]) {
    let metric = metric.trim_end_matches("_us");
    let name = format!("dbdyno_step_{metric}_ratio");
    text.family(&name, "gauge", "The value of the variant divided by the base's; its 95 % interval.");
    for one in ratios {
        let ends = one.interval.map_or(Vec::new(), |found| vec![("low", found.low), ("high", found.high)]);
        let ratio = one.ratio.filter(|ratio| ratio.is_finite()).map(|ratio| ("value", ratio));
        for (bound, value) in ratio.into_iter().chain(ends) {
            text.sample(&name, &[labels(&one.key), vec![("bound", bound)]].concat(), value);
        }
    }
    if ratios.iter().any(|one| one.verdict.is_some()) {
        let name = format!("dbdyno_step_{metric}_verdict");
        text.family(&name, "info", "Whether the ratio is a difference.");
        for (one, verdict) in ratios.iter().filter_map(|one| Some((one, one.verdict?))) {
            let labels = [labels(&one.key), vec![("verdict", verdict.word())]].concat();
            text.sample(&format!("{name}_info"), &labels, 1.0);
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
        assert!(lines("dbdyno_step_server_cpu_seconds{") > 5 && !text.contains("_us{"), "{text}");
        assert!(text.contains(r#"variant="<b>&\"""#), "{text}");
    }
}
