//! Tests a memory limit on a machine without control groups. Depending on the plan, the run is
//! refused, or it continues without the limit and reports that.

use std::process::Command;

use dbdyno_record::Run;

use crate::servers::watch::server;
use crate::servers::{POSTGRES_15, variant};
use crate::support::{Desk, Ended, faults, findings, texts};

/// A shell command that hides all control groups.
const HIDE: &str = "set -e; for mount in $(awk '/ - cgroup2? /{print $5}' /proc/self/mountinfo | sort -r); do umount -l $mount; done; \
                    exec \"$@\"";

/// Runs a plan with a memory limit where there are no control groups.
fn without_groups(desk: &Desk, host: &str) -> Ended {
    let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 1000\nevents = 100\n";
    let host = format!("[host]\nserver_memory = \"1 GB\"\n{host}\n");
    desk.write("p.toml", &format!("name = \"p\"\n{host}{}{workload}", variant("a", POSTGRES_15, "")));
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", HIDE, "sh", env!("CARGO_BIN_EXE_dbdyno"), "run", "p.toml"]);
    desk.prepare(&mut command);
    desk.ended(&mut command)
}

#[test]
fn a_limit_that_cannot_be_set_is_refused_before_anything_runs() {
    let desk = Desk::new();
    let ended = without_groups(&desk, "");
    insta::assert_snapshot!(desk.refusal(&ended), @r#"exit 3: error: cannot limit the memory of a server: no hierarchy of control groups with the memory controller is mounted; run as root or on a machine where you may make control groups, or leave server_memory out; no_memory_limit = "warn" in [host] runs without the limit, and the report says so"#);
    assert!(desk.run_dirs().is_empty());
}

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn where_the_plan_says_so_the_run_goes_on_without_its_limit_and_the_report_says_that() {
    let desk = Desk::new();
    let ended = without_groups(&desk, "no_memory_limit = \"warn\"");
    let why = "cannot limit the memory of a server: no hierarchy of control groups with the memory controller is mounted";
    ended.expect_ok();
    assert!(
        ended.err.contains(&format!("warning: servers run without their memory limit: {why}")),
        "{}",
        ended.err
    );
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1));
    let said = format!("the server ran without the memory limit that the plan asks for: {why}");
    assert!(texts(&findings).iter().any(|warning| warning.contains(&said)), "{:?}", texts(&findings));
    let run = Run::open(&dir).unwrap();
    assert_eq!(server(&run.cells[0]).unwrap().memory_limit_bytes, None);
    assert!(!run.cells[0].steps.iter().any(|step| step.counters.contains_key("cgroup")));
}
