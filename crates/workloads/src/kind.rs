//! Workloads as objects of a list, each with its types erased.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use dbdyno_db::AnySession;
use dbdyno_loadgen::{HostMessage, HostShare, LaneSpec, Observer, Step, StepCommand, StepEnd};
use dbdyno_plan::{Table, TableError, Values, WorkloadKind, WorkloadOptions};
use dbdyno_record::{Check, StepWriter, WorkloadInfo};
use schemars::{Schema, SchemaGenerator};

use crate::deviations::of_surroundings;
use crate::{Cards, Context, Result, Steps, Surroundings, Work, Workload};

/// A workload that plans can name, whatever its types are.
pub trait Kind: WorkloadKind {
    /// What it is for, in a sentence.
    fn purpose(&self) -> String;

    /// Its steps with its default options, as they are on a database with its defaults: one list
    /// for each order.
    fn cards(&self) -> Vec<Cards>;

    /// What the record says of it with `options` under `name`; `None` for options of another
    /// workload.
    fn info(&self, name: &str, options: &dyn WorkloadOptions, around: &Surroundings) -> Option<WorkloadInfo>;

    /// The workload with `options` over the database of `context`; `None` for options of another
    /// workload.
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

    fn cards(&self) -> Vec<Cards> {
        W::cards()
    }

    fn info(&self, name: &str, options: &dyn WorkloadOptions, around: &Surroundings) -> Option<WorkloadInfo> {
        let options: &W::Options = (options as &dyn Any).downcast_ref()?;
        let around = of_surroundings(&W::ORIGINAL, around);
        let (steps, needs) = (options.steps(), options.needs());
        Some(WorkloadInfo {
            name: name.to_owned(),
            version: W::VERSION,
            follows: W::follows(options).to_owned(),
            options: Values::values(options),
            deviations: W::deviations(options).into_iter().chain(around).collect(),
            load_steps: steps.iter().filter(|step| step.loads).count(),
            steps: steps.into_iter().map(|step| step.name).collect(),
            data_bytes: needs.data_bytes,
            connections: needs.connections,
        })
    }

    fn open(&self, options: &dyn WorkloadOptions, context: Context) -> Option<Box<dyn AnyWorkload>> {
        Some(Box::new(W::new((options as &dyn Any).downcast_ref()?, context)))
    }
}

/// Work on a database that is waited for.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// A [`Workload`] over one cell, whatever its lanes are. Types are erased here, once a step:
/// [`AnyWorkload::run`] hands lanes of their own type to the load engine.
pub trait AnyWorkload: Steps {
    /// [`Workload::before`]
    fn before<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>>;

    /// Runs step `index` on its lanes.
    fn run(
        &self,
        index: usize,
        step: Step<'_>,
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error>;

    /// The connections of step `index`, as the load engine sees them.
    fn lane_specs(&self, index: usize) -> Vec<LaneSpec>;

    /// Runs one host's part of step `index`.
    fn run_part(
        &self,
        index: usize,
        step: &Step<'_>,
        part: HostShare,
        commands: Receiver<StepCommand<Instant>>,
        say: &dyn Fn(HostMessage),
    ) -> Result<(), dbdyno_loadgen::Error>;

    /// [`Workload::verify`]
    fn verify<'a>(
        &'a mut self,
        index: usize,
        end: &'a StepEnd,
        session: &'a mut AnySession,
    ) -> Boxed<'a, Vec<Check>>;

    /// [`Workload::after`]
    fn after<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>>;
}

impl<W: Workload> AnyWorkload for W {
    fn before<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>> {
        Box::pin(Workload::before(self, index, session))
    }

    fn run(
        &self,
        index: usize,
        step: Step<'_>,
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error> {
        dbdyno_loadgen::run(step, self.lanes(index), writer, observer)
    }

    fn lane_specs(&self, index: usize) -> Vec<LaneSpec> {
        self.lanes(index).into_iter().map(|(spec, _)| spec).collect()
    }

    fn run_part(
        &self,
        index: usize,
        step: &Step<'_>,
        part: HostShare,
        commands: Receiver<StepCommand<Instant>>,
        say: &dyn Fn(HostMessage),
    ) -> Result<(), dbdyno_loadgen::Error> {
        dbdyno_loadgen::run_part(step, self.lanes(index), part, commands, say)
    }

    fn verify<'a>(
        &'a mut self,
        index: usize,
        end: &'a StepEnd,
        session: &'a mut AnySession,
    ) -> Boxed<'a, Vec<Check>> {
        Box::pin(Workload::verify(self, index, end, session))
    }

    fn after<'a>(&'a mut self, index: usize, session: &'a mut AnySession) -> Boxed<'a, Vec<Work>> {
        Box::pin(Workload::after(self, index, session))
    }
}
