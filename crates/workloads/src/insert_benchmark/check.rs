//! Checks the options of the Insert Benchmark: ranges, and what goes together.

use dbdyno_plan::{Mistake, Plan, VariantKind, data_problem};

use crate::insert_benchmark::options::InsertBenchmark;
use crate::options::{
    Number, number_problem, repeated, table_options_problem, time_cap_problem, time_problem,
};
use crate::settle::both_problem;

/// The column `data` is a varchar of this many characters.
const MAX_DATA_LENGTH: u32 = 4000;

/// A bigint key must not run out in the middle of a run.
const MAX_FIRST_ID: u64 = 1 << 62;

/// The first option out of its range: its dotted key inside `[workload.insert-benchmark]`, and what
/// to write.
pub(crate) fn problem(benchmark: &InsertBenchmark, plan: &Plan) -> Option<Mistake> {
    number_problem(numbers(benchmark))
        .or_else(|| rates_problem(benchmark))
        .or_else(|| data_length_problem(benchmark))
        .or_else(|| fraction_problem(benchmark))
        .or_else(|| table_options_problem(&benchmark.create_table_options))
        .or_else(|| {
            let measured = &benchmark.step_names()[InsertBenchmark::LOAD_STEPS..];
            data_problem(benchmark.data, &benchmark.cold, measured, true)
        })
        .or_else(|| both_problem(benchmark.settle.as_ref(), benchmark.settle_wait.is_some()))
        .or_else(|| first_id_problem(benchmark, plan))
}

/// Key, value, least and greatest allowed value of every whole number.
fn numbers(benchmark: &InsertBenchmark) -> [Number; 18] {
    let commit = &benchmark.rows_per_commit;
    let any = u64::from(u32::MAX);
    [
        ("clients", benchmark.clients.into(), 1, 4096),
        ("load_rows", benchmark.load_rows, 1, 1 << 50),
        ("write_rows", benchmark.write_rows, 0, 1 << 50),
        ("rows_per_commit.load", commit.load.into(), 1, 100_000),
        ("rows_per_commit.write_1", commit.write_1.into(), 1, 100_000),
        ("rows_per_commit.write_2", commit.write_2.into(), 1, 100_000),
        ("rows_per_commit.read_write", commit.read_write.into(), 1, 100_000),
        ("query_connections", benchmark.query_connections.into(), 1, 1024),
        ("rows_per_query", benchmark.rows_per_query.into(), 1, 1_000_000),
        ("points_per_query", benchmark.points_per_query.into(), 1, 10_000),
        ("max_id_every", benchmark.max_id_every.into(), 1, any),
        ("cashregisters", benchmark.cashregisters.into(), 1, i32::MAX as u64),
        ("products", benchmark.products.into(), 1, i32::MAX as u64),
        ("customers", benchmark.customers.into(), 1, i32::MAX as u64),
        ("max_price", benchmark.max_price.into(), 1, i32::MAX as u64),
        ("data_random_percent", benchmark.data_random_percent.into(), 0, 100),
        ("secondary_indexes", benchmark.secondary_indexes.into(), 1, 3),
        ("first_id", benchmark.first_id, 1, MAX_FIRST_ID),
    ]
}

fn rates_problem(benchmark: &InsertBenchmark) -> Option<Mistake> {
    let rates = &benchmark.rates;
    let message = if rates.is_empty() {
        "rates is empty: name at least one background rate, e.g. [100, 500, 1000]".to_owned()
    } else if rates.contains(&0) {
        "rates holds 0: a background rate is at least 1 row a second".to_owned()
    } else {
        format!("rates holds {} twice: each rate gives a step of its own name", repeated(rates)?)
    };
    Some(("rates", message))
}

fn data_length_problem(benchmark: &InsertBenchmark) -> Option<Mistake> {
    let (least, greatest) = (benchmark.data_length_min, benchmark.data_length_max);
    if greatest > MAX_DATA_LENGTH {
        let message =
            format!("data_length_max is {greatest}, but the column holds {MAX_DATA_LENGTH} characters");
        return Some(("data_length_max", message));
    }
    if least > greatest {
        let message = format!("data_length_min is {least}, which is more than data_length_max ({greatest})");
        return Some(("data_length_min", message));
    }
    None
}

fn fraction_problem(benchmark: &InsertBenchmark) -> Option<Mistake> {
    let is_share = benchmark.sla_share > 0.0 && benchmark.sla_share <= 1.0;
    time_problem("read_write_time", benchmark.read_write_time)
        .or_else(|| time_cap_problem(benchmark.time_cap, "read_write_time"))
        .or_else(|| {
            let message = "sla_share must be above 0 and at most 1, e.g. 0.95".to_owned();
            (!is_share).then_some(("sla_share", message))
        })
}

/// The tables leave ids to the database, and SQLite's begin with 1.
fn first_id_problem(benchmark: &InsertBenchmark, plan: &Plan) -> Option<Mistake> {
    let first_id = benchmark.first_id;
    let sqlite = plan.variants.iter().find(|variant| variant.kind() == VariantKind::Sqlite)?;
    let name = &sqlite.name;
    (first_id > 1).then(|| {
        (
            "first_id",
            format!(
                "first_id is {first_id}, but variant `{name}` is SQLite, where ids begin with 1: leave it out"
            ),
        )
    })
}
