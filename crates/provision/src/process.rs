//! A server's process: whether it runs, and how it ends.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often a process is asked whether it still runs.
const POLL: Duration = Duration::from_millis(10);

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Time from the request to the end.
    pub took: Duration,
    /// It did not end in time and was killed: its data directory needs recovery.
    pub killed: bool,
    /// It had ended by itself before it was asked to.
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

/// A child process that several threads may look at.
#[derive(Debug)]
pub(crate) struct Process {
    child: Mutex<Child>,
    pid: u32,
    stop_signal: Signal,
}

impl Process {
    /// A process that takes `stop_signal` as a request to end soon and cleanly.
    pub(crate) fn new(child: Child, stop_signal: Signal) -> Self {
        Self { pid: child.id(), child: Mutex::new(child), stop_signal }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// `None` while it runs. A process that cannot be asked counts as running; its end shows at the next look.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.lock().try_wait().ok().flatten()
    }

    /// Waits for the end, at most `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.exit_status();
            if status.is_some() || Instant::now() >= deadline {
                return status;
            }
            sleep(POLL);
        }
    }

    /// Asks by the signal that means a clean end, waits up to `limit`, then kills.
    ///
    /// # Errors
    /// When even the killed process cannot be waited for.
    pub(crate) fn stop(&self, limit: Duration) -> std::io::Result<Stopped> {
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
        if let Some(status) = self.wait(limit) {
            return Ok(ended(status, false, false));
        }
        let mut child = self.lock();
        child.kill()?;
        let status = child.wait()?;
        Ok(ended(status, true, false))
    }

    /// Under the lock a child that has ended is not yet reaped, so that its number cannot belong to another.
    fn signal(&self, signal: Signal) {
        let mut child = self.lock();
        if let (Ok(None), Ok(pid)) = (child.try_wait(), i32::try_from(self.pid)) {
            // A failure means that it has just ended; the caller's wait sees that.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When process `pid` started, in clock ticks since boot; `None` when it has ended.
pub(crate) fn started(pid: u32) -> Option<String> {
    let fields = stat_fields(pid)?;
    let ended = matches!(fields.first()?.as_str(), "Z" | "X");
    if ended { None } else { fields.get(19).cloned() }
}

/// Whether process `pid` runs and is the one that started at `noted`; numbers of processes are reused.
pub(crate) fn is_alive(pid: u32, noted: &str) -> bool {
    started(pid).as_deref() == Some(noted)
}

pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    stat_fields(pid)?.get(1)?.parse().ok()
}

/// The fields of `/proc/PID/stat` from the third on (state, parent, ...; the 22nd is the start), see proc(5). The
/// second is a name that may hold anything, so they are counted from its closing bracket.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

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
        let stopped = process.stop(Duration::from_secs(20)).unwrap();
        assert_eq!((stopped.code, stopped.killed, stopped.had_ended), (Some(7), false, false));
        assert!(process.stop(Duration::from_secs(1)).unwrap().had_ended);
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_and_that_is_said() {
        let process = shell("trap '' TERM; echo; while :; do sleep 0.01; done");
        let stopped = process.stop(Duration::from_millis(200)).unwrap();
        assert_eq!((stopped.code, stopped.signal, stopped.killed), (None, Some(9), true));
        assert!(stopped.took >= Duration::from_millis(200));
    }
}
