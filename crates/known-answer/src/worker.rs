//! One server thread. It waits for events on its connections and does the work that is due, the
//! earliest first.
//!
//! Its [`TimerQueue`] holds the work that is due later, and a kernel timer wakes the thread for it.
//! The thread's own CPU clock measures how much CPU time is burnt.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;

use crate::connection::{ClientConnection, NextState};
use crate::fault::FreezeOrigin;
use crate::listen::{Listener, Stream};
use crate::protocol::{Answers, Session};
use crate::stats::Stats;
use crate::{Error, Script};

/// Event numbers for everything but connections, whose events have the number of their slot.
const TIMER: u64 = u64::MAX;
const MAIL: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;
/// The timer queue's slot for accepting connections.
const ACCEPT: usize = usize::MAX;

/// Size of the buffer for reads.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Longest burn before the thread looks for other work.
const BURN_SLICE: Duration = Duration::from_micros(50);

/// Pause before another attempt when file descriptors have run out or a socket is full.
const RETRY: Duration = Duration::from_millis(1);

/// The state that all threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) script: Script,
    pub(crate) answers: Answers,
    pub(crate) stop: AtomicBool,
    /// The moment at which the clock of the freezes starts. It is unset until the server or the
    /// first statement starts this clock.
    origin: OnceLock<Instant>,
    /// Number of connections that count against the limit.
    open: AtomicU64,
    pub(crate) mailboxes: Vec<Mailbox>,
}

/// The channel to one thread. Other threads use it to give the thread a connection, to wake it and
/// to read its statistics.
#[derive(Debug)]
pub(crate) struct Mailbox {
    bell: EventFd,
    newcomers: Mutex<VecDeque<AcceptedConnection>>,
    pub(crate) stats: Mutex<Stats>,
}

/// A connection that was just accepted.
#[derive(Debug)]
struct AcceptedConnection {
    stream: Stream,
    number: u64,
    admitted: bool,
}

impl Mailbox {
    pub(crate) fn new() -> nix::Result<Self> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Self { bell, newcomers: Mutex::default(), stats: Mutex::default() })
    }

    /// Wakes the thread.
    pub(crate) fn ring(&self) {
        // The write fails only when the counter is full. The thread then wakes anyway.
        let _ = self.bell.write(1);
    }
}

impl Shared {
    pub(crate) fn new(script: Script, answers: Answers, mailboxes: Vec<Mailbox>) -> Self {
        let origin = OnceLock::new();
        if script.freeze.is_some_and(|freeze| freeze.origin == FreezeOrigin::Start) {
            origin.get_or_init(Instant::now);
        }
        let (stop, open) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { script, answers, stop, origin, open, mailboxes }
    }

    /// The moment when work that begins at `since` and takes `service` is done. Freezes that hit
    /// the work are included.
    fn due(&self, since: Instant, service: Duration) -> Instant {
        match (self.script.freeze, self.origin.get()) {
            (Some(freeze), Some(&origin)) => {
                origin + freeze.done_at(since.saturating_duration_since(origin), service)
            }
            _ => since + service,
        }
    }
}

pub(crate) struct Worker {
    shared: Arc<Shared>,
    /// The thread's index among the server's threads.
    index: usize,
    epoll: Epoll,
    timer_queue: TimerQueue,
    /// The listener. Only the first thread has it, and accepts connections for all threads.
    listener: Option<Listener>,
    accepted: u64,
    connections: Vec<Option<Box<ClientConnection>>>,
    free: Vec<usize>,
    read_buffer: Vec<u8>,
    /// The connection whose unfinished burn was this thread's last work, and the thread's CPU time
    /// at the end of the last slice.
    burning: Option<(usize, Duration)>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, listener: Option<Listener>) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::System { what: "wait for connections", source: errno.into() };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let timer_queue = TimerQueue::new().map_err(failed)?;
        let edge = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&timer_queue, EpollEvent::new(edge, TIMER)).map_err(failed)?;
        epoll.add(shared.mailboxes[index].bell.as_fd(), EpollEvent::new(edge, MAIL)).map_err(failed)?;
        if let Some(listener) = &listener {
            epoll.add(listener, EpollEvent::new(edge, LISTENER)).map_err(failed)?;
        }
        let (connections, free, read_buffer) = (Vec::new(), Vec::new(), vec![0; READ_BUFFER_BYTES]);
        let burning = None;
        Ok(Self {
            shared,
            index,
            epoll,
            timer_queue,
            listener,
            accepted: 0,
            connections,
            free,
            read_buffer,
            burning,
        })
    }

    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut events = vec![EpollEvent::empty(); 256];
        while !shared.stop.load(Ordering::Relaxed) {
            let timeout = match self.timer_queue.wait() {
                Wait::Spin => EpollTimeout::ZERO,
                Wait::Sleep => EpollTimeout::NONE,
            };
            let happened = self.epoll.wait(&mut events, timeout).unwrap_or(0);
            // The lock is taken only while there is work, so that a caller that reads the
            // statistics never waits for a sleeping thread.
            let mut stats = shared.mailboxes[self.index].stats.lock().unwrap_or_else(PoisonError::into_inner);
            for event in &events[..happened] {
                self.burning = None;
                match event.data() {
                    TIMER => {}
                    MAIL => self.take_mail(&mut stats),
                    LISTENER => self.accept(&mut stats),
                    slot => self.connection_event(slot as usize, event.events(), &mut stats),
                }
            }
            let now = Instant::now();
            while let Some(entry) = self.timer_queue.take_due(now) {
                self.handle_due(entry, now, &mut stats);
            }
        }
    }

    /// Accepts all waiting connections. One event from the listener may stand for several, so none
    /// may be left.
    fn accept(&mut self, stats: &mut Stats) {
        while let Some(listener) = &self.listener {
            let stream = match listener.accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    self.timer_queue.put(Instant::now() + RETRY, ACCEPT);
                    return;
                }
            };
            let limit = self.shared.script.connection_limit.unwrap_or(u64::MAX);
            let admitted = self.shared.open.load(Ordering::Relaxed) < limit;
            if admitted {
                self.shared.open.fetch_add(1, Ordering::Relaxed);
            }
            let newcomer = AcceptedConnection { stream, number: self.accepted, admitted };
            stats.connections.accepted += 1;
            stats.connections.refused += u64::from(!admitted);
            // Threads take turns in getting connections.
            let thread = (self.accepted % self.shared.mailboxes.len() as u64) as usize;
            self.accepted += 1;
            if thread == self.index {
                self.welcome(newcomer, stats);
            } else {
                let mailbox = &self.shared.mailboxes[thread];
                mailbox.newcomers.lock().unwrap_or_else(PoisonError::into_inner).push_back(newcomer);
                mailbox.ring();
            }
        }
    }

    fn take_mail(&mut self, stats: &mut Stats) {
        let shared = Arc::clone(&self.shared);
        let mailbox = &shared.mailboxes[self.index];
        loop {
            let newcomer = mailbox.newcomers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(newcomer) = newcomer else { return };
            self.welcome(newcomer, stats);
        }
    }

    fn welcome(&mut self, newcomer: AcceptedConnection, stats: &mut Stats) {
        let AcceptedConnection { stream, number, admitted } = newcomer;
        let Shared { script, answers, .. } = &*self.shared;
        let connection = ClientConnection::new(stream, number, admitted, |output| {
            Session::begin(answers, script, number, !admitted, output)
        });
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        if self.epoll.add(&connection.stream, event(slot, false)).is_err() {
            return self.remove(slot, &connection, stats);
        }
        self.advance(slot, Box::new(connection), stats);
    }

    fn connection_event(&mut self, slot: usize, what: EpollFlags, stats: &mut Stats) {
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else { return };
        let end = EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        connection.hung_up |= what.intersects(end);
        connection.readable |= what.intersects(end | EpollFlags::EPOLLIN);
        self.advance(slot, connection, stats);
    }

    /// Lets a connection continue, and puts an entry on the timer queue if it has work that is due
    /// later.
    fn advance(&mut self, slot: usize, mut connection: Box<ClientConnection>, stats: &mut Stats) {
        let was_blocked = connection.blocked;
        let life = connection.advance(&self.shared.script, stats, &mut self.read_buffer);
        if life == NextState::Over {
            return self.remove(slot, &connection, stats);
        }
        if connection.blocked != was_blocked {
            let changed = self.epoll.modify(&connection.stream, &mut event(slot, connection.blocked));
            if changed.is_err() {
                return self.remove(slot, &connection, stats);
            }
        }
        if let (NextState::Works, Some(job)) = (life, &mut connection.job)
            && job.ticket.is_none()
        {
            if job.is_statement() {
                self.shared.origin.get_or_init(|| job.since);
            }
            // A burn begins at once, or at the end of a freeze.
            let wait = if job.burn_left.is_zero() { job.programmed } else { Duration::ZERO };
            job.ticket = Some(self.timer_queue.put(self.shared.due(job.since, wait), slot));
        }
        self.connections[slot] = Some(connection);
    }

    fn handle_due(&mut self, entry: TimerEntry, now: Instant, stats: &mut Stats) {
        let slot = entry.slot;
        self.burning = self.burning.filter(|(burning, _)| *burning == slot);
        if slot == ACCEPT {
            return self.accept(stats);
        }
        let Some(mut connection) = self.connections.get_mut(slot).and_then(Option::take) else { return };
        match self.postponed(&mut connection, entry, now, stats) {
            Some(_) => self.connections[slot] = Some(connection),
            None => {
                connection.finish_job(&self.shared.script, stats);
                self.advance(slot, connection, stats);
            }
        }
    }

    /// Burns CPU time for a job, or postpones it while its socket is full. The result is `None`
    /// when the job can be finished now.
    fn postponed(
        &mut self,
        connection: &mut ClientConnection,
        entry: TimerEntry,
        now: Instant,
        stats: &mut Stats,
    ) -> Option<()> {
        let blocked = connection.blocked;
        // An entry from a closed connection may point to another connection's slot.
        let Some(job) = connection.job.as_mut().filter(|job| job.ticket == Some(entry.ticket)) else {
            return Some(());
        };
        let due = if blocked {
            now + RETRY
        } else if job.burn_left.is_zero() {
            return None;
        } else {
            // If this thread did nothing else since the previous slice, its CPU time in between
            // counts as burnt.
            let begin = self.burning.map_or_else(cpu_time, |(_, cpu_time)| cpu_time);
            let burnt = burn(begin, job.burn_left.min(BURN_SLICE));
            stats.burnt += burnt;
            job.burn_left = job.burn_left.saturating_sub(burnt);
            self.burning = (!job.burn_left.is_zero()).then_some((entry.slot, begin + burnt));
            if job.burn_left.is_zero() {
                self.shared.due(job.since, job.programmed)
            } else {
                // The next slice comes after everything that is due by now.
                self.shared.due(Instant::now(), Duration::ZERO)
            }
        };
        if !blocked && job.burn_left.is_zero() && due <= Instant::now() {
            return None;
        }
        job.ticket = Some(self.timer_queue.put(due, entry.slot));
        Some(())
    }

    /// Removes a connection. Its socket is closed when the caller drops it.
    fn remove(&mut self, slot: usize, connection: &ClientConnection, stats: &mut Stats) {
        if connection.admitted {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
        stats.connections.closed += 1;
        self.free.push(slot);
    }
}

/// Events to watch for the connection in `slot`. Writability is watched only after the socket was
/// full, because otherwise the kernel would report it at each read by the client.
fn event(slot: usize, blocked: bool) -> EpollEvent {
    let mut flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
    flags.set(EpollFlags::EPOLLOUT, blocked);
    EpollEvent::new(flags, slot as u64)
}

/// Time by which the timer is set too early, because the kernel wakes a thread some tens of
/// microseconds late. The thread spins for the rest.
const SPIN: Duration = Duration::from_micros(80);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TimerEntry {
    pub(crate) due: Instant,
    /// Distinguishes this entry from others with the same slot. Entries with the same time keep
    /// their order.
    pub(crate) ticket: u64,
    slot: usize,
}

/// Whether a thread may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Something is due now, or so soon that a sleep would end too late.
    Spin,
    /// The thread may sleep until something happens. The timer is set.
    Sleep,
}

/// The entries, ordered by time, and the kernel timer that wakes the thread for the earliest.
#[derive(Debug)]
struct TimerQueue {
    entries: BinaryHeap<Reverse<TimerEntry>>,
    next_ticket: u64,
    timer: TimerFd,
    /// When the timer fires.
    armed: Option<Instant>,
}

impl TimerQueue {
    pub(crate) fn new() -> nix::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Self { entries: BinaryHeap::new(), next_ticket: 0, timer, armed: None })
    }

    /// Puts an entry on the timer queue and returns the ticket that identifies it.
    pub(crate) fn put(&mut self, due: Instant, slot: usize) -> u64 {
        self.next_ticket += 1;
        self.entries.push(Reverse(TimerEntry { due, ticket: self.next_ticket, slot }));
        self.next_ticket
    }

    /// The earliest entry, if it is due at `now`.
    fn take_due(&mut self, now: Instant) -> Option<TimerEntry> {
        let Reverse(earliest) = self.entries.peek()?;
        if earliest.due > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    /// Whether there is time to sleep. If there is, the timer is set.
    pub(crate) fn wait(&mut self) -> Wait {
        let Some(Reverse(earliest)) = self.entries.peek() else { return Wait::Sleep };
        let now = Instant::now();
        let wake = earliest.due - SPIN;
        if wake <= now {
            return Wait::Spin;
        }
        // A timer that fires too early costs less than a new setting for each change.
        if self.armed.is_some_and(|armed| armed > now && armed <= wake) {
            return Wait::Sleep;
        }
        let left = Expiration::OneShot(TimeSpec::from_duration(wake - now));
        if self.timer.set(left, TimerSetTimeFlags::empty()).is_err() {
            // Without a timer the thread can only spin.
            return Wait::Spin;
        }
        self.armed = Some(wake);
        Wait::Sleep
    }
}

impl AsFd for TimerQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Spins until this thread has used at least `wanted` of CPU time since its CPU clock was at
/// `begin`, and returns the time used. Time in which the thread did not run does not count.
pub(crate) fn burn(begin: Duration, wanted: Duration) -> Duration {
    let mut used = Duration::ZERO;
    while used < wanted {
        // The thread's clock costs a system call, but the wall clock costs none. Wall time is never
        // less than CPU time.
        let wall = Instant::now();
        while wall.elapsed() < wanted - used {
            std::hint::spin_loop();
        }
        used = cpu_time().saturating_sub(begin);
    }
    used
}

fn cpu_time() -> Duration {
    clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map(Duration::from)
        .expect("every thread has this clock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_entry_comes_first_and_none_before_its_time() {
        let mut timer_queue = TimerQueue::new().expect("a timer");
        assert_eq!(timer_queue.wait(), Wait::Sleep);
        let now = Instant::now();
        let late = now + Duration::from_secs(50);
        timer_queue.put(late, 1);
        assert_eq!(timer_queue.wait(), Wait::Sleep);
        timer_queue.put(now, 2);
        timer_queue.put(now, 3);
        assert_eq!(timer_queue.wait(), Wait::Spin);
        let slots: Vec<usize> =
            std::iter::from_fn(|| timer_queue.take_due(now)).map(|entry| entry.slot).collect();
        assert_eq!(slots, [2, 3]);
        assert_eq!(timer_queue.take_due(late).map(|entry| entry.slot), Some(1));
        assert_eq!(timer_queue.take_due(late), None);
    }

    #[test]
    fn a_burn_uses_the_cpu_time_that_it_reports() {
        let wanted = Duration::from_micros(50);
        let before = cpu_time();
        let said: Duration = (0..200).map(|_| burn(cpu_time(), wanted)).sum();
        let used = cpu_time() - before;
        assert!(said >= wanted * 200 && said <= used, "{said:?} of {used:?}");
        assert_eq!(burn(cpu_time(), Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn cpu_time_that_was_used_since_the_start_counts_as_burnt() {
        let begin = cpu_time();
        let before = burn(begin, Duration::from_micros(400));
        let used = burn(begin, Duration::from_micros(100));
        assert!(used >= before, "{used:?} after {before:?}");
    }
}
