//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};

use super::options::{Pgbench, QueryMode};
use super::steps::ACCOUNT_BYTES;
use super::variables::{is_name, no_name};
use crate::oltp::check::{self, MOST_CONNECTIONS};
use crate::options::{first_problem, range_problem};
use crate::sql_checks;
use crate::step::{StepOptions, forecast, outlines};

/// Letters of `init_steps`.
const INIT_STEPS: &str = "dtgGvpf";

impl WorkloadOptions for Pgbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        values_problem(self)
            .or_else(|| sql_checks::problem(&self.checks))
            .or_else(|| self.scripts("END").err().map(|problem| ("files", problem)))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.connections.iter().copied().max().unwrap_or(1),
            data_bytes: self.has_load().then(|| self.accounts() * ACCOUNT_BYTES),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != QueryMode::Simple,
            existing_tables: self.use_existing,
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

/// The first value out of its range, or that does not go with another.
pub(crate) fn values_problem(options: &Pgbench) -> Option<Mistake> {
    range_problem(options)
        .or_else(|| words_problem(options))
        .or_else(|| check::ladder_problem("connections", &options.connections, MOST_CONNECTIONS))
        .or_else(|| check::pace_problem(&options.shared()))
}

fn words_problem(options: &Pgbench) -> Option<Mistake> {
    if let Some(letter) = options.init_steps.chars().find(|letter| !INIT_STEPS.contains(*letter)) {
        let message = format!("init_steps holds {letter}, but must be letters of {INIT_STEPS}");
        return Some(("init_steps", message));
    }
    if let Some(name) = options.define.keys().find(|name| !is_name(name)) {
        return Some(("define", format!("define has an {}", no_name(name))));
    }
    let is_late = options.rates.is_empty() && options.latency_limit.is_some();
    let late = "latency_limit is for a step with a rate; in a closed loop nothing is late";
    first_problem([
        (options.files.is_empty(), "files", "files is empty: name a script, e.g. [\"tpcb-like\"]"),
        (is_late, "latency_limit", late),
    ])
}
