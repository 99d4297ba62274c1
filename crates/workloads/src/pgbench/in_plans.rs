//! What a plan asks of the options: mistakes, needs, steps, a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use super::options::Pgbench;
use super::{check, estimate};

impl WorkloadOptions for Pgbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        check::problem(self)
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.connections.iter().copied().max().unwrap_or(1),
            data: self.data,
            cold: self.cold.clone(),
            existing_tables: self.use_existing,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        StepOutline::of_names(self.step_names(), usize::from(self.has_load()))
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
