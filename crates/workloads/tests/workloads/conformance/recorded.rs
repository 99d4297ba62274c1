//! Runs the workload on a database that only records the requests that it receives.

use dbdyno_db::null::{self, Journal, Request};
use dbdyno_db::{Capabilities, DatabaseAddress, DatabaseServer, Param};
use dbdyno_loadgen::{ConnectionTask, Notes, TaskSpec};
use dbdyno_workloads::insert_benchmark::InsertBenchmark;
use dbdyno_workloads::insert_benchmark::options::InsertBenchmarkOptions;
use dbdyno_workloads::{AnyWorkload, Context, Steps, Workload};
use tokio::runtime::{Builder, Runtime};

/// A connection task of the workload, of any kind.
type AnyTask = <InsertBenchmark as Workload>::ConnectionTask;

/// A workload whose requests are recorded.
pub(crate) struct Recorded {
    pub(crate) workload: InsertBenchmark,
    pub(crate) journal: Journal,
    pub(crate) database_server: DatabaseServer,
    pub(crate) runtime: Runtime,
}

/// The tasks of one step, with open connections.
pub(crate) struct Tasks<'a> {
    of: &'a Recorded,
    tasks: Vec<(TaskSpec, String, AnyTask)>,
}

impl Recorded {
    /// Returns the workload with seed 1. It sends the statements for a database with
    /// `capabilities`.
    pub(crate) fn new(options: &InsertBenchmarkOptions, capabilities: Capabilities) -> Self {
        Self::with_seed(options, capabilities, 1)
    }

    pub(crate) fn with_seed(
        options: &InsertBenchmarkOptions,
        mut capabilities: Capabilities,
        seed: u64,
    ) -> Self {
        let journal = Journal::default();
        let address = DatabaseAddress::Null(null::Options {
            journal: Some(journal.clone()),
            ..null::Options::default()
        });
        capabilities.stores_data = false;
        let database_server = DatabaseServer { address, capabilities };
        let context = Context {
            database_server: database_server.clone(),
            owned: true,
            seed,
            draws: seed,
            device: None,
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { workload: InsertBenchmark::new(options, context), journal, database_server, runtime }
    }

    pub(crate) fn index_of(&self, step: &str) -> usize {
        let steps = self.workload.steps();
        steps.iter().position(|name| name == step).unwrap_or_else(|| panic!("no {step} among {steps:?}"))
    }

    /// Opens all tasks of `step`. The requests that opening sends are dropped from the journal.
    pub(crate) fn tasks(&self, step: &str) -> Tasks<'_> {
        let index = self.index_of(step);
        let kinds = self.workload.spec(index).kinds;
        let open = |(spec, factory): (TaskSpec, _)| {
            let factory: Box<dyn FnOnce() -> AnyTask + Send> = factory;
            let mut task = factory();
            self.runtime.block_on(task.open()).unwrap();
            let kind = kinds[spec.kind].kind.clone();
            (spec, kind, task)
        };
        let tasks = self.workload.tasks(index).into_iter().map(open).collect();
        self.journal.take();
        Tasks { of: self, tasks }
    }

    /// Returns the statements that client 1 sends for operations `0..count` of `kind` in `step`.
    pub(crate) fn texts(&self, step: &str, kind: &str, count: u64) -> Vec<String> {
        let mut tasks = self.tasks(step);
        (0..count).map(|number| tasks.text(1, kind, number)).collect()
    }
}

impl Tasks<'_> {
    /// Prepares and sends operation `number` of the first task of `client` and `kind`. Returns all
    /// requests of the operation.
    pub(crate) fn send(&mut self, client: u32, kind: &str, number: u64) -> Vec<Request> {
        let task = self.tasks.iter_mut().find(|(spec, name, _)| spec.client == client && name == kind);
        let (_, _, task) = task.unwrap_or_else(|| panic!("client {client} has no {kind} task"));
        self.of.runtime.block_on(async {
            task.prepare(number, &mut Notes::default()).await.unwrap();
            task.perform(number).await.unwrap();
        });
        self.of.journal.take()
    }

    /// Returns the statement of an operation, without the look-ups before it.
    pub(crate) fn text(&mut self, client: u32, kind: &str, number: u64) -> String {
        match self.send(client, kind, number).pop() {
            Some(Request::Query(sql)) => sql,
            other => panic!("{kind} {number} is not sent as text: {other:?}"),
        }
    }

    /// Removes the first task of `kind`, so that the next one becomes the first.
    pub(crate) fn drop_first(&mut self, kind: &str) {
        let first = self.tasks.iter().position(|(_, name, _)| name == kind);
        self.tasks.remove(first.unwrap_or_else(|| panic!("no {kind} task")));
    }

    /// Returns the specifications of the tasks (limits, arrivals and roles), each with its kind.
    pub(crate) fn specs(&self) -> impl Iterator<Item = (&TaskSpec, &str)> {
        self.tasks.iter().map(|(spec, kind, _)| (spec, kind.as_str()))
    }
}

/// The values of a row in a statement, without quotes: dateandtime, cashregisterid, customerid,
/// productid, price, data.
pub(crate) type Row = [String; 6];

/// Returns the rows of an INSERT in text form. It shares no code with the workload that writes
/// them.
pub(crate) fn rows_of_text(sql: &str) -> Vec<Row> {
    let (_, tuples) = sql.split_once(" VALUES (").expect("an INSERT with VALUES");
    let tuples = tuples.strip_suffix(')').expect("a closing bracket");
    let row = |tuple: &str| -> Row {
        let cells: Vec<String> = tuple.split(',').map(|cell| cell.trim_matches('\'').to_owned()).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("not six columns: {cells:?}"))
    };
    tuples.split("),(").map(row).collect()
}

/// Returns the rows of an INSERT with parameters, in the form of [`rows_of_text`].
pub(crate) fn rows_of_params(params: &[Param]) -> Vec<Row> {
    let cell = |index: usize, param: &Param| match param {
        // The text form writes price with two decimals into its integer column.
        Param::Int(price) if index == 4 => format!("{price}.00"),
        Param::Int(number) => number.to_string(),
        Param::Text(text) => String::from_utf8(text.clone()).unwrap(),
        Param::Null => "NULL".to_owned(),
    };
    let row = |params: &[Param]| -> Row { std::array::from_fn(|index| cell(index, &params[index])) };
    assert!(params.len().is_multiple_of(6), "{} parameters", params.len());
    params.chunks_exact(6).map(row).collect()
}

/// Returns the whole number between `before` and `after` in `sql`.
pub(crate) fn number_between(sql: &str, before: &str, after: &str) -> i64 {
    let rest = sql.strip_prefix(before).unwrap_or_else(|| panic!("{sql} does not begin with {before}"));
    let digits = rest.strip_suffix(after).unwrap_or_else(|| panic!("{sql} does not end with {after}"));
    digits.parse().unwrap_or_else(|_| panic!("no number in {sql}"))
}
