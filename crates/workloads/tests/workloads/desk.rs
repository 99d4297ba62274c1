//! Runs whole steps, or single operations of one connection, on a database that only records the
//! statements that it receives.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_db::null::{self, Journal, Request};
use dbdyno_db::{Capabilities, DatabaseAddress, DatabaseServer, Param};
use dbdyno_loadgen::{ConnectionTask, Connections, Notes, Observer, Step, StepEnd, Threads};
use dbdyno_record::{CellId, HostInfo, Manifest, Outcome, RunWriter, StepEvent, StepRecord, ToolInfo};
use dbdyno_workloads::oltp::Oltp;
use dbdyno_workloads::oltp::options::OltpOptions;
use dbdyno_workloads::{AnyWorkload, Context, Workload};
use tokio::runtime::Runtime;

/// A workload whose statements are recorded in a journal.
pub(crate) struct Desk<W = Oltp> {
    pub(crate) workload: W,
    pub(crate) journal: Journal,
    runtime: Runtime,
}

/// Returns a statement as text, with its parameters filled in.
pub(crate) fn text(request: &Request) -> String {
    match request {
        Request::Query(sql) | Request::Rows(sql) => sql.clone(),
        Request::Execute(sql, params) => {
            let mut params = params.iter();
            let mut pieces = sql.split('?');
            let mut text = pieces.next().unwrap_or_default().to_owned();
            for piece in pieces {
                match params.next().expect("as many parameters as marks") {
                    Param::Int(number) => text.push_str(&number.to_string()),
                    Param::Null => text.push_str("NULL"),
                    Param::Text(value) => text.push_str(&format!("'{}'", String::from_utf8_lossy(value))),
                }
                text.push_str(piece);
            }
            assert!(params.next().is_none(), "more parameters than marks in {sql}");
            text
        }
    }
}

impl Desk<Oltp> {
    pub(crate) fn new(options: &OltpOptions, capabilities: Capabilities) -> Self {
        Desk::of(|context| Oltp::new(options, context), capabilities)
    }
}

impl<W: Workload> Desk<W> {
    /// Returns a desk for the workload that `make` builds.
    pub(crate) fn of(make: impl FnOnce(Context) -> W, capabilities: Capabilities) -> Self {
        let journal = Journal::default();
        let address = DatabaseAddress::Null(null::Options {
            journal: Some(journal.clone()),
            ..null::Options::default()
        });
        let database_server = DatabaseServer { address, capabilities };
        let workload = make(Context { database_server, owned: true, seed: 1, draws: 1, device: None });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { workload, journal, runtime }
    }

    pub(crate) fn index(&self, step: &str) -> usize {
        let names = self.workload.steps();
        names.iter().position(|name| name == step).unwrap_or_else(|| panic!("{step} is none of {names:?}"))
    }

    /// Returns the statements of each of operations `0..count` that connection `connection` (from
    /// 0) sends in the step.
    pub(crate) fn operations(&mut self, step: &str, connection: usize, count: u64) -> Vec<Vec<String>> {
        let index = self.index(step);
        let (_, factory) = self.workload.tasks(index).into_iter().nth(connection).unwrap();
        let journal = self.journal.clone();
        self.runtime.block_on(async {
            let mut task = factory();
            task.open().await.unwrap();
            journal.take();
            let mut operations = Vec::new();
            for number in 0..count {
                task.prepare(number, &mut Notes::default()).await.unwrap();
                task.perform(number).await.unwrap();
                operations.push(journal.take().iter().map(text).collect());
            }
            task.close().await;
            operations
        })
    }

    /// Returns the statements before the step, in order.
    pub(crate) fn before(&mut self, step: &str) -> Vec<String> {
        self.prepared_for(step).unwrap_or_else(|error| panic!("{error}"));
        self.journal.take().iter().map(text).collect()
    }

    /// Returns the statements after the step, in order, without those that drop binary logs.
    pub(crate) fn after(&mut self, step: &str) -> Vec<String> {
        let index = self.index(step);
        let database_server = self.database_server();
        let Self { workload, journal, runtime } = self;
        runtime.block_on(async {
            let mut session = database_server.connect().await.unwrap();
            workload.after(index, &mut session).await.unwrap();
        });
        let statements = journal.take();
        statements.iter().map(text).filter(|sql| !sql.to_uppercase().contains("BINARY LOGS")).collect()
    }

    /// Returns the error with which the work before the step fails.
    pub(crate) fn before_fails(&mut self, step: &str) -> String {
        let error = self.prepared_for(step).expect_err("it must not begin");
        self.journal.take();
        error.to_string()
    }

    fn prepared_for(&mut self, step: &str) -> Result<(), dbdyno_workloads::Error> {
        let index = self.index(step);
        let database_server = self.database_server();
        let Self { workload, runtime, .. } = self;
        runtime.block_on(async {
            let mut session = database_server.connect().await.unwrap();
            workload.before(index, &mut session).await.map(|_| ())
        })
    }

    /// Returns the database for the sessions between steps, whose statements go to the journal too.
    fn database_server(&self) -> DatabaseServer {
        let options = null::Options { journal: Some(self.journal.clone()), ..null::Options::default() };
        DatabaseServer { address: DatabaseAddress::Null(options), capabilities: null::capabilities() }
    }

    /// Runs the step through the load engine. Returns its end and its record.
    pub(crate) fn run(&mut self, step: &str) -> (StepEnd, StepRecord) {
        struct Quiet;
        impl Observer for Quiet {}
        let index = self.index(step);
        let folder = tempfile::tempdir().unwrap();
        let spec = self.workload.spec(index);
        let writer = RunWriter::create(folder.path(), &manifest()).unwrap();
        let cell = CellId { block: 1, variant: "a".into(), workload: "oltp".into() };
        let mut writer = writer.cell(&cell).unwrap().step(&spec.name).unwrap();
        let at = || "2026-01-01T00:00:00Z".to_owned();
        writer.event(&StepEvent::Started { at: at(), spec: spec.clone() }).unwrap();
        let cancel = AtomicBool::new(false);
        let step = Step {
            spec: &spec,
            threads: Threads { count: Some(2), ..Threads::default() },
            connections: Connections::default(),
            warmup: self.workload.outlines()[index].warmup,
            time_cap: Some(Duration::from_secs(60)),
            cancel: &cancel,
        };
        let end = dbdyno_loadgen::run(step, self.workload.tasks(index), &mut writer, &mut Quiet).unwrap();
        assert_eq!(end.outcome, Outcome::Completed, "{}: {:?}", spec.name, end.message);
        let outcome = end.outcome;
        writer.event(&StepEvent::Ended { at: at(), at_us: end.at_us, outcome, message: None }).unwrap();
        writer.sync().unwrap();
        let record = StepRecord::open(writer.dir());
        (end, record)
    }
}

fn manifest() -> Manifest {
    Manifest {
        format_version: dbdyno_record::FORMAT_VERSION,
        tool: ToolInfo { version: "0".into(), commit: "unknown".into(), build: "debug".into() },
        run_id: "run".into(),
        started: "2026-01-01T00:00:00Z".into(),
        plan: dbdyno_model::Plan {
            name: "run".into(),
            seed: 1,
            blocks: 1,
            base: Some("a".into()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo::default(),
        variants: Vec::new(),
        workloads: Vec::new(),
        order: Vec::new(),
    }
}
