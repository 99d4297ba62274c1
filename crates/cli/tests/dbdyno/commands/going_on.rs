//! Tests the lists and reports of a run that is still going on.

use dbdyno_record::Run;
use nix::sys::signal::Signal;

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::{Desk, findings, texts, wait_until_in_step};

#[test]
fn a_run_that_is_going_on_is_distinguished_from_one_that_was_stopped() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"20s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let first = Run::open(&dir).unwrap().manifest.order[0].clone();
    wait_until_in_step(&mut running, &dir, &format!("1/{}/insert-benchmark/qr100", first.variant));
    let listed = || desk.golden(&desk.dbdyno(&["list", "runs"]).out);
    assert_eq!(listed(), "  runs/RUN  0 of 2 cells, going on\n");
    let warnings = texts(&findings(&dir)).join("\n");
    let reported = format!("The run is going on: 0 of 2 cells have ended, {first} is under way.");
    assert!(warnings.contains(&reported) && !warnings.contains("did not"), "{warnings}");
    let report = desk.dbdyno(&["report", dir.to_str().unwrap()]);
    let begin = "! The run is going on: 0 of 2 cells have ended, ";
    assert!(report.expect_ok().out.contains(begin), "{}", report.out);
    let history = desk.dbdyno(&["history", "runs"]);
    assert!(history.err.contains("two runs or more, not 0 (and 1 still going on"), "{}", history.err);
    assert!(running.is_running(), "{}", running.said());
    running.signal(Signal::SIGKILL);
    running.wait();
    assert_eq!(listed(), "  runs/RUN  0 of 2 cells, not ended; continue with --resume\n");
    let warnings = texts(&findings(&dir)).join("\n");
    let reported = format!("Cell did not end: {first}; dbdyno was stopped in it.");
    assert!(warnings.contains(&reported) && !warnings.contains("going on"), "{warnings}");
}
