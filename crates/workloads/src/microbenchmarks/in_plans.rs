//! What a plan asks of the options: mistakes, needs, steps, a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use crate::microbenchmarks::options::{MicroRung, Microbenchmarks};
use crate::microbenchmarks::{check, estimate, prepared};
use crate::oltp::options::existing_warning;

impl WorkloadOptions for Microbenchmarks {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        check::problem(self)
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
        self.settle_wait = None;
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = check::warnings(self);
        if self.use_existing {
            let writes = self.rungs().into_iter().filter(|rung| rung.step.test.writes());
            warnings.extend(existing_warning(writes.map(|rung| rung.name).collect()));
        }
        warnings
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.most_connections(),
            data: self.data,
            cold: self.cold.clone(),
            existing_tables: self.use_existing,
            client_hosts: true,
            ..Needs::default()
        }
    }

    fn prepared_statements(&self, with_begin: bool) -> u64 {
        prepared::most(self, with_begin)
    }

    fn steps(&self) -> Vec<StepOutline> {
        let before = StepOutline::of_names(self.tables_part().step_names(), self.load_steps());
        let outline = |(index, rung): (usize, MicroRung)| StepOutline {
            name: rung.name,
            loads: false,
            begins_group: self.begins_group(index),
            is_warm_up: rung.step.moment.is_warm_up(),
            changes_data: rung.step.test.writes(),
        };
        before.into_iter().chain(self.rungs().into_iter().enumerate().map(outline)).collect()
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
