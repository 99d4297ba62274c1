//! Writes findings as OpenMetrics text, for Prometheus and compatible programs. The writer of such
//! text is here too.

use dbdyno_analyse::{Findings, StepFindings, VariantStep};

pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Name and value of each label.
pub type Labels<'a> = [(&'a str, &'a str)];

/// OpenMetrics text, family after family, by
/// <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
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

/// The figures of each variant and step, with one sample each.
pub fn run_openmetrics(findings: &Findings) -> String {
    let mut text = Exposition::default();
    let run = &findings.run;
    text.family("dbdyno_run", "info", "The run.");
    let labels = [("run", run.run_id.as_str()), ("plan", &run.name), ("version", &run.tool.version)];
    text.sample("dbdyno_run_info", &labels, 1.0);
    text.family(
        "dbdyno_step_rate",
        "gauge",
        "Rate of a step, in the unit of its label: median over its valid blocks.",
    );
    each(findings, |labels, step, found| {
        let labels = [labels, &[("unit", step.rate_label.as_str())]].concat();
        found.rate.into_iter().for_each(|rate| text.sample("dbdyno_step_rate", &labels, rate));
    });
    times(findings, &mut text);
    let name = "dbdyno_step_rate_ratio";
    text.family(name, "gauge", "Rate divided by the base's, and its 95 % interval.");
    each(findings, |labels, _, found| {
        let Some(ratio) = &found.to_base.ratio else { return };
        let interval = ratio.interval();
        let bounds = interval.map_or(Vec::new(), |found| vec![("low", found.low), ("high", found.high)]);
        for (bound, value) in [("value", ratio.value)].into_iter().chain(bounds) {
            text.sample(name, &[labels, &[("bound", bound)]].concat(), value);
        }
    });
    text.family("dbdyno_step_verdict", "info", "Verdict on the rate.");
    each(findings, |labels, _, found| {
        let Some(verdict) = found.to_base.verdict else { return };
        let labels = [labels, &[("verdict", verdict.word())]].concat();
        text.sample("dbdyno_step_verdict_info", &labels, 1.0);
    });
    text.end()
}

fn times(findings: &Findings, text: &mut Exposition) {
    let name = "dbdyno_step_response_time_seconds";
    text.family(
        name,
        "summary",
        "Response times of a step's operations, all clients and valid blocks together.",
    );
    each(findings, |labels, _, found| {
        let Some(latency) = &found.latency else { return };
        for (quantile, value_us) in [
            ("0.5", latency.p50_us),
            ("0.95", latency.p95_us),
            ("0.99", latency.p99_us),
            ("1.0", latency.max_us),
        ] {
            text.sample(name, &[labels, &[("quantile", quantile)]].concat(), value_us as f64 / 1e6);
        }
        let count = latency.count as f64;
        text.sample(&format!("{name}_count"), labels, count);
        text.sample(&format!("{name}_sum"), labels, latency.mean_us * count / 1e6);
    });
}

/// Calls `write` for every variant of every step, with its labels.
fn each(findings: &Findings, mut write: impl FnMut(&Labels<'_>, &StepFindings, &VariantStep)) {
    for (workload, step, found) in findings.variants_of_steps() {
        let labels = [
            ("workload", workload.name.as_str()),
            ("step", step.name.as_str()),
            ("variant", found.variant.as_str()),
        ];
        write(&labels, step, found);
    }
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
        assert_eq!(
            lines("dbdyno_step_response_time_seconds{"),
            4 * lines("dbdyno_step_response_time_seconds_sum")
        );
        assert!(text.contains(r#"variant="<b>&\"""#), "{text}");
    }
}
