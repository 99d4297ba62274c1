//! Runs a step whose connections are on several client hosts. Each host runs a part of the tasks,
//! and one collector gets the reports of all load threads. A [`HostShare`] defines that part, and
//! the numbers of a shared schedule that the host takes.
//!
//! While the clock runs, hosts exchange only the reports that load threads make anyway, once per
//! second. All hosts start their clocks at one moment and cut their counters at the same moments.
//! Seconds and windows of several hosts are therefore joined like those of several threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_record::{StepWriter, WindowRule};
use serde::{Deserialize, Serialize};

use crate::collector::{Collector, Inbox, Message};
use crate::control::{Control, Follower, StepCommand};
use crate::engine::{conduct, ended, join, kinds, start};
use crate::pauses::Watching;
use crate::{
    Arrivals, ConnectionTask, Error, Limit, Observer, Schedule, Step, StepEnd, StopReason, TaskSpec, schedule,
};

/// The clock starts this long after the last connection is open, so that the command can reach all
/// hosts.
const LEAD: Duration = Duration::from_millis(500);
/// How often dbdyno checks whether the user wants to stop, before there is a collector that checks
/// this.
const POLL: Duration = Duration::from_millis(100);

/// A message from a load thread on one host to the collector on another.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostMessage(Message);

#[derive(Debug)]
pub enum FromHost {
    Message(HostMessage),
    /// The host is gone, or cannot do its part. The text says why and names the host.
    Lost(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostPart {
    /// The number of load threads on the hosts before this one.
    first_load_thread: usize,
    load_threads: usize,
    ended: usize,
    /// By how much the start came too late on this host.
    pub late: Duration,
    /// The longest time from when an operation was due to when a free connection sent it, in
    /// microseconds.
    pub lag_max_us: u64,
}

/// Presents the messages of all hosts as if they came from the threads of one.
struct Merged<'a> {
    from_hosts: &'a Receiver<(usize, FromHost)>,
    parts: Vec<HostPart>,
    /// Messages that were received but not yet looked at.
    early: VecDeque<(usize, FromHost)>,
    ready: VecDeque<Message>,
}

/// Runs a step whose tasks are distributed over `hosts` hosts. `specs` describes all of the tasks.
/// Each host calls [`run_part`]. `from_hosts` delivers the messages of the hosts, and `follower`
/// takes commands to them. Errors inside the step are reported in [`StepEnd`].
pub fn run_on_hosts(
    step: &Step<'_>,
    specs: &[TaskSpec],
    (hosts, from_hosts): (usize, &Receiver<(usize, FromHost)>),
    follower: Follower,
    writer: &mut StepWriter,
    observer: &mut dyn Observer,
) -> Result<(StepEnd, Vec<HostPart>), Error> {
    let control = Control::new(step.spec.clients, specs, step.spec.window).followed_by(follower);
    let schedules = schedule::accounting(specs.iter())?;
    let mut merged = Merged {
        from_hosts,
        parts: vec![HostPart::default(); hosts],
        early: VecDeque::new(),
        ready: VecDeque::new(),
    };
    merged.count_workers(step, &control);
    let load_threads = merged.parts.iter().map(|part| part.load_threads).sum();
    let kinds = kinds(step.spec);
    let mut collector = Collector::new(writer, observer, &control, &kinds, load_threads, schedules);
    collector.expect_elsewhere(specs);
    conduct(step, specs, &mut collector, &mut merged, LEAD);
    let (failure, ends) = (collector.failure.take(), std::mem::take(&mut collector.ends));
    Ok((ended(&control, failure, ends)?, merged.parts))
}

/// Returns whether tasks can be distributed over hosts. No task may wait for another one. The
/// window must end with the last task, or at one time that is known beforehand, because a host
/// learns too late that a task on another host has ended.
pub fn can_be_shared(specs: &[TaskSpec], window: WindowRule) -> bool {
    let is_alone = |spec: &TaskSpec| spec.coupling.is_none() && spec.limit != Limit::UntilClientEnds;
    let ends_by_time = |spec: &TaskSpec| matches!(spec.limit, Limit::Time(_)) && spec.limit == specs[0].limit;
    specs.iter().all(is_alone) && (window == WindowRule::LastEnded || specs.iter().all(ends_by_time))
}

impl Merged<'_> {
    /// Waits until each host has reported how many load threads it has, or is lost.
    fn count_workers(&mut self, step: &Step<'_>, control: &Control) {
        let mut silent: Vec<usize> = (0..self.parts.len()).collect();
        while !silent.is_empty() {
            if step.cancel.load(Ordering::Relaxed) {
                control.stop(StopReason::Interrupted);
            }
            match self.from_hosts.recv_timeout(POLL) {
                Ok((host, FromHost::Message(HostMessage(Message::LoadThreads(load_threads))))) => {
                    self.parts[host].load_threads = load_threads;
                    silent.retain(|other| *other != host);
                }
                Ok((host, FromHost::Lost(why))) => {
                    control.stop(StopReason::Failed(why));
                    control.abandon();
                    self.parts[host].load_threads = 0;
                    self.early.retain(|(other, _)| *other != host);
                    silent.retain(|other| *other != host);
                }
                Ok(other) => self.early.push_back(other),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let mut load_threads = 0;
        for part in &mut self.parts {
            part.first_load_thread = load_threads;
            load_threads += part.load_threads;
        }
    }

    /// Turns a message of a host into messages of load threads, which are numbered over all hosts.
    fn take(&mut self, host: usize, received: FromHost) {
        let part = &mut self.parts[host];
        let message = match received {
            FromHost::Message(HostMessage(message)) => message,
            FromHost::Lost(why) => {
                self.ready.push_back(Message::HostLost(why));
                for _ in part.ended..part.load_threads {
                    self.ready.push_back(Message::WorkerEnded { ends: Vec::new() });
                }
                part.ended = part.load_threads;
                return;
            }
        };
        self.ready.push_back(match message {
            Message::Ready { load_thread, took, logins } => {
                Message::Ready { load_thread: part.first_load_thread + load_thread, took, logins }
            }
            Message::Batch(batch) => {
                let lags = batch.times.values().filter_map(|times| times.lag.as_ref());
                part.lag_max_us = lags.map(|lag| lag.max()).fold(part.lag_max_us, u64::max);
                Message::Batch(batch)
            }
            Message::WorkerEnded { ends } => {
                part.ended += 1;
                Message::WorkerEnded { ends }
            }
            Message::BegunLate(late) => {
                part.late = late;
                return;
            }
            message => message,
        });
    }
}

impl Inbox for Merged<'_> {
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(message);
            }
            let (host, message) = match self.early.pop_front() {
                Some(early) => early,
                None => self.from_hosts.recv_timeout(wait)?,
            };
            self.take(host, message);
        }
    }
}

/// Runs those of the step's tasks that belong to `part`. It passes the reports of its load threads
/// to `say`, and follows `commands` until the step is over on this host. The step also ends when
/// the channel of commands has no sender any more.
pub fn run_part<L, F>(
    step: &Step<'_>,
    tasks: Vec<(TaskSpec, F)>,
    part: HostShare,
    commands: Receiver<StepCommand<Instant>>,
    say: impl Fn(HostMessage),
) -> Result<(), Error>
where
    L: ConnectionTask + 'static,
    F: FnOnce() -> L + Send + 'static,
{
    let tasks = tasks_of(part, tasks);
    let specs: Vec<TaskSpec> = tasks.iter().map(|(spec, _)| spec.clone()).collect();
    let (sender, messages) = mpsc::channel();
    let stops = sender.clone();
    let follower: Follower = Box::new(move |command| {
        if let StepCommand::Stop(reason) = command {
            let _ = stops.send(Message::Stopped(reason));
        }
    });
    let control = Control::new(step.spec.clients, &specs, step.spec.window).of_part().followed_by(follower);
    let control = Arc::new(control);
    let threads = start(step, tasks, part, &control, &sender)?;
    let mut watching = Some(Watching::start(Arc::clone(&control)).map_err(Error::Thread)?);
    say(HostMessage(Message::LoadThreads(threads.len())));
    let applying = Arc::clone(&control);
    thread::spawn(move || apply(&applying, &commands, |late| sender.send(Message::BegunLate(late)).is_ok()));
    let mut left = threads.len();
    while left > 0 {
        let Ok(message) = messages.recv() else { break };
        left -= usize::from(matches!(message, Message::WorkerEnded { .. }));
        // The pauses go out before the last message of this host, because nothing is read after
        // that message.
        if left == 0 {
            let pauses = watching.take().map(Watching::end).unwrap_or_default();
            pauses.into_iter().for_each(|pause| say(HostMessage(Message::Paused(pause))));
        }
        say(HostMessage(message));
    }
    join(threads)
}

/// Returns the tasks of `part`. Each of their schedules gives out only this part's numbers.
fn tasks_of<F>(part: HostShare, tasks: Vec<(TaskSpec, F)>) -> Vec<(TaskSpec, F)> {
    let mut shared: Vec<(Arc<Schedule>, Arc<Schedule>)> = Vec::new();
    let mut of_part = |schedule: &Arc<Schedule>| {
        if let Some((_, own)) = shared.iter().find(|(whole, _)| Arc::ptr_eq(whole, schedule)) {
            return Arc::clone(own);
        }
        let own = Arc::new(schedule.of_part(part));
        shared.push((Arc::clone(schedule), Arc::clone(&own)));
        own
    };
    let task = |(mut spec, factory): (TaskSpec, F)| {
        if let Arrivals::Shared(schedule) = &mut spec.arrivals {
            *schedule = of_part(schedule);
        }
        (spec, factory)
    };
    tasks.into_iter().skip(part.host as usize).step_by(part.hosts as usize).map(task).collect()
}

/// Applies `commands` until their sender is gone, and then ends the step. If the start came too
/// late, `say_late` is called with the delay.
fn apply(control: &Control, commands: &Receiver<StepCommand<Instant>>, say_late: impl Fn(Duration) -> bool) {
    for command in commands {
        if let StepCommand::Begin(at) = command
            && let late = at.elapsed()
            && !late.is_zero()
        {
            say_late(late);
        }
        control.apply(command);
    }
    control.stop(StopReason::Interrupted);
    control.abandon();
    control.let_close();
}

/// One host's share of the connections: those whose number modulo `hosts` is `host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostShare {
    /// Number of the host, from 0.
    pub host: u32,
    pub hosts: u32,
}

impl HostShare {
    /// The share of a host that has all connections.
    pub const WHOLE: Self = Self { host: 0, hosts: 1 };

    /// Turns the host's own number `number` into its number among those of all hosts.
    pub(crate) fn of_all(self, number: u64) -> u64 {
        number.saturating_mul(u64::from(self.hosts)).saturating_add(u64::from(self.host))
    }

    /// Returns how many of the first `count` numbers of all hosts belong to this host.
    pub(crate) fn among(self, count: u64) -> u64 {
        count.saturating_sub(u64::from(self.host)).div_ceil(u64::from(self.hosts))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_shares_of_all_hosts_hold_every_number_once() {
        for hosts in 1..=5 {
            let parts = (0..hosts).map(|host| HostShare { host, hosts });
            for count in 0..23 {
                assert_eq!(parts.clone().map(|part| part.among(count)).sum::<u64>(), count);
                let numbers = parts.clone().flat_map(|part| {
                    (0..part.among(count)).map(move |number| part.of_all(number)).collect::<Vec<_>>()
                });
                assert_eq!(numbers.collect::<BTreeSet<_>>(), (0..count).collect());
            }
        }
    }
}
