//! Puts a step's load on, from this process or from the client hosts that the plan names.

use dbdyno_loadgen::{Error, HostShare, Step, StepEnd};
use dbdyno_record::StepWriter;
use dbdyno_workloads::AnyWorkload;
use serde_json::Value;

use crate::clients::Task;
use crate::conductor::step::StepTask;
use crate::progress::Watcher;

impl StepTask<'_, '_> {
    /// This process runs loads and index builds itself. Client hosts, where there are any, share
    /// the connections of the other steps.
    pub(super) fn put_load_on(
        &self,
        workload: &mut dyn AnyWorkload,
        step: Step<'_>,
        writer: &mut StepWriter,
        watcher: &mut Watcher<'_>,
    ) -> Result<StepEnd, Error> {
        let database_server = &self.database.database_server;
        let manifest = self.conductor.manifest.as_ref();
        let (Some(hosts), Some(state), Some(login), Some(manifest)) = (
            &self.conductor.clients,
            workload.tasks_state(self.index),
            database_server.address.login(),
            manifest,
        ) else {
            return workload.run(self.index, step, writer, watcher);
        };
        let task = Task {
            plan: manifest.plan.clone(),
            variant: self.cell.variant.clone(),
            workload: self.cell.workload.clone(),
            step: self.index,
            state,
            warmup: step.warmup,
            user: login.user.clone(),
            password: login.password.reveal().to_owned(),
            sets_autocommit: login.connection_settings.sets_autocommit,
            missing: database_server.capabilities.lacks().map(str::to_owned).collect(),
            draws: step.spec.options.get("seed").and_then(Value::as_u64).unwrap_or(manifest.plan.seed),
            part: HostShare::WHOLE,
        };
        hosts.run(&task, &step, &workload.task_specs(self.index), writer, watcher)
    }
}
