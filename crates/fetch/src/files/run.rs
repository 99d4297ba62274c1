//! Running another program to its end; when it fails, its words are the error. It can be stopped
//! meanwhile.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dbdyno_provision::calling;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::Error;

/// Lines of output that an error repeats.
const SHOWN_LINES: usize = 15;

/// How often it is looked whether the program shall be stopped.
const POLL: Duration = Duration::from_millis(50);

/// Time that a stopped program has to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Variables of dbdyno's own environment that only programs that fetch get, in either case of
/// letters: proxies and certificates.
const OF_FETCHING: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "curl_ca_bundle",
    "ssl_cert_file",
    "ssl_cert_dir",
    "node_extra_ca_certs",
    "java_home",
    "java_tool_options",
    "maven_opts",
    "apt_config",
];

/// A call of `program`, which fetches, with a clean environment.
pub(crate) fn fetching(program: impl AsRef<OsStr>) -> Command {
    let is_handed_on = |name: &str| {
        let lower = name.to_ascii_lowercase();
        // npm has its settings, registries among them, in such variables.
        OF_FETCHING.contains(&lower.as_str()) || lower.starts_with("npm_config_")
    };
    let handed_on = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_handed_on));
    let mut command = calling(program);
    command.envs(handed_on);
    command
}

/// Runs `command` without input and returns what it printed. `what` says what it is good for. When
/// `cancel` becomes true, the program and its children are stopped.
pub(crate) fn run(what: &str, command: &mut Command, cancel: &AtomicBool) -> Result<String, Error> {
    let line = shown(command);
    let failed = |status: String, output: String| Error::Tool {
        what: what.to_owned(),
        command: line.clone(),
        status,
        output,
    };
    let cannot = |error: std::io::Error| failed("cannot be run".to_owned(), error.to_string());
    let stopped = || Error::Cancelled { what: what.to_owned() };
    if cancel.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: Ctrl-C in the terminal reaches dbdyno only, which then stops all of it
    // and cleans up.
    let child = command.process_group(0).spawn().map_err(cannot)?;
    let group = Pid::from_raw(i32::try_from(child.id()).expect("the kernel's process numbers are i32"));
    let (ended, end) = channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    let output = wait(&end, group, cancel).ok_or_else(stopped)?.map_err(cannot)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Maven reports its errors on the standard output, all others on the other one.
    let said = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout).trim_end(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    let lines: Vec<&str> = said.trim().lines().collect();
    let end = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    Err(failed(format!("failed ({})", output.status), end))
}

/// Waits for the program's end; `None` when it was stopped.
fn wait(
    end: &Receiver<std::io::Result<Output>>,
    group: Pid,
    cancel: &AtomicBool,
) -> Option<std::io::Result<Output>> {
    let mut asked: Option<Instant> = None;
    loop {
        match end.recv_timeout(POLL) {
            Ok(output) if asked.is_none() => return Some(output),
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // A group that has just ended cannot be signalled, and need not be.
        match asked {
            None if cancel.load(Ordering::Relaxed) => {
                asked = Some(Instant::now());
                let _ = killpg(group, Signal::SIGTERM);
            }
            Some(since) if since.elapsed() > PATIENCE => {
                let _ = killpg(group, Signal::SIGKILL);
                return None;
            }
            _ => {}
        }
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fetches_gets_what_it_needs_and_nothing_else() {
        // Cargo gives a test many variables, in place of the password that a user has set.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let printed = run("printing", &mut fetching("env"), &GO_ON).unwrap();
        let names: Vec<&str> = printed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let everywhere = calling("env");
        let is_known = |name: &&str| {
            everywhere.get_envs().any(|(known, _)| known == *name)
                || OF_FETCHING.contains(&name.to_ascii_lowercase().as_str())
                || name.to_ascii_lowercase().starts_with("npm_config_")
        };
        assert!(names.iter().all(is_known) && names.contains(&"PATH"), "{names:?}");
    }

    static GO_ON: AtomicBool = AtomicBool::new(false);

    #[test]
    fn what_is_printed_is_returned_and_a_failure_shows_the_words() {
        assert_eq!(run("echoing", Command::new("echo").arg("x"), &GO_ON).unwrap(), "x\n");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = run("failing", &mut command, &GO_ON).unwrap_err();
        insta::assert_snapshot!(error, @r"
        failing: `sh -c echo out; echo err >&2; exit 3` failed (exit status: 3)
        out
        err
        ");
        let error =
            run("finding", &mut Command::new("no-such-program-here"), &GO_ON).unwrap_err().to_string();
        assert!(error.starts_with("finding: `no-such-program-here` cannot be run"), "{error}");
    }

    #[test]
    fn a_program_is_stopped_with_its_children_when_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let child = folder.path().join("child");
        let cancel = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $! > \"$1\"; wait", "sh"]).arg(&child);
        let begun = Instant::now();
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| run("waiting", &mut command, &cancel));
            while std::fs::read_to_string(&child).unwrap_or_default().trim().is_empty() {
                std::thread::sleep(POLL);
            }
            cancel.store(true, Ordering::Relaxed);
            running.join().unwrap()
        });
        assert!(matches!(ended, Err(Error::Cancelled { .. })), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        let pid: i32 = std::fs::read_to_string(&child).unwrap().trim().parse().unwrap();
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !(stat.is_empty() || stat.contains(") Z"))
        };
        while is_there() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(POLL);
        }
        assert!(!is_there(), "the child outlived its parent");
        assert!(matches!(run("x", &mut Command::new("true"), &cancel), Err(Error::Cancelled { .. })));
    }
}
