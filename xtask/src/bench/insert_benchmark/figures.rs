//! Figures out of the JSON reports of the runs.

use anyhow::Result;
use serde_json::Value;

use super::plans::Case;
use crate::bench::runs;
use crate::bench::spread::Spread;

/// One figure with its measurements, one a round.
pub(super) struct Figure {
    pub(super) case: &'static Case,
    pub(super) samples: Vec<Sample>,
    /// The bare loop's CPU for one unit, for cases that have a floor.
    pub(super) floors_us: Vec<f64>,
}

/// What one run says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// CPU of the load client's whole process for one unit, the sampler included.
    pub(super) client_cpu_us: f64,
    /// The sampler's part of it.
    pub(super) sampler_us: f64,
    pub(super) rate_per_second: f64,
}

impl Figure {
    pub(super) fn new(case: &'static Case) -> Self {
        Self { case, samples: Vec::new(), floors_us: Vec::new() }
    }

    pub(super) fn add(&mut self, report: &Value) -> Result<Sample> {
        let sample = sample(report, self.case.step)?;
        self.samples.push(sample);
        Ok(sample)
    }

    /// The spread of one part of the samples; all zero without any.
    pub(super) fn spread(&self, part: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(self.samples.iter().map(part))
    }

    pub(super) fn is_met(&self) -> bool {
        let Some(target_us) = self.case.target_us else { return true };
        !self.samples.is_empty() && self.spread(|sample| sample.client_cpu_us).median <= target_us
    }
}

fn sample(report: &Value, step: &str) -> Result<Sample> {
    let run = runs::step(report, step)?;
    let rate_per_second = runs::number(run, "/rate")?;
    Ok(Sample {
        client_cpu_us: runs::number(run, "/cost/client_cpu_us")?,
        sampler_us: runs::number(run, "/cost/sampler_core_share")? * 1e6 / rate_per_second,
        rate_per_second,
    })
}

/// What was run where, as the run recorded it.
pub(super) fn facts(report: &Value) -> [String; 3] {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "?".to_owned(),
        other => other.to_string(),
    };
    let (host, tool, variant) = (&report["run"]["host"], &report["run"]["tool"], &report["variants"][0]);
    let gib = host["memory_bytes"].as_f64().unwrap_or_default() / f64::from(1 << 30);
    [
        format!(
            "machine: {}, {} CPUs, {gib:.0} GiB, {}, Linux {}, {}; server on CPUs {}, client on CPUs {}",
            text(&host["cpu_model"]),
            text(&host["cpus"]),
            text(&host["os"]),
            text(&host["kernel"]),
            text(&host["data_filesystem"]),
            text(&host["server_cpus"]),
            text(&host["client_cpus"]),
        ),
        format!("server: {}, started by dbdyno, unix socket", text(&variant["server"])),
        format!("client: dbdyno {} ({} build)", text(&tool["version"]), text(&tool["build"])),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bench::insert_benchmark::plans::CASES;

    fn report(state: &str, client_cpu_us: f64) -> Value {
        let cost = json!({ "client_cpu_us": client_cpu_us, "sampler_core_share": 0.002 });
        let run = json!({ "validity": { "state": state }, "rate": 100_000.0, "cost": cost });
        json!({ "workloads": [{ "steps": [{ "name": "l.i0", "variants": [{ "runs": [run] }] }] }] })
    }

    #[test]
    fn a_figure_is_met_when_its_median_is_within_the_target() {
        let mut figure = Figure::new(&CASES[0]);
        assert!(!figure.is_met(), "nothing measured is nothing met");
        for client_cpu_us in [0.9, 0.4, 0.5] {
            figure.add(&report("valid", client_cpu_us)).unwrap();
        }
        let spread = figure.spread(|sample| sample.client_cpu_us);
        assert_eq!(spread, Spread { least: 0.4, median: 0.5, greatest: 0.9 });
        assert!(figure.is_met());
        figure.add(&report("valid", 0.8)).unwrap();
        assert_eq!(figure.spread(|sample| sample.client_cpu_us).median, 0.65);
        assert!(!figure.is_met());
    }

    #[test]
    fn the_samplers_part_is_its_cpu_over_the_rate() {
        // 0.002 cores are 2000 µs a second, over 100,000 rows a second
        assert_eq!(sample(&report("valid", 1.0), "l.i0").unwrap().sampler_us, 0.02);
    }
}
