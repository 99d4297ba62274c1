//! Runs a script outside of a plan, as on sysbench's own command line: one command, its options and
//! reports.

use std::sync::atomic::Ordering;
use std::time::Instant;

use dbdyno_plan::Values;
use mlua::Function;
use serde::Serialize;
use serde_json::Map;

use super::machine::{EventOutcome, Machine, StateIdentity, error_text, plain};
use super::offers::{Offers, OwnOption};
use super::options::{SysbenchOptions, values_problem};
use super::request::Reply;
use super::{SysbenchSetup, Sysbench};
use crate::step::StepOptions;
use crate::{Context, Philox, Result, Work};

/// What happened up to now, or since the report before, as a script's hooks receive it. Times are in
/// seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stat {
    pub threads_running: u32,
    pub time_interval: f64,
    pub time_total: f64,
    pub events: u64,
    pub reads: u64,
    pub writes: u64,
    pub other: u64,
    pub errors: u64,
    pub reconnects: u64,
    pub latency_pct: f64,
    pub latency_min: f64,
    pub latency_max: f64,
    pub latency_avg: f64,
    pub latency_sum: f64,
    /// Events of a target rate that are due and not begun.
    pub queue_length: u64,
    /// Events that are on their way.
    pub concurrency: u64,
}

impl Sysbench {
    /// Returns the workload for the one command that `options` name.
    pub fn alone(options: &SysbenchOptions, context: Context) -> Result<Self, String> {
        if let Some((_, problem)) = values_problem(options) {
            return Err(problem);
        }
        let setup = SysbenchSetup::new(options, context);
        let command = options.commands.first().map_or("run", String::as_str);
        let own = SysbenchSetup::new(&setup.options, setup.context.clone());
        let offers = Offers::of(&own, command).map_err(|(_, problem)| problem)?;
        setup.printed.add(&own.printed.take());
        let names = offers.commands.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        if command != "help" && !offers.commands.contains_key(command) {
            return Err(format!("script {} has no command {command}; it has {names}", options.script));
        }
        let _ = setup.offers.set(Ok(offers));
        Ok(Self { setup, steps: options.list(), main: None })
    }

    pub fn own_options(&self) -> Vec<OwnOption> {
        self.setup.look().as_ref().map_or_else(|_| Vec::new(), |offers| offers.options.clone())
    }

    pub fn has_help(&self) -> bool {
        self.setup.look().as_ref().is_ok_and(|offers| offers.commands.contains_key("help"))
    }

    pub fn take_printed(&self) -> String {
        self.setup.printed.take()
    }

    /// Returns whether the script has asked for a connection to a database.
    pub fn asks_database(&self) -> bool {
        self.setup.asks.load(Ordering::Relaxed)
    }

    /// Runs the script's `init`.
    pub async fn begin(&mut self) -> Result<()> {
        self.init(0).await
    }

    /// Hands `stat` to the script's hook `report_intermediate` or `report_cumulative`. The result is
    /// whether the script has that hook.
    pub fn report(&self, kind: &str, stat: &Stat) -> Result<bool, String> {
        let Some(machine) = &self.main else { return Ok(false) };
        machine.report(kind, stat).map_err(|error| error_text(&error))
    }

    pub async fn help(&mut self) -> Result<()> {
        self.apart("help").await.map(|_| ())
    }

    /// Runs a command once, outside of any step, where the script has it. It is used to remove the
    /// tables of an earlier cell.
    pub(super) async fn apart(&mut self, command: &str) -> Result<Option<Work>> {
        let Ok(offers) = self.setup.look() else { return Ok(None) };
        if !offers.commands.contains_key(command) {
            return Ok(None);
        }
        let began = Instant::now();
        let place = StateIdentity { tid: 0, threads: 1, command, stream: Philox::new(0, 0) };
        let failed = |message| self.setup.failed(message);
        let mut machine = Machine::new(&self.setup, &offers.script, place).map_err(failed)?;
        let outcome = machine.start("command", Reply::Name(command.to_owned())).await;
        machine.close().await;
        match outcome {
            EventOutcome::Failed(failure) => Err(failed(failure.message)),
            _ => Ok(Some(Work::new(format!("script's {command}"), began.elapsed(), Map::new()))),
        }
    }
}

impl Machine {
    /// Calls a hook, which may print and must not wait.
    fn report(&self, kind: &str, stat: &Stat) -> mlua::Result<bool> {
        let table = self.lua.create_table()?;
        for (name, value) in stat.values() {
            table.set(name, plain(&self.lua, &value)?)?;
        }
        self.host.resumed.set(Instant::now());
        self.api.get::<Function>("report")?.call((kind, table))
    }
}
