//! Tests a CPU quota on the client, in control groups of version 1 or 2. Such a step measures the
//! quota, and it says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbdyno_analyse::{Code, Validity};
use nix::sys::signal::Signal;

use crate::commands::known_answer::listening;
use crate::support::{Desk, findings};

/// A control group that may use a fifth of one CPU. It is removed when dropped.
struct Quota(PathBuf);

impl Quota {
    fn new() -> Self {
        let name = format!("dbdyno-quota-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        if first.exists() {
            let folder = first.join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("cpu.cfs_period_us"), "100000").unwrap();
            fs::write(folder.join("cpu.cfs_quota_us"), "20000").unwrap();
            return Self(folder);
        }
        let root = Path::new("/sys/fs/cgroup");
        fs::write(root.join("cgroup.subtree_control"), "+cpu").unwrap();
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("cpu.max"), "20000 100000").unwrap();
        Self(folder)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "in cargo xtask test --all: a CPU quota, as root"]
fn a_client_under_a_cpu_quota_is_throttled_and_waits_for_no_other_program() {
    let (desk, quota) = (Desk::new(), Quota::new());
    let server = listening(&desk, &["--protocol", "mysql", "--socket", "s", "--threads", "1"]);
    let socket = desk.path("s");
    desk.write(
        "p.toml",
        &format!(
            "name = \"test\"\n[[variant]]\nname = \"a\"\naddress = \"mysql://any@localhost/any?socket={}\"\n\
             [workload.oltp]\ntests = [\"point-select\"]\ntable_size = 100\nconnections = [4]\ntime = \"3s\"\n\
             verify = \"off\"\nsettle_wait = \"0s\"\nload_connections = 1\ncreate_secondary = false\n",
            socket.display()
        ),
    );
    let into = format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", quota.0.display());
    let mut within = Command::new("sh");
    desk.prepare(&mut within);
    within.args(["-c", &into, env!("CARGO_BIN_EXE_dbdyno"), "run", "p.toml"]);
    let ended = desk.ended(&mut within);
    ended.expect_ok();
    server.signal(Signal::SIGTERM);
    server.wait().expect_ok();
    let found = findings(&desk.run_dir());
    let steps = &found.workloads[0].steps;
    let select = steps.iter().find(|step| step.name.starts_with("point-select")).unwrap();
    let Validity::Invalid { reasons } = &select.variants[0].runs[0].validity else {
        panic!("{:?}", select.variants[0].runs[0].validity)
    };
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code).collect();
    assert!(codes.contains(&Code::Throttled), "{codes:?}");
    assert!(!codes.contains(&Code::ClientBusy) && !codes.contains(&Code::ClientWaited), "{codes:?}");
}
