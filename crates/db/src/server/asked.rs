//! Running other programs to their end for what they print. No program has to be trusted for that:
//! one that prints for ever fills no memory, and one that never ends is killed.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::server::process_group::ProcessGroup;

/// For a program that is only asked something, such as its version.
const ASKED_LIMIT: Duration = Duration::from_secs(10);
/// What is kept of each of its outputs.
const ASKED_BYTES: usize = 64 << 10;

/// How often it is looked whether the program has ended or shall be stopped.
const POLL: Duration = Duration::from_millis(5);
/// Time that a program has to end by itself when it shall be stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time in which what is left in the pipes of a program that has ended is read. Only a process that
/// has left its group can still hold them.
const DRAIN: Duration = Duration::from_millis(500);

/// What a program may take.
pub struct Bounds<'a> {
    /// `None` for one that may take any time, until `cancel` says otherwise.
    pub limit: Option<Duration>,
    /// Kept of each of its outputs, from its begin; the rest is read and dropped.
    pub kept_bytes: usize,
    pub cancel: &'a AtomicBool,
}

/// Why a program gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error("{0}")]
    NotRun(#[from] io::Error),
    #[error("it did not end within {} s and was killed", .0.as_secs())]
    Killed(Duration),
    #[error("it was stopped")]
    Cancelled,
}

/// What a program prints that is only asked something: within [`ASKED_LIMIT`], and no more than
/// [`ASKED_BYTES`].
pub fn ask(command: &mut Command) -> Result<Output, Unanswered> {
    let bounds =
        Bounds { limit: Some(ASKED_LIMIT), kept_bytes: ASKED_BYTES, cancel: &AtomicBool::new(false) };
    output(command, &bounds)
}

/// Runs `command` to its end within its bounds; it reads nothing. It is in a process group of its
/// own, whose processes end with it, with dbdyno, or when it has taken too long.
pub fn output(command: &mut Command, bounds: &Bounds<'_>) -> Result<Output, Unanswered> {
    let mut process_group = Some(ProcessGroup::start()?);
    let group = process_group.as_ref().map_or(0, ProcessGroup::group);
    command.process_group(group).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) =
        (Kept::of(child.stdout.take(), bounds.kept_bytes), Kept::of(child.stderr.take(), bounds.kept_bytes));
    let ended = wait(&mut child, group, bounds);
    // Whatever is left of the group may hold the pipes open. The program itself is no child of the
    // process group, and would stay as a zombie.
    process_group.take();
    let status = match ended {
        Ok(Some(status)) => status,
        not_ended => {
            child.wait()?;
            return Err(not_ended.err().unwrap_or(Unanswered::Cancelled));
        }
    };
    let deadline = Instant::now() + DRAIN;
    Ok(Output { status, stdout: stdout.take(deadline), stderr: stderr.take(deadline) })
}

/// Waits for the program's end; `None` when it ended because it was to be stopped.
fn wait(
    child: &mut Child,
    group: i32,
    bounds: &Bounds<'_>,
) -> Result<Option<std::process::ExitStatus>, Unanswered> {
    let begun = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(asked.is_none().then_some(status));
        }
        match (asked, bounds.limit) {
            (None, _) if bounds.cancel.load(Ordering::Relaxed) => {
                asked = Some(Instant::now());
                // A failure means that it has just ended.
                let _ = killpg(Pid::from_raw(group), Signal::SIGTERM);
            }
            (None, Some(limit)) if begun.elapsed() > limit => return Err(Unanswered::Killed(limit)),
            (Some(since), _) if since.elapsed() > PATIENCE => return Err(Unanswered::Cancelled),
            _ => {}
        }
        thread::sleep(POLL);
    }
}

/// The begin of what a thread reads to its end.
struct Kept {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Kept {
    fn of(pipe: Option<impl Read + Send + 'static>, most_bytes: usize) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut chunk = vec![0; ASKED_BYTES];
            let mut pipe = pipe;
            while let Some(pipe) = &mut pipe {
                let read = match pipe.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = most_bytes - kept.len();
                kept.extend_from_slice(&chunk[..read.min(room)]);
            }
        });
        Self { bytes, reader }
    }

    /// What was read when all has been, or at the deadline.
    fn take(self, deadline: Instant) -> Vec<u8> {
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::process::{is_alive, started};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn within(limit: Duration, script: &str) -> Result<Output, Unanswered> {
        let bounds = Bounds { limit: Some(limit), kept_bytes: 10, cancel: &AtomicBool::new(false) };
        output(&mut shell(script), &bounds)
    }

    #[test]
    fn what_is_printed_comes_back_with_how_the_program_ended() {
        let asked = ask(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!(
            (asked.status.code(), &asked.stdout[..], &asked.stderr[..]),
            (Some(3), &b"out\n"[..], &b"err\n"[..])
        );
        assert!(matches!(ask(&mut Command::new("/nonesuch")), Err(Unanswered::NotRun(_))));
    }

    #[test]
    fn only_the_begin_of_a_long_answer_is_kept() {
        let asked = within(Duration::from_secs(600), "yes | head -c 10000000; echo x >&2").unwrap();
        assert!(asked.status.success());
        assert_eq!((&asked.stdout[..], &asked.stderr[..]), (&b"y\ny\ny\ny\ny\n"[..], &b"x\n"[..]));
    }

    #[test]
    fn a_program_that_prints_for_ever_is_killed_and_named_as_such() {
        for script in ["exec yes", "sleep 600", "trap '' TERM; while :; do sleep 0.01; done"] {
            let error = within(Duration::from_millis(100), script).unwrap_err().to_string();
            assert_eq!(error, "it did not end within 0 s and was killed", "{script}");
        }
    }

    #[test]
    fn what_a_program_leaves_in_its_group_ends_with_it_and_does_not_delay_its_answer() {
        let asked = ask(&mut shell("sleep 600 & echo $!")).unwrap();
        let pid: u32 = String::from_utf8(asked.stdout).unwrap().trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Some(noted) = started(pid) {
            assert!(Instant::now() < deadline && is_alive(pid, &noted), "process {pid} is left");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn a_process_that_has_left_the_group_with_the_pipe_does_not_delay_the_answer() {
        let asked = ask(&mut shell("setsid sleep 30 & echo x")).unwrap();
        assert_eq!(asked.stdout, b"x\n");
    }
}
