//! Computes which differences a plan can detect, from the noise of a run or of this host's runs. It
//! makes the table of `dbdyno plan`, and keeps the noise of ended runs in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbdyno_analyse::{
    Findings, Forecast, StepNoise, analyse, fixed_blocks, forecast, host_class, margin_of, noise, numbered,
    pooled,
};
use dbdyno_plan::{Estimate, Plan, judged_steps};
use dbdyno_record::{Manifest, Run, WorkloadInfo};
use dbdyno_report::document::{Block, Column, Table};
use dbdyno_report::host_class_words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::PlanArgs;
use crate::exit::ExitError;
use crate::{files, terminal};

/// Assumed noises that are shown when no noise is known. 1 % is usual for a quiet machine.
const ASSUMED: [f64; 4] = [0.005, 0.01, 0.02, 0.05];

#[derive(Debug, Serialize)]
pub(crate) struct Power {
    pub(crate) blocks: u32,
    /// Highest number of blocks that fit into the plan's budget. Interim analyses cost power, so
    /// they detect only as much as a fixed number of `blocks`. It is `None` for a plan without a
    /// budget.
    pub(crate) most_blocks: Option<u32>,
    /// Number of comparisons, which are judged together: the steps that can have a verdict, times
    /// the variants other than the base.
    pub(crate) comparisons: usize,
    /// Difference that is to be detected, as a fraction. `None` stands for twice the margin of each
    /// step.
    pub(crate) wanted: Option<f64>,
    /// The runs that the noise comes from, in words. It is `None` when the noise is not known.
    pub(crate) noise_from: Option<String>,
    /// The plan's steps that can have a verdict. Warm-ups, and loads of the first block alone, have
    /// none.
    pub(crate) steps: Vec<StepPower>,
    /// The differences that the plan can detect for each noise in [`ASSUMED`], when no noise is
    /// known.
    pub(crate) assumed: Vec<StepPower>,
}

/// The difference that the plan can detect in a step, or in any step with a given noise.
#[derive(Debug, Serialize)]
pub(crate) struct StepPower {
    /// The step's name, or `None` for an assumed noise.
    pub(crate) step: Option<String>,
    /// Standard deviation of a block's ratio, as a fraction. It is `None` when it is not known.
    pub(crate) noise: Option<f64>,
    pub(crate) margin: f64,
    #[serde(flatten)]
    pub(crate) forecast: Option<Forecast>,
}

/// Returns the power of a plan, which would be recorded as `manifest`. It is `None` for a plan that
/// compares nothing.
pub(crate) fn of_plan(
    plan: &Plan,
    estimate: &Estimate,
    manifest: &Manifest,
    args: &PlanArgs,
) -> Result<Option<Power>, ExitError> {
    let most_blocks = plan.budget.map(|budget| estimate.blocks_within(budget.0));
    let blocks = most_blocks.map_or(plan.blocks, fixed_blocks);
    let control = usize::from(plan.aa);
    let others = plan.variants.len().saturating_sub(1 + control);
    if plan.variants.len() < 2 {
        return Ok(None);
    }
    let known = match &args.noise {
        Some(run) => Some(of_run(run, manifest)?),
        None => of_host(manifest),
    };
    let steps: usize =
        manifest.workloads.iter().map(|workload| judged_steps(plan, &workload.name).len()).sum();
    let wanted = args.detect.map(|percent| percent / 100.0);
    let comparisons = steps * others.max(1);
    let of_noise = |step: Option<String>, deviation: Option<f64>, margin: f64| StepPower {
        step,
        noise: deviation.map(f64::exp_m1),
        margin,
        forecast: deviation.map(|deviation| {
            forecast(deviation, blocks, comparisons, wanted.unwrap_or(2.0 * margin), margin)
        }),
    };
    let several = manifest.workloads.len() > 1;
    let mut all = Vec::new();
    for workload in &manifest.workloads {
        for step in &judged_steps(plan, &workload.name) {
            let name = if several { format!("{} {step}", workload.name) } else { step.clone() };
            let deviation = known.as_ref().and_then(|known| known.of(&workload.name, step));
            all.push(of_noise(Some(name), deviation, margin_of(manifest, step)));
        }
    }
    let is_known = all.iter().any(|step| step.noise.is_some());
    let assumed = if is_known {
        Vec::new()
    } else {
        ASSUMED.map(|noise| of_noise(None, Some(noise.ln_1p()), plan.margin)).into()
    };
    Ok(Some(Power {
        blocks,
        most_blocks,
        comparisons,
        wanted,
        noise_from: known.filter(|_| is_known).map(|known| known.from),
        steps: all,
        assumed,
    }))
}

/// Keeps the noise of a run that has ended, for the next plan. A failure to keep it is only a
/// warning, because the run itself still has it.
pub(crate) fn remember(manifest: &Manifest, findings: &Findings) {
    if let Some(path) = path()
        && let Err(ended) = save(&path, stored(manifest, findings))
    {
        terminal::warning(&format!(
            "the noise of this run is not kept for `dbdyno plan`: {}",
            ended.message.unwrap_or_default()
        ));
    }
}

/// Where the noise of a plan's steps comes from: one run, or all remembered runs of this host.
struct NoiseEstimate {
    steps: Vec<StepNoise>,
    /// The runs that the noise comes from, in words.
    from: String,
}

impl NoiseEstimate {
    /// Returns the standard deviation of a block's log ratio in a step, pooled over the runs. Where
    /// there is a control (A/A), only its ratios count.
    fn of(&self, workload: &str, step: &str) -> Option<f64> {
        let of_step = || self.steps.iter().filter(|noise| noise.workload == workload && noise.step == step);
        let control: Vec<_> = of_step().filter(|noise| noise.control).map(part).collect();
        let any: Vec<_> = of_step().map(part).collect();
        pooled(if control.is_empty() { &any } else { &control }).map(|(deviation, _)| deviation)
    }
}

fn part(noise: &StepNoise) -> (f64, u32) {
    (noise.deviation, noise.degrees)
}

/// Returns the noise of the run in `dir`, for the plan that `manifest` describes.
fn of_run(dir: &Path, manifest: &Manifest) -> Result<NoiseEstimate, ExitError> {
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
        return Err(ExitError::usage(no_common_step(dir, &steps, manifest)));
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
    Ok(NoiseEstimate { steps, from })
}

fn kind(steps: &[StepNoise]) -> &'static str {
    let of_control = |noise: &StepNoise| noise.control;
    // Where both the control and the ratios give a step's noise, only the control's counts.
    let has_control = |noise: &StepNoise| {
        steps
            .iter()
            .any(|other| other.control && (&other.workload, &other.step) == (&noise.workload, &noise.step))
    };
    match (steps.iter().any(of_control), steps.iter().all(has_control)) {
        (_, true) => "A/A of",
        (true, false) => "A/A, or ratios of steps without one, of",
        (false, false) => "ratios of",
    }
}

/// Writes the error for a run that shares no step with the plan.
fn no_common_step(dir: &Path, steps: &[StepNoise], manifest: &Manifest) -> String {
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

/// Lists the first names, and says how many more there are.
fn some_of(names: &[String]) -> String {
    const NAMED: usize = 6;
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Returns the stored noise of the plan's workloads on this class of host. It takes runs with the
/// same options, or runs with any options where there are none.
fn of_host(manifest: &Manifest) -> Option<NoiseEstimate> {
    let all = load(&path()?);
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

/// Returns the entries to store for a run, one for each workload whose noise is known.
fn stored(manifest: &Manifest, findings: &Findings) -> Vec<StoredNoise> {
    let all = noise(findings);
    let of_workload = |workload: &WorkloadInfo| {
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

/// Version of the file's schema. A file of another version counts as absent and is written again.
const FORMAT: u32 = 2;
/// Number of entries that are kept, which are the newest.
const MOST: usize = 200;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredNoise {
    run_id: String,
    started: String,
    /// Kind of build of dbdyno. A debug build has a noise of its own.
    build: String,
    /// Class of the host in words. Entries with other words match nothing.
    host: BTreeMap<String, String>,
    workload: String,
    version: u32,
    options: Map<String, Value>,
    steps: Vec<StepNoise>,
}

/// Returns the path of `noise.json`, or `None` without a home directory.
fn path() -> Option<PathBuf> {
    files::in_state_folder("noise.json")
}

/// Returns all stored entries. A file that cannot be read or understood counts as empty.
fn load(path: &Path) -> Vec<StoredNoise> {
    files::load_cache(path, FORMAT)
}

/// Adds entries. They replace those of the same run and workload, which exist when a run was
/// resumed.
fn save(path: &Path, new: Vec<StoredNoise>) -> Result<(), ExitError> {
    let is_same =
        |old: &StoredNoise, new: &StoredNoise| (&old.run_id, &old.workload) == (&new.run_id, &new.workload);
    files::add_to_cache(path, (FORMAT, MOST), new, is_same)
}

const NOTE: &str = "noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or \
    slower, beyond the margin; as the only one: if all other comparisons are equal. same within: margin within which two equal \
    variants get the verdict same.";

pub(crate) fn blocks(power: &Power) -> Vec<Block> {
    let what = match power.blocks {
        blocks if let Some(most) = power.most_blocks => {
            format!(
                "what up to {most} blocks within the budget detect, as {blocks} fixed ones, in 80 % of runs"
            )
        }
        1 => "1 block detects nothing".to_owned(),
        blocks => format!("what {blocks} blocks detect in 80 % of runs"),
    };
    let (from, steps) = match &power.noise_from {
        Some(from) => (format!("noise: {from}"), &power.steps),
        None => ("noise of this host unknown: assumed noise".to_owned(), &power.assumed),
    };
    let mut table = table(power, steps);
    table.title = format!("power: {what} ({from})");
    let mut blocks = vec![Block::Table(table), Block::text(NOTE)];
    if power.noise_from.is_none() {
        blocks.push(Block::text(
            "To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.",
        ));
    }
    blocks
}

fn table(power: &Power, steps: &[StepPower]) -> Table {
    let goal = match power.wanted {
        Some(wanted) => format!("blocks for {}", percent(Some(wanted))),
        None => "blocks for twice the margin".to_owned(),
    };
    let heads = [
        if power.noise_from.is_some() { "step" } else { "" }.to_owned(),
        "noise".to_owned(),
        "detects".to_owned(),
        format!("as the only one of {}", power.comparisons),
        "same within".to_owned(),
        "margin".to_owned(),
        goal,
        "blocks for same".to_owned(),
    ];
    let is_shown = |at: &usize| match at {
        0 => power.noise_from.is_some(),
        3 => power.comparisons >= 2,
        _ => true,
    };
    let shown: Vec<usize> = (0..heads.len()).filter(is_shown).collect();
    let columns = shown.iter().map(|at| Column::ranked(&heads[*at], "", RANKS[*at])).collect();
    let mut table = Table { labels: usize::from(power.noise_from.is_some()), columns, ..Table::default() };
    for step in steps {
        let row = row(step, power);
        table.push(shown.iter().map(|at| row[*at].clone()));
    }
    table
}

/// Ranks of the columns. Columns with a higher rank are left out first on a narrow terminal.
const RANKS: [u8; 8] = [0, 0, 0, 3, 2, 2, 1, 4];

fn row(step: &StepPower, power: &Power) -> Vec<String> {
    let seen = step.forecast.as_ref();
    let blocks = |count: Option<Option<u32>>| match count {
        None => "?".to_owned(),
        Some(None) if power.wanted.is_some_and(|wanted| wanted <= step.margin) => {
            "within the margin".to_owned()
        }
        Some(None) => ">1000".to_owned(),
        Some(Some(count)) => count.to_string(),
    };
    vec![
        step.step.clone().unwrap_or_default(),
        percent_or(step.noise, "unknown"),
        percent_or(seen.and_then(|seen| seen.detects), none_of(step, power)),
        percent_or(seen.and_then(|seen| seen.detects_alone), none_of(step, power)),
        percent_or(seen.and_then(|seen| seen.same_within), none_of(step, power)),
        percent(Some(step.margin)),
        blocks(seen.map(|seen| seen.blocks_for_difference)),
        blocks(seen.map(|seen| seen.blocks_for_same)),
    ]
}

fn none_of(step: &StepPower, power: &Power) -> &'static str {
    if step.noise.is_some() && power.blocks < 2 { "nothing" } else { "?" }
}

fn percent_or(fraction: Option<f64>, otherwise: &str) -> String {
    if fraction.is_some() { percent(fraction) } else { otherwise.to_owned() }
}

/// Writes `0.53 %` or `12 %`. The noise of a few blocks justifies no more than two digits.
fn percent(fraction: Option<f64>) -> String {
    match fraction.map(|fraction| 100.0 * fraction) {
        None => String::new(),
        Some(value) if value < 9.95 => format!("{value:.1} %"),
        // Differences of more than 100 % need no exact figure.
        Some(value) if value >= 100.0 => ">100 %".to_owned(),
        Some(value) => format!("{value:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_report::document::terminal;

    use super::*;

    #[test]
    fn the_noise_of_a_control_is_preferred_to_that_of_ratios() {
        let noise = |deviation, control| StepNoise {
            workload: "oltp".to_owned(),
            step: "load".to_owned(),
            deviation,
            degrees: 4,
            control,
        };
        let known = |steps: Vec<StepNoise>| NoiseEstimate { steps, from: String::new() }.of("oltp", "load");
        assert_eq!(known(vec![noise(0.01, true), noise(0.05, false)]), Some(0.01));
        assert_eq!(known(vec![noise(0.05, false)]), Some(0.05));
        assert_eq!(known(Vec::new()), None);
    }

    fn entry(run_id: &str, degrees: u32) -> StoredNoise {
        let noise = StepNoise {
            workload: "oltp".to_owned(),
            step: "load".to_owned(),
            deviation: 0.01,
            degrees,
            control: false,
        };
        StoredNoise {
            run_id: run_id.to_owned(),
            started: String::new(),
            build: "release".to_owned(),
            host: BTreeMap::new(),
            workload: "oltp".to_owned(),
            version: 1,
            options: Map::new(),
            steps: vec![noise],
        }
    }

    #[test]
    fn a_run_is_remembered_once_and_only_the_newest_are_kept() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("state/noise.json");
        save(&path, Vec::new()).expect("nothing to write");
        assert!(!path.exists());
        for (run, degrees) in [("a", 2), ("b", 2), ("a", 4)] {
            save(&path, vec![entry(run, degrees)]).expect("a writable folder");
        }
        assert_eq!(load(&path), [entry("b", 2), entry("a", 4)]);
        save(&path, (0..MOST).map(|run| entry(&run.to_string(), 1)).collect()).expect("a writable folder");
        assert_eq!((load(&path).len(), load(&path)[0].run_id.as_str()), (MOST, "0"));
        std::fs::write(&path, "{\"format\":2}").expect("a file");
        assert!(load(&path).is_empty());
    }

    fn step(name: Option<&str>, deviation: Option<f64>, blocks: u32) -> StepPower {
        StepPower {
            step: name.map(str::to_owned),
            noise: deviation.map(f64::exp_m1),
            margin: 0.02,
            forecast: deviation.map(|deviation| forecast(deviation, blocks, 10, 0.04, 0.02)),
        }
    }

    #[test]
    fn a_plan_of_known_noise_shows_what_each_step_can_detect() {
        let power = Power {
            most_blocks: None,
            blocks: 5,
            comparisons: 10,
            wanted: None,
            noise_from: Some("A/A of 2 runs on this host".to_owned()),
            steps: vec![
                step(Some("l.i0"), Some(0.005), 5),
                step(Some("qr100"), Some(0.03), 5),
                step(Some("qp100"), None, 5),
            ],
            assumed: Vec::new(),
        };
        insta::assert_snapshot!(terminal(&blocks(&power), 160, false), @r"
        power: what 5 blocks detect in 80 % of runs (noise: A/A of 2 runs on this host)
        step     noise  detects  as the only one of 10  same within  margin  blocks for twice the margin  blocks for same
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        l.i0     0.5 %    2.2 %                  2.2 %        0.8 %   2.0 %                            3                3
        qr100    3.0 %    5.2 %                  9.9 %        4.9 %   2.0 %                            7               22
        qp100  unknown        ?                      ?            ?   2.0 %                            ?                ?
        noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond the margin; as the only one: if all other
        comparisons are equal. same within: margin within which two equal variants get the verdict same.
        ");
    }

    #[test]
    fn on_a_narrow_terminal_columns_of_higher_rank_make_room() {
        let steps = vec![step(Some("update-non-index"), Some(0.005), 5), step(Some("qp100"), None, 5)];
        let noise_from = Some("A/A of 2 runs on this host".to_owned());
        let power = Power {
            most_blocks: None,
            blocks: 5,
            comparisons: 10,
            wanted: None,
            noise_from,
            steps,
            assumed: Vec::new(),
        };
        let text = terminal(&blocks(&power), 90, false);
        let (table, _) = text.split_once("noise: standard").unwrap();
        insta::assert_snapshot!(table, @r"
        power: what 5 blocks detect in 80 % of runs (noise: A/A of 2 runs on this host)
        step                noise  detects  same within  margin  blocks for twice the margin
        ────────────────────────────────────────────────────────────────────────────────────
        update-non-index    0.5 %    2.2 %        0.8 %   2.0 %                            3
        qp100             unknown        ?            ?   2.0 %                            ?
        ");
    }

    #[test]
    fn without_noise_a_plan_shows_a_table_by_assumed_noise() {
        let power = Power {
            most_blocks: None,
            blocks: 1,
            comparisons: 1,
            wanted: Some(0.03),
            noise_from: None,
            steps: Vec::new(),
            assumed: vec![step(None, Some(0.01), 1), step(None, Some(0.05), 1)],
        };
        insta::assert_snapshot!(terminal(&blocks(&power), 160, false), @r"
        power: 1 block detects nothing (noise of this host unknown: assumed noise)
        noise  detects  same within  margin  blocks for 3.0 %  blocks for same
        ──────────────────────────────────────────────────────────────────────
        1.0 %  nothing      nothing   2.0 %                 3                4
        5.1 %  nothing      nothing   2.0 %                15               56
        noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster or slower, beyond the margin; as the only one: if all other
        comparisons are equal. same within: margin within which two equal variants get the verdict same.
        To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.
        ");
    }
}
