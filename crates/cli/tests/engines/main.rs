//! Blocks on clusters of real engines, Slurm and Ray: each has three hosts that are namespaces of this one.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../support/blocks.rs"]
mod blocks;
mod hosts;
mod ray;
mod slurm;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "made for the other test binaries as well")]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use dbdyno_record::Run;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use blocks::{complete, measured, no_data_are_left, whole};
use hosts::{Hosts, children};
use support::{Desk, Running, findings, texts, wait_for};

/// A cluster whose conductor is on the first host and whose tasks are on the two others, `n1` and `n2`.
trait Cluster {
    fn hosts(&self) -> &Hosts;

    /// What `--on` says.
    fn on(&self) -> &'static str;

    /// What who uses the cluster has in the environment.
    fn prepare(&self, command: &mut Command);

    fn dbdyno(&self, desk: &Desk, args: &[&str]) -> Command {
        let mut words = vec![env!("CARGO_BIN_EXE_dbdyno")];
        words.extend(args);
        words.extend(["--on", self.on()]);
        let mut command = self.hosts().command(0, &desk.path(""), &words);
        desk.prepare(&mut command);
        // Hosts do not see each other's runs.
        self.prepare(command.env("DBDYNO_RUNTIME", "/media"));
        command
    }
}

/// Begins a run of so many blocks, each of one variant for so many seconds.
fn begin(cluster: &impl Cluster, desk: &Desk, blocks: u32, seconds: u32) -> (Running, PathBuf) {
    let plan = format!(
        "name = \"test\"\nblocks = {blocks}\n[[variant]]\nname = \"only\"\nserver = \"sqlite\"\n[workload.oltp]\n\
         tests = [\"point-select\"]\nsettle_wait = \"0s\"\ntables = 1\ntable_size = 100\ntime = \"{seconds}s\"\n"
    );
    desk.write("p.toml", &plan);
    let running = desk.start(&mut cluster.dbdyno(desk, &["run", "p.toml"]));
    let dir = desk.run_dir();
    (running, dir)
}

/// The dbdyno that is the task of a block, once it measures.
fn task_of(dir: &Path, block: u32) -> Pid {
    let name = format!("{}-{block}.", dir.file_name().unwrap().to_str().unwrap());
    let is_task = |line: &[String]| line[0] == env!("CARGO_BIN_EXE_dbdyno") && line[1] == "task";
    let is_named = |line: &[String]| line.iter().any(|word| word.starts_with(&name));
    let measures = |path: &Path| path.display().to_string().contains(&name) && path.join("cells").exists();
    wait_for("a task to measure", || {
        let mut tasks = std::fs::read_dir(dir.join("fleet")).ok()?.flatten();
        tasks.any(|entry| measures(&entry.path())).then_some(())?;
        hosts::process(|line| line.len() > 1 && is_task(line) && is_named(line))
    })
}

/// The warnings of a run, as one text.
fn warnings(dir: &Path) -> String {
    texts(&findings(dir)).join("\n")
}

/// A task that is killed costs its block on that host, and only there.
fn a_killed_task_is_run_again_elsewhere(cluster: &impl Cluster, said: &str) {
    let desk = Desk::new();
    let (running, dir) = begin(cluster, &desk, 2, 3);
    kill(task_of(&dir, 1), Signal::SIGKILL).unwrap();
    running.wait().expect_ok();
    assert_eq!(measured(&whole(&dir)), [(1, "n2".to_owned()), (2, "n2".to_owned())]);
    let warnings = warnings(&dir);
    assert!(warnings.contains("lock 1 was lost on n1: ") && warnings.contains(said), "{warnings}");
}

/// A conductor that is killed ends its tasks, and the run goes on with the blocks that lack.
fn a_killed_conductor_ends_its_tasks_and_the_run_goes_on(cluster: &impl Cluster) {
    let desk = Desk::new();
    let (running, dir) = begin(cluster, &desk, 3, 2);
    wait_for("a complete block", || (!complete(&dir).is_empty()).then_some(()));
    let task = task_of(&dir, 3);
    let [conductor] = children(running.pid())[..] else { panic!("no conductor") };
    kill(conductor, Signal::SIGKILL).unwrap();
    assert_eq!(running.wait().code, None);
    wait_for("the end of the task", || kill(task, None).is_err().then_some(()));
    let kept = complete(&dir);
    desk.ended(&mut cluster.dbdyno(&desk, &["run", "--resume", dir.to_str().unwrap()])).expect_ok();
    let measured = measured(&whole(&dir));
    assert_eq!(measured.iter().map(|(block, _)| *block).collect::<Vec<_>>(), [1, 2, 3], "{kept:?} were kept");
}

/// Ctrl-C ends the tasks before the conductor.
fn an_interrupted_run_has_no_tasks(cluster: &impl Cluster) {
    let desk = Desk::new();
    let (running, dir) = begin(cluster, &desk, 2, 60);
    let tasks = [task_of(&dir, 1), task_of(&dir, 2)];
    let [conductor] = children(running.pid())[..] else { panic!("no conductor") };
    kill(conductor, Signal::SIGINT).unwrap();
    running.wait().expect_code(130);
    assert!(tasks.iter().all(|task| kill(*task, None).is_err()), "a task goes on");
    assert_eq!(measured(&Run::open(&dir).unwrap()), []);
    no_data_are_left(&dir);
}
