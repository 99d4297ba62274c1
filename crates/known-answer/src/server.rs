//! A running server: how it is started, queried and stopped.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::listen::Listener;
use crate::protocol::Answers;
use crate::stats::Stats;
use crate::worker::{Mailbox, Shared, Worker};
use crate::{Error, Listen, Protocol, Script};

/// The CPUs on which a server runs, and its number of threads. By default it uses the caller's
/// CPUs, with one thread per CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Threads {
    /// The CPUs; an empty list means all that the caller may use.
    pub cpus: Vec<usize>,
    /// The number of threads; `None` means one per CPU.
    pub count: Option<usize>,
}

impl Threads {
    /// Uses `count` threads, on the caller's CPUs.
    pub fn count(count: usize) -> Self {
        Self { cpus: Vec::new(), count: Some(count) }
    }

    /// Uses one thread for each of `cpus`, and only these CPUs.
    pub fn on(cpus: impl Into<Vec<usize>>) -> Self {
        Self { cpus: cpus.into(), count: None }
    }

    fn resolved(&self) -> usize {
        let cpus = if self.cpus.is_empty() {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        } else {
            self.cpus.len()
        };
        self.count.unwrap_or(cpus).max(1)
    }
}

#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts a server that listens and serves in its own threads until the handle is stopped or
    /// dropped.
    pub fn start(
        listen: Listen,
        protocol: Protocol,
        script: Script,
        threads: Threads,
    ) -> Result<Handle, Error> {
        script.check(protocol)?;
        check_cpus(&threads.cpus)?;
        let count = threads.resolved();
        let mailboxes: Result<Vec<_>, _> = (0..count).map(|_| Mailbox::new()).collect();
        let mailboxes =
            mailboxes.map_err(|errno| Error::System { what: "make event counters", source: errno.into() })?;
        let answers = Answers::new(protocol, &script);
        let (listener, address) = Listener::bind(&listen, protocol)?;
        let shared = Arc::new(Shared::new(script, answers, mailboxes));
        // From this point on, dropping the handle cleans up.
        let socket = match &address {
            Listen::Unix(path) => Some(path.clone()),
            Listen::Tcp(_) => None,
        };
        let mut handle = Handle { address, socket, shared: Arc::clone(&shared), threads: Vec::new() };
        let mut listener = Some(listener);
        for index in 0..count {
            let worker = Worker::new(Arc::clone(&shared), index, listener.take())?;
            let cpus = threads.cpus.clone();
            let thread = std::thread::Builder::new()
                .name(format!("answer-{index}"))
                .spawn(move || {
                    // The earlier check has shown that this process may use these CPUs, so an error
                    // is ignored.
                    let _ = pin(&cpus);
                    worker.run();
                })
                .map_err(|source| Error::System { what: "start a thread", source })?;
            handle.threads.push(thread);
        }
        Ok(handle)
    }
}

/// A running server. Dropping the handle stops the server.
#[derive(Debug)]
pub struct Handle {
    address: Listen,
    /// The socket file, as long as it must still be removed.
    socket: Option<PathBuf>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Handle {
    /// The exact address on which the server listens, with the port that the kernel has chosen, or
    /// with the socket's file name if the given path was a folder.
    pub fn address(&self) -> &Listen {
        &self.address
    }

    pub fn script(&self) -> &Script {
        &self.shared.script
    }

    pub fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for mailbox in &self.shared.mailboxes {
            all.add(&mailbox.stats.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all
    }

    /// Closes all connections, removes the socket file, and returns the statistics.
    pub fn stop(mut self) -> Stats {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.mailboxes.iter().for_each(Mailbox::ring);
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed its own message.
            let _ = thread.join();
        }
        if let Some(path) = self.socket.take() {
            // The file may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

fn check_cpus(cpus: &[usize]) -> Result<(), Error> {
    let refused = |errno: nix::Error| Error::Cpus { cpus: cpus.to_vec(), source: errno.into() };
    let usable = sched_getaffinity(Pid::from_raw(0)).map_err(refused)?;
    match cpus.iter().find(|cpu| !usable.is_set(**cpu).unwrap_or(false)) {
        Some(_) => Err(refused(nix::errno::Errno::EINVAL)),
        None => Ok(()),
    }
}

/// Pins the calling thread to `cpus`. With an empty list the thread keeps its CPUs.
fn pin(cpus: &[usize]) -> nix::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|&cpu| set.set(cpu))?;
    sched_setaffinity(Pid::from_raw(0), &set)
}
