//! `dbdyno agent` runs this host's part of each step. It serves the one conductor (the dbdyno that
//! conducts the run) that started it, and ends with it.

use std::io::{BufRead, Read};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dbdyno_db::Secret;
use dbdyno_loadgen::{Step, StepCommand};
use dbdyno_workloads::{Context, plans};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::usage::{Usage, Used, boot_id, clock_source};
use super::wire::{Credentials, FromAgent, Task, ToAgent, converse};
use crate::exit::ExitError;
use crate::load::LoadClient;
use crate::manifest::tool;
use crate::{host, limits, load, login, terminal};

/// An agent ends after this time when no conductor has come. One handshake may take only a part of
/// it.
const PATIENCE: Duration = Duration::from_secs(60);
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Highest number of handshakes at the same time.
const MOST_HANDSHAKES: usize = 128;
/// Time without a message after which the conductor counts as gone. It sends one at least every 10
/// s.
const SILENCE: Duration = Duration::from_secs(60);
/// Time after which an agent sends a sign of life when it has nothing else to send.
const PULSE: Duration = Duration::from_secs(1);

/// Listens, accepts one conductor, and does what it says until it is gone.
pub(crate) fn agent(listen: &str) -> Result<(), ExitError> {
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
        let came = timeout(PATIENCE, conductor(&listener, &acceptor)).await;
        let stream = came.map_err(|_| ExitError::machine("no conductor has come"))?;
        // No second conductor may come.
        drop(listener);
        serve(stream).await;
        Ok(())
    })
}

/// Returns the first connection that has the certificate. Several handshakes run at the same time.
async fn conductor(listener: &TcpListener, acceptor: &TlsAcceptor) -> TlsStream<TcpStream> {
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

/// Does what the conductor says until the connection ends. The running step then ends too.
async fn serve(stream: impl AsyncRead + AsyncWrite) {
    let (say, sayings) = unbounded_channel();
    let mut agent = Agent { zero: Instant::now(), say, running: None };
    agent.hello();
    let message = |saying: Option<FromAgent>| saying.unwrap_or(FromAgent::Alive);
    converse(stream, (SILENCE, PULSE), |order| agent.obey(order), sayings, message).await;
}

struct Agent {
    /// Moment from which the agent counts its times.
    zero: Instant,
    say: UnboundedSender<FromAgent>,
    running: Option<Running>,
}

struct Running {
    commands: mpsc::Sender<StepCommand<Instant>>,
    warmup: Duration,
    usage: Arc<Mutex<[Option<Usage>; 2]>>,
}

impl Agent {
    fn hello(&self) {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        let (clock_source, boot_id) = (clock_source(), boot_id());
        let _ = self.say.send(FromAgent::Hello { tool: tool(), cpus, clock_source, boot_id });
    }

    fn obey(&mut self, order: ToAgent) {
        match order {
            ToAgent::Ping { sent_ns } => {
                let agent_ns = u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX);
                let _ = self.say.send(FromAgent::Pong { sent_ns, agent_ns, unix_us: unix_us() });
            }
            ToAgent::Step(task) => self.start(*task),
            ToAgent::Word(command) => {
                let zero = self.zero;
                if let Some(running) = &self.running {
                    running.obey(command.at(|ns| zero + Duration::from_nanos(ns)));
                }
            }
            ToAgent::Alive => {}
        }
    }

    fn start(&mut self, task: Task) {
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
    fn obey(&self, command: StepCommand<Instant>) {
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

/// Runs a part of a step. The error is a sentence.
fn run(
    task: &Task,
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
        login::database_server_for(&plan, variant, &task.user, password).map_err(sentence)?;
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
    // The conductor ends a step that takes too long.
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
