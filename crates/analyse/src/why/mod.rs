//! Says why a variant is slower: which functions of the server make the difference in CPU time per
//! operation, and what an operation waits for.
//!
//! Profile blocks (docs/guides/why.md) have sampled stacks. `names` makes functions comparable,
//! `areas` assigns them to parts of a server, and `difference` finds the functions that differ.
//! `waits` splits the time of an operation into CPU and waits. A function's time per operation is
//! its share of the samples times the server's CPU time per operation in the same window, which the
//! kernel accounts exactly. So the functions add up to that CPU time. Whether the samples are all
//! there is checked against it: their number divided by the sampling rate is CPU time too.

mod areas;
mod difference;
mod names;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{Profiled, Run, StepEvent, StepRecord, VariantInfo};
use serde::Serialize;

use self::areas::{MEMORY, area_of};
use self::difference::{Counted, contributions, paired, shown};
pub use self::difference::{Contribution, Presence};
use self::names::Function;
pub use self::waits::{NamedWait, TimePerOperation};
use crate::assemble::workloads::run_of_step;
use crate::compare::pairs::fits;
use crate::model::steps::valid;
use crate::model::{Side, StepFindings, StepRun, Validity, WorkloadFindings};
use crate::parity::{Parity, classes};
use crate::statistics::describe::{geometric_mean, mean};
use crate::statistics::student::Estimate;
use crate::window::{Hosting, WindowSummary};

/// The samples may differ from the CPU time by this share. The kernel's clock of CPU time samples
/// exactly as often as it is asked to. The rate of a hardware counter is adapted as it runs.
const MAX_GAP: [(&str, f64); 2] = [("cpu-clock", 0.03), ("cycles", 0.1)];
/// Functions of one variant that are listed, those with most time of their own first.
const LISTED: usize = 30;

/// The profiles of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    pub steps: Vec<StepProfile>,
}

/// The profiles of all variants in one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepProfile {
    pub workload: String,
    pub step: String,
    /// Unit of the step's rate. Times are per one of it.
    pub unit: String,
    pub variants: Vec<VariantProfile>,
    /// The comparisons with the base.
    pub differences: Vec<ProfileDifference>,
}

impl StepProfile {
    pub fn variant(&self, name: &str) -> Option<&VariantProfile> {
        self.variants.iter().find(|profile| profile.variant == name)
    }
}

/// A variant's profile over all valid profile blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantProfile {
    pub variant: String,
    /// Number of blocks whose samples are used.
    pub blocks: usize,
    /// What was sampled, and how; `None` where no block was profiled.
    pub profiler: Option<Profiled>,
    pub samples: u64,
    /// The server's CPU time per operation in the profile blocks.
    pub cpu_us: f64,
    /// CPU time by the samples divided by that by the kernel's account.
    pub sampled_share: f64,
    /// What the profiler costs: rate and CPU time per operation in the profile blocks divided by
    /// those in the plan's blocks.
    pub rate_share: Option<f64>,
    pub cpu_share: Option<f64>,
    /// Why the profile is not used.
    pub fault: Option<ProfileFault>,
    /// Share of the samples in files without symbols, by file.
    pub unnamed: BTreeMap<String, f64>,
    pub functions: Vec<FunctionTime>,
    /// CPU time per operation in the allocator, by the function that called it.
    pub allocations: Vec<FunctionTime>,
    /// Where the time of an operation goes; `None` for a step in which operations arrive on a
    /// schedule.
    pub time: Option<TimePerOperation>,
    /// The stacks of all blocks, with comparable names of functions.
    #[serde(skip)]
    pub stacks: BTreeMap<String, u64>,
}

/// Why a variant's profile is not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileFault {
    /// The profiler or the step failed.
    NotProfiled(String),
    /// The samples do not add up to the server's CPU time: their share of it, and the largest gap
    /// that is accepted.
    Incomplete { share: f64, accepted: f64 },
}

/// A function's CPU time per operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionTime {
    pub function: String,
    pub area: String,
    /// Time in the function itself.
    pub own_us: f64,
    /// Time in the function and all that it calls.
    pub whole_us: f64,
}

/// What makes the difference between a variant's CPU time per operation and the base's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileDifference {
    pub base: String,
    pub variant: String,
    pub blocks: usize,
    pub base_us: f64,
    pub variant_us: f64,
    /// Decided functions until they make 90 % of all decided changes, the largest first.
    pub functions: Vec<FunctionContribution>,
    /// The part of the difference that the functions above do not make.
    pub rest_us: f64,
    /// The part of the difference that decided functions make.
    pub explained: f64,
    /// All areas, the largest change first.
    pub areas: Vec<Contribution>,
    /// Settings in which the variants differ, with the functions that they turn on or off.
    pub settings: Vec<SettingContribution>,
}

impl ProfileDifference {
    pub fn difference_us(&self) -> f64 {
        self.variant_us - self.base_us
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionContribution {
    pub area: String,
    #[serde(flatten)]
    pub own: Contribution,
}

/// What a setting's functions contribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingContribution {
    /// Values of the setting in the base and in the variant.
    pub base: String,
    pub variant: String,
    /// Its name is the title of the class of settings.
    #[serde(flatten)]
    pub own: Contribution,
}

/// The samples of one variant in one step.
struct Sampled {
    profile: VariantProfile,
    blocks: Vec<Counted<Function>>,
    family: &'static str,
    /// Unit of the step's rate.
    unit: String,
}

/// Returns the profiles of a run, or `None` for a run without profile blocks.
pub(crate) fn of_run(
    run: &Run,
    workloads: &[WorkloadFindings],
    base: &str,
    parity: Option<&Parity>,
) -> Option<Why> {
    let mut steps = Vec::new();
    for (workload, step) in profiled_steps(run) {
        let measured = workloads.iter().find(|found| found.name == workload);
        let measured = measured.and_then(|found| found.steps.iter().find(|found| found.name == step));
        let of_variant = |variant| sampled(run, variant, (&workload, &step), measured);
        let all: Vec<Sampled> = run.manifest.variants.iter().filter_map(of_variant).collect();
        let of_base = all.iter().find(|sampled| sampled.profile.variant == base);
        let others = || all.iter().filter(|sampled| sampled.profile.variant != base);
        let differences = of_base.map_or_else(Vec::new, |of_base| {
            others().filter_map(|sampled| difference(of_base, sampled, parity)).collect()
        });
        let unit = all.first().map_or_else(String::new, |sampled| sampled.unit.clone());
        let variants = all.into_iter().map(|sampled| sampled.profile).collect();
        steps.push(StepProfile { workload, step, unit, variants, differences });
    }
    (!steps.is_empty()).then_some(Why { steps })
}

/// Returns the profiles of one variant from each of two runs, in the steps that both have profiled.
/// Their blocks are paired in their order, because each block has as little to do with one block of
/// the other run as with another.
pub(crate) fn between(base: Side<'_>, new: Side<'_>) -> Vec<StepProfile> {
    let of_new = profiled_steps(new.run);
    let common = profiled_steps(base.run).into_iter().filter(|step| of_new.contains(step));
    let mut found = Vec::new();
    for (workload, step) in common {
        let of_side = |side: Side<'_>| {
            let variant = side.run.manifest.variants.iter().find(|info| info.name == side.variant)?;
            let mut sampled = sampled(side.run, variant, (&workload, &step), None)?;
            (1..).zip(&mut sampled.blocks).for_each(|(number, block)| block.block = number);
            Some(sampled)
        };
        let (Some(base), Some(new)) = (of_side(base), of_side(new)) else { continue };
        let differences = difference(&base, &new, None).into_iter().collect();
        let (unit, variants) = (base.unit, vec![base.profile, new.profile]);
        found.push(StepProfile { workload, step, unit, variants, differences });
    }
    found
}

/// Returns workload and name of each step that was to be profiled, in the order of the plan.
fn profiled_steps(run: &Run) -> Vec<(String, String)> {
    let asked: BTreeSet<(&str, &str)> = run
        .profiled_cells
        .iter()
        .flat_map(|cell| cell.steps.iter().map(move |step| (cell.id.workload.as_str(), step)))
        .filter(|(_, step)| step.events.iter().any(is_about_profile))
        .map(|(workload, step)| (workload, step.name.as_str()))
        .collect();
    let planned = run.manifest.workloads.iter();
    let planned = planned.flat_map(|info| info.steps.iter().map(move |step| (info.name.as_str(), step.as_str())));
    planned.filter(|step| asked.contains(step)).map(|(of, step)| (of.to_owned(), step.to_owned())).collect()
}

fn is_about_profile(event: &StepEvent) -> bool {
    matches!(event, StepEvent::Profiled(_) | StepEvent::NotProfiled { .. })
}

/// Returns a variant's samples in a step, or `None` where it has no profile block of the step.
fn sampled(
    run: &Run,
    variant: &VariantInfo,
    (workload, step): (&str, &str),
    measured: Option<&StepFindings>,
) -> Option<Sampled> {
    let cells = run.profiled_cells.iter();
    let cells = cells.filter(|cell| cell.id.variant == variant.name && cell.id.workload == workload);
    let records: Vec<(&StepRecord, StepRun)> = cells
        .flat_map(|cell| cell.steps.iter().map(move |record| (cell, record)))
        .filter(|(_, record)| record.name == step)
        .map(|(cell, record)| (record, run_of_step(&run.manifest, variant, cell, record)))
        .collect();
    if records.is_empty() {
        return None;
    }
    let usable: Vec<&(&StepRecord, StepRun)> = records
        .iter()
        .filter(|(record, run)| run.validity == Validity::Valid && !record.stacks.is_empty())
        .collect();
    let blocks: Vec<Counted<Function>> = usable.iter().filter_map(|(record, run)| counted(record, run)).collect();
    let runs: Vec<&StepRun> = usable.iter().map(|(_, run)| run).collect();
    let (sampled_share, fault) = checked(&records, &usable);
    let family = dbdyno_products::FamilyFacts::named(&variant.driver).name;
    let mut profile = VariantProfile {
        variant: variant.name.clone(),
        blocks: blocks.len(),
        profiler: usable.iter().find_map(|(record, _)| profiled(record)).cloned(),
        samples: blocks.iter().flat_map(|block| block.samples.values()).sum(),
        cpu_us: mean(&blocks.iter().map(|block| block.cpu_us).collect::<Vec<_>>()).unwrap_or(0.0),
        sampled_share,
        rate_share: cost(measured, variant, &runs, |run| Some(run.rate)),
        cpu_share: cost(measured, variant, &runs, |run| run.cost.server_cpu_us),
        fault,
        unnamed: unnamed(&blocks),
        functions: Vec::new(),
        allocations: Vec::new(),
        time: waits::time_per_operation(&usable),
        stacks: stacks(&usable),
    };
    profile.functions = functions(&profile, family);
    profile.allocations = allocations(&profile, family);
    let unit = records.first().map_or_else(String::new, |(record, _)| record.spec.headline.label.clone());
    Some(Sampled { profile, blocks, family, unit })
}

fn profiled(record: &StepRecord) -> Option<&Profiled> {
    record.events.iter().find_map(|event| match event {
        StepEvent::Profiled(profiled) => Some(profiled),
        _ => None,
    })
}

/// Returns the samples of one block, by the function that ran.
fn counted(record: &StepRecord, run: &StepRun) -> Option<Counted<Function>> {
    let mut samples = BTreeMap::new();
    for (stack, count) in &record.stacks {
        let function = Function::of(stack.rsplit(';').next()?);
        *samples.entry(function).or_default() += count;
    }
    Some(Counted { block: run.block, cpu_us: run.cost.server_cpu_us?, samples })
}

/// Returns the CPU time by the samples, as a share of that by the kernel's account, over all blocks
/// together, and why the profile is not used.
fn checked(
    records: &[(&StepRecord, StepRun)],
    usable: &[&(&StepRecord, StepRun)],
) -> (f64, Option<ProfileFault>) {
    let Some(first) = usable.iter().find_map(|(record, _)| profiled(record)) else {
        return (0.0, Some(ProfileFault::NotProfiled(reason(records))));
    };
    let rate = f64::from(first.samples_per_second);
    let samples: u64 = usable.iter().flat_map(|(record, _)| &record.stacks).map(|(_, count)| count).sum();
    let seconds: f64 = usable.iter().filter_map(|(record, _)| cpu_seconds(record)).sum();
    let share = if seconds > 0.0 { samples as f64 / rate / seconds } else { 0.0 };
    let accepted = MAX_GAP.iter().find(|(event, _)| *event == first.event_sampled_sampled).map_or(0.03, |(_, gap)| *gap);
    let is_whole = (share - 1.0).abs() <= accepted;
    (share, (!is_whole).then_some(ProfileFault::Incomplete { share, accepted }))
}

/// The server's CPU time in the common window, in seconds.
fn cpu_seconds(record: &StepRecord) -> Option<f64> {
    let summary = WindowSummary::of(record, Hosting::Process, 0);
    let per_second = summary.per_second("server", &["cpu_us"])?;
    Some(per_second * summary.window.seconds() / 1e6)
}

/// Returns why no block has a profile that can be used.
fn reason(records: &[(&StepRecord, StepRun)]) -> String {
    let said = records.iter().flat_map(|(record, _)| &record.events).find_map(|event| match event {
        StepEvent::NotProfiled { reason } => Some(reason.clone()),
        _ => None,
    });
    said.unwrap_or_else(|| "the step is invalid or failed in every profile block".to_owned())
}

/// Returns a figure in the profile blocks divided by that in the plan's blocks.
fn cost(
    measured: Option<&StepFindings>,
    variant: &VariantInfo,
    profiled: &[&StepRun],
    figure: fn(&StepRun) -> Option<f64>,
) -> Option<f64> {
    let without: Vec<f64> = valid(measured?.runs_of(&variant.name)).filter_map(figure).collect();
    let with: Vec<f64> = profiled.iter().filter_map(|run| figure(run)).collect();
    Some(geometric_mean(&with)? / geometric_mean(&without)?)
}

/// Returns the shares of the samples that have no function's name, by file.
fn unnamed(blocks: &[Counted<Function>]) -> BTreeMap<String, f64> {
    let all: u64 = blocks.iter().flat_map(|block| block.samples.values()).sum();
    let mut found = BTreeMap::new();
    let samples = blocks.iter().flat_map(|block| &block.samples);
    for (function, count) in samples.filter(|(function, _)| function.is_unnamed()) {
        let file = function.name.trim_matches(['[', ']']).to_owned();
        *found.entry(file).or_default() += *count as f64 / all as f64;
    }
    found
}

/// Returns all stacks with comparable names. The first frame, which is the name of the thread, stays
/// as it is.
fn stacks(usable: &[&(&StepRecord, StepRun)]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (stack, count) in usable.iter().flat_map(|(record, _)| &record.stacks) {
        let mut frames = stack.split(';');
        let thread = frames.next().unwrap_or_default().to_owned();
        let names = frames.map(|frame| Function::of(frame).shown());
        let stack: Vec<String> = std::iter::once(thread).chain(names).collect();
        *all.entry(stack.join(";")).or_default() += count;
    }
    all
}

/// Returns the functions with most time of their own, with the time in all that they call.
fn functions(profile: &VariantProfile, family: &str) -> Vec<FunctionTime> {
    let (mut own, mut whole) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    for (stack, count) in &profile.stacks {
        let frames: Vec<&str> = stack.split(';').skip(1).collect();
        if let Some(last) = frames.last() {
            *own.entry(last).or_default() += count;
        }
        for frame in frames.into_iter().collect::<BTreeSet<_>>() {
            *whole.entry(frame).or_default() += count;
        }
    }
    let unit_us = profile.cpu_us / (profile.samples as f64).max(1.0);
    let mut found: Vec<(&str, u64)> = own.into_iter().collect();
    found.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let time = |(name, samples): (&str, u64)| FunctionTime {
        function: name.to_owned(),
        area: area_of(&Function::of(name), family).to_owned(),
        own_us: unit_us * samples as f64,
        whole_us: unit_us * whole.get(name).copied().unwrap_or(samples) as f64,
    };
    found.into_iter().take(LISTED).map(time).collect()
}

/// Returns the time in the allocator by the function that called it, the largest first. Frames of
/// the allocator itself, and of the server's own functions for it, are passed over.
fn allocations(profile: &VariantProfile, family: &str) -> Vec<FunctionTime> {
    let is_memory = |frame: &&str| area_of(&Function::of(frame), family) == MEMORY;
    let mut by_caller = BTreeMap::<&str, u64>::new();
    for (stack, count) in &profile.stacks {
        let frames: Vec<&str> = stack.split(';').skip(1).collect();
        if frames.last().is_some_and(is_memory) {
            let caller = frames.iter().rev().find(|frame| !is_memory(frame));
            *by_caller.entry(caller.copied().unwrap_or("unknown caller")).or_default() += count;
        }
    }
    let unit_us = profile.cpu_us / (profile.samples as f64).max(1.0);
    let mut found: Vec<(&str, u64)> = by_caller.into_iter().collect();
    found.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let time = |(name, samples): (&str, u64)| {
        let us = unit_us * samples as f64;
        FunctionTime { function: name.to_owned(), area: MEMORY.to_owned(), own_us: us, whole_us: us }
    };
    found.into_iter().take(LISTED).map(time).collect()
}

/// Returns what makes the difference to the base, or `None` where one of the two profiles is not
/// used, or they have no block in common.
fn difference(base: &Sampled, variant: &Sampled, parity: Option<&Parity>) -> Option<ProfileDifference> {
    if base.profile.fault.is_some() || variant.profile.fault.is_some() {
        return None;
    }
    let pairs = paired(&base.blocks, &variant.blocks);
    let cpu = |side: fn(&(Counted<Function>, Counted<Function>)) -> f64| {
        mean(&pairs.iter().map(side).collect::<Vec<_>>())
    };
    let (base_us, variant_us) = (cpu(|pair| pair.0.cpu_us)?, cpu(|pair| pair.1.cpu_us)?);
    let family = if variant.family == base.family { variant.family } else { "" };
    let area = |function: &Function| area_of(function, family);
    let all = contributions(&pairs, Function::shown);
    let decided: f64 = all.iter().filter(|one| one.is_decided()).map(|one| one.difference_us).sum();
    let rows = shown(&all);
    let rest_us = variant_us - base_us - rows.iter().map(|one| one.difference_us).sum::<f64>();
    let with_area = |own: Contribution| FunctionContribution {
        area: area(&Function::of(&own.name)).to_owned(),
        own,
    };
    Some(ProfileDifference {
        base: base.profile.variant.clone(),
        variant: variant.profile.variant.clone(),
        blocks: pairs.len(),
        base_us,
        variant_us,
        functions: rows.into_iter().map(with_area).collect(),
        rest_us,
        explained: decided / (variant_us - base_us),
        areas: by_area(&pairs, area),
        settings: by_setting(&pairs, (&base.profile.variant, &variant.profile.variant), parity),
    })
}

/// Samples of the base and of the variant in the same blocks.
type Pairs = [(Counted<Function>, Counted<Function>)];

fn by_area(pairs: &Pairs, area: impl Fn(&Function) -> &'static str) -> Vec<Contribution> {
    let group = |counted: &Counted<Function>| counted.grouped(|function| Some(area(function)));
    let pairs: Vec<_> = pairs.iter().map(|(base, variant)| (group(base), group(variant))).collect();
    contributions(&pairs, |area| area.unwrap_or_default().to_owned())
}

/// Returns what the functions of each setting contribute in which the two variants differ.
fn by_setting(pairs: &Pairs, (base, variant): (&str, &str), parity: Option<&Parity>) -> Vec<SettingContribution> {
    let differing = parity.map_or_else(Vec::new, |parity| parity.differences(base, variant));
    let mut found = Vec::new();
    for setting in differing {
        let Some(class) = classes().iter().find(|class| class.id == setting.class) else { continue };
        let is_its = |function: &Function| class.functions.iter().any(|pattern| fits(pattern, &function.name));
        let group = |counted: &Counted<Function>| counted.grouped(|function| is_its(function).then_some(()));
        let pairs: Vec<_> = pairs.iter().map(|(base, variant)| (group(base), group(variant))).collect();
        let own = contributions(&pairs, |group| group.map_or_else(String::new, |()| class.title.clone()));
        let own = own.into_iter().find(|one| !one.name.is_empty() && one.is_decided());
        found.extend(own.map(|own| SettingContribution { base: setting.base, variant: setting.variant, own }));
    }
    found
}

#[cfg(test)]
mod tests;
