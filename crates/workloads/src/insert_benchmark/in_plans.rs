//! What a plan asks of the options: mistakes, needs, steps, a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use crate::insert_benchmark::options::InsertBenchmark;
use crate::insert_benchmark::{check, estimate};

impl WorkloadOptions for InsertBenchmark {
    fn check(&self, plan: &Plan) -> Option<Mistake> {
        check::problem(self, plan)
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
            data: self.data,
            cold: self.cold.clone(),
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        StepOutline::of_names(self.step_names(), Self::LOAD_STEPS)
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
