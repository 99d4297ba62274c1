//! Tests `[host] rest`, a pause between two cells in which the machine is left alone.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_record::{Outcome, Run, RunEvent};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::commands::TWO_VARIANTS;
use crate::support::{Desk, wait_for};

fn resting_plan(rest: &str, blocks: u32) -> String {
    format!(
        "name = \"test\"\nblocks = {blocks}\n[host]\nrest = \"{rest}\"\n{TWO_VARIANTS}\n[workload.oltp]\n\
         tests = [\"point-select\"]\nconnections = [1]\nevents = 10\ntable_size = 50\nsettle_wait = \"0s\"\n"
    )
}

/// The cells and the rests between them, in the order in which they happened.
fn order(dir: &Path) -> String {
    let word = |event: &RunEvent| match event {
        RunEvent::CellStarted { .. } => Some("cell"),
        RunEvent::Rested { .. } => Some("rest"),
        _ => None,
    };
    Run::open(dir).unwrap().events.iter().filter_map(word).collect::<Vec<_>>().join(" ")
}

/// The length of each rest, and the run's elapsed time that was recorded with it.
fn rests(dir: &Path) -> Vec<(Duration, Duration)> {
    let rest = |event: &RunEvent| match event {
        RunEvent::Rested { duration_us, elapsed_us, .. } => {
            Some((Duration::from_micros(*duration_us), Duration::from_micros(*elapsed_us)))
        }
        _ => None,
    };
    Run::open(dir).unwrap().events.iter().filter_map(rest).collect()
}

#[test]
fn the_machine_rests_between_cells_and_not_before_the_first() {
    let desk = Desk::new();
    desk.write("p.toml", &resting_plan("1s", 2));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(order(&dir), "cell rest cell rest cell rest cell");
    let rests = rests(&dir);
    for (number, (length, elapsed)) in (1..).zip(&rests) {
        assert!(*length >= Duration::from_secs(1), "{rests:?}");
        assert!(*elapsed >= Duration::from_secs(number), "a rest is time of the run: {rests:?}");
        assert!(length <= elapsed, "{rests:?}");
    }
    let run = Run::open(&dir).unwrap();
    let deviations = &run.manifest.workloads[0].deviations;
    let rest = deviations.iter().find(|found| found.topic == "rest").map(|found| found.here.as_str());
    assert_eq!(rest, Some("1s between cells"));
}

#[test]
fn a_plan_counts_its_rests() {
    let desk = Desk::new();
    desk.write("p.toml", &resting_plan("20m", 3));
    let seconds = |rest: &str| {
        let ended = desk.dbdyno(&["plan", "p.toml", "--json", "--set", &format!("host.rest={rest}")]);
        let value: Value = serde_json::from_str(&ended.expect_ok().out).unwrap();
        [&value["duration_seconds"], &value["rest_seconds"]].map(|value| value.as_f64().unwrap())
    };
    let ([none, no_rest], [rested, rest]) = (seconds("0s"), seconds("20m"));
    assert_eq!((no_rest, rest), (0.0, 1200.0));
    assert!((rested - none - 5.0 * 1200.0).abs() < 0.001, "{none} {rested}");
    let reported = desk.dbdyno(&["plan", "p.toml"]).expect_ok().out.clone();
    assert!(reported.contains("\nrest: 20m between cells, counted in that time\n"), "{reported}");
    let reported = desk.dbdyno(&["plan", "p.toml", "--set", "host.rest=0s"]).expect_ok().out.clone();
    assert!(!reported.contains("rest: "), "{reported}");
    let resolved = desk.dbdyno(&["plan", "p.toml", "--resolved"]).expect_ok().out.clone();
    assert!(resolved.contains("rest = \"20m\""), "{resolved}");
}

#[test]
fn ctrl_c_ends_a_rest_and_the_resumed_run_begins_without_one() {
    const REST: Duration = Duration::from_secs(600);
    let desk = Desk::new();
    desk.write("p.toml", &resting_plan("10m", 1));
    let running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let events = dir.join("events.jsonl");
    wait_for("the end of the first cell", || {
        std::fs::read_to_string(&events).is_ok_and(|text| text.contains("cell_ended")).then_some(())
    });
    // After this delay the rest has usually begun.
    sleep(Duration::from_millis(300));
    let asked = Instant::now();
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    assert!(asked.elapsed() < REST, "it took {:?} of a rest of 10 minutes", asked.elapsed());
    let run = Run::open(&dir).unwrap();
    assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Interrupted, .. })));
    assert_eq!(order(&dir).matches("cell").count(), 1);
    desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]).expect_ok();
    assert_eq!(order(&dir).matches("cell").count(), 2);
    assert!(rests(&dir).iter().all(|(length, _)| *length < REST), "{:?}", rests(&dir));
}
