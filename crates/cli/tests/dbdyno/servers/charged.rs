//! Compares the CPU time that dbdyno charges to a server with the kernel's figures for the server's
//! processes after the run.

use dbdyno_record::{Run, StepRecord};

use crate::servers::postgres::external_server;
use crate::servers::{POSTGRES_9_6, POSTGRES_18};
use crate::support::{Desk, faults, findings, wait_for};

/// One tick of the kernel's clock for user programs, `USER_HZ`.
const TICK_US: i64 = 10_000;

/// The numbers of `/proc/<pid>/stat` from field 14 of proc(5) on: utime, stime, cutime, cstime.
fn ticks(pid: u32) -> Option<[i64; 4]> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse().ok();
    Some([next()?, next()?, next()?, next()?])
}

fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// CPU time that a server without connections has used so far. It may be too low by up to two ticks
/// per process.
fn used_us(pid: u32) -> i64 {
    let own: i64 = ticks(pid).unwrap().iter().sum();
    let of_children: i64 = children(pid).into_iter().filter_map(ticks).map(|ticks| ticks[0] + ticks[1]).sum();
    (own + of_children) * TICK_US
}

/// CPU time at the first sample and at the samples nearest to the window's edges.
fn sampled_us(step: &StepRecord) -> [i64; 3] {
    let (from_us, to_us) = step.window().unwrap();
    let server = &step.counters["server"];
    let at = |us: u64| server.nearest("cpu_us", i64::try_from(us).unwrap()).unwrap().1;
    [server.value("cpu_us", 0).unwrap(), at(from_us), at(to_us)]
}

/// Lowest CPU time within the window that is enough to judge the charge.
const ENOUGH_US: i64 = 300_000;

/// Runs two steps of `seconds` seconds on the server whose first process is `pid` and which has
/// `idle` other processes. Returns the two steps, and the CPU time that the server had used after
/// the run.
fn measured(desk: &Desk, socket: &str, seconds: u32, (pid, idle): (u32, usize)) -> (Vec<StepRecord>, i64) {
    desk.write(
        "p.toml",
        &format!(
            "name = \"test\"\n[[variant]]\nname = \"theirs\"\naddress = \
             \"postgres://bench@localhost/load?socket={socket}\"\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = \
             [\"point-select\", \"read-only\"]\ntables = 2\ntable_size = 500\nconnections = [16]\ntime = \"{seconds}s\"\n"
        ),
    );
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    wait_for("the end of the connections", || (children(pid).len() <= idle).then_some(()));
    let after_us = used_us(pid);
    let dir = desk.run_dir();
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    let steps = Run::open(&dir).unwrap().cells.remove(0).steps;
    std::fs::remove_dir_all(dir).unwrap();
    (steps.into_iter().filter(|step| step.spec.name.ends_with(".c16")).collect(), after_us)
}

/// Each connection has its own process. Until the parent has waited for that process, only the
/// process's own entry in /proc shows its CPU time.
#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn the_cpu_time_of_postgresqls_processes_is_charged_by_the_end_of_the_window() {
    for prefix in [POSTGRES_9_6, POSTGRES_18] {
        let desk = Desk::new();
        let server = external_server(&desk, prefix);
        let rules = server.data_dir.join("pg_hba.conf");
        std::fs::write(rules, "local all all trust\n").unwrap();
        crate::servers::postgres::number(&server.options(Some("postgres")), "SELECT pg_reload_conf()");
        let pid_file = std::fs::read_to_string(server.data_dir.join("postmaster.pid")).unwrap();
        let pid: u32 = pid_file.lines().next().unwrap().parse().unwrap();
        let idle = children(pid).len();
        let address = server.options(Some("load")).address.to_string();
        let socket = address.rsplit_once('/').unwrap().0;
        let worked_us = |step: &StepRecord| sampled_us(step)[2] - sampled_us(step)[1];
        // The steps are longer where other programs use so much CPU that the server does too little
        // to judge.
        let (steps, after_us) = [1, 5, 30]
            .into_iter()
            .map(|seconds| measured(&desk, socket, seconds, (pid, idle)))
            .find(|(steps, _)| steps.iter().all(|step| worked_us(step) > ENOUGH_US))
            .unwrap_or_else(|| panic!("{prefix}: too little to judge"));
        assert_eq!(steps.len(), 2);
        // The CPU time used until the next step's first sample, or until the end of the run.
        let then_us = [sampled_us(&steps[1])[0], after_us];
        for (step, then_us) in steps.iter().zip(then_us) {
            let [_, from_us, to_us] = sampled_us(step);
            // Outside the window, CPU time goes to opening and closing connections, to the
            // verification, and to the server's background work.
            let outside_us = 300_000 + (to_us - from_us) / 50;
            assert!(
                (-200_000..outside_us).contains(&(then_us - to_us)),
                "{prefix} {}: {from_us} to {to_us} µs within the window, {then_us} µs after the step",
                step.spec.name
            );
        }
    }
}
