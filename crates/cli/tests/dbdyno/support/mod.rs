//! What tests of the command share: a folder of their own, the built `dbdyno` run in it, its output
//! made comparable.

pub(crate) mod blocks;
pub(crate) mod cells;
pub(crate) mod listening;
pub(crate) mod pooler;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_analyse::{Code, Findings, Validity, Warning};
use dbdyno_record::Run;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Longest time that a test waits for anything; only a fault comes near it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A folder on a real disk that goes away with the test.
pub(crate) struct Desk {
    folder: TempDir,
}

/// A `dbdyno` that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error without the warning of debug builds.
    pub(crate) err: String,
}

/// A `dbdyno` that runs; killed if the test fails first.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// Templates are shared by all tests with servers: each build is initialised once. Tests of
/// initialising itself have a folder of their own.
pub(crate) fn templates() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("templates")
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `dbdyno ARGS` in this folder, with an environment that does not depend on who runs the
    /// tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbdyno"));
        self.prepare(&mut command);
        command.args(args);
        command
    }

    /// The surroundings of [`Desk::command`] for another program that runs it.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("COLUMNS", "100").env("LINES", "50").env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
        // What is remembered of runs is remembered of this desk's.
        command.env("XDG_STATE_HOME", self.folder.path().join("state"));
        command.env("DBDYNO_TEMPLATES", templates());
        // Runs of other tests are on this host too.
        command.env("DBDYNO_RUNTIME", self.folder.path());
        // Tests run side by side: pinned to the same CPUs they would wait for each other.
        command.env("DBDYNO_CPUS", "shared");
    }

    pub(crate) fn dbdyno(&self, args: &[&str]) -> Ended {
        self.ended(&mut self.command(args))
    }

    /// Runs `command` to its end.
    pub(crate) fn ended(&self, command: &mut Command) -> Ended {
        let output = command.output().unwrap();
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: without_debug_warning(&String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// Starts `command`; its output goes to files, so that it never waits for a reader.
    pub(crate) fn start(&self, command: &mut Command) -> Running {
        let (out, err) = (self.path("out.txt"), self.path("err.txt"));
        let file = |path: &Path| std::fs::File::create(path).unwrap();
        let child = command.stdout(file(&out)).stderr(file(&err)).spawn().unwrap();
        Running { child, out, err }
    }

    /// The only run directory below `runs`; waits until it is there.
    pub(crate) fn run_dir(&self) -> PathBuf {
        wait_for("a run directory", || self.run_dirs().pop())
    }

    pub(crate) fn run_dirs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("runs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.join("manifest.json").exists()).collect()
    }

    /// `text` with what differs from run to run replaced: this folder, the run's name.
    pub(crate) fn golden(&self, text: &str) -> String {
        let mut text = text.replace(self.folder.path().to_str().unwrap(), "FOLDER");
        for run in self.run_dirs() {
            text = text.replace(run.file_name().unwrap().to_str().unwrap(), "RUN");
        }
        text
    }

    /// Exit status and what was said on standard error, as one text for a snapshot. Any dbdyno
    /// clears up what another one has left that was killed, as some tests do at the same time, and
    /// says so. How long a plan takes depends on the machine.
    pub(crate) fn refusal(&self, ended: &Ended) -> String {
        assert_eq!(ended.out, "", "results together with an error");
        let is_its_own = |line: &&str| {
            !line.starts_with("note: removed what a dbdyno that was killed had left")
                && !line.starts_with("the plan takes about ")
        };
        let said: Vec<&str> = ended.err.lines().filter(is_its_own).collect();
        format!("exit {}: {}", ended.code.unwrap_or(-1), self.golden(said.join("\n").trim_end()))
    }
}

impl Ended {
    /// The run or report came to a good end.
    #[track_caller]
    pub(crate) fn expect_ok(&self) -> &Self {
        self.expect_code(0)
    }

    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Fails the test with what it has said if it has ended.
    #[track_caller]
    pub(crate) fn expect_running(&mut self, before: &str) {
        assert!(self.is_running(), "dbdyno ended before {before}: {}", self.said());
    }

    /// What it has said so far, for messages of failed tests.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Ended {
        let status = wait_for("the end of dbdyno", || self.child.try_wait().unwrap());
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        Ended { code: status.code(), out: read(&self.out), err: without_debug_warning(&read(&self.err)) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits until the first second of a step is recorded: it is in its middle then.
#[track_caller]
pub(crate) fn wait_until_in_step(running: &mut Running, run_dir: &Path, step: &str) {
    let path = run_dir.join("cells").join(step).join("intervals.jsonl");
    wait_for(&format!("{step} to be under way"), || {
        running.expect_running(step);
        std::fs::metadata(&path).is_ok_and(|data| data.len() > 0).then_some(())
    });
}

fn without_debug_warning(text: &str) -> String {
    text.replace("warning: this is a debug build of dbdyno; use --release for numbers that count\n", "")
}

/// The figure of the line of a run's output that begins so.
pub(crate) fn figure(text: &str, begin: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(begin));
    line.unwrap_or_else(|| panic!("no {begin} in {text}")).split_whitespace().next().unwrap().parse().unwrap()
}

/// The warnings of a run.
pub(crate) fn texts(findings: &Findings) -> Vec<String> {
    dbdyno_report::warning_texts(&findings.warnings)
}

/// The findings of a run.
pub(crate) fn findings(run_dir: &Path) -> Findings {
    dbdyno_analyse::analyse(&Run::open(run_dir).unwrap())
}

/// Steps that are not valid, as `step variant block: why`.
pub(crate) fn faults(findings: &Findings) -> Vec<String> {
    faults_but(findings, |_| false)
}

/// Returns what [`faults`] does, without steps on client hosts whose clocks are not known well
/// enough: answers to the queries for them take long on a busy machine.
pub(crate) fn faults_but_clocks(findings: &Findings) -> Vec<String> {
    faults_but(findings, |reason| reason.code == Code::ClientHostLate)
}

/// As [`faults`], without rates and times that disagree by some percent: that comes on a machine with
/// more to do than it has CPUs, and says nothing of what is recorded.
pub(crate) fn faults_but_rates(findings: &Findings) -> Vec<String> {
    faults_but(findings, |reason| reason.code == Code::LittlesLaw)
}

fn faults_but(findings: &Findings, is_let_pass: fn(&Warning) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    for step in findings.workloads.iter().flat_map(|workload| &workload.steps) {
        for variant in &step.variants {
            for run in &variant.runs {
                let why = match &run.validity {
                    Validity::Valid => continue,
                    // The machine had no CPU for the client, which is no fault of the step.
                    Validity::Invalid { reasons }
                        if reasons.iter().all(|it| matches!(it.code, Code::Paused | Code::Throttled)) =>
                    {
                        continue;
                    }
                    Validity::Invalid { reasons } if reasons.iter().any(is_let_pass) => continue,
                    Validity::Invalid { reasons } => {
                        format!("Invalid: {}", dbdyno_report::reasons_text(reasons))
                    }
                    other => format!("{other:?}"),
                };
                faults.push(format!("{} {} {}: {why}", step.name, variant.variant, run.block));
            }
        }
    }
    faults
}
