//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions, data_problem};

use super::estimate;
use super::options::Pgbench;
use super::variables::is_name_sign;
use crate::oltp::check::{self, MOST_CONNECTIONS};
use crate::options::number_problem;
use crate::sql_checks;

/// Letters of `init_steps`.
const INIT_STEPS: &str = "dtgGvpf";

impl WorkloadOptions for Pgbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        values_problem(self)
            .or_else(|| sql_checks::problem(&self.checks))
            .or_else(|| self.scripts("END").err().map(|problem| ("files", problem)))
            .or_else(|| {
                let measured = &self.step_names()[usize::from(self.has_load())..];
                data_problem(self.data, &self.cold, measured, false)
            })
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

/// The first value out of its range, or that does not go with another.
pub(crate) fn values_problem(options: &Pgbench) -> Option<Mistake> {
    number_problem([
        ("scale", options.scale.into(), 1, 20_000_000),
        ("fillfactor", options.fillfactor.into(), 10, 100),
        ("max_tries", options.max_tries.into(), 1, u32::MAX.into()),
        ("transactions", options.transactions.unwrap_or(1), 1, u32::MAX.into()),
    ])
    .or_else(|| words_problem(options))
    .or_else(|| check::ladder_problem("connections", &options.connections, MOST_CONNECTIONS))
    .or_else(|| check::pace_problem(&options.shared()))
}

fn words_problem(options: &Pgbench) -> Option<Mistake> {
    if options.files.is_empty() {
        return Some(("files", "files is empty: name a script, e.g. [\"tpcb-like\"]".to_owned()));
    }
    if let Some(letter) = options.init_steps.chars().find(|letter| !INIT_STEPS.contains(*letter)) {
        return Some((
            "init_steps",
            format!("init_steps holds {letter}, but must be letters of {INIT_STEPS}"),
        ));
    }
    let is_name = |name: &String| !name.is_empty() && name.chars().all(is_name_sign);
    if let Some(name) = options.define.keys().find(|name| !is_name(name)) {
        return Some((
            "define",
            format!("define holds {name:?}, which is no name of a variable: letters, digits and _"),
        ));
    }
    let is_closed = options.rates.is_empty();
    (is_closed && options.latency_limit.is_some()).then(|| {
        (
            "latency_limit",
            "latency_limit is for a step with a rate; in a closed loop nothing is late".to_owned(),
        )
    })
}
