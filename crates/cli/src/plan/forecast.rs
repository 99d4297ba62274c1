//! Forecasts how long a plan takes. It uses the times of finished runs on this class of host, and
//! the shipped figures where there are none.
//!
//! Where the user gives a time, it chooses a workload's sizes so that the load and the writes take
//! about as long as the measured steps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_analyse::host_class;
use dbdyno_model::{Design, PlanDuration};
use dbdyno_plan::{Basis, CellEstimate, Estimate, MeasuredCell, PastCell, Plan, estimate};
use dbdyno_record::{
    CellEvent, CellRecord, HostInfo, Manifest, Outcome, Run, RunEvent, StepEvent, StepRecord,
};
use dbdyno_report::host_class_words;
use dbdyno_workloads::plans::{SIZE, STEP_TIME, marked, of_record, parse_with};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::exit::ExitError;
use crate::plan::plan_source::{options, resolved, text};
use crate::plan::prepare;
use crate::plan::prepare::host_info;
use crate::{files, host, terminal, time};

/// Name of the work that brings a server to rest.
const SETTLE: &str = "cleanup";
/// Version of the file's schema, and of the shipped figures that its times are compared with. A
/// change of either must raise it. A file of another version counts as absent and is written again.
const FORMAT: u32 = 2;
/// Number of entries that are kept, which are the newest.
const MOST: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredCell {
    run_id: String,
    /// Kind of build of dbdyno.
    build: String,
    /// Class of the host in words. Entries with other words match nothing.
    host: BTreeMap<String, String>,
    cell: PastCell,
}

/// Returns the forecast for a plan on this host.
pub(crate) fn of(plan: &Plan) -> Estimate {
    let info = host_info(plan, Path::new("."));
    estimate(plan, &Basis { past: past(&info), ..basis(plan, &info) })
}

/// Returns the basis of a forecast on this host, without the times of finished runs.
fn basis(plan: &Plan, info: &HostInfo) -> Basis {
    Basis {
        cpus: host::usable_cpus().ok().and_then(|usable| u32::try_from(usable.0.len()).ok()),
        memory_bytes: Some(info.memory_bytes).filter(|bytes| *bytes > 0),
        only_cache_bytes: prepare::only_cache_bytes(plan),
        past: Vec::new(),
    }
}

/// Returns the stored times of this class of host that builds of this kind have measured.
fn past(info: &HostInfo) -> Vec<PastCell> {
    let Some(path) = path() else { return Vec::new() };
    let class = host_class_words(host_class(info));
    let build = crate::plan::prepare::tool().build;
    let is_here = |stored: &StoredCell| stored.build == build && stored.host == class;
    let all = files::load_cache::<StoredCell>(&path, FORMAT).into_iter();
    all.filter(is_here).map(|stored| stored.cell).collect()
}

/// Keeps the times of a run that has ended, for the next plan. A failure to keep them is only a
/// warning.
pub(crate) fn remember(run: &Run) {
    let Some(path) = path() else { return };
    // The cells of a resumed run replace those of its earlier sessions.
    let is_same = |old: &StoredCell, new: &StoredCell| old.run_id == new.run_id;
    let kept = stored(run).and_then(|cells| files::add_to_cache(&path, (FORMAT, MOST), cells, is_same));
    if let Err(ExitError { message, .. }) = kept {
        let why = message.unwrap_or_default();
        terminal::warning(&format!("the times of this run are not kept for `dbdyno plan`: {why}"));
    }
}

fn stored(run: &Run) -> Result<Vec<StoredCell>, ExitError> {
    let manifest: &Manifest = &run.manifest;
    let plan = of_record(&manifest.plan)?;
    // Cells are not stored if they alternated, if several client hosts loaded them or if a fleet
    // ran them, because their times say little about a plan on this host alone.
    let shares_time = plan.design == Design::Alternate || plan.clients.is_some();
    if shares_time || run.events.iter().any(is_of_a_fleet) {
        return Ok(Vec::new());
    }
    let forecast = estimate(&plan, &basis(&plan, &manifest.host));
    let class = host_class_words(host_class(&manifest.host));
    let of_cell = |cell: &CellEstimate| {
        let variant = plan.variants.iter().find(|variant| variant.name == cell.variant)?;
        let blocks = cells(run, &cell.variant, &cell.workload);
        Some(StoredCell {
            run_id: manifest.run_id.clone(),
            build: manifest.tool.build.clone(),
            host: class.clone(),
            cell: PastCell::of(&plan, variant, cell, &blocks)?,
        })
    };
    Ok(forecast.cells.iter().filter_map(of_cell).collect())
}

fn is_of_a_fleet(event: &RunEvent) -> bool {
    matches!(event, RunEvent::BlockMeasured { .. })
}

/// Returns the completed cells of a variant and workload, in the order of their blocks.
fn cells(run: &Run, variant: &str, workload: &str) -> Vec<MeasuredCell> {
    let is_wanted = |cell: &&CellRecord| cell.id.variant == variant && cell.id.workload == workload;
    let completed = |cell: &&CellRecord| cell.outcome() == Some(Outcome::Completed);
    run.cells.iter().filter(is_wanted).filter(completed).filter_map(|cell| measured(run, cell)).collect()
}

fn measured(run: &Run, cell: &CellRecord) -> Option<MeasuredCell> {
    let (started, ended) = run.cell_span_us(&cell.id)?;
    let mut steps: BTreeMap<String, Duration> = BTreeMap::new();
    for step in &cell.steps {
        *steps.entry(step.name.clone()).or_default() += took(step);
    }
    let settling = cell.events.iter().filter_map(|event| match event {
        CellEvent::Work { name, duration_us, .. } if name == SETTLE => {
            Some(Duration::from_micros(*duration_us))
        }
        _ => None,
    });
    let settling = settling.sum();
    Some(MeasuredCell { total: Duration::from_micros(ended.saturating_sub(started)), steps, settling })
}

/// Returns the time from connecting to the end of the last operation.
fn took(step: &StepRecord) -> Duration {
    let of_event = |event: &StepEvent| match event {
        StepEvent::Barrier { connect_us, .. } => *connect_us,
        StepEvent::Ended { at_us, .. } => *at_us,
        _ => 0,
    };
    Duration::from_micros(step.events.iter().map(of_event).sum())
}

/// Returns the path of `times.json`, or `None` without a home directory.
fn path() -> Option<PathBuf> {
    files::in_state_folder("times.json")
}

/// Loads and writes that take less than this keep their sizes.
const MIN_WORK: Duration = Duration::from_secs(5);

/// Lengths in seconds that the steps of a plan with limited time may have.
const LENGTHS: [u64; 11] = [600, 300, 120, 60, 30, 20, 10, 5, 3, 2, 1];

/// Sizes that were chosen, by option.
pub(crate) type Sizes = Vec<(String, Value)>;

/// Shrinks the sizes of the plan's one workload where loading and writing take longer than the
/// measured steps. Sizes that the plan names stay. It uses the shipped figures for one CPU, so the
/// same flags give the same sizes on every machine, whatever ran there before.
pub(crate) fn fit_sizes(plan: &mut Table, overrides: &[(String, String)]) -> Result<Sizes, ExitError> {
    let measured = |cell: &CellEstimate| -> Duration { cell.steps.iter().map(|step| step.length).sum() };
    fit_within(plan, overrides, &|cell| measured(cell).max(MIN_WORK))
}

/// Does what [`fit_sizes`] does, with `limit` as the longest work of each cell.
fn fit_within(
    plan: &mut Table,
    overrides: &[(String, String)],
    limit: &dyn Fn(&CellEstimate) -> Duration,
) -> Result<Sizes, ExitError> {
    let Some((workload, chosen)) = the_workload(plan) else { return Ok(Vec::new()) };
    let is_said = |key: &String| {
        let path = format!("workload.{workload}.{key}");
        chosen.contains_key(key) || overrides.iter().any(|(said, _)| *said == path)
    };
    let defaults = options(&resolved(plan)?, &workload);
    let open = marked(&workload, SIZE).into_iter().filter(|key| !is_said(key));
    let open: Sizes = open.filter_map(|key| Some((key.clone(), defaults.get(&key)?.clone()))).collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    for factor in factors() {
        let sizes: Sizes = open.iter().map(|(key, value)| (key.clone(), scaled(value, factor))).collect();
        let sized = with_sizes(plan, &workload, &sizes);
        let forecast = by_one_cpu(&sized, overrides)?;
        let fits = |cell: &CellEstimate| work(cell) <= limit(cell);
        if forecast.cells.iter().all(fits) || factor <= MIN_FACTOR {
            if factor == 1.0 {
                return Ok(Vec::new());
            }
            *plan = sized;
            return Ok(sizes);
        }
    }
    Ok(Vec::new())
}

/// Chooses the length of steps and the sizes of the plan's one workload. The whole plan then takes
/// at most `limit` on this machine, or as little as possible.
pub(crate) fn fit_whole(plan: &mut Table, limit: Duration) -> Result<(), ExitError> {
    let Some((workload, _)) = the_workload(plan) else { return Ok(()) };
    let times = marked(&workload, STEP_TIME);
    if times.is_empty() {
        let cells = by_one_cpu(plan, &[])?.cells.len().max(1) as u32;
        let blocks = plan.get("blocks").and_then(Value::as_integer).unwrap_or(1).max(1) as u32;
        fit_within(plan, &[], &|_| limit / cells / blocks)?;
        return Ok(());
    }
    for seconds in LENGTHS {
        let length = Value::from(PlanDuration::from_secs(seconds).to_string());
        let lengths: Sizes = times.iter().map(|key| (key.clone(), length.clone())).collect();
        let mut fitted = with_sizes(plan, &workload, &lengths);
        fit_sizes(&mut fitted, &[])?;
        let is_last = LENGTHS.last() == Some(&seconds);
        if is_last || whole_estimate(&fitted)?.duration <= limit {
            *plan = fitted;
            break;
        }
    }
    Ok(())
}

/// Returns the forecast of a plan on this machine.
pub(crate) fn whole_estimate(plan: &Table) -> Result<Estimate, ExitError> {
    let mut plan = parse_with(&text(plan)?, "the plan", &[])?;
    crate::host::give_cpus(&mut plan);
    Ok(of(&plan))
}

/// Writes the time and disk space that a plan takes, for the user to see before it begins.
pub(crate) fn in_all(estimate: &Estimate) -> String {
    let disk = estimate.peak_disk_bytes.max(estimate.address_disk_bytes.unwrap_or(0));
    format!("about {} in all, and at most {} of disk", time::about(estimate.duration), time::bytes(disk))
}

/// Writes `load_rows = 20000, write_rows = 50000`.
pub(crate) fn sizes_in_words(sizes: &Sizes) -> String {
    sizes.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

fn the_workload(plan: &Table) -> Option<(String, Table)> {
    let (name, options) = plan.get("workload")?.as_table()?.iter().next()?;
    Some((name.clone(), options.as_table().cloned().unwrap_or_default()))
}

fn with_sizes(plan: &Table, workload: &str, sizes: &Sizes) -> Table {
    let mut plan = plan.clone();
    let workloads = plan.get_mut("workload").and_then(Value::as_table_mut);
    let options = workloads.and_then(|all| all.get_mut(workload)).and_then(Value::as_table_mut);
    options.into_iter().for_each(|options| options.extend(sizes.clone()));
    plan
}

fn by_one_cpu(plan: &Table, overrides: &[(String, String)]) -> Result<Estimate, ExitError> {
    let plan = parse_with(&text(plan)?, "the plan of the command line", overrides)?;
    Ok(estimate(&plan, &Basis { cpus: Some(1), ..Basis::default() }))
}

/// Returns the guessed work of a cell, without the start of its server.
fn work(cell: &CellEstimate) -> Duration {
    cell.steps.iter().filter(|step| step.name != "prepare").map(|step| step.guessed()).sum()
}

/// Smallest factor by which sizes shrink.
const MIN_FACTOR: f64 = 1e-6;

/// Returns 1, 1/2, 1/5, 1/10 and so on.
fn factors() -> impl Iterator<Item = f64> {
    (0..=6).flat_map(|power| [1.0, 0.5, 0.2].map(|digit| digit / 10_f64.powi(power)))
}

/// Returns the value in the new size, but no less than the lowest useful value.
fn scaled(value: &Value, factor: f64) -> Value {
    const MIN: f64 = 0.01;
    match value {
        Value::Integer(number) => Value::Integer(((*number as f64 * factor).round() as i64).max(1)),
        Value::Float(number) => Value::Float((number * factor).max(MIN)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan_source::{plan_of, variants};

    fn plan(server: &str, workload: &str, options: &str) -> Table {
        let options = options.parse().unwrap_or_else(|error| panic!("{error}"));
        plan_of(variants(&[server.to_owned()], &[], &[]), workload, options)
    }

    fn fitted(plan: &mut Table, overrides: &[(&str, &str)]) -> String {
        let said = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let overrides: Vec<_> = overrides.iter().map(said).collect();
        sizes_in_words(&fit_sizes(plan, &overrides).unwrap_or_else(|ended| panic!("{ended:?}")))
    }

    #[test]
    fn short_steps_load_few_rows_and_sizes_that_are_set_stay() {
        let short = || plan("sqlite", "insert-benchmark", "read_write_time = \"1s\"");
        let mut sized = short();
        assert!(!fitted(&mut sized, &[]).is_empty());
        let forecast = by_one_cpu(&sized, &[]).unwrap();
        let cell = &forecast.cells[0];
        assert!(work(cell) <= Duration::from_secs(6), "{:?} for six steps of a second", work(cell));
        let rows =
            [("workload.insert-benchmark.load_rows", "7"), ("workload.insert-benchmark.write_rows", "8")];
        assert_eq!(fitted(&mut short(), &rows), "");
        assert!(!fitted(&mut short(), &rows[..1]).contains("load_rows"));
        let mut long = plan("sqlite", "oltp", "time = \"30s\"");
        assert_eq!(fitted(&mut long, &[]), "", "the default is small");
        assert_eq!(long, plan("sqlite", "oltp", "time = \"30s\""));
    }

    #[test]
    fn the_whole_of_each_workload_fits_into_the_time() {
        for (workload, minutes) in
            [("insert-benchmark", 3), ("microbenchmarks", 10), ("oltp", 1), ("pgbench", 1)]
        {
            let mut plan = plan("sqlite", workload, "");
            let limit = Duration::from_secs(60 * minutes);
            fit_whole(&mut plan, limit).unwrap_or_else(|ended| panic!("{workload}: {ended:?}"));
            let took = whole_estimate(&plan).unwrap().duration;
            assert!(took <= limit && took >= limit / 20, "{workload}: {took:?} of {limit:?}");
        }
        let mut plan = plan("sqlite", "dbt3", "");
        fit_whole(&mut plan, Duration::from_secs(60)).unwrap();
        assert!(whole_estimate(&plan).unwrap().duration <= Duration::from_secs(70));
    }

    #[test]
    fn sizes_are_round_and_never_zero() {
        assert_eq!(scaled(&Value::Integer(10_000_000), 0.002), Value::Integer(20_000));
        assert_eq!(scaled(&Value::Integer(3), 1e-3), Value::Integer(1));
        assert_eq!(scaled(&Value::Float(1.0), 1e-6), Value::Float(0.01));
    }
}
