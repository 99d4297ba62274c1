//! Where the noise of a plan's steps comes from: one run, or all of this host that are remembered.

use std::path::Path;

use dbdyno_analyse::{Findings, StepNoise, analyse, best_step_seconds, host_class, noise, numbered, pooled};
use dbdyno_record::{Manifest, Run};
use dbdyno_report::host_class_words;

use crate::exit::ExitError;
use crate::power::store::{self, StoredNoise};

pub(super) struct NoiseEstimate {
    steps: Vec<StepNoise>,
    /// In words: which runs it is of.
    pub(super) from: String,
}

impl NoiseEstimate {
    /// The median over the steps of a workload of their best length, each of which costs `cost`
    /// seconds besides.
    pub(super) fn best_seconds(&self, workload: &str, cost: f64) -> Option<f64> {
        let steps = self.steps.iter().filter(|noise| noise.workload == workload);
        let mut all: Vec<f64> = steps.filter_map(|noise| best_step_seconds(noise, cost)).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// Standard deviation of a block's log ratio in a step, pooled over the runs: of A/A where
    /// there is any.
    pub(super) fn of(&self, workload: &str, step: &str) -> Option<f64> {
        let of_step = || self.steps.iter().filter(|noise| noise.workload == workload && noise.step == step);
        let again: Vec<_> = of_step().filter(|noise| noise.again).map(part).collect();
        let any: Vec<_> = of_step().map(part).collect();
        pooled(if again.is_empty() { &any } else { &again }).map(|(deviation, _)| deviation)
    }
}

fn part(noise: &StepNoise) -> (f64, u32) {
    (noise.deviation, noise.degrees)
}

/// The noise of the run in `dir`, for the plan of `manifest`.
pub(super) fn of_run(dir: &Path, manifest: &Manifest) -> Result<Option<NoiseEstimate>, ExitError> {
    let run = Run::open(dir)?;
    let steps = noise(&analyse(&run));
    if steps.is_empty() {
        let text = format!(
            "{}: no step has two valid blocks, so nothing is known of its noise; name a run of two or more blocks",
            dir.display()
        );
        return Err(ExitError::usage(text));
    }
    let is_planned = |noise: &&StepNoise| {
        let of_plan = manifest.workloads.iter().find(|workload| workload.name == noise.workload);
        of_plan.is_some_and(|workload| workload.steps.contains(&noise.step))
    };
    if !steps.iter().any(|noise| is_planned(&noise)) {
        return Err(ExitError::usage(none_of_the_plan(dir, &steps, manifest)));
    }
    let kind = kind(&steps);
    let mut from = format!("{kind} run {}", run.manifest.run_id);
    if host_class(&run.manifest.host) != host_class(&manifest.host) {
        from.push_str(", which was on another class of host");
    }
    let options =
        |of: &Manifest| of.workloads.iter().map(|w| (w.name.clone(), w.options.clone())).collect::<Vec<_>>();
    if options(&run.manifest) != options(manifest) {
        from.push_str(", with other options");
    }
    Ok(Some(NoiseEstimate { steps, from }))
}

fn kind(steps: &[StepNoise]) -> &'static str {
    let of_control = |noise: &StepNoise| noise.again;
    // Where a step is known from both, only the A/A counts.
    let has_control = |noise: &StepNoise| {
        steps
            .iter()
            .any(|other| other.again && (&other.workload, &other.step) == (&noise.workload, &noise.step))
    };
    match (steps.iter().any(of_control), steps.iter().all(has_control)) {
        (_, true) => "A/A of",
        (true, false) => "A/A, or ratios of steps without one, of",
        (false, false) => "ratios of",
    }
}

/// A run of which nothing holds for the plan.
fn none_of_the_plan(dir: &Path, steps: &[StepNoise], manifest: &Manifest) -> String {
    let known: Vec<String> = steps.iter().map(|noise| format!("{} {}", noise.workload, noise.step)).collect();
    let planned: Vec<String> = manifest
        .workloads
        .iter()
        .flat_map(|workload| workload.steps.iter().map(move |step| format!("{} {step}", workload.name)))
        .collect();
    format!(
        "{}: it shares no step with this plan: it has {}, the plan has {}; name a run of this workload, or leave \
         --noise out",
        dir.display(),
        some_of(&known),
        some_of(&planned)
    )
}

/// The first names, and how many more there are.
fn some_of(names: &[String]) -> String {
    const NAMED: usize = 6;
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// What is remembered of runs on this class of host, of the plan's workloads: with the same
/// options, else with any.
pub(super) fn of_host(manifest: &Manifest) -> Option<NoiseEstimate> {
    let all = store::load(&store::path()?);
    let class = host_class_words(host_class(&manifest.host));
    let is_here = |stored: &&StoredNoise| stored.build == manifest.tool.build && stored.host == class;
    let fitting = |alike: bool| -> Vec<&StoredNoise> {
        let fits = |stored: &&StoredNoise| {
            manifest.workloads.iter().any(|workload| {
                stored.workload == workload.name
                    && stored.version == workload.version
                    && (!alike || stored.options == workload.options)
            })
        };
        all.iter().filter(is_here).filter(fits).collect()
    };
    let (runs, what) = match (fitting(true), fitting(false)) {
        (alike, _) if !alike.is_empty() => (alike, ""),
        (_, any) if !any.is_empty() => (any, " with other options"),
        _ => return None,
    };
    let steps: Vec<StepNoise> = runs.iter().flat_map(|stored| &stored.steps).cloned().collect();
    let kind = kind(&steps);
    let count = numbered(runs.len(), "run");
    Some(NoiseEstimate { steps, from: format!("{kind} {count} on this host{what}") })
}

/// What is to be remembered of a run: an entry for each workload whose noise is known.
pub(super) fn stored(manifest: &Manifest, findings: &Findings) -> Vec<StoredNoise> {
    let all = noise(findings);
    let of_workload = |workload: &dbdyno_record::WorkloadInfo| {
        let steps: Vec<StepNoise> =
            all.iter().filter(|noise| noise.workload == workload.name).cloned().collect();
        (!steps.is_empty()).then(|| StoredNoise {
            run_id: manifest.run_id.clone(),
            started: manifest.started.clone(),
            build: manifest.tool.build.clone(),
            host: host_class_words(host_class(&manifest.host)),
            workload: workload.name.clone(),
            version: workload.version,
            options: workload.options.clone(),
            steps,
        })
    };
    manifest.workloads.iter().filter_map(of_workload).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_of_an_a_a_goes_before_that_of_ratios() {
        let noise = |deviation, again| StepNoise {
            workload: "oltp".to_owned(),
            step: "load".to_owned(),
            deviation,
            degrees: 4,
            again,
            within: None,
            seconds: 10.0,
        };
        let known = |steps: Vec<StepNoise>| NoiseEstimate { steps, from: String::new() }.of("oltp", "load");
        assert_eq!(known(vec![noise(0.01, true), noise(0.05, false)]), Some(0.01));
        assert_eq!(known(vec![noise(0.05, false)]), Some(0.05));
        assert_eq!(known(Vec::new()), None);
    }
}
