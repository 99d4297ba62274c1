//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use std::time::Duration;

use dbdyno_plan::{
    Forecast, Mistake, Needs, Plan, Size, StepEstimate, StepOutline, WorkloadOptions, data_problem, numbered,
};

use super::Setup;
use super::offers::Offers;
use super::options::{PsMode, Sysbench};
use crate::oltp::check::{self, MOST_CONNECTIONS};
use crate::oltp::estimate::{OPERATION, ROW_BYTES, ROW_LOADED};
use crate::options::{exponent_problem, first_problem, pareto_problem, range_problem, repeated};
use crate::sql_checks;

impl WorkloadOptions for Sysbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        values_problem(self)
            .or_else(|| commands_problem(self))
            .or_else(|| sql_checks::problem(&self.checks))
            .or_else(|| script_problem(self))
            .or_else(|| data_problem(self.data, &self.cold, &self.step_names()[self.load_steps()..], false))
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
        StepOutline::of_names(self.step_names(), self.load_steps())
    }

    fn estimate(&self, size: &Size) -> Forecast {
        let mut steps = vec![StepEstimate::of_work("prepare", "server", "server started", 1.0)];
        let loaded_bytes = self.made_rows().unwrap_or(0).saturating_mul(ROW_BYTES);
        let shared = self.shared();
        let loads = self.load_steps();
        let mut rungs = shared.rungs().into_iter();
        let names = self.step_names();
        for (index, command) in self.step_commands().enumerate() {
            if command != "run" {
                steps.push(self.command_estimate(command));
                if index + 1 == loads {
                    steps.extend(self.settling().estimate("after the load", Duration::ZERO, loaded_bytes));
                }
                continue;
            }
            for (name, (connections, _)) in names[index..].iter().zip(rungs.by_ref()) {
                let detail = format!("{} of {}", numbered(connections, "connection"), self.script);
                steps.push(match shared.length() {
                    Some(length) => StepEstimate::new(name, &detail, length),
                    None => {
                        let events = self.events.unwrap_or(0) as f64;
                        StepEstimate::new(name, &detail, Duration::ZERO).and(OPERATION, events, connections)
                    }
                });
            }
        }
        let disk_bytes = size.log_bytes.saturating_add(loaded_bytes);
        Forecast { steps, disk_bytes, loaded_bytes: disk_bytes }
    }
}

impl Sysbench {
    /// Rows that its own scripts and others like them make, which say so by these options.
    fn made_rows(&self) -> Option<u64> {
        /// Of sysbench's own scripts.
        const TABLE_SIZE: u64 = 10_000;
        let of = |name: &str| self.options.get(name).and_then(serde_json::Value::as_u64);
        let is_own = !self.script.contains(['/', '.']);
        let table_size = of("table_size").or(is_own.then_some(TABLE_SIZE))?;
        Some(of("tables").unwrap_or(1).saturating_mul(table_size))
    }

    fn command_estimate(&self, command: &str) -> StepEstimate {
        let step = StepEstimate::new(command, &format!("a command of {}", self.script), Duration::ZERO);
        match self.made_rows().filter(|_| command == "prepare") {
            Some(rows) => step.and(ROW_LOADED, rows as f64, self.prepare_connections),
            None => step.and("sysbench command", 1.0, 1),
        }
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
