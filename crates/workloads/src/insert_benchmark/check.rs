//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};
use dbdyno_products::{EMBEDDED, VariantKind};

use crate::insert_benchmark::options::InsertBenchmark;
use crate::options::{
    Protocol, first_problem, range_problem, repeated, table_options_problem, time_cap_problem, time_problem,
};
use crate::settle::both_problem;
use crate::step::{StepOptions, forecast, outlines};

/// Bytes of a row with its indexes in the steady state, by published data on InnoDB.
const ROW_BYTES: u64 = 225;

impl WorkloadOptions for InsertBenchmark {
    fn check(&self, plan: &Plan) -> Option<Mistake> {
        range_problem(self)
            .or_else(|| rates_problem(self))
            .or_else(|| data_length_problem(self))
            .or_else(|| fraction_problem(self))
            .or_else(|| table_options_problem(&self.create_table_options))
            .or_else(|| data_problem(self, true))
            .or_else(|| both_problem(self.settle.as_ref(), self.settle_wait.is_some()))
            .or_else(|| first_id_problem(self, plan))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let commit = self.rows_per_commit.read_write;
        let lowered: Vec<String> =
            self.rates.iter().filter(|rate| **rate < commit).map(ToString::to_string).collect();
        let rates = lowered.join(", ");
        let warning =
            format!("background writes at {rates} rows a second commit that many rows at once, not {commit}");
        if lowered.is_empty() { Vec::new() } else { vec![warning] }
    }

    fn needs(&self) -> Needs {
        let queries = if self.rates.is_empty() { 0 } else { self.query_connections };
        Needs {
            connections: self.clients.saturating_mul(1 + u32::from(self.deletes) + queries),
            data_bytes: Some(self.loaded_rows().saturating_mul(ROW_BYTES)),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol == Protocol::Prepared,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

fn rates_problem(benchmark: &InsertBenchmark) -> Option<Mistake> {
    let rates = &benchmark.rates;
    let empty = "rates is empty: name at least one background rate, e.g. [100, 500, 1000]";
    first_problem([
        (rates.is_empty(), "rates", empty),
        (rates.contains(&0), "rates", "rates holds 0: a background rate is at least 1 row a second"),
    ])
    .or_else(|| {
        let rate = repeated(rates)?;
        Some(("rates", format!("rates holds {rate} twice: each rate gives a step of its own name")))
    })
}

fn data_length_problem(benchmark: &InsertBenchmark) -> Option<Mistake> {
    let (least, greatest) = (benchmark.data_length_min, benchmark.data_length_max);
    let reversed = format!("data_length_min is {least}, which is more than data_length_max ({greatest})");
    first_problem([(least > greatest, "data_length_min", &reversed)])
}

fn fraction_problem(benchmark: &InsertBenchmark) -> Option<Mistake> {
    let is_share = benchmark.sla_share > 0.0 && benchmark.sla_share <= 1.0;
    time_problem("read_write_time", benchmark.read_write_time)
        .or_else(|| time_cap_problem(benchmark.time_cap, "read_write_time"))
        .or_else(|| {
            first_problem([(!is_share, "sla_share", "sla_share must be above 0 and at most 1, e.g. 0.95")])
        })
}

/// The tables leave ids to the database, and SQLite's begin with 1.
fn first_id_problem(benchmark: &InsertBenchmark, plan: &Plan) -> Option<Mistake> {
    let first_id = benchmark.first_id;
    let embedded = plan.variants.iter().find(|variant| VariantKind::of(variant).is_embedded())?;
    let message = format!(
        "first_id is {first_id}, but variant `{}` is {}, where ids begin with 1: leave it out",
        embedded.name, EMBEDDED.products[0]
    );
    first_problem([(first_id > 1, "first_id", &message)])
}
