//! Makes the steps of a script, which are its commands, and a run at each concurrency level and
//! rate.

use std::sync::Arc;
use std::time::Duration;

use dbdyno_loadgen::{Arrivals, Limit, TaskSpec};
use dbdyno_plan::{Size, StepEstimate, StepOutline, numbered};
use dbdyno_record::{KindSpec, OperationClass, StepSpec, Unit};
use serde_json::{Map, Value, json};

use super::options::{PsMode, SysbenchOptions};
use super::task::{StepScript, SysbenchTask};
use super::{SysbenchSetup, files};
use crate::oltp::steps::{ROW_BYTES, ROW_LOADED};
use crate::oltp::steps::{arrivals, limit};
use crate::settle::Settle;
use crate::step::{DataSize, Step, StepOptions, load_steps};
use crate::step::{add_run, clients, kind_spec, step_spec, stream};
use crate::{Tasks, planned};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Command(String),
    Run { connections: u32, rate: Option<u32> },
}

pub(crate) type SysbenchStep = Step<Act>;

impl StepOptions for SysbenchOptions {
    type Kind = Act;

    const PREPARED: &'static str = "server";

    /// Returns the steps of all commands, in their order. The commands before the first `run` only
    /// make the data.
    fn list(&self) -> Vec<SysbenchStep> {
        let commands: Vec<&String> = self.step_commands().collect();
        let loads = commands.iter().take_while(|command| **command != "run").count();
        let steps =
            |commands: &[&String]| commands.iter().flat_map(|command| self.steps_of(command)).collect();
        load_steps(steps(&commands[..loads])).into_iter().chain::<Vec<_>>(steps(&commands[loads..])).collect()
    }

    fn settling(&self) -> Settle {
        self.settle.clone().unwrap_or_default()
    }

    fn data_size(&self, size: &Size) -> DataSize {
        let settled = self.made_rows().unwrap_or(0).saturating_mul(ROW_BYTES);
        let disk = size.log_bytes.saturating_add(settled);
        DataSize { settled, loaded: disk, disk }
    }
}

impl SysbenchOptions {
    fn steps_of(&self, command: &str) -> Vec<SysbenchStep> {
        if command != "run" {
            let outline = StepOutline::new(self.command_estimate(command));
            return vec![Step { kind: Act::Command(command.to_owned()), outline }];
        }
        let (shared, stem) = (self.shared(), files::stem(&self.script));
        let run = |(connections, rate)| {
            let detail = format!("{} of {}", numbered(connections, "connection"), self.script);
            let outline = shared.run_length(self.events).outline(&stem, (connections, rate), &detail);
            Step { kind: Act::Run { connections, rate }, outline }
        };
        shared.levels().into_iter().map(run).collect()
    }

    /// Returns the number of rows that the options ask for, as sysbench's own scripts and similar
    /// ones understand them.
    fn made_rows(&self) -> Option<u64> {
        /// The default of `table_size` in sysbench's own scripts.
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

impl SysbenchStep {
    /// Returns the connections of the step. There are as many as the plan says, and one for a command
    /// that the script runs once.
    pub(crate) fn connections(&self, setup: &SysbenchSetup) -> u32 {
        match &self.kind {
            Act::Run { connections, .. } => *connections,
            Act::Command(name) if setup.is_parallel(name) => setup.options.prepare_connections,
            Act::Command(_) => 1,
        }
    }

    pub(crate) fn tasks(&self, setup: &Arc<SysbenchSetup>) -> Tasks<SysbenchTask> {
        let Some(script) = setup.script() else { return Vec::new() };
        let connections = self.connections(setup);
        let shared = setup.options.shared();
        let (command, arrivals, per_client, is_shared) = match &self.kind {
            Act::Command(name) => (name.clone(), vec![Arrivals::Closed; connections as usize], 1, false),
            Act::Run { rate, .. } => {
                let per_client = connections / clients(connections, *rate);
                let arrivals = arrivals(&self.name, (connections, *rate), &shared, setup.context.draws);
                ("run".to_owned(), arrivals, per_client, rate.is_some())
            }
        };
        let is_run = matches!(self.kind, Act::Run { .. });
        let step = StepScript {
            script: script.clone(),
            command,
            threads: connections,
            stream: stream(&self.name, setup.context.draws),
            is_shared,
        };
        let task = |(tid, arrivals)| {
            let limit = match limit(&shared, tid, connections) {
                _ if !is_run => Limit::Operations(1),
                Limit::Operations(events) if setup.options.time_ends_too => {
                    Limit::Either(events, setup.options.time.0)
                }
                limit => limit,
            };
            let spec = TaskSpec::new(1 + tid / per_client, arrivals, limit);
            let (setup, step) = (Arc::clone(setup), step.clone());
            planned(spec, move || SysbenchTask::new(setup, step, tid))
        };
        (0..connections).zip(arrivals).map(task).collect()
    }

    pub(crate) fn spec(&self, setup: &SysbenchSetup) -> StepSpec {
        let connections = self.connections(setup);
        let (kind, unit, label, clients, arrivals) = match &self.kind {
            Act::Command(name) => {
                (name.as_str(), Unit::Rows, "rows/s", connections, Arrivals::Closed.to_string())
            }
            Act::Run { rate, .. } => {
                let shared = setup.options.shared();
                let arrivals = arrivals(&self.name, (connections, *rate), &shared, setup.context.draws);
                let arrivals = arrivals.first().map_or_else(String::new, ToString::to_string);
                ("event", Unit::Operations, "events/s", clients(connections, *rate), arrivals)
            }
        };
        let is_timed = matches!(self.kind, Act::Run { .. }) && setup.options.events.is_none();
        let does = if kind == "event" { "event()" } else { kind };
        let statement = format!("{}: {does}", setup.options.script);
        let mut kind_spec = KindSpec {
            connections_per_client: connections / clients,
            arrivals,
            ..kind_spec(kind, OperationClass::Other, statement)
        };
        if setup.options.db_ps_mode == PsMode::Auto {
            kind_spec.protocol = "as the script asks".to_owned();
        }
        let options = self.options(setup, connections);
        step_spec((&self.name, clients), (unit, label), is_timed, kind_spec, options)
    }

    fn options(&self, setup: &SysbenchSetup, connections: u32) -> Map<String, Value> {
        let mut map = Map::from_iter([
            ("script".to_owned(), json!(setup.options.script)),
            ("connections".to_owned(), json!(connections)),
            ("seed".to_owned(), json!(setup.context.draws)),
        ]);
        if let Some(hash) = setup.hash() {
            map.insert("script_sha256".to_owned(), json!(hash));
        }
        for (name, value) in &setup.options.options {
            map.insert(format!("--{name}"), value.clone());
        }
        if let Act::Run { rate, .. } = self.kind {
            let length = (setup.options.events, setup.options.time.0);
            add_run(&mut map, length, self.warmup, rate);
        }
        map
    }
}
