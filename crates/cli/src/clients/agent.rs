//! `dbdyno agent` runs this host's part of each step. It serves one conductor, which is the dbdyno
//! that conducts the run and has started the agent, and it ends with the conductor. While a step
//! runs, it measures the CPU time of its process and of its load threads, and how long its control
//! groups were throttled.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use dbdyno_db::Secret;
use dbdyno_db::server::{clean_command, run_query_program};
use dbdyno_loadgen::{Step, StepCommand};
use dbdyno_record::Throttled;
use dbdyno_sample::control_groups;
use dbdyno_workloads::{Context, plans};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::clients::link::{AgentTask, Credentials, FromAgent, ToAgent, converse};
use crate::exit::ExitError;
use crate::load::{self, LoadClient};
use crate::plan::prepare::{self, tool};
use crate::time::to_us;
use crate::{host, limits, terminal};

/// Time after which an agent ends when no conductor has connected.
const CONDUCTOR_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time for one TLS handshake. It is short, so that connections from other programs do not
/// keep the conductor out.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Highest number of handshakes at the same time.
const MOST_HANDSHAKES: usize = 128;
/// Time without a message after which the conductor counts as gone. The conductor sends a message
/// at least every 10 s.
const SILENCE: Duration = Duration::from_secs(60);
/// Time after which an agent sends a heartbeat when it has nothing else to send.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Listens, accepts one conductor, and carries out its commands until it is gone.
pub(crate) fn agent(listen: &str) -> Result<(), ExitError> {
    /// The line of credentials may have this size. An endless line must not fill the memory.
    const MOST_BYTES: u64 = 1 << 20;
    let runtime = host::event_loop()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().take(MOST_BYTES).read_line(&mut line);
    let credentials =
        read.ok().and_then(|_| serde_json::from_str::<Credentials>(&line).ok()).ok_or_else(|| {
            ExitError::usage("dbdyno run starts agents, and gives them certificates on their standard input")
        })?;
    drop(line);
    let acceptor = credentials.acceptor().map_err(ExitError::usage)?;
    runtime.block_on(async {
        let cannot = |error| ExitError::machine(format!("cannot listen on {listen}: {error}"));
        let listener = TcpListener::bind((listen, 0)).await.map_err(cannot)?;
        terminal::out(&format!("listening on {}", listener.local_addr().map_err(cannot)?))?;
        let connected = timeout(CONDUCTOR_TIMEOUT, accept_conductor(&listener, &acceptor)).await;
        let stream = connected.map_err(|_| ExitError::machine("no conductor has come"))?;
        // A second conductor must not connect.
        drop(listener);
        serve(stream).await;
        Ok(())
    })
}

/// Returns the first connection that proves with its certificate that it is the conductor's.
/// Several handshakes run at the same time, so that a slow one does not delay the conductor.
async fn accept_conductor(listener: &TcpListener, acceptor: &TlsAcceptor) -> TlsStream<TcpStream> {
    let mut handshakes = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if handshakes.len() < MOST_HANDSHAKES => {
                let Ok((stream, from)) = accepted else { continue };
                let _ = stream.set_nodelay(true);
                handshakes.spawn(handshake(acceptor.clone(), stream, from));
            }
            Some(done) = handshakes.join_next() => {
                if let Ok(Some(stream)) = done {
                    return stream;
                }
            }
        }
    }
}

async fn handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    from: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => terminal::warning(&format!("{from} was refused: {error}")),
        Err(_) => {
            let seconds = HANDSHAKE.as_secs();
            terminal::warning(&format!("{from}: connection closed, no TLS handshake within {seconds} s"));
        }
    }
    None
}

/// Carries out the conductor's commands until the connection ends. The running step then ends too.
async fn serve(stream: impl AsyncRead + AsyncWrite) {
    let (say, messages) = unbounded_channel();
    let mut agent = Agent { zero: Instant::now(), say, running: None };
    agent.hello();
    let or_alive = |message: Option<FromAgent>| message.unwrap_or(FromAgent::Alive);
    converse(stream, (SILENCE, HEARTBEAT), |order| agent.apply(order), messages, or_alive).await;
}

struct Agent {
    /// Moment from which the agent counts its times.
    zero: Instant,
    /// Queue of messages to the conductor.
    say: UnboundedSender<FromAgent>,
    running: Option<Running>,
}

struct Running {
    commands: mpsc::Sender<StepCommand<Instant>>,
    warmup: Duration,
    /// Readings of the usage at the beginning and at the end of the measured time.
    usage: Arc<Mutex<[Option<Usage>; 2]>>,
}

impl Agent {
    fn hello(&self) {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        let (clock_source, boot_id) = (clock_source(), boot_id());
        let _ = self.say.send(FromAgent::Hello { tool: tool(), cpus, clock_source, boot_id });
    }

    fn apply(&mut self, order: ToAgent) {
        match order {
            ToAgent::Ping { sent_ns } => {
                let agent_ns = u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let _ = self.say.send(FromAgent::Pong { sent_ns, agent_ns, unix_us: unix_us() });
            }
            ToAgent::Step(task) => self.start(*task),
            ToAgent::Word(command) => {
                let zero = self.zero;
                if let Some(running) = &self.running {
                    running.apply(command.at(|ns| zero + Duration::from_nanos(ns)));
                }
            }
            ToAgent::Alive => {}
        }
    }

    fn start(&mut self, task: AgentTask) {
        let (commands, received) = mpsc::channel();
        let usage = Arc::<Mutex<[Option<Usage>; 2]>>::default();
        self.running = Some(Running { commands, warmup: task.warmup, usage: Arc::clone(&usage) });
        let say = self.say.clone();
        thread::spawn(move || {
            let ended = run(&task, received, &say);
            let _ = say.send(match ended {
                Ok(()) => FromAgent::Done(used(&usage)),
                Err(why) => FromAgent::Failed(why),
            });
        });
    }
}

impl Running {
    fn apply(&self, command: StepCommand<Instant>) {
        match &command {
            StepCommand::Begin(at) => {
                let (from, usage) = (*at + self.warmup, Arc::clone(&self.usage));
                thread::spawn(move || {
                    thread::sleep(from.saturating_duration_since(Instant::now()));
                    lock(&usage)[0] = Some(Usage::now());
                });
            }
            // The usage is read while the load threads still exist.
            StepCommand::End { .. } => lock(&self.usage)[1] = Some(Usage::now()),
            StepCommand::Stop(_) | StepCommand::Close => {}
        }
        // A step that has ended takes no more commands.
        let _ = self.commands.send(command);
    }
}

fn lock(usage: &Mutex<[Option<Usage>; 2]>) -> std::sync::MutexGuard<'_, [Option<Usage>; 2]> {
    usage.lock().unwrap_or_else(PoisonError::into_inner)
}

fn used(usage: &Mutex<[Option<Usage>; 2]>) -> Used {
    match &*lock(usage) {
        [Some(before), Some(after)] => after.since(before),
        _ => Used::default(),
    }
}

/// Runs this host's part of a step. The error is a sentence for the conductor's user.
fn run(
    task: &AgentTask,
    commands: mpsc::Receiver<StepCommand<Instant>>,
    say: &UnboundedSender<FromAgent>,
) -> Result<(), String> {
    let plan = plans::of_record(&task.plan).map_err(|error| error.to_string())?;
    let sentence = |ended: ExitError| ended.message.unwrap_or_default();
    limits::check(&plan).map_err(sentence)?;
    let variant = plan.variants.iter().find(|variant| variant.name == task.variant);
    let variant = variant.ok_or("the plan has no such variant")?;
    let password = Secret::new(task.password.as_str());
    let mut database_server =
        prepare::database_server_for(&plan, variant, &task.user, password).map_err(sentence)?;
    if let Some(login) = database_server.address.login_mut() {
        login.connection_settings.sets_autocommit = task.sets_autocommit;
    }
    task.missing.iter().for_each(|missing| database_server.capabilities.do_without(missing));
    let context = Context { database_server, owned: false, seed: plan.seed, draws: task.draws, device: None };
    let workload = load::workload(&plan, &task.workload, context);
    let mut workload = workload.ok_or("the plan has no such workload")?;
    workload.take_tasks_state(&task.state);
    let spec = workload.spec(task.step);
    let (threads, cancel) = (load::threads(&plan), &AtomicBool::new(false));
    let client = LoadClient { load: &plan.load, login_key: None, seed: plan.seed, threads, cancel };
    // The conductor ends a step that takes too long, so the agent sets no time cap.
    let step = Step { time_cap: None, ..client.step(&*workload, task.step, &spec) };
    let say = |message| {
        let _ = say.send(FromAgent::Said(message));
    };
    workload.run_part(task.step, &step, task.part, commands, &say).map_err(|error| error.to_string())
}

pub(super) fn unix_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Prefix of the names of load threads.
const LOAD_THREAD: &str = "load-";

/// CPU usage and throttling of the agent's process between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) measured_us: u64,
    pub(super) cpu_us: u64,
    /// CPU time of the busiest load thread: that with the largest sum of CPU time and run delay.
    pub(super) busiest_cpu_us: u64,
    /// Time that the same thread was ready to run and waited for a CPU.
    pub(super) busiest_run_delay_us: u64,
    /// Throttling of the control group whose throttled time is longest.
    pub(super) throttled: Throttled,
}

/// A reading of the CPU usage and throttling of the agent's process since its start.
#[derive(Debug, Clone)]
pub(super) struct Usage {
    at: Instant,
    cpu: Duration,
    /// For each load thread, by thread id, the nanoseconds that it ran on a CPU and the nanoseconds
    /// that it waited for one.
    threads: BTreeMap<String, [u64; 2]>,
    /// Throttling of each control group, the innermost first.
    throttled: Vec<Throttled>,
}

impl Usage {
    pub(super) fn now() -> Self {
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let thread = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let statistics = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let mut numbers = statistics.split(' ').map(str::parse);
            let times = [numbers.next()?.ok()?, numbers.next()?.ok()?];
            name.starts_with(LOAD_THREAD).then(|| (task.file_name().to_string_lossy().into_owned(), times))
        };
        let groups = control_groups(Path::new("/"), "self", "cpu");
        let throttled = groups.iter().map(|group| group.throttled().unwrap_or_default()).collect();
        Self { at: Instant::now(), cpu, threads: tasks.filter_map(thread).collect(), throttled }
    }

    /// Returns the usage since the reading `before`.
    pub(super) fn since(&self, before: &Self) -> Used {
        let change = |(thread, now): (&String, &[u64; 2])| {
            let then = before.threads.get(thread)?;
            Some([0, 1].map(|index| now[index].saturating_sub(then[index]) / 1000))
        };
        let busiest = self.threads.iter().filter_map(change).max_by_key(|[cpu, delay]| cpu + delay);
        let [busiest_cpu_us, busiest_run_delay_us] = busiest.unwrap_or_default();
        Used {
            measured_us: to_us(self.at.saturating_duration_since(before.at)),
            cpu_us: to_us(self.cpu.saturating_sub(before.cpu)),
            busiest_cpu_us,
            busiest_run_delay_us,
            throttled: self.throttled_since(before),
        }
    }

    fn throttled_since(&self, before: &Self) -> Throttled {
        let change = |(now, then): (&Throttled, &Throttled)| Throttled {
            us: now.us - then.us,
            periods: now.periods - then.periods,
            throttled_periods: now.throttled_periods - then.throttled_periods,
        };
        let changes = self.throttled.iter().zip(&before.throttled).map(change);
        changes.max_by_key(|change| change.us).unwrap_or_default()
    }
}

/// Returns an identifier of this machine's boot. It differs between machines and between boots, and
/// containers on one machine share it.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the source of this host's time of day: chrony with its current offset, a PTP clock, or
/// `unknown`.
pub(super) fn clock_source() -> String {
    let tracking = run_query_program(clean_command("chronyc").args(["-n", "tracking"])).ok();
    let tracking = tracking.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let line =
        tracking.as_deref().into_iter().flat_map(str::lines).find(|line| line.starts_with("System time"));
    if let Some((_, offset)) = line.and_then(|line| line.split_once(':')) {
        return format!("chrony: {}", offset.trim());
    }
    let is_ptp = fs::exists("/dev/ptp0").unwrap_or(false);
    if is_ptp { "/dev/ptp0" } else { "unknown" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_counts_and_one_that_started_later_does_not() {
        let at = Instant::now();
        let throttled = |us| Throttled { us, periods: 10 * us, throttled_periods: us / 2 };
        let usage = |seconds, threads: &[(&str, [u64; 2])]| Usage {
            at: at + Duration::from_secs(seconds),
            cpu: Duration::from_secs(seconds / 2),
            threads: threads.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect(),
            throttled: [0, 7].map(|us| throttled(us * i64::try_from(seconds).unwrap())).to_vec(),
        };
        let before = usage(2, &[("1", [1_000_000, 0]), ("2", [0, 0])]);
        let after =
            usage(6, &[("1", [3_000_000, 500_000]), ("2", [2_000_000, 1_000_000]), ("3", [u64::MAX, 0])]);
        let used = Used {
            measured_us: 4_000_000,
            cpu_us: 2_000_000,
            busiest_cpu_us: 2000,
            busiest_run_delay_us: 1000,
            throttled: throttled(28),
        };
        assert_eq!(after.since(&before), used);
        let now = Usage::now();
        assert_eq!(now.since(&now).measured_us, 0);
    }
}
