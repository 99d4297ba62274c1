//! Runs other programs to their end and returns their output. No program is trusted: a program that
//! prints for ever cannot fill the memory, and a program that never ends is killed.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::server::launch::ProcessGroup;

/// Time limit for a program that only answers a query, such as the one for its version.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Bytes that are kept from each of such a program's outputs.
const ANSWER_BYTES: usize = 64 << 10;

/// Interval between two checks whether the program has ended or should be stopped.
const POLL: Duration = Duration::from_millis(5);
/// Time that a program has to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for reading what is left in the pipes after a program has ended. Only a process that has
/// left the program's process group can still have them open.
const DRAIN: Duration = Duration::from_millis(500);

/// The time and output that a program may use.
pub struct ProgramLimits<'a> {
    /// The time limit. `None` lets the program run until `cancel` is set.
    pub limit: Option<Duration>,
    /// Bytes that are kept from the start of each output. The rest is read and dropped.
    pub kept_bytes: usize,
    pub cancel: &'a AtomicBool,
}

/// Why a program's output is not available.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("{0}")]
    NotRun(#[from] io::Error),
    #[error("it did not end within {} s and was killed", .0.as_secs())]
    Killed(Duration),
    #[error("it was stopped")]
    Cancelled,
}

/// Returns the output of a program that only answers a query. The program must end within
/// [`ANSWER_LIMIT`], and up to [`ANSWER_BYTES`] of each output are kept.
pub fn run_query_program(command: &mut Command) -> Result<Output, ProgramError> {
    let bounds = ProgramLimits {
        limit: Some(ANSWER_LIMIT),
        kept_bytes: ANSWER_BYTES,
        cancel: &AtomicBool::new(false),
    };
    output(command, &bounds)
}

/// Runs `command` to its end within `bounds`, with empty input. The command gets its own process
/// group. All processes in the group are killed when the command ends, when dbdyno ends, or at the
/// time limit.
pub fn output(command: &mut Command, bounds: &ProgramLimits<'_>) -> Result<Output, ProgramError> {
    let mut process_group = Some(ProcessGroup::start()?);
    let group = process_group.as_ref().map_or(0, ProcessGroup::group);
    command.process_group(group).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) =
        (Kept::of(child.stdout.take(), bounds.kept_bytes), Kept::of(child.stderr.take(), bounds.kept_bytes));
    let ended = wait(&mut child, group, bounds);
    // The group is killed before the pipes are read, because processes left in it may have the
    // pipes open. This also kills the program if it still runs. The program is a child of this
    // process, so this process must then reap it.
    process_group.take();
    let status = match ended {
        Ok(Some(status)) => status,
        not_ended => {
            child.wait()?;
            return Err(not_ended.err().unwrap_or(ProgramError::Cancelled));
        }
    };
    let deadline = Instant::now() + DRAIN;
    Ok(Output { status, stdout: stdout.take(deadline), stderr: stderr.take(deadline) })
}

/// Waits for the program's end. The result is `None` when dbdyno stopped the program.
fn wait(
    child: &mut Child,
    group: i32,
    bounds: &ProgramLimits<'_>,
) -> Result<Option<std::process::ExitStatus>, ProgramError> {
    let begun = Instant::now();
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(asked.is_none().then_some(status));
        }
        match (asked, bounds.limit) {
            (None, _) if bounds.cancel.load(Ordering::Relaxed) => {
                asked = Some(Instant::now());
                // A failure means that the program has just ended.
                let _ = killpg(Pid::from_raw(group), Signal::SIGTERM);
            }
            (None, Some(limit)) if begun.elapsed() > limit => return Err(ProgramError::Killed(limit)),
            (Some(since), _) if since.elapsed() > PATIENCE => return Err(ProgramError::Cancelled),
            _ => {}
        }
        thread::sleep(POLL);
    }
}

/// The first bytes of an output that a thread reads to its end.
struct Kept {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Kept {
    fn of(pipe: Option<impl Read + Send + 'static>, max_bytes: usize) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut chunk = vec![0; ANSWER_BYTES];
            let mut pipe = pipe;
            while let Some(pipe) = &mut pipe {
                let read = match pipe.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = max_bytes - kept.len();
                kept.extend_from_slice(&chunk[..read.min(room)]);
            }
        });
        Self { bytes, reader }
    }

    /// Waits until everything has been read or the deadline has passed, and returns the bytes.
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

    fn within(limit: Duration, script: &str) -> Result<Output, ProgramError> {
        let bounds = ProgramLimits { limit: Some(limit), kept_bytes: 10, cancel: &AtomicBool::new(false) };
        output(&mut shell(script), &bounds)
    }

    #[test]
    fn the_output_comes_with_the_exit_status() {
        let asked = run_query_program(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!(
            (asked.status.code(), &asked.stdout[..], &asked.stderr[..]),
            (Some(3), &b"out\n"[..], &b"err\n"[..])
        );
        assert!(matches!(run_query_program(&mut Command::new("/nonesuch")), Err(ProgramError::NotRun(_))));
    }

    #[test]
    fn only_the_beginning_of_a_long_answer_is_kept() {
        let asked = within(Duration::from_secs(600), "yes | head -c 10000000; echo x >&2").unwrap();
        assert!(asked.status.success());
        assert_eq!((&asked.stdout[..], &asked.stderr[..]), (&b"y\ny\ny\ny\ny\n"[..], &b"x\n"[..]));
    }

    #[test]
    fn a_program_that_never_ends_is_killed_and_the_error_says_so() {
        for script in ["exec yes", "sleep 600", "trap '' TERM; while :; do sleep 0.01; done"] {
            let error = within(Duration::from_millis(100), script).unwrap_err().to_string();
            assert_eq!(error, "it did not end within 0 s and was killed", "{script}");
        }
    }

    #[test]
    fn processes_left_in_the_group_end_with_the_program_and_delay_no_answer() {
        let asked = run_query_program(&mut shell("sleep 600 & echo $!")).unwrap();
        let pid: u32 = String::from_utf8(asked.stdout).unwrap().trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Some(noted) = started(pid) {
            assert!(Instant::now() < deadline && is_alive(pid, &noted), "process {pid} is left");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn a_process_that_has_left_the_group_with_the_pipe_does_not_delay_the_answer() {
        let asked = run_query_program(&mut shell("setsid sleep 30 & echo x")).unwrap();
        assert_eq!(asked.stdout, b"x\n");
    }
}
