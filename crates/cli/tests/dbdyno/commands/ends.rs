//! Tests of `dbdyno sysbench` on servers that stop answering or go away, and of a client that was
//! stopped for a while.

use dbdyno_analyse::Code;
use dbdyno_analyse::Validity;
use nix::sys::signal::Signal;

use crate::support::listening::wait_until_it_listens;
use crate::support::{Desk, Running, findings, wait_for, wait_until_in_step};

fn serving(desk: &Desk, more: &[&str]) -> Running {
    let words = ["known-answer", "--protocol", "mysql", "--socket", "s"];
    let running = desk.start(&mut desk.command(&[&words, more].concat()));
    wait_until_it_listens(&desk.path("s"));
    running
}

fn script(desk: &Desk) {
    let text = "
function thread_init() drv = sysbench.sql.driver() con = drv:connect() end
function event() con:query('SELECT c FROM sbtest1') end
";
    desk.write("own.lua", text);
}

const RUN: [&str; 6] =
    ["sysbench", "own.lua", "--mysql-socket=s", "--mysql-user=any", "--threads=2", "--report-interval=1"];

#[test]
fn a_run_of_sysbench_on_a_server_that_stops_answering_ends_and_names_who_waited() {
    let desk = Desk::new();
    script(&desk);
    let server = serving(&desk, &["--freeze", "600s at 1s"]);
    let ended = desk.dbdyno(&[&RUN[..], &["--time=2", "--forced-shutdown=1", "run"]].concat());
    ended.expect_code(1);
    assert!(ended.err.contains("2 of 2 connections (client 1, 2) waited for an answer"), "{}", ended.err);
    server.signal(Signal::SIGKILL);
    drop(server.wait());
}

#[test]
fn losses_that_are_ignored_are_counted_and_end_when_the_server_never_comes_back() {
    let desk = Desk::new();
    script(&desk);
    let server = serving(&desk, &[]);
    let line = [&RUN[..], &["--time=4", "--forced-shutdown=1", "--mysql-ignore-errors=2013", "run"]].concat();
    let running = desk.start(&mut desk.command(&line));
    wait_for("a first second", || running.printed().contains("[ 1s ]").then_some(()));
    server.signal(Signal::SIGKILL);
    drop(server.wait());
    let ended = running.wait();
    ended.expect_code(1);
    assert!(ended.err.contains("not done after its time cap of 5 s"), "{}", ended.err);
    assert!(ended.out.contains("reconn/s: 2.00"), "{}", ended.out);
}

#[test]
fn a_client_that_was_stopped_makes_its_step_invalid() {
    let desk = Desk::new();
    let server = serving(&desk, &[]);
    let socket = desk.path("s");
    desk.write(
        "p.toml",
        &format!(
            "name = \"test\"\nblocks = 1\n[host]\ncpus = \"shared\"\n[[variant]]\nname = \"a\"\n\
             address = \"mysql://any@localhost/a?socket={}\"\n[workload.oltp]\ntests = [\"point-select\"]\n\
             table_size = 100\nconnections = [2]\ntime = \"3s\"\nsettle = {{ by = \"none\" }}\n\
             load_connections = 1\ncreate_secondary = false\nverify = \"off\"\n",
            socket.display()
        ),
    );
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let run_dir = wait_for("a run directory", || desk.run_dirs().pop());
    wait_until_in_step(&mut running, &run_dir, "1/a/oltp/point-select.c2");
    running.signal(Signal::SIGSTOP);
    std::thread::sleep(std::time::Duration::from_secs(1));
    running.signal(Signal::SIGCONT);
    running.wait();
    server.signal(Signal::SIGINT);
    server.wait().expect_ok();
    let findings = findings(&desk.run_dir());
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "point-select.c2").unwrap();
    let Validity::Invalid { reasons } = &step.variants[0].runs[0].validity else { panic!("it is valid") };
    assert!(reasons.iter().any(|reason| reason.code == Code::Paused), "{reasons:?}");
}
