//! What a plan asks of DBT3's options.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use crate::dbt3::options::{Dbt3, Part};
use crate::dbt3::{check, estimate, steps};

impl WorkloadOptions for Dbt3 {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        check::problem(self)
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        let streams = if self.parts.contains(&Part::Throughput) { self.streams + 1 } else { 1 };
        Needs {
            connections: self.load_connections.max(streams),
            data: self.data,
            cold: self.cold.clone(),
            row_streams: true,
            long_operations: true,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        StepOutline::of_names(steps::names(self), steps::LOAD_STEPS)
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
