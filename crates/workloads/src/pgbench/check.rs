//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use std::time::Duration;

use dbdyno_plan::{
    Forecast, Mistake, Needs, Plan, Size, StepEstimate, StepOutline, WorkloadOptions, data_problem, numbered,
};

use super::builtin::ACCOUNTS;
use super::options::{Pgbench, QueryMode};
use super::variables::{is_name, no_name};
use crate::oltp::check::{self, MOST_CONNECTIONS};
use crate::oltp::estimate::OPERATION;
use crate::options::{first_problem, range_problem};
use crate::sql_checks;

/// Letters of `init_steps`.
const INIT_STEPS: &str = "dtgGvpf";

/// Bytes of an account with its key.
const ACCOUNT_BYTES: u64 = 150;

fn accounts(options: &Pgbench) -> u64 {
    ACCOUNTS * u64::from(options.scale)
}

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
            data_bytes: self.has_load().then(|| accounts(self) * ACCOUNT_BYTES),
            data: self.data,
            cold: self.cold.clone(),
            prepares: self.protocol != QueryMode::Simple,
            existing_tables: self.use_existing,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        StepOutline::of_names(self.step_names(), usize::from(self.has_load()))
    }

    fn estimate(&self, size: &Size) -> Forecast {
        let mut steps = vec![StepEstimate::of_work("prepare", "server", "server started", 1.0)];
        let accounts = if self.has_load() { accounts(self) } else { 0 };
        let loaded_bytes = accounts * ACCOUNT_BYTES;
        if self.has_load() {
            let detail = format!("{accounts} accounts");
            let load = StepEstimate::of_work("load", &detail, "pgbench account loaded", accounts as f64);
            steps.push(load);
            steps.extend(self.settling().estimate("after the load", Duration::ZERO, loaded_bytes));
        }
        let names = self.step_names();
        let rungs = self.shared().rungs();
        for (name, (connections, _)) in names[usize::from(self.has_load())..].iter().zip(rungs) {
            let detail = format!("{} of {}", numbered(connections, "connection"), self.files.join(", "));
            steps.push(match self.length() {
                Some(length) => StepEstimate::new(name, &detail, length),
                // Each connection has so many.
                None => {
                    let all = self.transactions.unwrap_or(0) as f64 * f64::from(connections);
                    StepEstimate::new(name, &detail, Duration::ZERO).and(OPERATION, all, connections)
                }
            });
        }
        Forecast { steps, disk_bytes: size.log_bytes + loaded_bytes, loaded_bytes }
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
