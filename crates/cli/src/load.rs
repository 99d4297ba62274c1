//! Prepares the load of a step for every command that runs load: `run`, the agents of its client
//! hosts, a fleet's tasks, `sysbench` and `pgbench`.
//!
//! `sysbench` and `pgbench` run a workload's only step without a plan. Its record is thrown away,
//! because the results are printed while it runs.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_db::{DatabaseAddress, DatabaseServer};
use dbdyno_loadgen::{Connections, Draws, LostConnections, Observer, Reconnect, Step, StepEnd, Threads};
use dbdyno_model::Load;
use dbdyno_plan::Plan;
use dbdyno_record::{StepSpec, StepWriter};
use dbdyno_workloads::{AnyWorkload, Context, kind_of};
use hdrhistogram::Histogram;

use crate::exit::ExitError;
use crate::host;

/// Number of the random stream that spreads reconnections. No workload uses it.
const STREAM: u32 = 0x7265_636f;

/// Settings with which this process runs load, whatever the workload.
pub(crate) struct LoadClient<'a> {
    /// A plan's table `[load]`, or the same settings from a command line.
    pub(crate) load: &'a Load,
    /// The name by which users set the login timeout, where it is not a key of that table.
    pub(crate) login_key: Option<&'static str>,
    pub(crate) seed: u64,
    pub(crate) threads: Threads,
    pub(crate) cancel: &'a AtomicBool,
}

/// Opens a plan's workload by its name. It is `None` where the plan lacks it.
pub(crate) fn workload(plan: &Plan, name: &str, context: Context) -> Option<Box<dyn AnyWorkload>> {
    kind_of(name)?.open(plan.workload.get(name)?, context)
}

/// Returns the plan's number of load threads, and the extra work that they do.
pub(crate) fn threads(plan: &Plan) -> Threads {
    let added_work = plan.host.client_work.map(|work| work.0).unwrap_or_default();
    Threads { count: plan.host.client_threads, added_work, ..Threads::default() }
}

impl<'a> LoadClient<'a> {
    /// Makes step `index` of `workload`, which `spec` describes, ready to run.
    pub(crate) fn step(self, workload: &dyn AnyWorkload, index: usize, spec: &'a StepSpec) -> Step<'a> {
        let outline = workload.outlines()[index];
        Step {
            spec,
            connections: self.connections(),
            warmup: outline.warmup,
            time_cap: outline.time_cap,
            threads: self.threads,
            cancel: self.cancel,
        }
    }

    /// Returns how connections are opened, what happens to lost ones, and how long they may wait.
    fn connections(&self) -> Connections {
        let (load, default) = (self.load, Connections::default());
        let lost = match load.lost_connections {
            dbdyno_model::LostConnections::Fail => LostConnections::Fail,
            dbdyno_model::LostConnections::Reconnect => LostConnections::Reconnect(Reconnect {
                wait: load.reconnect_wait.0,
                wait_max: load.reconnect_wait_max.0,
                give_up_after: load.reconnect_for.0,
                draws: Draws::new(self.seed, STREAM, 0),
            }),
        };
        Connections {
            rate_per_second: load.connect_rate_per_second,
            open_within: load.login_timeout.0,
            open_key: self.login_key.unwrap_or(default.open_key),
            silence: load.silence_timeout.0,
            lost,
            ..default
        }
    }
}

/// Response times in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct ResponseTimes(pub(crate) Histogram<u64>);

impl Default for ResponseTimes {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are allowed"))
    }
}

/// Connection settings from a command line.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// The same keys as in a plan's table `[load]`.
    pub(crate) load: Load,
    /// The option by which the command line sets the login timeout.
    pub(crate) login_key: &'static str,
}

impl Opening {
    /// Returns how to reach the server, with the command line's login timeout for its sessions.
    pub(crate) fn database_server(&self, mut address: DatabaseAddress, engine: &str) -> DatabaseServer {
        if let Some(login) = address.login_mut() {
            let limits = &mut login.connection_settings.limits;
            (limits.login, limits.login_key) = (self.load.login_timeout.0, self.login_key);
        }
        address.database_server(engine, false)
    }
}

/// Makes the context in which a script runs. Its sessions commit after each statement, whatever the
/// server's setting.
pub(crate) fn ad_hoc_context(mut database_server: DatabaseServer, seed: u64) -> Result<Context, ExitError> {
    // The result is ignored, because the script's own connections, if any, report a server that
    // does not answer.
    let _ = wait(database_server.commit_each_statement())?;
    Ok(Context { database_server, owned: false, seed, draws: seed, device: None })
}

/// Runs step 0 of `workload` as a plan's step with the table `[load]` of `opening`. The step is cut
/// off after `shortened` if that is less than its time limit.
pub(crate) fn ad_hoc_step(
    workload: &impl AnyWorkload,
    threads: Threads,
    (opening, seed): (&Opening, u64),
    shortened: Option<Duration>,
    observer: &mut dyn Observer,
) -> Result<StepEnd, ExitError> {
    let place = std::env::temp_dir().join(format!("dbdyno-script-{}", std::process::id()));
    std::fs::create_dir_all(&place)
        .map_err(|error| ExitError::machine(format!("cannot make {}: {error}", place.display())))?;
    let mut writer = StepWriter::open(place.clone())?;
    let (spec, cancel) = (workload.spec(0), &AtomicBool::new(false));
    let (load, login_key) = (&opening.load, Some(opening.login_key));
    let step = LoadClient { load, login_key, seed, threads, cancel }.step(workload, 0, &spec);
    let time_cap = [step.time_cap, shortened].into_iter().flatten().min();
    let end = workload.run(0, Step { time_cap, ..step }, &mut writer, observer);
    let _ = std::fs::remove_dir_all(&place);
    end.map_err(ExitError::ours)
}

/// Waits for work before or after the step.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> Result<T, ExitError> {
    Ok(host::event_loop()?.block_on(work))
}

pub(crate) fn time_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}
