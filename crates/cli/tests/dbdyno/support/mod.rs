//! What the tests of the command share: a folder for each test, the built `dbdyno` that runs in it,
//! and output that is made comparable.

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

/// Longest time that a test waits for anything. Only a fault comes near it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A folder on a real disk that is removed with the test.
pub(crate) struct Desk {
    folder: TempDir,
}

/// A `dbdyno` process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error without the warning of debug builds.
    pub(crate) err: String,
}

/// A running `dbdyno` process. It is killed if the test fails first.
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// The folder of templates, which all tests with servers share, so that each build is initialised
/// once. Tests of initialising itself have their own folder.
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

    /// `dbdyno ARGS` in this folder, with an environment that does not depend on the user who runs
    /// the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbdyno"));
        self.prepare(&mut command);
        command.args(args);
        command
    }

    /// Gives `command` the same environment as [`Desk::command`], for another program that runs
    /// dbdyno.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("COLUMNS", "100").env("LINES", "50").env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
        // dbdyno must remember only this desk's runs.
        command.env("XDG_STATE_HOME", self.folder.path().join("state"));
        command.env("DBDYNO_TEMPLATES", templates());
        // Other tests run on the same host, and their runs must not be visible.
        command.env("DBDYNO_RUNTIME", self.folder.path());
        // Tests run side by side. If they were pinned to the same CPUs, they would wait for each
        // other.
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

    /// Starts `command`. Its output goes to files, so that it never waits for a reader.
    pub(crate) fn start(&self, command: &mut Command) -> Running {
        let (out, err) = (self.path("out.txt"), self.path("err.txt"));
        let file = |path: &Path| std::fs::File::create(path).unwrap();
        let child = command.stdout(file(&out)).stderr(file(&err)).spawn().unwrap();
        Running { child, out, err }
    }

    /// The only run directory below `runs`. Waits until it exists.
    pub(crate) fn run_dir(&self) -> PathBuf {
        wait_for("a run directory", || self.run_dirs().pop())
    }

    pub(crate) fn run_dirs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("runs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.join("manifest.json").exists()).collect()
    }

    /// `text` without the parts that differ from run to run, which are this folder and the run's
    /// name.
    pub(crate) fn golden(&self, text: &str) -> String {
        let mut text = text.replace(self.folder.path().to_str().unwrap(), "FOLDER");
        for run in self.run_dirs() {
            text = text.replace(run.file_name().unwrap().to_str().unwrap(), "RUN");
        }
        text
    }

    /// The exit status and standard error as one text for a snapshot. Two kinds of lines are left
    /// out. Any dbdyno removes the files that a killed one has left, which may be another test's,
    /// and reports that. The predicted duration of a plan depends on the machine.
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
    /// Checks that dbdyno ended with status 0.
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

    /// Fails the test with the process's standard error if the process has ended.
    #[track_caller]
    pub(crate) fn expect_running(&mut self, before: &str) {
        assert!(self.is_running(), "dbdyno ended before {before}: {}", self.said());
    }

    /// The standard error so far, for the messages of failed tests.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// The standard output so far.
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

/// Calls `ask` until it returns a value.
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

/// Waits until the first second of a step is recorded. The step is then in its middle.
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

/// The number that follows `begin` in a line of the output.
pub(crate) fn figure(text: &str, begin: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(begin));
    line.unwrap_or_else(|| panic!("no {begin} in {text}")).split_whitespace().next().unwrap().parse().unwrap()
}

/// Returns a run's page without its links to files of the run directory. `dbdyno report` leaves
/// them out, because its page may lie elsewhere.
pub(crate) fn without_files(page: &str) -> String {
    let lines = page.split_inclusive('\n');
    lines.filter(|line| !line.contains("<a href=\"manifest.json\">")).collect()
}

/// The texts of a run's warnings.
pub(crate) fn texts(findings: &Findings) -> Vec<String> {
    dbdyno_report::warning_texts(&findings.warnings)
}

/// The findings of a run.
pub(crate) fn findings(run_dir: &Path) -> Findings {
    dbdyno_analyse::analyse(&Run::open(run_dir).unwrap())
}

/// The steps that are not valid, as `step variant block: why`.
pub(crate) fn faults(findings: &Findings) -> Vec<String> {
    faults_but(findings, |_| false)
}

/// Returns the same as [`faults`], without steps on client hosts whose clock offset is too
/// uncertain. On a busy machine the clock queries take long.
pub(crate) fn faults_but_clocks(findings: &Findings) -> Vec<String> {
    faults_but(findings, |reason| reason.code == Code::ClientHostLate)
}

/// Leaves out what [`faults_but_clocks`] and [`faults_but_rates`] leave out.
pub(crate) fn faults_but_times(findings: &Findings) -> Vec<String> {
    faults_but(findings, |reason| matches!(reason.code, Code::ClientHostLate | Code::LittlesLaw))
}

/// Returns the same as [`faults`], without steps whose rates and times disagree by a few percent.
/// That happens on an overloaded machine and does not mean that the record is wrong.
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
                    // A step is not at fault if the machine had no CPU for the client.
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
