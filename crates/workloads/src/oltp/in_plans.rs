//! What a plan asks of the options: mistakes, needs, steps, a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use crate::oltp::options::{LoadMethod, Oltp, existing_warning};
use crate::oltp::{check, estimate, prepared};

impl WorkloadOptions for Oltp {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        check::problem(self)
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let writes = self.tests.iter().filter(|test| test.writes() && self.use_existing);
        existing_warning(writes.map(|test| test.name().to_owned()).collect())
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.most_connections(),
            data: self.data,
            cold: self.cold.clone(),
            existing_tables: self.use_existing,
            row_streams: self.load_method == LoadMethod::Stream && !self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        prepared::most(self, with_begin)
    }

    fn steps(&self) -> Vec<StepOutline> {
        let mut steps = StepOutline::of_names(self.step_names(), self.load_steps());
        for (step, (test, ..)) in steps.iter_mut().skip(self.load_steps()).zip(self.test_steps()) {
            step.changes_data = test.writes();
        }
        steps
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
