//! Runs one connection's part in a step, which is events or one command.

use std::sync::Arc;
use std::time::Duration;

use dbdyno_loadgen::{ConnectionTask, Done, Failure, StatementDone};
use dbdyno_record::ErrorClass;

use super::SysbenchSetup;
use super::files::SysbenchScript;
use super::machine::{EventOutcome, Machine, StateIdentity};
use super::request::Reply;
use crate::Philox;
use crate::connection::of_script;

/// How long a script may take to end after its last event.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// What the connections of a step do.
#[derive(Debug, Clone)]
pub(crate) struct StepScript {
    pub(crate) script: SysbenchScript,
    /// `run`, or the command that each connection runs once.
    pub(crate) command: String,
    pub(crate) threads: u32,
    pub(crate) stream: Philox,
    /// Whether all connections take their events from one schedule. What event n draws is then the
    /// same whichever connection sends it.
    pub(crate) is_shared: bool,
}

/// One connection of the step. Its script may open several connections to the database.
pub struct SysbenchTask {
    setup: Arc<SysbenchSetup>,
    step: StepScript,
    tid: u32,
    machine: Option<Machine>,
    done: Vec<StatementDone>,
    /// Whether the event begins again after a failure. It then continues with its draws.
    begins_again: bool,
    has_ended: bool,
}

impl SysbenchTask {
    pub(crate) fn new(setup: Arc<SysbenchSetup>, step: StepScript, tid: u32) -> Self {
        Self { setup, step, tid, machine: None, done: Vec::new(), begins_again: false, has_ended: false }
    }

    fn is_run(&self) -> bool {
        self.step.command == "run"
    }

    /// Makes a new Lua state. An earlier one, whose connection was lost, is closed first.
    async fn begin(&mut self) -> Result<&mut Machine, Failure> {
        if let Some(machine) = self.machine.take() {
            machine.close().await;
        }
        let StepScript { script, command, threads, stream, .. } = &self.step;
        let identity = StateIdentity { tid: self.tid, threads: *threads, command, stream: *stream };
        let machine = Machine::new(&self.setup, script, identity).map_err(of_script)?;
        Ok(self.machine.insert(machine))
    }

    /// Returns the outcome of an event or command. An event that has left a transaction open fails,
    /// because its writes would count as work but would not be kept.
    fn kept(&self, outcome: EventOutcome) -> EventOutcome {
        let is_over = matches!(outcome, EventOutcome::Next | EventOutcome::Ended);
        if !is_over || !self.machine.as_ref().is_some_and(Machine::in_transaction) {
            return outcome;
        }
        let what = if self.is_run() { "event" } else { &self.step.command };
        EventOutcome::Failed(of_script(format!(
            "{what} of script {} ended without completing the last transaction, whose work is not kept; end it with COMMIT or \
             ROLLBACK",
            self.step.script.given
        )))
    }

    /// Returns the result of the operation that ended with `outcome`, and takes the results of its
    /// statements from the state.
    fn counted(&mut self, outcome: EventOutcome) -> Result<Done, Failure> {
        let Some(machine) = &mut self.machine else { return Ok(Done::default()) };
        let tally = machine.tally();
        let done = Done { rows: tally.rows, received_bytes: tally.bytes };
        std::mem::swap(&mut self.done, &mut tally.statements);
        machine.clear();
        match outcome {
            EventOutcome::Next => Ok(done),
            EventOutcome::Ended => {
                self.has_ended = self.is_run();
                Ok(done)
            }
            EventOutcome::Restart { code, message } => {
                self.begins_again = true;
                Err(Failure { class: ErrorClass::Retry, code, message })
            }
            EventOutcome::Failed(failure)
                if self.setup.options.strict && failure.class == ErrorClass::Refused =>
            {
                Err(Failure { class: ErrorClass::Fatal, ..failure })
            }
            EventOutcome::Failed(failure) => Err(failure),
        }
    }
}

impl ConnectionTask for SysbenchTask {
    async fn open(&mut self) -> Result<(), Failure> {
        if !self.is_run() {
            return Ok(());
        }
        let machine = self.begin().await?;
        let outcome = machine.start("thread", Reply::Nothing).await;
        self.begins_again = false;
        self.counted(outcome).map(|_| ())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let outcome = if self.is_run() {
            let task = if self.step.is_shared { 0 } else { self.tid };
            let Some(machine) = &mut self.machine else { return Err(of_script("never opened")) };
            if !std::mem::take(&mut self.begins_again) {
                machine.host.draws.borrow_mut().begin(task, number);
            }
            machine.resume(Reply::Flag(true)).await
        } else {
            let (tid, command) = (self.tid, self.step.command.clone());
            let machine = self.begin().await?;
            machine.host.draws.borrow_mut().begin(tid, number);
            machine.start("command", Reply::Name(command)).await
        };
        let outcome = self.kept(outcome);
        let answer = self.counted(outcome);
        // A command that has failed halfway leaves nothing to continue with.
        if self.is_run() {
            answer
        } else {
            answer.map_err(|failure| Failure { class: ErrorClass::Fatal, ..failure })
        }
    }

    fn statements(&self) -> &[StatementDone] {
        &self.done
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    async fn close(mut self) {
        let Some(mut machine) = self.machine.take() else { return };
        if self.is_run() {
            let _ = tokio::time::timeout(END_TIMEOUT, machine.start("done", Reply::Nothing)).await;
        }
        machine.close().await;
    }
}
