//! Tests Slurm from Debian: a controller and two nodes, with munge on each host.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dbdyno_analyse::Validity;

use crate::engines::hosts::Hosts;
use crate::engines::{Cluster, Load, begin, measured, whole};
use crate::support::{Desk, findings, wait_for, wait_until_in_step};

/// The configuration of all hosts, each with its own `/media`. It needs no control groups, and no
/// user account for Slurm.
const CONFIG: &str = "
ClusterName=test
SlurmctldHost=head(10.99.0.1)
SlurmUser=root
AuthInfo=socket=/media/munge
StateSaveLocation=/media/state
SlurmdSpoolDir=/media/spool
SlurmctldPidFile=/media/slurmctld.pid
SlurmdPidFile=/media/slurmd.pid
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
NodeName=n1 NodeAddr=10.99.0.2 CPUs=1 RealMemory=100
NodeName=n2 NodeAddr=10.99.0.3 CPUs=1 RealMemory=100
PartitionName=main Nodes=n1,n2 Default=YES
";

struct Slurm {
    desk: Desk,
    hosts: Hosts,
    daemons: Vec<Child>,
}

impl Slurm {
    fn new() -> Self {
        let (desk, hosts) = (Desk::new(), Hosts::new(&["head", "n1", "n2"]));
        let mut slurm = Self { desk, hosts, daemons: Vec::new() };
        let config = slurm.desk.write("slurm.conf", CONFIG).display().to_string();
        slurm.desk.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n");
        // Munge accepts any key that is long enough. Every host that has the key belongs to the
        // cluster.
        let key = slurm.desk.write("munge.key", &"no secret ".repeat(10));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o400)).unwrap();
        let key = key.display().to_string();
        for host in 0..3 {
            let munged =
                ["munged", "--foreground", "--force", "--key-file", &key, "--socket", "/media/munge"];
            let files = [
                "--pid-file",
                "/media/munge.pid",
                "--seed-file",
                "/media/seed",
                "--log-file",
                "/media/munge.log",
            ];
            slurm.start(host, &[&munged[..], &files].concat());
            let encodes = || {
                slurm
                    .hosts
                    .command(host, Path::new("/"), &["munge", "--no-input", "--socket", "/media/munge"])
                    .output()
            };
            wait_for("munge", || encodes().unwrap().status.success().then_some(()));
        }
        slurm.start(0, &["slurmctld", "-D", "-f", &config]);
        slurm.start(1, &["slurmd", "-D", "-f", &config]);
        slurm.start(2, &["slurmd", "-D", "-f", &config]);
        wait_for("two idle nodes", || (slurm.idle() == 2).then_some(()));
        slurm
    }

    fn start(&mut self, host: usize, words: &[&str]) {
        let log = self.desk.path(&format!("{}-{host}.log", words[0]));
        let log = std::fs::File::create(log).unwrap();
        let mut command = self.hosts.command(host, Path::new("/"), words);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    fn idle(&self) -> usize {
        let words = ["sinfo", "--noheader", "--Node", "--responding", "--states=idle"];
        let mut sinfo = self.hosts.command(0, Path::new("/"), &words);
        self.prepare(&mut sinfo);
        let output = sinfo.stderr(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    }
}

impl Cluster for Slurm {
    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn on(&self) -> &'static str {
        "slurm"
    }

    fn prepare(&self, command: &mut Command) {
        command.env("SLURM_CONF", self.desk.path("slurm.conf"));
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
#[ignore = "in cargo xtask test --all: a real Slurm"]
fn slurm_runs_each_block_on_its_own_node_and_repeats_killed_tasks() {
    let slurm = Slurm::new();
    let desk = Desk::new();
    let (running, dir) = begin(&slurm, &desk, 2, 1);
    running.wait().expect_ok();
    assert_eq!(measured(&whole(&dir)), [(1, "n1".to_owned()), (2, "n2".to_owned())]);
    let idle = || wait_for("two idle nodes", || (slurm.idle() == 2).then_some(()));
    idle();
    crate::engines::a_killed_task_is_run_again_elsewhere(&slurm, "Killed");
    idle();
    crate::engines::a_killed_conductor_ends_its_tasks_and_the_run_goes_on(&slurm);
    idle();
    crate::engines::an_interrupted_run_has_no_tasks(&slurm);
    idle();
    crate::engines::files_travel_where_no_folder_is_shared(&slurm);
    idle();
    crate::engines::client_hosts_are_nodes_of_the_cluster(&slurm);
    idle();
    a_client_host_whose_link_is_cut_fails_the_step(&slurm);
}

fn a_client_host_whose_link_is_cut_fails_the_step(slurm: &Slurm) {
    let load = Load::new(slurm, "3307");
    let mut running = load.desk.start(&mut load.run(slurm, 2, "time = \"600s\""));
    wait_until_in_step(&mut running, &load.desk.run_dir(), "1/a/oltp/read-only.c7");
    slurm.hosts.network("link set to-1 down");
    let ended = running.wait();
    slurm.hosts.network("link set to-1 up");
    ended.expect_code(4);
    let findings = findings(&load.desk.run_dir());
    let step = findings.workloads[0].steps.iter().find(|step| step.name.starts_with("read-only")).unwrap();
    let Validity::Failed { message } = &step.variants[0].runs[0].validity else { panic!("{step:?}") };
    assert!(message.contains("client host 10.99.0.2 was lost"), "{message}");
}
