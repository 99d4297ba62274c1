//! A server's process: whether it runs, when it answers, and how it ends. This file also reserves a
//! port for a server that listens on one.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt,
};
use nix::unistd::Pid;

use crate::{Class, DatabaseServer, Session};

/// Interval between two checks whether a process still runs.
const POLL: Duration = Duration::from_millis(10);

/// Time limit for a server's clean end once the user has cancelled. It is short, because the
/// server's data are no longer needed.
const CANCELLED_LIMIT: Duration = Duration::from_millis(500);

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// The exit code; `None` when a signal ended the server.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Time from the request to the end.
    pub took: Duration,
    /// Whether the server did not end in time and was killed, so that its data directory needs
    /// recovery.
    pub killed: bool,
    /// Whether the server had already ended by itself before the request.
    pub had_ended: bool,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by_itself = if self.had_ended { "it had ended by itself, " } else { "" };
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "{by_itself}exit status {code}"),
            (None, Some(signal)) => write!(f, "{by_itself}signal {signal}"),
            (None, None) => write!(f, "{by_itself}in an unknown way"),
        }
    }
}

/// A child process that several threads may check.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Child>,
    pid: u32,
    stop_signal: Signal,
}

impl Process {
    /// Wraps a child that ends soon and cleanly after `stop_signal`.
    pub(crate) fn new(child: Child, stop_signal: Signal) -> Self {
        Self { pid: child.id(), child: Mutex::new(child), stop_signal }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The exit status; `None` while the process runs. A process whose status cannot be read counts
    /// as running. The next check reads the status again.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.lock().try_wait().ok().flatten()
    }

    /// Waits for the end, for at most `limit`. Once `cancel` becomes true, it waits at most `hurry`
    /// longer.
    pub(crate) fn wait(&self, limit: Duration, cancel: &AtomicBool, hurry: Duration) -> Option<ExitStatus> {
        let mut deadline = Instant::now() + limit;
        let mut is_cancelled = false;
        loop {
            let status = self.exit_status();
            if !is_cancelled && cancel.load(Ordering::Relaxed) {
                is_cancelled = true;
                deadline = deadline.min(Instant::now() + hurry);
            }
            if status.is_some() || Instant::now() >= deadline {
                return status;
            }
            sleep(POLL);
        }
    }

    /// Sends the signal for a clean end, waits up to `limit`, then kills the process and all its
    /// descendants. When `cancel` becomes true, the kill follows half a second later.
    pub(crate) fn stop(&self, limit: Duration, cancel: &AtomicBool) -> std::io::Result<Stopped> {
        let asked = Instant::now();
        let ended = |status: ExitStatus, killed, had_ended| Stopped {
            code: status.code(),
            signal: status.signal(),
            took: asked.elapsed(),
            killed,
            had_ended,
        };
        if let Some(status) = self.exit_status() {
            return Ok(ended(status, false, true));
        }
        self.signal(self.stop_signal);
        if let Some(status) = self.wait(limit, cancel, CANCELLED_LIMIT) {
            return Ok(ended(status, false, false));
        }
        let mut child = self.lock();
        kill_tree(self.pid);
        let status = child.wait()?;
        Ok(ended(status, true, false))
    }

    /// Sends the signal if the process still runs. This function has the lock meanwhile, so that no
    /// other thread reaps the child and the kernel cannot give the child's number to another
    /// process.
    fn signal(&self, signal: Signal) {
        let mut child = self.lock();
        if let (Ok(None), Ok(pid)) = (child.try_wait(), i32::try_from(self.pid)) {
            // A failure means that the process has just ended, which the caller's wait notices.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills `root`, which is not yet reaped, and all its descendants. A signal to the process group is
/// not enough: PostgreSQL's processes are in different groups, and a stopped process (SIGSTOP) does
/// not notice that the first process has ended. Each process is stopped before its children are
/// listed. A stopped process starts no more children and reaps none, so the kernel cannot give a
/// child's number to another process meanwhile.
fn kill_tree(root: u32) {
    let send = |pid: u32, signal| {
        // A failure means that the process has just ended.
        let _ = i32::try_from(pid).map(|pid| kill(Pid::from_raw(pid), signal));
    };
    let mut tree = vec![root];
    send(root, Signal::SIGSTOP);
    loop {
        let children: Vec<u32> = processes()
            .filter(|pid| !tree.contains(pid) && parent_of(*pid).is_some_and(|parent| tree.contains(&parent)))
            .collect();
        if children.is_empty() {
            break;
        }
        children.iter().for_each(|pid| send(*pid, Signal::SIGSTOP));
        tree.extend(children);
    }
    tree.into_iter().rev().for_each(|pid| send(pid, Signal::SIGKILL));
}

/// The numbers of all processes in `/proc`.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// When process `pid` started, in clock ticks since boot; `None` when it has ended.
pub(crate) fn started(pid: u32) -> Option<String> {
    let fields = stat_fields(pid)?;
    let ended = matches!(fields.first()?.as_str(), "Z" | "X");
    if ended { None } else { fields.get(19).cloned() }
}

/// Whether process `pid` runs and is the one that started at `noted`. The start time is needed
/// because process numbers are reused.
pub(crate) fn is_alive(pid: u32, noted: &str) -> bool {
    started(pid).as_deref() == Some(noted)
}

/// A marker that names this process in files that may outlive it: `PID-START-NAMESPACE`. The
/// namespace is needed, because the same number belongs to a different process in another
/// namespace.
pub(crate) fn own_marker() -> String {
    let own = std::process::id();
    format!("{own}-{}-{}", started(own).unwrap_or_default(), namespace())
}

/// Whether a marker's process has ended. This process cannot see processes in another namespace, so
/// they count as running.
pub(crate) fn has_ended(marker: &str) -> bool {
    let [pid, noted, noted_namespace] = marker.split('-').collect::<Vec<_>>()[..] else { return false };
    noted_namespace == namespace() && pid.parse().is_ok_and(|pid| !is_alive(pid, noted))
}

/// The number of the namespace in which process numbers are valid; see namespaces(7).
fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    stat_fields(pid)?.get(1)?.parse().ok()
}

/// The fields of `/proc/PID/stat` from the third on, see proc(5). The third is the state, the
/// fourth the parent and the 22nd the start time. The second field is a name that may contain any
/// character, so the fields are counted from the name's closing bracket.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Interval between two attempts to log in at a server that does not answer yet.
const LOGIN_PAUSE: Duration = Duration::from_millis(10);

/// Pause after a refused login. It is longer, because the server logs each refusal.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// SQLSTATE `cannot_connect_now`, with which a PostgreSQL server refuses logins while it starts.
const CANNOT_CONNECT_NOW: &str = "57P03";

/// How dbdyno checks whether a started server answers.
pub(crate) struct Probe<'a> {
    /// The login. Its time limit is no shorter than the one for the start.
    pub(crate) database_server: DatabaseServer,
    /// Whether a login is worth trying. A login that comes too early is refused, and the server
    /// logs the refusal. The argument is the server's process number.
    pub(crate) may_log_in: &'a (dyn Fn(u32) -> bool + Sync),
    /// Number of logins that the server refused because it was still starting.
    pub(crate) refused: &'a AtomicUsize,
}

impl Probe<'_> {
    /// Waits until the server `pid` answers. A login has no shorter limit than the server's start.
    /// Its session is closed properly, because the server would log a dropped connection as a lost
    /// client. A server that refuses the user, the password or the database also counts as
    /// answering. The next login, which is no probe, reports the reason.
    pub(crate) async fn answered(&self, pid: u32) {
        loop {
            if !(self.may_log_in)(pid) {
                tokio::time::sleep(LOGIN_PAUSE).await;
                continue;
            }
            match self.database_server.connect().await {
                Ok(session) => return session.close().await,
                Err(error) if error.code == CANNOT_CONNECT_NOW => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
                Err(error) if error.class == Class::Lost => tokio::time::sleep(LOGIN_PAUSE).await,
                Err(error) if error.class == Class::Refused => tokio::time::sleep(REFUSED_PAUSE).await,
                Err(_) => return,
            }
        }
    }
}

/// A port that is reserved by a bound socket that does not listen. While the socket exists, the
/// kernel does not give the port to a process that asks for any free port. A process that binds
/// this port with `SO_REUSEADDR`, as servers do, still gets it (socket(7)). Without the socket,
/// another process could take the port before dbdyno's server listens or while the server restarts.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    pub(crate) number: u16,
    _socket: OwnedFd,
}

impl ReservedPort {
    /// Reserves any free port.
    pub(crate) fn any() -> nix::Result<Self> {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)))?;
        let number = getsockname::<SockaddrIn>(socket.as_raw_fd())?.port();
        Ok(Self { number, _socket: socket })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn only_processes_in_this_namespace_are_known_to_have_ended() {
        let (own, noted_namespace) = (std::process::id(), namespace());
        assert!(!has_ended(&own_marker()), "{}", own_marker());
        // A live process has this number, but it has another start time.
        assert!(has_ended(&format!("{own}-1-{noted_namespace}")));
        for mark in [
            "",
            "x",
            "1-2",
            &format!("x-2-{noted_namespace}"),
            &format!("{own}-1-{noted_namespace}-4"),
            &format!("{own}-1-7"),
        ] {
            assert!(!has_ended(mark), "{mark}");
        }
    }

    static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

    fn shell(script: &str) -> Process {
        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        Process::new(child, Signal::SIGTERM)
    }

    #[test]
    fn a_process_that_ends_when_asked_is_not_killed() {
        let process = shell("trap 'exit 7' TERM; echo; while :; do sleep 0.01; done");
        assert_eq!(process.exit_status(), None);
        let stopped = process.stop(Duration::from_secs(20), &NOT_CANCELLED).unwrap();
        assert_eq!((stopped.code, stopped.killed, stopped.had_ended), (Some(7), false, false));
        assert!(process.stop(Duration::from_secs(1), &NOT_CANCELLED).unwrap().had_ended);
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_and_reported_as_killed() {
        let process = shell("trap '' TERM; echo; while :; do sleep 0.01; done");
        let stopped = process.stop(Duration::from_millis(200), &NOT_CANCELLED).unwrap();
        assert_eq!((stopped.code, stopped.signal, stopped.killed), (None, Some(9), true));
        assert!(stopped.took >= Duration::from_millis(200));
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_at_once_when_the_user_cancels() {
        let process = shell("trap '' TERM; echo; while :; do sleep 0.01; done");
        let cancel = AtomicBool::new(true);
        let stopped = process.stop(Duration::from_secs(600), &cancel).unwrap();
        assert!(stopped.killed && stopped.took < Duration::from_secs(60), "{stopped:?}");
    }

    /// This is the state of a stopped PostgreSQL server, in which each process has its own session.
    #[test]
    fn stopped_descendants_in_their_own_sessions_are_killed_with_a_process() {
        let script = "trap '' TERM; for i in 1 2; do setsid sh -c 'sleep 600 & wait' & done; echo; while :; do sleep 600; done";
        let process = shell(script);
        let family = || {
            let mut family = vec![process.pid()];
            while let Some(child) = processes().find(|pid| {
                !family.contains(pid) && parent_of(*pid).is_some_and(|parent| family.contains(&parent))
            }) {
                family.push(child);
            }
            family
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while family().len() < 6 && Instant::now() < deadline {
            sleep(POLL);
        }
        let family: Vec<(u32, String)> =
            family().into_iter().filter_map(|pid| Some((pid, started(pid)?))).collect();
        assert_eq!(family.len(), 6, "the shell, its sleep, and two sessions of two");
        for (pid, _) in &family {
            kill(Pid::from_raw(i32::try_from(*pid).unwrap()), Signal::SIGSTOP).unwrap();
        }
        assert!(process.stop(Duration::from_millis(50), &NOT_CANCELLED).unwrap().killed);
        while family.iter().any(|(pid, noted)| is_alive(*pid, noted)) && Instant::now() < deadline {
            sleep(POLL);
        }
        let left: Vec<_> = family.iter().filter(|(pid, noted)| is_alive(*pid, noted)).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Whether a process that asks for any port could get this one. Without `SO_REUSEADDR` the
    /// kernel decides as it does when it chooses a port.
    fn is_free(port: u16) -> bool {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
        bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))).is_ok()
    }

    #[test]
    fn a_port_is_kept_from_others_and_its_server_gets_it_at_each_start() {
        let port = ReservedPort::any().unwrap();
        for _ in 0..2 {
            assert!(!is_free(port.number));
            // The library binds as servers do.
            let server = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number)).unwrap();
            TcpStream::connect(server.local_addr().unwrap()).unwrap();
        }
        assert_ne!(ReservedPort::any().unwrap().number, port.number);
    }
}
