//! Runs the load on one server from several client hosts. On each host an agent runs its part of a
//! step's connections, as the conductor commands.

mod agent;
mod link;
mod start;

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use dbdyno_loadgen::{
    Follower, FromHost, HostPart, HostShare, Observer, Step, StepCommand, StepEnd, TaskSpec, can_be_shared,
    run_on_hosts,
};
use dbdyno_model::Clients;
use dbdyno_record::{ClientHost, Outcome, StepEvent, StepWriter};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::exit::ExitError;
use crate::plan::prepare::tool;
use crate::time::to_us;
pub(crate) use agent::agent;
use agent::{Used, boot_id};
pub(crate) use link::AgentTask;
use link::{AgentAnswer, AgentClock, AgentLink, ToAgent};
use start::{Launched, Process, launch, places};

/// Folder of the agents' logs in the run directory.
const FOLDER: &str = "clients";
/// Longest wait for an agent's messages: its description once it is connected, and its CPU usage
/// once a step has ended.
const PATIENCE: Duration = Duration::from_secs(15);
/// Round trips that compare two clocks. Only the fastest one counts.
const ROUND_TRIPS: usize = 50;
/// Longest wait for one round trip.
const ROUND_TRIP: Duration = Duration::from_secs(2);

/// The client hosts of a run. Their agents end with it.
pub(crate) struct ClientHosts {
    hosts: Vec<AgentHost>,
    /// Messages of load threads.
    messages: Receiver<(usize, FromHost)>,
    /// Other messages of agents.
    answers: Receiver<(usize, AgentAnswer)>,
    /// Moment from which times are counted.
    zero: Instant,
    /// The reservation of the hosts. It is dropped after `hosts`, because the agents must have
    /// ended before their hosts become free.
    _reservation: Option<Process>,
}

struct AgentHost {
    name: String,
    cpus: u32,
    clock_source: String,
    /// Whether the host is this machine.
    is_here: bool,
    /// Sender of the agent's orders. It is dropped before the process, because the agent ends when
    /// no sender is left.
    orders: UnboundedSender<ToAgent>,
    _process: Process,
}

impl ClientHosts {
    /// Starts an agent on each host and connects to it. The logs go to the run directory.
    pub(crate) fn start(clients: &Clients, run: &Path) -> Result<Self, ExitError> {
        let log = |number: usize, name: &str| run.join(FOLDER).join(format!("{number}-{name}.log"));
        let (places, _reservation) = places(clients, &run.join(FOLDER).join("hosts.log"))?;
        let launched = (1..).zip(&places).map(|(number, place)| launch(place, log(number, &place.address)));
        // All agents start at the same time.
        let launched = launched.collect::<Result<Vec<_>, _>>()?;
        let ((message, messages), (answer, answers)) = (mpsc::channel(), mpsc::channel());
        let mut all = Self { hosts: Vec::new(), messages, answers, zero: Instant::now(), _reservation };
        for launched in launched {
            let port = launched.port()?;
            let Launched { process: _process, credentials, name } = launched;
            let (orders, to_send) = unbounded_channel();
            let link = AgentLink {
                host: all.hosts.len(),
                name: name.clone(),
                messages: message.clone(),
                answers: answer.clone(),
                zero: all.zero,
            };
            link.attend(port, credentials, to_send)?;
            all.hosts.push(AgentHost {
                name,
                cpus: 0,
                clock_source: String::new(),
                is_here: false,
                orders,
                _process,
            });
        }
        all.greet().map_err(ExitError::machine)?;
        Ok(all)
    }

    fn greet(&mut self) -> Result<(), String> {
        for _ in 0..self.hosts.len() {
            match self.answers.recv_timeout(PATIENCE) {
                Ok((host, AgentAnswer::Hello { tool: its, cpus, clock_source, boot_id: booted })) => {
                    let host = &mut self.hosts[host];
                    (host.cpus, host.clock_source) = (cpus, clock_source);
                    host.is_here = !booted.is_empty() && booted == boot_id();
                    if its != tool() {
                        return Err(format!(
                            "client host {} has another dbdyno: {} ({}), {} build; put the same one there",
                            host.name, its.version, its.commit, its.build
                        ));
                    }
                }
                Ok((_, AgentAnswer::Lost(why))) => return Err(why),
                Ok(_) => {}
                Err(_) => return Err("the agent of a client host did not identify itself".to_owned()),
            }
        }
        Ok(())
    }

    /// Runs a step with the tasks `specs` on all hosts. Each host gets `task` with its own part, so
    /// the part in `task` is ignored.
    pub(crate) fn run(
        &self,
        task: &AgentTask,
        step: &Step<'_>,
        specs: &[TaskSpec],
        writer: &mut StepWriter,
        observer: &mut dyn Observer,
    ) -> Result<StepEnd, dbdyno_loadgen::Error> {
        if !can_be_shared(specs, step.spec.window) {
            let why = "client hosts cannot share this step: its connections depend on each other, or the first one that is \
                       done ends its window";
            return Ok(failed(why.to_owned()));
        }
        while self.messages.try_recv().is_ok() {}
        let before = match self.clocks() {
            Ok(clocks) => clocks,
            Err(why) => return Ok(failed(why)),
        };
        let hosts = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        for (number, host) in (0..).zip(&self.hosts) {
            let task = AgentTask { part: HostShare { host: number, hosts }, ..task.clone() };
            // If sending fails, the host was lost after the clocks were compared, and its link has
            // already reported that.
            let _ = host.orders.send(ToAgent::Step(Box::new(task)));
        }
        let messages = (self.hosts.len(), &self.messages);
        let (end, parts) = run_on_hosts(step, specs, messages, self.follower(&before), writer, observer)?;
        let used = self.used();
        let after = self.clocks().unwrap_or_else(|_| before.clone());
        for (index, part) in parts.iter().enumerate() {
            let connections = specs.iter().skip(index).step_by(parts.len()).count();
            let host =
                self.hosts[index].record(connections, part, used[index], [before[index], after[index]]);
            writer.event(&StepEvent::ClientHost(host))?;
        }
        Ok(end)
    }

    /// Returns a function that sends commands to a running step on all hosts, with times by each
    /// host's clock.
    fn follower(&self, clocks: &[AgentClock]) -> Follower {
        let zero = self.zero;
        let orders = self.hosts.iter().map(|host| host.orders.clone());
        let hosts: Vec<_> = orders.zip(clocks.to_vec()).collect();
        Box::new(move |command: StepCommand<Instant>| {
            for (orders, clock) in &hosts {
                let its_time = |at: Instant| {
                    let ns = u64::try_from(at.saturating_duration_since(zero).as_nanos()).unwrap_or(u64::MAX);
                    ns.saturating_add_signed(clock.ahead_ns)
                };
                // The link reports a lost host.
                let _ = orders.send(ToAgent::Word(command.clone().at(its_time)));
            }
        })
    }

    /// Compares all clocks with this one. The error names the host that does not answer.
    fn clocks(&self) -> Result<Vec<AgentClock>, String> {
        while self.answers.try_recv().is_ok() {}
        self.hosts.iter().enumerate().map(|(index, host)| self.clock(index, host)).collect()
    }

    fn clock(&self, index: usize, host: &AgentHost) -> Result<AgentClock, String> {
        let mut best: Option<AgentClock> = None;
        for _ in 0..ROUND_TRIPS {
            if host.orders.send(ToAgent::Ping { sent_ns: 0 }).is_err() {
                return Err(format!("client host {} was lost before this step", host.name));
            }
            match self.answers.recv_timeout(ROUND_TRIP) {
                Ok((from, AgentAnswer::Pong(clock))) if from == index => {
                    best = Some(best.filter(|best| best.error_us <= clock.error_us).unwrap_or(clock));
                }
                Ok((_, AgentAnswer::Lost(why))) => return Err(why),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        best.ok_or_else(|| format!("client host {} does not answer", host.name))
    }

    /// Returns the usage that each agent reports. The usage of a lost agent is zero.
    fn used(&self) -> Vec<Used> {
        let mut all = vec![None; self.hosts.len()];
        while all.iter().any(Option::is_none) {
            match self.answers.recv_timeout(PATIENCE) {
                Ok((host, AgentAnswer::Done(used))) => all[host] = Some(used),
                Ok((host, AgentAnswer::Lost(_))) => all[host] = Some(Used::default()),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        all.into_iter().map(Option::unwrap_or_default).collect()
    }
}

impl AgentHost {
    fn record(&self, connections: usize, part: &HostPart, used: Used, clocks: [AgentClock; 2]) -> ClientHost {
        let [before, after] = clocks;
        ClientHost {
            host: self.name.clone(),
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            cpus: self.cpus,
            measured_us: used.measured_us,
            cpu_us: used.cpu_us,
            busiest_cpu_us: used.busiest_cpu_us,
            busiest_run_delay_us: used.busiest_run_delay_us,
            throttled: used.throttled,
            is_here: self.is_here,
            late_us: to_us(part.late),
            lag_max_us: part.lag_max_us,
            clock_offset_us: before.offset_us,
            clock_error_us: before.error_us,
            clock_drift_us: (after.ahead_ns - before.ahead_ns) / 1000,
            clock_source: self.clock_source.clone(),
        }
    }
}

fn failed(why: String) -> StepEnd {
    StepEnd { outcome: Outcome::Failed, message: Some(why), at_us: 0, tasks: Vec::new() }
}
