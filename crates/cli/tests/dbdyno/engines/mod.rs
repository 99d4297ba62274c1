//! Tests blocks on clusters of real engines, Slurm and Ray. Each cluster has three hosts, which are
//! namespaces on this machine.

mod hosts;
mod ray;
mod slurm;

use std::collections::BTreeSet;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbdyno_record::{Run, StepEvent};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::blocks::{complete, measured, no_data_are_left, whole};
use crate::support::{Desk, Running, findings, texts, wait_for};
use hosts::{Hosts, children};

/// A cluster whose conductor is on the first host and whose tasks are on the two others, `n1` and
/// `n2`.
trait Cluster {
    fn hosts(&self) -> &Hosts;

    /// The value of `--on`.
    fn on(&self) -> &'static str;

    /// Sets the environment variables that a user of the cluster has.
    fn prepare(&self, command: &mut Command);

    fn dbdyno(&self, desk: &Desk, args: &[&str]) -> Command {
        self.on_head(desk, &[args, &["--on", self.on()]].concat())
    }

    fn on_head(&self, desk: &Desk, args: &[&str]) -> Command {
        let mut words = vec![env!("CARGO_BIN_EXE_dbdyno")];
        words.extend(args);
        let mut command = self.hosts().command(0, &desk.path(""), &words);
        desk.prepare(&mut command);
        // The hosts do not see each other's runs, so each gets its own runtime directory.
        self.prepare(command.env("DBDYNO_RUNTIME", "/media"));
        command
    }
}

/// The tasks' hosts do not see the run's folder. Files are copied to them once, and records are
/// copied back.
fn files_travel_where_no_folder_is_shared(cluster: &impl Cluster) {
    const SERVER: &str = "mysql-5.7.22";
    let desk = Desk::new();
    let folder = |host: usize, path: &str| cluster.hosts().folder(host).join(path);
    std::fs::write(folder(0, "real.toml"), "buffer_pool = \"32 MiB\"\n").unwrap();
    std::os::unix::fs::symlink("real.toml", folder(0, "link.toml")).unwrap();
    let plan = format!(
        "name = \"test\"\nblocks = 2\n[[variant]]\nname = \"only\"\nserver = \"{SERVER}\"\nconfig = \"/media/link.toml\"\n\
         [workload.oltp]\ntests = [\"point-select\"]\nsettle_wait = \"0s\"\ntables = 1\ntable_size = 100\ntime = \"1s\"\n"
    );
    desk.write("p.toml", &plan);
    let kept = |host: usize| {
        let entries = std::fs::read_dir(folder(host, "cache/dbdyno/fleet")).unwrap().flatten();
        entries.map(|entry| (entry.file_name(), entry.ino())).collect::<BTreeSet<_>>()
    };
    let command = |out: &str, more: &[&str]| {
        let mut command = cluster.dbdyno(&desk, &[&["run", "p.toml", "--out", out], more].concat());
        command.env("XDG_CACHE_HOME", "/media/cache").env("DBDYNO_SERVERS", dbdyno_db::server::servers_dir());
        command
    };
    let run = |out: &str| {
        let ended = desk.ended(&mut command(&format!("/media/{out}"), &[]));
        ended.expect_ok();
        assert!(ended.err.contains("files travel to n1, n2: "), "{}", ended.err);
        let dirs = std::fs::read_dir(folder(0, out)).unwrap();
        let dir = dirs.map(|entry| entry.unwrap().path()).next().unwrap();
        assert_eq!(measured(&whole(&dir)), [(1, "n1".to_owned()), (2, "n2".to_owned())]);
    };
    run("first");
    let before = [1, 2].map(kept);
    // The five entries are dbdyno, the file of intents, the server, the folder of tasks and the
    // lock of that folder.
    assert_eq!(before.each_ref().map(BTreeSet::len), [5, 5]);

    let running = desk.start(&mut command("/media/interrupted", &["--set", "workload.oltp.time=600s"]));
    let is_task = |line: &[String]| line[0].starts_with("/media/cache") && line[1] == "task";
    let task = wait_for("a task", || hosts::process(|line| line.len() > 1 && is_task(line)));
    let [conductor] = children(running.pid())[..] else { panic!("no conductor") };
    kill(conductor, Signal::SIGINT).unwrap();
    running.wait().expect_code(130);
    wait_for("the end of the task", || kill(task, None).is_err().then_some(()));
    run("second");
    assert_eq!([1, 2].map(kept), before);
    let tasks = |host| std::fs::read_dir(folder(host, "cache/dbdyno/fleet/tasks")).unwrap().count();
    assert_eq!([tasks(1), tasks(2)], [0, 0]);
}

/// A server on the cluster's head, with agents on the nodes that the cluster provides.
struct Load {
    port: &'static str,
    _server: Running,
    _of_server: Desk,
    desk: Desk,
}

impl Load {
    /// Starts the server on its own port. The server ends with its host.
    fn new(cluster: &impl Cluster, port: &'static str) -> Self {
        let server = Desk::new();
        let words = ["known-answer", "--protocol", "mysql", "--listen", "10.99.0.1", "--port", port];
        let running = server.start(&mut cluster.on_head(&server, &words));
        let said = || std::fs::read_to_string(server.path("out.txt")).unwrap_or_default();
        wait_for("the server to listen", || said().contains("listening").then_some(()));
        Self { port, _server: running, _of_server: server, desk: Desk::new() }
    }

    /// A run on `hosts` client hosts. `limit` is the option that ends its step.
    fn run(&self, cluster: &impl Cluster, hosts: u32, limit: &str) -> Command {
        let plan = format!(
            "name = \"test\"\n[clients]\nhosts = {hosts}\non = \"{}\"\n[[variant]]\nname = \"a\"\n\
             address = \"mysql://any@10.99.0.1:{}/any\"\n[workload.oltp]\nverify = \"off\"\nsettle_wait = \"0s\"\n\
             load_connections = 1\ntests = [\"read-only\"]\nconnections = [7]\ntable_size = 100\n{limit}\n",
            cluster.on(),
            self.port
        );
        self.desk.write("p.toml", &plan);
        cluster.on_head(&self.desk, &["run", "p.toml"])
    }
}

/// The cluster provides all client hosts at once or none, and each host sends its share of the
/// load.
fn client_hosts_are_nodes_of_the_cluster(cluster: &impl Cluster) {
    let load = Load::new(cluster, "3306");
    load.desk.ended(&mut load.run(cluster, 2, "events = 220")).expect_ok();
    let cell = Run::open(&load.desk.run_dir()).unwrap().cells.remove(0);
    let step = cell.steps.iter().find(|step| step.name.starts_with("read-only")).unwrap();
    let host = |event: &StepEvent| match event {
        StepEvent::ClientHost(host) => Some((host.host.clone(), host.connections)),
        _ => None,
    };
    let mut hosts: Vec<_> = step.events.iter().filter_map(host).collect();
    assert_eq!(hosts.iter().map(|(_, connections)| *connections).collect::<Vec<_>>(), [4, 3]);
    hosts.sort();
    assert_eq!(hosts.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>(), ["10.99.0.2", "10.99.0.3"]);
    assert_eq!(step.intervals.iter().map(|interval| interval.done).sum::<u64>(), 220);

    let refused = load.desk.ended(&mut load.run(cluster, 3, "events = 220"));
    refused.expect_code(3);
    assert!(refused.err.contains("cannot get 3 client hosts at once from "), "{}", refused.err);
}

/// Begins a run of `blocks` blocks. Each has one variant that runs for `seconds` seconds.
fn begin(cluster: &impl Cluster, desk: &Desk, blocks: u32, seconds: u32) -> (Running, PathBuf) {
    let plan = format!(
        "name = \"test\"\nblocks = {blocks}\n[[variant]]\nname = \"only\"\nserver = \"sqlite\"\n[workload.oltp]\n\
         tests = [\"point-select\"]\nsettle_wait = \"0s\"\ntables = 1\ntable_size = 100\ntime = \"{seconds}s\"\n"
    );
    desk.write("p.toml", &plan);
    let mut running = desk.start(&mut cluster.dbdyno(desk, &["run", "p.toml"]));
    let dir = wait_for("a run directory", || {
        running.expect_running("a run was begun");
        desk.run_dirs().pop()
    });
    (running, dir)
}

/// The dbdyno process that runs a block's task. Waits until the task measures.
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

/// When a task is killed, its block is run again on another host. The other block is not affected.
fn a_killed_task_is_run_again_elsewhere(cluster: &impl Cluster, said: &str) {
    let desk = Desk::new();
    let (running, dir) = begin(cluster, &desk, 2, 3);
    kill(task_of(&dir, 1), Signal::SIGKILL).unwrap();
    running.wait().expect_ok();
    assert_eq!(measured(&whole(&dir)), [(1, "n2".to_owned()), (2, "n2".to_owned())]);
    let warnings = warnings(&dir);
    assert!(warnings.contains("lock 1 was lost on n1: ") && warnings.contains(said), "{warnings}");
}

/// When the conductor is killed, its tasks end too. The resumed run measures the missing blocks.
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
