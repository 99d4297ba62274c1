//! Engines that provide machines and start programs on them: Slurm and Ray.

mod ray;
mod slurm;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_db::server::{ProgramLimits, output};
use dbdyno_model::On;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::exit::ExitError;
use ray::Ray;
use slurm::Slurm;

/// Environment variables that tasks and the engine's programs get in addition to those that all
/// programs get. They hold no passwords.
const PASSED_ON: [&str; 6] =
    ["DBDYNO_CPUS", "DBDYNO_RUNTIME", "DBDYNO_SERVERS", "SLURM_CONF", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];

/// Longest time that an engine's program takes to print its output. It may start an interpreter and
/// contact other machines.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes of output that are kept. They suffice for one line per machine in a cluster of some ten
/// thousand.
const OUTPUT_BYTES: usize = 4 << 20;

/// An engine, which places and starts tasks. Nothing that is measured goes through it.
pub(crate) trait Launcher {
    /// Returns the machines that may run tasks. Each runs one task at a time.
    fn machines(&self) -> Vec<String>;

    /// Starts the program and arguments `words` on one of [`Launcher::machines`], by its number.
    /// The returned process is on this host, whatever the engine. It ends when the task ends.
    /// SIGTERM to it, or the end of dbdyno, ends the task. The messages of both go to the end of
    /// `log`, in the folder of the run's tasks. With `is_piped` the standard input and output of
    /// the process are those of the program.
    fn start(&self, machine: usize, words: &[String], log: &Path, is_piped: bool)
    -> Result<Child, ExitError>;
}

/// Turns a host's key into the words that start a program there. The process's standard input and
/// output are the program's.
pub(crate) type Starting = dyn Fn(&[&str]) -> Option<Vec<String>>;

/// How an engine provides hosts. It provides all of them at once, and each is for one agent.
pub(crate) struct Gang {
    /// The command that prints one line per host, `host KEY... ADDRESS`. It keeps all hosts until
    /// its standard input ends.
    pub(crate) words: Vec<String>,
    /// Variables that the command and programs on its hosts are started with.
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) starting: Box<Starting>,
}

/// Returns the variables [`PASSED_ON`] that are set.
pub(crate) fn variables() -> Vec<(OsString, OsString)> {
    PASSED_ON.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))).collect()
}

/// Asks a process that [`Launcher::start`] has started to end. No one may have waited for it yet,
/// because another process could otherwise have its number.
pub(crate) fn ask_to_end(child: &Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // A failure means that the process has just ended.
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

fn cannot_start(machine: &str, error: &dbdyno_db::server::Error) -> ExitError {
    ExitError::machine(format!("cannot start a task on {machine}: {error}"))
}

/// Returns the path of dbdyno itself, which tasks and agents run. It is the file that dbdyno was
/// started from. Where that file was replaced or removed meanwhile, the kernel still has the
/// program, under a path that is valid on this machine only.
pub(crate) fn this_program() -> Result<PathBuf, ExitError> {
    let cannot = |error| ExitError::machine(format!("cannot find dbdyno itself: {error}"));
    let path = std::env::current_exe().map_err(cannot)?;
    Ok(still_there(path).unwrap_or_else(running_program))
}

/// Returns a path to the content of the running program, whatever happened to its file. The path
/// does not begin with `/proc/self`, because other processes read it.
pub(crate) fn running_program() -> PathBuf {
    format!("/proc/{}/exe", std::process::id()).into()
}

/// Returns the path that the kernel gives for a running program. It is `None` where the file was
/// replaced or removed, because the kernel then marks the path.
fn still_there(path: PathBuf) -> Option<PathBuf> {
    let is_marked = path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    (!is_marked || path.exists()).then_some(path)
}

/// Returns dbdyno as other machines find it, on a filesystem that they share with this one.
pub(crate) fn shared_program() -> Result<PathBuf, ExitError> {
    let program = this_program()?;
    if program != running_program() {
        return Ok(program);
    }
    let what =
        "the file of this dbdyno was replaced or removed while it runs, so other machines cannot start it";
    Err(ExitError::machine(format!("{what}; start the run again")))
}

pub(crate) fn engine(on: &On) -> Result<Box<dyn Launcher>, ExitError> {
    Ok(match on {
        On::Ray(address) => Box::new(Ray::find(address.as_deref())?),
        On::Slurm(partition) => Box::new(Slurm::find(partition.as_deref())?),
    })
}

/// Returns how an engine provides this number of hosts at once.
pub(crate) fn gang(on: &On, hosts: u32) -> Result<Gang, ExitError> {
    match on {
        On::Ray(address) => ray::gang(address.as_deref(), hosts),
        On::Slurm(partition) => Ok(slurm::gang(partition.as_deref(), hosts)),
    }
}

/// Returns what a program of an engine prints. The error is its message.
fn printed(command: &mut Command) -> Result<String, String> {
    let bounds = ProgramLimits {
        limit: Some(OUTPUT_TIMEOUT),
        kept_bytes: OUTPUT_BYTES,
        cancel: &AtomicBool::new(false),
    };
    let output = output(command, &bounds).map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
