//! Compares forecasts from the shipped figures with recorded runs and with a published run. The
//! recorded runs are those of docs/reports, on a machine whose servers had one CPU and 23.5 GiB of
//! memory.

use std::path::Path;
use std::time::Duration;

use dbdyno_plan::{Basis, Estimate, Plan, estimate};
use dbdyno_workloads::plans::read_with;

/// Plans, each with the number of cells and the minutes that the run of its small size took.
const RECORDED: [(&str, f64, f64); 7] = [
    ("binlog-sync-2x2", 56.0, 21.5),
    ("dbt3-2012", 21.0, 28.1),
    ("insert-benchmark-2024", 63.0, 30.0),
    ("microbenchmarks-2024", 105.0, 88.0),
    ("oltp-2012", 14.0, 18.0),
    ("sysbench-io-bound-2021", 21.0, 18.0),
    ("thread-pool-2012", 14.0, 15.5),
];

fn forecast(name: &str, overrides: &[(&str, &str)]) -> Estimate {
    let plan = plan(name, overrides);
    estimate(&plan, &Basis { cpus: Some(1), memory_bytes: Some(47 << 29), ..Basis::default() })
}

fn plan(name: &str, overrides: &[(&str, &str)]) -> Plan {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../plans/{name}.toml"));
    let said = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let overrides: Vec<_> = overrides.iter().map(said).collect();
    read_with(&file, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn forecasts_are_near_the_recorded_runs() {
    let (mut all, mut took) = (0.0, 0.0);
    for (name, cells, minutes) in RECORDED {
        let forecast = forecast(name, &[("size", "small")]);
        let forecast_cells = f64::from(forecast.blocks) * forecast.cells.len() as f64;
        let estimated = forecast.duration.as_secs_f64() / 60.0 * cells / forecast_cells;
        let ratio = estimated / minutes;
        assert!((1.0 / 1.5..=1.5).contains(&ratio), "{name}: {estimated:.1} of {minutes} min");
        all += estimated;
        took += minutes;
    }
    assert!((1.0 / 1.2..=1.2).contains(&(all / took)), "{all:.1} of {took} min");
}

#[test]
fn the_write_step_of_the_small_size_takes_the_seconds_that_were_recorded() {
    let cells = forecast("insert-benchmark-2024", &[("size", "small")]).cells;
    let of = |name: &str| cells[0].steps.iter().find(|step| step.name == name).map(|step| step.duration);
    let recorded = Duration::from_secs(3)..=Duration::from_secs(8);
    assert!(of("l.i1").is_some_and(|length| recorded.contains(&length)), "{:?}", of("l.i1"));
}

/// This run was recorded on two CPUs.
#[test]
fn writes_beyond_a_buffer_pool_without_a_page_cache_take_the_seconds_that_were_recorded() {
    let plan = plan("binlog-sync-2x2", &[("size", "small")]);
    let of = |only_cache: Option<u64>, workload: &str| {
        let only_cache_bytes = only_cache.map(|bytes| ("sync".to_owned(), bytes)).into_iter().collect();
        let basis = Basis { cpus: Some(2), memory_bytes: Some(8 << 30), only_cache_bytes, past: Vec::new() };
        let cells = estimate(&plan, &basis).cells;
        let cell = cells.iter().find(|cell| cell.variant == "sync" && cell.workload.contains(workload));
        let step = cell.unwrap().steps.iter().find(|step| step.name == "l.i1").unwrap();
        step.duration.as_secs_f64()
    };
    let beyond = of(Some(64 << 20), "IO-bound");
    assert!((6.5..=8.7).contains(&beyond), "{beyond} s");
    assert!(of(None, "IO-bound") < 1.0, "the page cache holds all of it");
    assert_eq!(of(Some(64 << 20), "CPU-bound"), of(None, "CPU-bound"), "the pool holds all of it");
}

#[test]
fn queries_on_data_that_do_not_fit_into_memory_take_the_published_time() {
    let cells = forecast("dbt3-2012", &[]).cells;
    let is_query = |name: &str| name.starts_with('q');
    let queries: Duration = cells
        .iter()
        .flat_map(|cell| cell.steps.iter().filter(|step| is_query(&step.name)).map(|step| step.duration))
        .sum();
    // Each query is executed five times on each of three servers.
    let hours = queries.as_secs_f64() * 5.0 / 3600.0;
    assert!((hours / 125.0 - 1.0).abs() < 0.02, "{hours} h for the 125 that were published");
}
