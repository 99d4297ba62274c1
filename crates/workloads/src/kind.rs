//! Workloads in one list, as objects that hide their types.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use dbdyno_db::{AnySession, tables};
use dbdyno_loadgen::{HostMessage, HostShare, Observer, Step, StepCommand, StepEnd, TaskSpec};
use dbdyno_plan::{StepOutline, Table, TableError, Values, WorkloadKind, WorkloadOptions};
use dbdyno_record::{Check, StepWriter, WorkloadInfo};
use schemars::{Schema, SchemaGenerator};
use serde_json::json;

use crate::cleanup::cleanup;
use crate::deviations::of_surroundings;
use crate::step::StepOptions as _;
use crate::{Context, Error, Result, Steps, Surroundings, Work, Workload, WorkloadSummary, checks};

/// A workload that plans can name, whatever its types are.
pub trait Kind: WorkloadKind {
    /// Returns what the workload is for, in a sentence.
    fn purpose(&self) -> String;

    /// Returns its steps with its default options, as they are on a database with its defaults. There
    /// is one list for each order.
    fn summaries(&self) -> Vec<WorkloadSummary>;

    /// Returns what the record says about the workload with `options` under `name`. The result is
    /// `None` for options of another workload.
    fn info(&self, name: &str, options: &dyn WorkloadOptions, around: &Surroundings) -> Option<WorkloadInfo>;

    /// Returns the workload with `options` over the database of `context`. The result is `None` for
    /// options of another workload.
    fn open(&self, options: &dyn WorkloadOptions, context: Context) -> Option<Box<dyn AnyWorkload>>;
}

pub struct Entry<W>(PhantomData<fn() -> W>);

impl<W: Workload> Entry<W> {
    pub(crate) const NEW: Self = Self(PhantomData);
}

impl<W: Workload> WorkloadKind for Entry<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn read(&self, mut table: Table<'_>) -> Result<Box<dyn WorkloadOptions>, TableError> {
        W::lay_under(&mut table);
        let options: W::Options = table.read()?;
        Ok(Box::new(options))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<W::Options>()
    }
}

impl<W: Workload> Kind for Entry<W> {
    fn purpose(&self) -> String {
        W::PURPOSE.to_owned()
    }

    fn summaries(&self) -> Vec<WorkloadSummary> {
        W::summaries()
    }

    fn info(&self, name: &str, options: &dyn WorkloadOptions, around: &Surroundings) -> Option<WorkloadInfo> {
        let options: &W::Options = (options as &dyn Any).downcast_ref()?;
        let around = of_surroundings(&W::ORIGINAL, around);
        let needs = options.needs();
        Some(WorkloadInfo {
            name: name.to_owned(),
            version: W::VERSION,
            follows: W::follows(options).to_owned(),
            options: Values::values(options),
            deviations: W::deviations(options).into_iter().chain(around).collect(),
            load_steps: options.load_steps(),
            steps: options.step_names(),
            data_bytes: needs.data_bytes,
            connections: needs.connections,
        })
    }

    fn open(&self, options: &dyn WorkloadOptions, context: Context) -> Option<Box<dyn AnyWorkload>> {
        Some(Box::new(W::new((options as &dyn Any).downcast_ref()?, context)))
    }
}

/// Work on a database that the caller waits for.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// A [`Workload`] over one cell, whatever its tasks are. The conductor works with it step by step.
/// Types are erased here, once per step: [`AnyWorkload::run`] hands tasks of their own type to the load
/// engine.
pub trait AnyWorkload: Steps {
    /// Returns what the plan says about each step.
    fn outlines(&self) -> Vec<&StepOutline>;

    /// Returns the names of the steps, in order.
    fn steps(&self) -> Vec<String> {
        self.outlines().into_iter().map(|step| step.name.clone()).collect()
    }

    /// Returns how many of the first steps only make the data.
    fn load_steps(&self) -> usize {
        self.outlines().into_iter().filter(|step| step.loads).count()
    }

    /// Brings the database to where step `index` can begin.
    fn before<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>>;

    /// Runs step `index` on its tasks.
    fn run(
        &self,
        index: usize,
        step: Step<'_>,
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error>;

    /// Returns the connections of step `index`, as the load engine sees them.
    fn task_specs(&self, index: usize) -> Vec<TaskSpec>;

    /// Runs one host's part of step `index`.
    fn run_part(
        &self,
        index: usize,
        step: &Step<'_>,
        part: HostShare,
        commands: Receiver<StepCommand<Instant>>,
        say: &dyn Fn(HostMessage),
    ) -> Result<(), dbdyno_loadgen::Error>;

    /// Does [`Workload::check`].
    fn verify<'a>(
        &'a mut self,
        index: usize,
        end: &'a StepEnd,
        session: &'a mut AnySession,
    ) -> Boxed<'a, Vec<Check>>;

    /// Does the work that belongs after step `index`: the workload's own, then cleanup before the next
    /// one.
    fn after<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>>;
}

impl<W: Workload> AnyWorkload for W {
    fn outlines(&self) -> Vec<&StepOutline> {
        self.cell().steps.iter().map(|step| &step.outline).collect()
    }

    fn before<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>> {
        Box::pin(async move {
            let works = self.before_step(index, session).await?;
            self.cell().context.drop_binlog(session).await?;
            Ok(works)
        })
    }

    fn run(
        &self,
        index: usize,
        step: Step<'_>,
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error> {
        dbdyno_loadgen::run(step, self.tasks(index), writer, observer)
    }

    fn task_specs(&self, index: usize) -> Vec<TaskSpec> {
        self.tasks(index).into_iter().map(|(spec, _)| spec).collect()
    }

    fn run_part(
        &self,
        index: usize,
        step: &Step<'_>,
        part: HostShare,
        commands: Receiver<StepCommand<Instant>>,
        say: &dyn Fn(HostMessage),
    ) -> Result<(), dbdyno_loadgen::Error> {
        dbdyno_loadgen::run_part(step, self.tasks(index), part, commands, say)
    }

    fn verify<'a>(
        &'a mut self,
        index: usize,
        end: &'a StepEnd,
        session: &'a mut AnySession,
    ) -> Boxed<'a, Vec<Check>> {
        Box::pin(self.check(index, end, session))
    }

    fn after<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>> {
        Box::pin(async move {
            let mut works = self.after_step(index, session).await?;
            let tables = match self.tables() {
                Some(tables) => tables,
                None => {
                    let (tables, counted) = count_rows(session).await?;
                    works.extend(counted);
                    tables
                }
            };
            let cell = self.cell();
            cell.context.drop_binlog(session).await?;
            if cell.settles_after(index) {
                let settle = (&cell.options.settling(), cell.options.original_wait());
                works.push(cleanup(session, cell.context, &tables, settle, &cell.steps[index].name).await?);
            }
            Ok(works)
        })
    }
}

/// Returns the tables of the database, and the number of rows in each where there are any tables.
async fn count_rows(session: &mut AnySession) -> Result<(Vec<String>, Option<Work>)> {
    let names = tables(session).await.map_err(Error::during("listing the tables"))?;
    let began = Instant::now();
    let mut rows = Vec::new();
    for table in &names {
        rows.push((table, json!(checks::count(session, table).await?)));
    }
    let work = (!names.is_empty()).then(|| Work::new("count rows", began.elapsed(), rows));
    Ok((names, work))
}
