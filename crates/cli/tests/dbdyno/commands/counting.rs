//! Measures operations that are long compared with the window, on servers whose rates are known.

use dbdyno_record::{Run, StepRecord};
use nix::sys::signal::Signal;

use crate::support::listening::wait_until_it_listens;
use crate::support::{Desk, Running, faults, findings};

/// Starts a known-answer server that answers each prepared statement after `delay`.
fn slow(desk: &Desk, socket: &str, delay: &str) -> Running {
    let words =
        ["known-answer", "--protocol", "mysql", "--socket", socket, "--prepared-only", "--delay", delay];
    let running = desk.start(&mut desk.command(&words));
    wait_until_it_listens(&desk.path(socket));
    running
}

/// Returns a plan that runs point selects for a second on 8 connections to the servers `a` and `b`.
fn plan(desk: &Desk) -> String {
    let variant = |name: &str| {
        let socket = desk.path(name);
        format!(
            "[[variant]]\nname = \"{name}\"\naddress = \"mysql://any@localhost/{name}?socket={}\"\n",
            socket.display()
        )
    };
    format!(
        "name = \"test\"\nblocks = 2\n[host]\ncpus = \"shared\"\n{}{}[workload.oltp]\ntests = [\"point-select\"]\n\
         table_size = 100\nconnections = [8]\ntime = \"1s\"\nsettle = {{ by = \"none\" }}\nload_connections = 1\n\
         create_secondary = false\nverify = \"off\"\n",
        variant("a"),
        variant("b")
    )
}

#[test]
fn operations_of_a_third_and_half_a_second_have_true_rates_in_a_window_of_one_second() {
    let desk = Desk::new();
    // In one second a connection gets two whole answers from `a`, and one or two from `b`.
    let servers = [slow(&desk, "a", "constant 340ms"), slow(&desk, "b", "constant 490ms")];
    desk.write("p.toml", &plan(&desk));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    for server in servers {
        server.signal(Signal::SIGINT);
        server.wait().expect_ok();
    }
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), Vec::<String>::new());
    let run = Run::open(&desk.run_dir()).unwrap();
    let selects = |step: &&StepRecord| step.name.starts_with("point-select");
    assert_eq!(run.cells.iter().flat_map(|cell| &cell.steps).filter(selects).count(), 4);
    let steps = &findings.workloads[0].steps;
    let step = steps.iter().find(|step| step.name.starts_with("point-select")).unwrap();
    for (name, cycle_seconds) in [("a", 0.34), ("b", 0.49)] {
        for run in &step.variant(name).unwrap().runs {
            // The server is sometimes late, but never early.
            let expected = 8.0 / cycle_seconds;
            assert!(
                run.rate <= expected * 1.001 && run.rate > expected * 0.8,
                "{name}: {} of {expected}",
                run.rate
            );
        }
    }
    let ratio = step.variant("b").unwrap().to_base.ratio.as_ref().unwrap().value;
    assert!((0.55..0.87).contains(&ratio), "{ratio} for 0.69");
}
