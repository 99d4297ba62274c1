//! Makes the steps, which are the load, and a run of the scripts at each concurrency level and
//! rate.

use std::sync::Arc;

use dbdyno_loadgen::{Arrivals, Limit, TaskSpec};
use dbdyno_plan::{Size, StepEstimate, StepOutline, numbered};
use dbdyno_record::{KindSpec, OperationClass, StepSpec, Unit};
use serde_json::{Map, Value, json};

use super::load::{PgbenchLoadTask, load_operations};
use super::options::PgbenchOptions;
use super::script::Action;
use super::sources::names_of;
use super::task::{PgbenchTask, StepDraws};
use super::{AnyTask, PgbenchSetup};
use crate::oltp::steps::schedule;
use crate::settle::Settle;
use crate::step::{DataSize, Step, StepOptions, load_steps};
use crate::step::{add_run, clients, kind_spec, step_spec, stream};
use crate::{Tasks, planned};

/// Bytes of an account with its key.
pub(crate) const ACCOUNT_BYTES: u64 = 150;

/// A step with the connections and the rate of its run. The load has neither.
pub(crate) type PgbenchStep = Step<Option<(u32, Option<u32>)>>;

impl StepOptions for PgbenchOptions {
    type Kind = Option<(u32, Option<u32>)>;

    const PREPARED: &'static str = "server";

    fn list(&self) -> Vec<PgbenchStep> {
        let load = self.has_load().then(|| {
            let accounts = self.accounts();
            let detail = format!("{accounts} accounts");
            let load = StepEstimate::of_work("load", &detail, "pgbench account loaded", accounts as f64);
            Step { kind: None, outline: StepOutline::new(load) }
        });
        let (shared, stem) = (self.shared(), names_of(&self.files).join("+"));
        let runs = shared.levels().into_iter().map(|run| {
            let detail = format!("{} of {}", numbered(run.0, "connection"), self.files.join(", "));
            // The option `transactions` is a number per connection.
            let transactions = self.transactions.map(|each| each.saturating_mul(run.0.into()));
            Step { kind: Some(run), outline: shared.run_length(transactions).outline(&stem, run, &detail) }
        });
        load_steps(load.into_iter().collect()).into_iter().chain(runs).collect()
    }

    fn settling(&self) -> Settle {
        self.settle.clone().unwrap_or_default()
    }

    fn data_size(&self, size: &Size) -> DataSize {
        let loaded = if self.has_load() { self.accounts() * ACCOUNT_BYTES } else { 0 };
        DataSize { settled: loaded, loaded, disk: size.log_bytes + loaded }
    }
}

impl PgbenchStep {
    pub(crate) fn tasks(&self, setup: &Arc<PgbenchSetup>) -> Tasks<AnyTask> {
        let Some((connections, rate)) = self.kind else {
            let spec = TaskSpec::in_turn(1, load_operations(setup).len() as u64);
            let own = Arc::clone(setup);
            return vec![planned(spec, move || AnyTask::Load(Box::new(PgbenchLoadTask::new(&own))))];
        };
        let step_draws =
            StepDraws { stream: stream(&self.name, setup.context.draws), is_shared: rate.is_some() };
        let per_client = connections / clients(connections, rate);
        let arrivals = self.arrivals(setup);
        let limit = match (setup.options.length(), setup.options.transactions, rate) {
            (Some(length), ..) => Limit::Time(length),
            (None, each, Some(_)) => Limit::Operations(each.unwrap_or(1) * u64::from(connections)),
            (None, each, None) => Limit::Operations(each.unwrap_or(1)),
        };
        let task = |client: u32| {
            let own = Arc::clone(setup);
            let spec = TaskSpec::new(1 + client / per_client, arrivals.clone(), limit);
            planned(spec, move || AnyTask::Run(Box::new(PgbenchTask::new(own, step_draws, client))))
        };
        (0..connections).map(task).collect()
    }

    fn arrivals(&self, setup: &PgbenchSetup) -> Arrivals {
        let Some((_, Some(rate))) = self.kind else { return Arrivals::Closed };
        let options = &setup.options;
        let schedule =
            schedule(&self.name, (options.arrivals, rate), options.max_backlog, setup.context.draws);
        Arrivals::Shared(Arc::new(match options.latency_limit {
            Some(limit) => schedule.with_max_wait(limit.0),
            None => schedule,
        }))
    }

    pub(crate) fn spec(&self, setup: &PgbenchSetup) -> StepSpec {
        let (kind, unit, label, connections, clients) = match self.kind {
            None => ("load", Unit::Rows, "rows/s", 1, 1),
            Some((connections, rate)) => {
                ("transaction", Unit::Operations, "transactions/s", connections, clients(connections, rate))
            }
        };
        let statement = if self.kind.is_some() { described(setup) } else { load_described(setup) };
        let is_timed = self.kind.is_some() && setup.options.transactions.is_none();
        let kind_spec = KindSpec {
            connections_per_client: connections / clients,
            arrivals: self.arrivals(setup).to_string(),
            protocol: if self.kind.is_some() { setup.options.protocol.name() } else { "simple" }.to_owned(),
            ..kind_spec(kind, OperationClass::Other, statement)
        };
        step_spec((&self.name, clients), (unit, label), is_timed, kind_spec, self.options(setup))
    }

    fn options(&self, setup: &PgbenchSetup) -> Map<String, Value> {
        let options = &setup.options;
        let mut map = Map::from_iter([
            ("scale".to_owned(), json!(setup.scale())),
            ("seed".to_owned(), json!(setup.context.draws)),
        ]);
        let Some((connections, rate)) = self.kind else { return map };
        map.insert("files".to_owned(), json!(options.files));
        map.insert("connections".to_owned(), json!(connections));
        map.insert("connect".to_owned(), json!(options.connect));
        if let Ok(scripts) = &setup.scripts {
            map.insert("script_sha256".to_owned(), json!(scripts.hash()));
        }
        let operations = options.transactions.map(|each| each * u64::from(connections));
        add_run(&mut map, (operations, options.time.0), options.shared().warmup.0, rate);
        map
    }
}

/// Returns each script with its weight and its statements.
fn described(setup: &PgbenchSetup) -> String {
    let Ok(scripts) = &setup.scripts else { return setup.options.files.join("; ") };
    let one = |source: &super::sources::ScriptSource| {
        let commands = source.commands.iter().filter(|command| !command.text.is_empty());
        let commands = commands.filter(|command| !matches!(command.action, Action::Nothing));
        let texts: Vec<&str> = commands.map(|command| command.text.as_str()).collect();
        format!("{} (weight {}): {}", source.name, source.weight, texts.join("; "))
    };
    scripts.list.iter().map(one).collect::<Vec<_>>().join(" | ")
}

fn load_described(setup: &PgbenchSetup) -> String {
    let texts = load_operations(setup).into_iter().filter_map(|operation| match operation {
        super::load::LoadOperation::Statements(statements) => statements.into_iter().next(),
        super::load::LoadOperation::Accounts(numbers) if *numbers.start() == 1 => {
            Some("copy pgbench_accounts from stdin".to_owned())
        }
        super::load::LoadOperation::Accounts(_) => None,
    });
    texts.collect::<Vec<_>>().join("; ")
}
