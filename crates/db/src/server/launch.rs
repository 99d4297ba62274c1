//! Starts programs with a clean environment. A server also gets its own CPUs and its own process
//! group, and the kernel signals it when the thread that spawned it ends. An installer has a time
//! limit for making a data directory.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::server::process::Process;
use crate::server::programs::run_query_program;
use crate::server::{Error, log};

/// The variables from dbdyno's own environment that every program gets, besides `LC_*`: the paths
/// to programs and libraries, the language and the time zone. Other variables are not passed on,
/// for example server passwords, and variables that change a server's socket or port.
const PASSED_ON: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH"];

/// A command for `program` with a clean environment. dbdyno starts every program through this
/// function.
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let is_passed_on = |name: &str| PASSED_ON.contains(&name) || name.starts_with("LC_");
    let passed_on = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_passed_on));
    let mut command = Command::new(program);
    command.env_clear().envs(passed_on);
    command
}

/// Returns what `parse` reads from the version that a server's `program` prints.
pub(crate) fn version_of<T>(
    program: &Path,
    arguments: &[&str],
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    let failed = |why: String| Error::Version { program: program.to_path_buf(), why };
    let output = run_query_program(clean_command(program).args(arguments))
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it printed nothing");
        let hint = match said.contains("shared librar") {
            true => "; install the library with the distribution's package manager (often libaio1, libnuma1)",
            false => "",
        };
        return Err(failed(format!("{}: {said}{hint}", output.status)));
    }
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    parse(&printed).ok_or_else(|| failed(format!("it printed {printed:?}, in which no version is known")))
}

/// The calling thread's number in the affinity calls.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Restores the thread's own CPUs once the server has been spawned.
struct RestoreCpus(CpuSet);

impl Drop for RestoreCpus {
    fn drop(&mut self) {
        // This set was in force a moment ago. If the kernel refuses it now, the thread stays on the
        // server's CPUs.
        let _ = sched_setaffinity(THIS_THREAD, &self.0);
    }
}

/// A server's command line, and the signal that requests its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) words: Vec<String>,
    /// Whether the kernel sends the server a signal when the spawning thread ends, even by `kill
    /// -9`.
    pub(crate) ends_with_us: bool,
    pub(crate) stop_signal: Signal,
}

/// The signal that requests a server's end, and the signal that the server gets when dbdyno has
/// ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signals {
    pub(crate) stop: Signal,
    pub(crate) orphaned: Signal,
}

/// The command line for a program that ends cleanly on SIGTERM and gets the signal `orphaned` when
/// dbdyno has ended.
pub(crate) fn command_line(program: &Path, options: &[String], orphaned: Signal) -> Line {
    let signals = Signals { stop: Signal::SIGTERM, orphaned };
    line(find_in_path("setpriv").as_deref(), &[], signals, program, options)
}

/// A shell line that becomes the server only if dbdyno is still its parent. `setpriv` requests a
/// signal for the moment when its parent ends. If dbdyno ended before that request, the signal
/// never comes, so the shell exits.
const UNLESS_ORPHANED: &str = "test \"$PPID\" = \"$0\" && exec \"$@\"";

/// The command line for `program`, through `setpriv` where it is installed.
pub(crate) fn line(
    setpriv: Option<&Path>,
    setpriv_options: &[String],
    signals: Signals,
    program: &Path,
    options: &[String],
) -> Line {
    let mut words = Vec::with_capacity(setpriv_options.len() + options.len() + 5);
    if let Some(setpriv) = setpriv {
        words.push(setpriv.display().to_string());
        words.extend_from_slice(setpriv_options);
        // This option comes last, because a change of user resets the signal.
        let signal = signals.orphaned.as_str().trim_start_matches("SIG");
        words.extend(["--pdeathsig", signal, "--", "sh", "-c", UNLESS_ORPHANED].map(str::to_owned));
        words.push(std::process::id().to_string());
    }
    words.push(program.display().to_string());
    words.extend_from_slice(options);
    Line { words, ends_with_us: setpriv.is_some(), stop_signal: signals.stop }
}

/// A command with a clean environment and its own process group, so that Ctrl-C in the terminal
/// reaches only dbdyno. The output is appended to `log`.
pub(crate) fn detached(line: &[String], log: &Path) -> Result<Command, Error> {
    use std::os::unix::fs::OpenOptionsExt;
    use std::os::unix::process::CommandExt;

    let cannot = || Error::io("cannot write the log", log);
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).map_err(cannot())?;
    }
    let mut options = File::options();
    // This creates the file if it is missing. If the path is a link, the open fails.
    options.create(true).append(true).custom_flags(OFlag::O_NOFOLLOW.bits());
    let output = options.open(log).map_err(cannot())?;
    let errors = output.try_clone().map_err(cannot())?;
    let mut command = clean_command(&line[0]);
    command.args(&line[1..]).process_group(0).stdin(Stdio::null()).stdout(output).stderr(errors);
    Ok(command)
}

/// Starts `words` in the same way as a server, with `variables` in addition. The program gets
/// SIGTERM when this thread ends. With `is_piped`, this process has the program's standard input
/// and output, and only standard error goes to `log`.
pub fn start_detached(
    words: &[String],
    variables: &[(OsString, OsString)],
    log: &Path,
    is_piped: bool,
) -> Result<Child, Error> {
    let line = command_line(Path::new(&words[0]), &words[1..], Signal::SIGTERM);
    let mut command = detached(&line.words, log)?;
    if is_piped {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    }
    spawn(command.envs(variables.iter().cloned()), None)
}

/// Spawns `command` on `cpus`. Threads inherit the affinity of the thread that spawns them, so all
/// of the server's threads are on these CPUs from their first instruction.
pub(crate) fn spawn(command: &mut Command, cpus: Option<&[u32]>) -> Result<Child, Error> {
    let program = PathBuf::from(command.get_program());
    let restore = cpus.map(pin).transpose()?;
    let child = command.spawn().map_err(Error::io("cannot run", program));
    drop(restore);
    child
}

fn pin(cpus: &[u32]) -> Result<RestoreCpus, Error> {
    let before =
        sched_getaffinity(THIS_THREAD).map_err(|errno| pin_error(cpus, errno.desc(), &CpuSet::new()))?;
    // The calling thread may be limited to other CPUs, so the check uses all CPUs that this process
    // may use.
    let restore = RestoreCpus(before);
    let usable = usable_cpus().map_err(|errno| pin_error(cpus, errno.desc(), &before))?;
    let mut set = CpuSet::new();
    for cpu in cpus {
        let index = *cpu as usize;
        // The kernel ignores CPUs that do not exist if at least one does. A benchmark of a server
        // on half of its CPUs would give a wrong result.
        if !usable.is_set(index).unwrap_or(false) {
            return Err(pin_error(cpus, &format!("CPU {cpu} is not among them"), &usable));
        }
        set.set(index).map_err(|errno| pin_error(cpus, errno.desc(), &usable))?;
    }
    sched_setaffinity(THIS_THREAD, &set).map_err(|errno| pin_error(cpus, errno.desc(), &usable))?;
    Ok(restore)
}

/// Every CPU that this process may use. This requests all CPUs, and the kernel reduces the request
/// to the usable CPUs. The thread's affinity then includes all of these.
fn usable_cpus() -> Result<CpuSet, nix::errno::Errno> {
    let mut all = CpuSet::new();
    for cpu in 0..CpuSet::count() {
        all.set(cpu)?;
    }
    sched_setaffinity(THIS_THREAD, &all)?;
    sched_getaffinity(THIS_THREAD)
}

fn pin_error(cpus: &[u32], why: &str, usable: &CpuSet) -> Error {
    let joined = |cpus: &mut dyn Iterator<Item = String>| cpus.collect::<Vec<_>>().join(",");
    let usable = (0..CpuSet::count()).filter(|cpu| usable.is_set(*cpu).unwrap_or(false));
    Error::Pin {
        cpus: joined(&mut cpus.iter().map(u32::to_string)),
        why: why.to_owned(),
        usable: joined(&mut usable.map(|cpu| cpu.to_string())),
    }
}

/// The first executable file with the name `name` in the folders of `PATH`.
pub fn find_in_path(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;

    let executable = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(executable)
}

/// A shell script that waits for the end of its input and then kills its own process group, itself
/// included. Only dbdyno has the write end of that pipe.
const WAIT_THEN_KILL: &str = "read -r _; kill -s KILL 0";

/// A process group whose first process only waits for dbdyno's end. When the value is dropped or
/// dbdyno ends, however it ends, every process in the group is killed.
///
/// A signal at the parent's death (`setpriv --pdeathsig`) reaches only the started program and not
/// its children. The scripts that make data directories start servers themselves, so dbdyno needs a
/// group to kill these servers too.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Child,
    group: Pid,
}

impl ProcessGroup {
    pub(crate) fn start() -> io::Result<Self> {
        let mut command = clean_command("sh");
        command.args(["-c", WAIT_THEN_KILL]).process_group(0);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let group = Pid::from_raw(i32::try_from(child.id()).expect("the kernel's process numbers are i32"));
        Ok(Self { child, group })
    }

    /// The number of the group in which a program should be started.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The group exists as long as its first process is not reaped, so the signal reaches no
        // other group.
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Time limit for an installer. No installer needs a minute on an idle machine. Ten minutes are
/// enough on a busy one.
const INSTALLER_LIMIT: Duration = Duration::from_secs(600);

/// Size limit for the log. Installers normally print a few pages. An installer that prints this
/// much would fill the disk.
const LOG_MAX_BYTES: u64 = 64 << 20;

/// Interval between two checks of the time limit and the log's size.
const POLL: Duration = Duration::from_millis(50);

/// The folders and the log of an installer, and its title for messages.
pub(crate) struct Installer<'a> {
    /// Product and version for people.
    pub(crate) title: String,
    /// The file that gets all output.
    pub(crate) log: &'a Path,
    /// The folder in which the installer runs.
    pub(crate) folder: &'a Path,
    pub(crate) tmp_dir: &'a Path,
    pub(crate) cancel: &'a AtomicBool,
}

impl Installer<'_> {
    /// Runs `line` to its end with `input` as its standard input. All processes that the command
    /// has started are killed when it ends or when dbdyno ends.
    pub(crate) fn run(&self, line: &[String], input: &str) -> Result<(), Error> {
        let failed = |why: String| Error::Initialise {
            server: self.title.clone(),
            why: format!("{}: {why}", line.join(" ")),
            log_tail: log::reason(&log::LogPart::whole(self.log)),
        };
        let mut command = detached(line, self.log)?;
        let process_group = ProcessGroup::start().map_err(|error| failed(format!("sh: {error}")))?;
        command.process_group(process_group.group());
        command.current_dir(self.folder).env("TMPDIR", self.tmp_dir).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = input.to_owned();
            // A thread writes the input, because a frozen program would block the writer. An error
            // of the write is ignored, because the exit status of a program that ends early says
            // more than a broken pipe.
            std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        }
        let process = Process::new(child, Signal::SIGTERM);
        let ended = self.wait(&process);
        drop(process_group);
        match ended {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(status.to_string())),
            None => {}
        }
        // Dropping the process group has killed the program.
        let _ = process.wait(Duration::from_secs(5), &AtomicBool::new(false), Duration::ZERO);
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled { what: format!("initialising {}", self.title) });
        }
        if log::length(self.log) > LOG_MAX_BYTES {
            return Err(failed(format!(
                "it wrote more than {} MiB into its log and was killed",
                LOG_MAX_BYTES >> 20
            )));
        }
        Err(failed(format!("not done after {} s", INSTALLER_LIMIT.as_secs())))
    }

    /// Waits until the program has ended, the time limit has passed, the log is too large, or the
    /// user cancels.
    fn wait(&self, process: &Process) -> Option<ExitStatus> {
        let deadline = Instant::now() + INSTALLER_LIMIT;
        loop {
            let ended = process.wait(POLL, self.cancel, Duration::ZERO);
            let is_over = Instant::now() >= deadline || self.cancel.load(Ordering::Relaxed);
            if ended.is_some() || is_over || log::length(self.log) > LOG_MAX_BYTES {
                return ended;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variables that `env` prints when `command` starts it.
    fn variables(mut command: Command) -> Vec<String> {
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        output.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn a_program_gets_the_variables_that_it_needs_and_no_others() {
        // Cargo gives a test many variables. They represent a password that a user has set.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let found = variables(clean_command("env"));
        let is_known = |name: &String| PASSED_ON.contains(&name.as_str()) || name.starts_with("LC_");
        assert!(found.iter().all(is_known) && found.contains(&"PATH".to_owned()), "{found:?}");
    }

    /// This is the state after dbdyno was killed by `kill -9` before `setpriv` requested the
    /// signal.
    #[test]
    fn a_server_whose_dbdyno_ended_before_setpriv_asked_for_a_signal_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        let mut words =
            command_line(Path::new("touch"), &[begun.display().to_string()], Signal::SIGKILL).words;
        let run = |words: &[String]| clean_command(&words[0]).args(&words[1..]).status().unwrap().success();
        let own = std::process::id().to_string();
        let parent = words.iter().position(|word| *word == own).unwrap();
        words[parent] = "1".to_owned();
        assert!(!run(&words) && !begun.exists());
        words[parent] = own;
        assert!(run(&words) && begun.exists());
    }

    #[test]
    fn the_child_runs_on_its_cpus_and_the_thread_is_back_on_its_own() {
        let before = sched_getaffinity(THIS_THREAD).unwrap();
        let last = (0..CpuSet::count()).rev().find(|cpu| before.is_set(*cpu).unwrap()).unwrap();
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]).stdout(Stdio::piped());
        let output =
            spawn(&mut command, Some(&[u32::try_from(last).unwrap()])).unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("Cpus_allowed_list:\t{last}\n"));
        assert_eq!(sched_getaffinity(THIS_THREAD).unwrap(), before);
    }

    #[test]
    fn a_thread_that_is_limited_to_one_cpu_can_start_a_server_on_another() {
        let before = sched_getaffinity(THIS_THREAD).unwrap();
        let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| before.is_set(*cpu).unwrap()).collect();
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        let mut own = CpuSet::new();
        own.set(first).unwrap();
        sched_setaffinity(THIS_THREAD, &own).unwrap();
        let child = spawn(&mut Command::new("true"), Some(&[u32::try_from(last).unwrap()]));
        let after = sched_getaffinity(THIS_THREAD).unwrap();
        sched_setaffinity(THIS_THREAD, &before).unwrap();
        assert!(child.unwrap().wait().unwrap().success());
        assert_eq!(after, own);
    }

    #[test]
    fn a_cpu_that_the_machine_lacks_is_an_error_that_lists_the_usable_ones() {
        let message = spawn(&mut Command::new("true"), Some(&[0, 1000])).unwrap_err().to_string();
        assert!(
            message.starts_with("cannot run the server on CPUs 0,1000: CPU 1000 is not among them"),
            "{message}"
        );
        assert!(message.contains("lets dbdyno use 0"), "{message}");
    }

    #[test]
    fn an_installer_that_writes_without_end_is_killed_before_the_disk_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let (log, cancel) = (folder.path().join("log"), AtomicBool::new(false));
        let installer = Installer {
            title: "X 1".to_owned(),
            log: &log,
            folder: folder.path(),
            tmp_dir: folder.path(),
            cancel: &cancel,
        };
        let error = installer.run(&["yes".to_owned()], "").unwrap_err().to_string();
        let said = "initialising a data directory for X 1 failed: yes: it wrote more than 64 MiB into its log and was killed\n";
        assert!(error.starts_with(said), "{}", &error[..200.min(error.len())]);
    }
}
