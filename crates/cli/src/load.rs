//! Prepares the load of a step for every command that puts load on: a run, the agents of its client
//! hosts, a fleet's tasks, and the command lines of other programs.

use std::sync::atomic::AtomicBool;

use dbdyno_loadgen::{Connections, Draws, LostConnections, Reconnect, Step, Threads};
use dbdyno_model::Load;
use dbdyno_plan::Plan;
use dbdyno_record::StepSpec;
use dbdyno_workloads::{AnyWorkload, Context, kind_of};

/// Stream of the random numbers that spread reconnections. No workload uses it.
const STREAM: u32 = 0x7265_636f;

/// This process, as far as it puts load on.
pub(crate) struct LoadClient<'a> {
    /// A plan's table `[load]`, or what a command line says of it.
    pub(crate) load: &'a Load,
    /// The name by which users set the login timeout, where it is no key of that table.
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
