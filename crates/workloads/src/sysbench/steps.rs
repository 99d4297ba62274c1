//! The steps of a script: its commands, and a run for each rung of the ladders.

use std::sync::Arc;
use std::time::Duration;

use dbdyno_loadgen::{LaneSpec, Limit, Pace};
use dbdyno_record::{KindSpec, OperationClass, StepSpec, Unit};
use serde_json::{Map, Value, json};

use super::Setup;
use super::lane::{ScriptLane, StepScript};
use super::options::{PsMode, Sysbench};
use crate::oltp::steps::{clients, limit, paces, stream};
use crate::specs::{add_run, kind_spec, step_spec};
use crate::{Lanes, planned};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Command(String),
    Run { connections: u32, rate: Option<u32> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) name: String,
    pub(crate) act: Act,
}

pub(crate) fn plan(options: &Sysbench) -> Vec<Planned> {
    let rungs = options.shared().rungs();
    let acts = options.step_commands().flat_map(|command| match command.as_str() {
        "run" => rungs.iter().map(|&(connections, rate)| Act::Run { connections, rate }).collect(),
        command => vec![Act::Command(command.to_owned())],
    });
    options.step_names().into_iter().zip(acts).map(|(name, act)| Planned { name, act }).collect()
}

impl Planned {
    /// Connections of the step: as many as the plan says, one for a command that the script runs
    /// once.
    pub(crate) fn connections(&self, setup: &Setup) -> u32 {
        match &self.act {
            Act::Run { connections, .. } => *connections,
            Act::Command(name) if setup.is_parallel(name) => setup.options.prepare_connections,
            Act::Command(_) => 1,
        }
    }

    pub(crate) fn lanes(&self, setup: &Arc<Setup>) -> Lanes<ScriptLane> {
        let Some(script) = setup.script() else { return Vec::new() };
        let connections = self.connections(setup);
        let shared = setup.options.shared();
        let (command, paces, per_client, is_shared) = match &self.act {
            Act::Command(name) => (name.clone(), vec![Pace::Closed; connections as usize], 1, false),
            Act::Run { rate, .. } => {
                let per_client = connections / clients(connections, *rate);
                let paces = paces(&self.name, (connections, *rate), &shared, setup.context.draws);
                ("run".to_owned(), paces, per_client, rate.is_some())
            }
        };
        let is_run = matches!(self.act, Act::Run { .. });
        let step = StepScript {
            script: script.clone(),
            command,
            threads: connections,
            stream: stream(&self.name, setup.context.draws),
            is_shared,
        };
        let lane = |(tid, pace)| {
            let limit = match limit(&shared, tid, connections) {
                _ if !is_run => Limit::Operations(1),
                Limit::Operations(events) if setup.options.time_ends_too => {
                    Limit::Either(events, setup.options.time.0)
                }
                limit => limit,
            };
            let spec = LaneSpec::new(1 + tid / per_client, pace, limit);
            let (setup, step) = (Arc::clone(setup), step.clone());
            planned(spec, move || ScriptLane::new(setup, step, tid))
        };
        (0..connections).zip(paces).map(lane).collect()
    }

    pub(crate) fn spec(&self, setup: &Setup) -> StepSpec {
        let connections = self.connections(setup);
        let (kind, unit, label, clients, pace) = match &self.act {
            Act::Command(name) => {
                (name.as_str(), Unit::Rows, "rows/s", connections, Pace::Closed.to_string())
            }
            Act::Run { rate, .. } => {
                let shared = setup.options.shared();
                let paces = paces(&self.name, (connections, *rate), &shared, setup.context.draws);
                let pace = paces.first().map_or_else(String::new, ToString::to_string);
                ("event", Unit::Operations, "events/s", clients(connections, *rate), pace)
            }
        };
        let is_timed = matches!(self.act, Act::Run { .. }) && setup.options.events.is_none();
        let does = if kind == "event" { "event()" } else { kind };
        let statement = format!("{}: {does}", setup.options.script);
        let mut kind_spec = KindSpec {
            connections_per_client: connections / clients,
            pace,
            ..kind_spec(kind, OperationClass::Other, statement)
        };
        if setup.options.db_ps_mode == PsMode::Auto {
            kind_spec.protocol = "as the script asks".to_owned();
        }
        let options = self.options(setup, connections);
        step_spec((&self.name, clients), (unit, label), is_timed, kind_spec, options)
    }

    fn options(&self, setup: &Setup, connections: u32) -> Map<String, Value> {
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
        if let Act::Run { rate, .. } = self.act {
            let length = (setup.options.events, setup.options.time.0);
            add_run(&mut map, length, self.warmup(setup), rate);
        }
        map
    }

    pub(crate) fn warmup(&self, setup: &Setup) -> Duration {
        match self.act {
            Act::Run { .. } => setup.options.shared().warmup_length(),
            Act::Command(_) => Duration::ZERO,
        }
    }
}
