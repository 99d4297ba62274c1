//! Chooses sizes of a workload for the time that the user gives. The load and the writes then take
//! about as long as the measured steps.

use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_plan::{Basis, CellEstimate, Estimate, estimate};
use dbdyno_workloads::plans::{SIZE, STEP_TIME, marked, parse_with};
use toml::{Table, Value};

use crate::exit::ExitError;
use crate::plan_source::{options, resolved, text};
use crate::{forecast, time};

/// Loads and writes that take less than this keep their sizes.
const LEAST_WORK: Duration = Duration::from_secs(5);

/// Lengths in seconds of the steps that a plan of a limited time may have.
const LENGTHS: [u64; 11] = [600, 300, 120, 60, 30, 20, 10, 5, 3, 2, 1];

/// Sizes that were chosen, by option.
pub(crate) type Sizes = Vec<(String, Value)>;

/// Sets the sizes of the plan's one workload that the plan does not name, where the defaults take
/// longer to load and to write than a step takes. It uses the shipped figures for one CPU. Therefore
/// the same flags give the same sizes on every machine, whatever ran there before.
pub(crate) fn fit(plan: &mut Table, overrides: &[(String, String)]) -> Result<Sizes, ExitError> {
    let measured = |cell: &CellEstimate| -> Duration { cell.steps.iter().map(|step| step.length).sum() };
    fit_within(plan, overrides, &|cell| measured(cell).max(LEAST_WORK))
}

/// Does what [`fit`] does, with `limit` as the longest work of each cell.
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
        let sized = with(plan, &workload, &sizes);
        let forecast = by_one_cpu(&sized, overrides)?;
        let fits = |cell: &CellEstimate| work(cell) <= limit(cell);
        if forecast.cells.iter().all(fits) || factor <= LEAST_FACTOR {
            if factor == 1.0 {
                return Ok(Vec::new());
            }
            *plan = sized;
            return Ok(sizes);
        }
    }
    Ok(Vec::new())
}

/// Chooses the length of steps, and the sizes, of the plan's one workload. The whole plan then
/// takes `limit` at most on this machine, or as little as possible.
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
        let mut fitted = with(plan, &workload, &lengths);
        fit(&mut fitted, &[])?;
        let is_last = LENGTHS.last() == Some(&seconds);
        if is_last || whole(&fitted)?.duration <= limit {
            *plan = fitted;
            break;
        }
    }
    Ok(())
}

/// Returns the forecast of a plan on this machine.
pub(crate) fn whole(plan: &Table) -> Result<Estimate, ExitError> {
    let mut plan = parse_with(&text(plan)?, "the plan", &[])?;
    crate::cores::give_cpus(&mut plan);
    Ok(forecast::of(&plan))
}

/// Writes what a plan takes in all, for the user to see before it begins.
pub(crate) fn in_all(estimate: &Estimate) -> String {
    let disk = estimate.peak_disk_bytes.max(estimate.address_disk_bytes.unwrap_or(0));
    format!("about {} in all, and at most {} of disk", time::about(estimate.duration), time::bytes(disk))
}

/// Writes `load_rows = 20000, write_rows = 50000`.
pub(crate) fn words(sizes: &Sizes) -> String {
    sizes.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

fn the_workload(plan: &Table) -> Option<(String, Table)> {
    let (name, options) = plan.get("workload")?.as_table()?.iter().next()?;
    Some((name.clone(), options.as_table().cloned().unwrap_or_default()))
}

fn with(plan: &Table, workload: &str, sizes: &Sizes) -> Table {
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

const LEAST_FACTOR: f64 = 1e-6;

/// Returns 1, 1/2, 1/5, 1/10 and so on.
fn factors() -> impl Iterator<Item = f64> {
    (0..=6).flat_map(|power| [1.0, 0.5, 0.2].map(|digit| digit / 10_f64.powi(power)))
}

/// Returns the value in the new size, but no less than the lowest useful value.
fn scaled(value: &Value, factor: f64) -> Value {
    const LEAST: f64 = 0.01;
    match value {
        Value::Integer(number) => Value::Integer(((*number as f64 * factor).round() as i64).max(1)),
        Value::Float(number) => Value::Float((number * factor).max(LEAST)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_source::{plan_of, variants};

    fn plan(server: &str, workload: &str, options: &str) -> Table {
        let options = options.parse().unwrap_or_else(|error| panic!("{error}"));
        plan_of(variants(&[server.to_owned()], &[], &[]), workload, options)
    }

    fn fitted(plan: &mut Table, overrides: &[(&str, &str)]) -> String {
        let said = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let overrides: Vec<_> = overrides.iter().map(said).collect();
        words(&fit(plan, &overrides).unwrap_or_else(|ended| panic!("{ended:?}")))
    }

    #[test]
    fn short_steps_load_few_rows_and_what_is_said_stays() {
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
            let took = whole(&plan).unwrap().duration;
            assert!(took <= limit && took >= limit / 20, "{workload}: {took:?} of {limit:?}");
        }
        let mut plan = plan("sqlite", "dbt3", "");
        fit_whole(&mut plan, Duration::from_secs(60)).unwrap();
        assert!(whole(&plan).unwrap().duration <= Duration::from_secs(70));
    }

    #[test]
    fn sizes_are_round_and_never_nothing() {
        assert_eq!(scaled(&Value::Integer(10_000_000), 0.002), Value::Integer(20_000));
        assert_eq!(scaled(&Value::Integer(3), 1e-3), Value::Integer(1));
        assert_eq!(scaled(&Value::Float(1.0), 1e-6), Value::Float(0.01));
    }
}
