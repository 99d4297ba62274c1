//! Profiles a server with Linux perf: it samples which function runs, and who called it, in a
//! step's common window. The samples are folded (one line per stack, with its number of samples),
//! which is what a record keeps.
//!
//! perf attaches to the server before the load connects, so that it also follows the threads and
//! processes that the server makes for the load's connections. Samples have times of the monotonic
//! clock, by which those of the common window are chosen.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, mkfifo};

use crate::sources::{children_file, parse_children};

/// How long perf may take to attach to the server, and to write its file when it is stopped.
const PERF_LIMIT: Duration = Duration::from_secs(20);
/// Stacks that are kept one by one. The others, which have fewest samples, are merged by function.
const MAX_STACKS: usize = 20_000;

/// Why a step was not profiled. Each message is one sentence with a way on.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("perf is not installed; apt-get install linux-perf, or the package of the running kernel")]
    NotInstalled,
    #[error("perf may not sample the server: {said}; run dbdyno as root, or set kernel.perf_event_paranoid to 1")]
    NotAllowed { said: String },
    #[error("perf {what} failed: {said}")]
    Failed { what: &'static str, said: String },
    #[error("perf did not {what} within {} s", PERF_LIMIT.as_secs())]
    Slow { what: &'static str },
    #[error("perf sampled nothing in the common window, which was too short, or the server was idle")]
    NoSamples,
    #[error("cannot use {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
}

/// How a server is profiled.
#[derive(Debug, Clone)]
pub struct ProfilerConfig {
    pub server_pid: u32,
    /// Whether the server is that process and its children, as PostgreSQL is.
    pub server_tree: bool,
    /// Samples per second of CPU time.
    pub samples_per_second: u32,
    /// How callers are found, as perf spells it: `fp`, `lbr` or `dwarf,8192`; `None` for no callers.
    pub call_graph: Option<&'static str>,
    /// A folder that exists, for perf's file. The profiler removes its own files there.
    pub folder: PathBuf,
}

/// A perf that samples a server.
#[derive(Debug)]
pub struct Profiler {
    perf: Child,
    files: Files,
    event: &'static str,
    version: String,
}

/// What was sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What the samples count: `cpu-clock` or `cycles`.
    pub event: &'static str,
    /// The profiler's name and version.
    pub profiler: String,
    /// One line per stack, in the order of the text: its frames from the outermost caller on, the
    /// name of the thread first, separated by `;`, then a space and the number of samples. Frames
    /// of the kernel end in `_[k]`.
    pub folded: String,
    /// Stacks that were too many to keep one by one.
    pub merged: u64,
}

/// perf's file, and the pipes by which it is controlled. They are removed when this is dropped.
#[derive(Debug)]
struct Files {
    data: PathBuf,
    control: PathBuf,
    answer: PathBuf,
}

impl Files {
    fn new(folder: &Path) -> Result<Self, ProfileError> {
        let of = |name: &str| folder.join(name);
        let files = Self { data: of("perf.data"), control: of("perf.control"), answer: of("perf.answer") };
        files.remove();
        for path in [&files.control, &files.answer] {
            mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)
                .map_err(|error| ProfileError::File { path: path.clone(), source: error.into() })?;
        }
        Ok(files)
    }

    fn remove(&self) {
        for path in [&self.data, &self.control, &self.answer] {
            // A file that was never made needs no removal.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Opens a pipe without waiting for its other end.
    fn pipe(path: &Path) -> Result<File, ProfileError> {
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
        opened.map_err(|source| ProfileError::File { path: path.into(), source })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Profiler {
    /// Starts perf, and waits until it samples.
    pub fn start(config: &ProfilerConfig) -> Result<Self, ProfileError> {
        let version = version()?;
        let event = event();
        let files = Files::new(&config.folder)?;
        let mut command = Command::new("perf");
        command.args(["record", "--quiet", "--no-buildid", "--no-buildid-cache", "--delay=-1"]);
        command.args(["--clockid", "CLOCK_MONOTONIC", "--event", event]);
        command.arg(format!("--freq={}", config.samples_per_second));
        command.args(config.call_graph.iter().flat_map(|how| ["--call-graph", how]));
        command.arg(format!("--control=fifo:{},{}", files.control.display(), files.answer.display()));
        command.arg("--output").arg(&files.data);
        command.arg("--pid").arg(pids(config));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let perf = command.spawn().map_err(|error| failed("record", &error.to_string()))?;
        let mut profiler = Self { perf, files, event, version };
        if let Err(error) = profiler.enable() {
            profiler.end();
            return Err(error);
        }
        Ok(profiler)
    }

    /// Asks perf to sample, and waits for its answer.
    fn enable(&mut self) -> Result<(), ProfileError> {
        let deadline = Instant::now() + PERF_LIMIT;
        let mut answer = Files::pipe(&self.files.answer)?;
        let mut control = Files::pipe(&self.files.control)?;
        control
            .write_all(b"enable\n")
            .map_err(|source| ProfileError::File { path: self.files.control.clone(), source })?;
        let mut text = [0; 16];
        loop {
            match answer.read(&mut text) {
                Ok(0) => {}
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(source) => {
                    return Err(ProfileError::File { path: self.files.answer.clone(), source });
                }
            }
            if let Ok(Some(_)) = self.perf.try_wait() {
                return Err(failed("record", &self.complaint()));
            }
            if Instant::now() > deadline {
                return Err(ProfileError::Slow { what: "attach to the server" });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns what perf said before it ended.
    fn complaint(&mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = &mut self.perf.stderr {
            // Without the text, the message says only that perf failed.
            let _ = stderr.read_to_string(&mut said);
        }
        said
    }

    /// Stops perf, and folds the samples between the two moments.
    pub fn stop(mut self, from: Instant, to: Instant) -> Result<Profile, ProfileError> {
        self.interrupt()?;
        let time = format!("{},{}", monotonic(from), monotonic(to));
        let mut script = Command::new("perf")
            .args(["script", "--no-inline", "--fields", "comm,pid,tid,time,event,ip,sym,dso"])
            .args(["--time", &time, "--input"])
            .arg(&self.files.data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed("script", &error.to_string()))?;
        let mut options = Options::default();
        options.annotate_kernel = true;
        let mut folded = Vec::new();
        if let Some(output) = script.stdout.take() {
            Folder::from(options)
                .collapse(BufReader::new(output), &mut folded)
                .map_err(|error| failed("script", &error.to_string()))?;
        }
        // perf's status is of no use: it is not 0 where a file of symbols is missing.
        let _ = script.wait();
        let (folded, merged) = bounded(&String::from_utf8_lossy(&folded), MAX_STACKS);
        if folded.is_empty() {
            return Err(ProfileError::NoSamples);
        }
        Ok(Profile { event: self.event, profiler: self.version.clone(), folded, merged })
    }

    /// Ends perf as Ctrl-C does, after which its file is complete.
    fn interrupt(&mut self) -> Result<(), ProfileError> {
        self.signal(Signal::SIGINT);
        let deadline = Instant::now() + PERF_LIMIT;
        loop {
            match self.perf.try_wait() {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => return Err(ProfileError::Slow { what: "write its file" }),
                Err(error) => return Err(failed("record", &error.to_string())),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.perf.id()) {
            // A perf that has ended needs no signal.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    fn end(&mut self) {
        if matches!(self.perf.try_wait(), Ok(None)) {
            self.signal(Signal::SIGKILL);
            let _ = self.perf.wait();
        }
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns perf's version, such as `perf version 6.1.192`.
pub fn version() -> Result<String, ProfileError> {
    match Command::new("perf").arg("--version").stderr(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        // Debian's wrapper fails where it has no perf for the running kernel.
        Ok(_) => Err(ProfileError::NotInstalled),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(ProfileError::NotInstalled),
        Err(error) => Err(failed("--version", &error.to_string())),
    }
}

/// Returns the event to sample: cycles where the CPU counts them for us, which it does not in most
/// virtual machines, and otherwise the kernel's clock of CPU time.
pub fn event() -> &'static str {
    let counted = Command::new("perf").args(["stat", "-x,", "-e", "cycles", "true"]).output();
    let is_number = |text: &str| text.split(',').next().is_some_and(|count| count.parse::<u64>().is_ok());
    let counts = |text: &str| text.lines().any(is_number);
    match counted {
        Ok(output) if counts(&String::from_utf8_lossy(&output.stderr)) => "cycles",
        _ => "cpu-clock",
    }
}

/// Returns the server's processes, as perf takes them. perf follows the children that they make
/// later.
fn pids(config: &ProfilerConfig) -> String {
    let mut pids = vec![config.server_pid];
    if config.server_tree
        && let Ok(mut file) = children_file(config.server_pid)
        && let Ok(text) = file.text()
    {
        pids.extend(parse_children(&text));
    }
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns a moment on the monotonic clock, in seconds as perf writes them.
fn monotonic(at: Instant) -> String {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    let then = now.saturating_sub(Instant::now().saturating_duration_since(at));
    format!("{}.{:09}", then.as_secs(), then.subsec_nanos())
}

fn failed(what: &'static str, said: &str) -> ProfileError {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines.take(3).collect::<Vec<_>>().join(" ");
    let is_refusal = ["No permission", "Permission denied", "perf_event_paranoid", "not permitted"];
    if is_refusal.iter().any(|words| said.contains(words)) {
        return ProfileError::NotAllowed { said };
    }
    ProfileError::Failed { what, said }
}

/// Returns the folded stacks with at most `most` lines, and how many were merged. A merged stack
/// counts as one of its thread and its innermost function alone.
fn bounded(folded: &str, most: usize) -> (String, u64) {
    let parse = |line: &str| {
        let (stack, count) = line.rsplit_once(' ')?;
        Some((stack.to_owned(), count.parse::<u64>().ok()?))
    };
    let mut stacks: Vec<(String, u64)> = folded.lines().filter_map(parse).collect();
    stacks.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let many = stacks.split_off(stacks.len().min(most));
    let mut kept: BTreeMap<String, u64> = stacks.into_iter().collect();
    let merged = many.len() as u64;
    for (stack, count) in many {
        let ends = [stack.split(';').next(), stack.rsplit(';').next()].map(Option::unwrap_or_default);
        *kept.entry(ends.join(";")).or_default() += count;
    }
    (kept.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect(), merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_stacks_are_merged_by_function_and_no_sample_is_lost() {
        let folded = "m;a;f 5\nm;b;f 3\nm;c;g 2\nm;d;f 1\n";
        assert_eq!(bounded(folded, 9), ("m;a;f 5\nm;b;f 3\nm;c;g 2\nm;d;f 1\n".to_owned(), 0));
        assert_eq!(bounded(folded, 1), ("m;a;f 5\nm;f 4\nm;g 2\n".to_owned(), 3));
    }

    #[test]
    fn a_refusal_by_the_kernel_says_what_to_do() {
        let said = "Error:\nAccess to performance monitoring is limited.\nConsider adjusting perf_event_paranoid\n";
        let text = failed("record", said).to_string();
        assert!(text.starts_with("perf may not sample the server: ") && text.contains("as root"), "{text}");
        assert_eq!(failed("record", "no such process\n").to_string(), "perf record failed: no such process");
    }

    #[test]
    fn a_moment_is_written_as_seconds_of_the_monotonic_clock() {
        let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap());
        let earlier: f64 = monotonic(Instant::now() - Duration::from_secs(1)).parse().unwrap();
        let ago = now.as_secs_f64() - earlier;
        assert!((0.9..60.0).contains(&ago), "{ago} s");
    }

    /// perf samples this process, in which one function works.
    #[test]
    #[ignore = "in cargo xtask test --all: needs Linux perf"]
    fn a_function_that_works_is_in_the_stacks() {
        #[inline(never)]
        fn a_function_that_burns(until: Instant) -> u64 {
            let mut sum = 0_u64;
            while Instant::now() < until {
                sum = std::hint::black_box((0..10_000_u64).fold(sum, |sum, next| sum.wrapping_mul(31) ^ next));
            }
            sum
        }
        let folder = tempfile::tempdir().unwrap();
        let config = ProfilerConfig {
            server_pid: std::process::id(),
            server_tree: false,
            samples_per_second: 499,
            call_graph: Some("fp"),
            folder: folder.path().to_path_buf(),
        };
        let profiler = Profiler::start(&config).unwrap();
        let from = Instant::now();
        let to = from + Duration::from_secs(1);
        a_function_that_burns(to);
        let profile = profiler.stop(from, to).unwrap();
        let samples = |has: &str| -> u64 {
            let lines = profile.folded.lines().filter(|line| line.contains(has));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
        };
        assert!(samples("a_function_that_burns") > samples("") / 2, "{}", profile.folded);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "perf's files are removed");
    }
}
