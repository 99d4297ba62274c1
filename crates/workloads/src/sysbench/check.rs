//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};

use super::Setup;
use super::offers::Offers;
use super::options::{PsMode, Sysbench};
use crate::oltp::check::{self, MOST_CONNECTIONS};
use crate::options::{exponent_problem, first_problem, pareto_problem, range_problem, repeated};
use crate::sql_checks;
use crate::step::{StepOptions, forecast, outlines};

impl WorkloadOptions for Sysbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        values_problem(self)
            .or_else(|| commands_problem(self))
            .or_else(|| sql_checks::problem(&self.checks))
            .or_else(|| script_problem(self))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        let most = self.connections.iter().copied().max().unwrap_or(1);
        let only_runs = self.step_commands().all(|command| command == "run");
        Needs {
            connections: if only_runs { most } else { most.max(self.prepare_connections) },
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.db_ps_mode == PsMode::Auto,
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

/// The first number out of its range, or that does not go with another.
pub(crate) fn values_problem(options: &Sysbench) -> Option<Mistake> {
    range_problem(options)
        .or_else(|| pareto_problem("rand_pareto_h", options.rand_pareto_h))
        .or_else(|| exponent_problem("rand_zipfian_exp", options.rand_zipfian_exp))
        .or_else(|| check::ladder_problem("connections", &options.connections, MOST_CONNECTIONS))
        .or_else(|| check::pace_problem(&options.shared()))
}

fn commands_problem(options: &Sysbench) -> Option<Mistake> {
    let commands = &options.commands;
    if let Some(command) = repeated(commands) {
        let message = format!("commands holds {command} twice: each gives steps of its own name");
        return Some(("commands", message));
    }
    let without = "commands has no \"run\", so that nothing would be measured";
    first_problem([(!commands.iter().any(|command| command == "run"), "commands", without)])
}

/// What the script says: whether it can be loaded, and has these options and commands.
fn script_problem(options: &Sysbench) -> Option<Mistake> {
    let setup = Setup::without_database(options);
    let offers = match Offers::of(&setup, "run") {
        Ok(offers) => offers,
        Err(mistake) => return Some(mistake),
    };
    let missing = options.step_commands().find(|command| !offers.commands.contains_key(*command))?;
    let names = offers.commands.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let key = if missing == "run" { "script" } else { "commands" };
    Some((key, format!("script {} has no command {missing}; it has {names}", options.script)))
}
