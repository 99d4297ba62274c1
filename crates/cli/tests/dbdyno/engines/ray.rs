//! Tests Ray from PyPI: a head without CPUs, and two nodes with one CPU each.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::engines::hosts::{Hosts, environment};
use crate::engines::{Cluster, begin, measured, task_of, whole};
use crate::support::{Desk, wait_for};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef";

/// Options for all nodes. Each node keeps its files in its host's `/media`.
const NODE: [&str; 6] =
    ["--block", "--disable-usage-stats", "--plasma-directory", "/media", "--object-store-memory", "80000000"];

struct Ray {
    desk: Desk,
    hosts: Hosts,
    on: &'static str,
    /// The value of `RAY_AUTH_MODE`.
    mode: &'static str,
    nodes: Vec<Child>,
}

impl Ray {
    fn new(names: &[&str], mode: &'static str) -> Self {
        let mut ray =
            Self { desk: Desk::new(), hosts: Hosts::new(names), on: "ray", mode, nodes: Vec::new() };
        ray.start(0, &["--head", "--include-dashboard", "false", "--num-cpus", "0"]);
        ray.wait_until_up(0);
        for (number, name) in names.iter().enumerate().skip(1) {
            ray.start(number, &["--address", "10.99.0.1:6379", "--num-cpus", "1", "--node-name", name]);
        }
        (1..names.len()).for_each(|number| ray.wait_until_up(number));
        ray
    }

    fn log(&self, host: usize) -> PathBuf {
        self.desk.path(&format!("{host}.log"))
    }

    fn start(&mut self, host: usize, options: &[&str]) {
        let ray = packages().join("bin/ray");
        let address = format!("10.99.0.{}", host + 1);
        let words = ["python3", ray.to_str().unwrap(), "start", "--node-ip-address", &address];
        let mut command = self.hosts.command(host, Path::new("/"), &[&words[..], &NODE, options].concat());
        self.prepare(&mut command);
        let log = std::fs::File::create(self.log(host)).unwrap();
        self.nodes.push(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    fn wait_until_up(&self, host: usize) {
        let is_up = || std::fs::read_to_string(self.log(host)).unwrap().contains("Ray runtime started");
        wait_for("a node of Ray", || is_up().then_some(()));
    }
}

impl Cluster for Ray {
    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn on(&self) -> &'static str {
        self.on
    }

    fn prepare(&self, command: &mut Command) {
        command.env("PYTHONPATH", packages()).env("RAY_TMPDIR", "/media");
        command.env("RAY_AUTH_MODE", self.mode).env("RAY_AUTH_TOKEN", TOKEN);
    }
}

impl Drop for Ray {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            let _ = node.kill();
            let _ = node.wait();
        }
    }
}

/// The folder in which `cargo xtask test` installs Python packages.
fn packages() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    cache.unwrap().join("dbdyno/tools/python")
}

/// The files below `folder` that contain `text`.
fn files_with(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files_with(text, &path));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
            found.push(path);
        }
    }
    found
}

#[test]
#[ignore = "in cargo xtask test --all: a real Ray"]
fn ray_runs_each_block_on_its_own_node_and_repeats_killed_tasks() {
    let mut ray = Ray::new(&["head", "n1", "n2"], "token");
    let desk = Desk::new();
    let (running, dir) = begin(&ray, &desk, 2, 1);
    let environment = environment(task_of(&dir, 1));
    running.wait().expect_ok();
    assert_eq!(measured(&whole(&dir)), [(1, "n1".to_owned()), (2, "n2".to_owned())]);
    assert!(environment.contains("DBDYNO_RUNTIME=") && !environment.contains("RAY_"), "{environment}");
    assert_eq!(files_with(TOKEN, &dir), [""; 0].map(PathBuf::from));

    crate::engines::a_killed_task_is_run_again_elsewhere(&ray, "SIGKILL");
    crate::engines::an_interrupted_run_has_no_tasks(&ray);
    ray.on = "ray://10.99.0.1:10001";
    crate::engines::a_killed_conductor_ends_its_tasks_and_the_run_goes_on(&ray);
    ray.on = "ray";
    crate::engines::files_travel_where_no_folder_is_shared(&ray);
    crate::engines::client_hosts_are_nodes_of_the_cluster(&ray);

    let desk = Desk::new();
    let (running, dir) = begin(&ray, &desk, 2, 5);
    task_of(&dir, 1);
    ray.hosts.kill(1);
    running.wait().expect_ok();
    assert_eq!(measured(&whole(&dir)), [(1, "n2".to_owned()), (2, "n2".to_owned())]);
    let warnings = crate::engines::warnings(&dir);
    assert!(warnings.contains("lock 1 was lost on n1: "), "{warnings}");
}

#[test]
#[ignore = "in cargo xtask test --all: a real Ray"]
fn an_open_cluster_is_refused_unless_the_user_accepts_it() {
    let ray = Ray::new(&["head"], "disabled");
    let desk = Desk::new();
    let refusal = |command: &mut Command| desk.refusal(&desk.ended(command));
    let said = refusal(ray.dbdyno(&desk, &["run"]).env_remove("RAY_AUTH_MODE"));
    assert!(said.starts_with("exit 3: ") && said.contains("RAY_AUTH_MODE=token"), "{said}");
    let said = refusal(&mut ray.dbdyno(&desk, &["run"]));
    assert!(said.starts_with("exit 3: ") && said.contains("ray status"), "{said}");
    assert!(desk.run_dirs().is_empty(), "a run was begun");
}
