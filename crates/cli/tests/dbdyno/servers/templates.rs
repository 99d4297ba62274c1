//! Tests templates that are kept between runs. Each is made once, runs at the same time share it,
//! and an unfinished one is never used.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::servers::{MYSQL_8_0, POSTGRES_15, variant};
use crate::support::{Desk, faults, findings, wait_for};

/// Runs a plan with one small test on each server. Runs that begin in the same second need
/// different names.
fn command(desk: &Desk, name: &str) -> Command {
    let variants = variant("my", MYSQL_8_0, "") + &variant("pg", POSTGRES_15, "");
    let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 1000\nevents = 100\n";
    let plan = format!("{name}.toml");
    desk.write(&plan, &format!("name = \"{name}\"\n{variants}{workload}"));
    let mut command = desk.command(&["run", &plan, "--templates", "kept"]);
    // The option on the command line takes precedence over this variable.
    command.env("DBDYNO_TEMPLATES", desk.path("other"));
    command
}

/// Every entry in the templates folder, with the time at which its template was made.
fn kept(desk: &Desk) -> Vec<(PathBuf, std::time::SystemTime)> {
    let entries = std::fs::read_dir(desk.path("kept")).into_iter().flatten().flatten();
    let mut kept: Vec<_> = entries
        .map(|entry| {
            let about = std::fs::metadata(entry.path().join("template.json"));
            (entry.path(), about.and_then(|about| about.modified()).unwrap_or(std::time::UNIX_EPOCH))
        })
        .collect();
    kept.sort();
    kept
}

#[test]
#[ignore = "in cargo xtask test --all: makes data directories"]
fn runs_at_the_same_time_make_a_template_once_and_later_ones_copy_it() {
    let desk = Desk::new();
    std::thread::scope(|scope| {
        for name in ["one", "other"] {
            let desk = &desk;
            scope.spawn(move || desk.ended(&mut command(desk, name)).expect_ok().code);
        }
    });
    let made = kept(&desk);
    assert_eq!(made.len(), 2, "one for each server and nothing else: {made:?}");
    assert!(!desk.path("other").exists());
    desk.ended(&mut command(&desk, "later")).expect_ok();
    assert_eq!(kept(&desk), made);
    let runs = desk.run_dirs();
    assert_eq!(runs.len(), 3);
    for run in runs {
        let findings = findings(&run);
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
        assert!(!run.join("data").exists());
    }
}

#[test]
#[ignore = "in cargo xtask test --all: makes data directories"]
fn a_template_whose_maker_was_killed_is_not_used() {
    let desk = Desk::new();
    let mut running = desk.start(&mut command(&desk, "killed"));
    // MySQL has begun to write its files when an unfinished template is in the folder.
    wait_for("a server to be initialised", || {
        assert!(running.is_running(), "it was too quick: {}", running.said());
        let unfinished: Vec<_> =
            kept(&desk).into_iter().filter(|(_, made)| *made == std::time::UNIX_EPOCH).collect();
        (!unfinished.is_empty()).then_some(())
    });
    running.signal(Signal::SIGKILL);
    running.wait();
    desk.ended(&mut command(&desk, "next")).expect_ok();
    let kept = kept(&desk);
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept.iter().all(|(_, made)| *made != std::time::UNIX_EPOCH), "{kept:?}");
}

#[test]
fn a_folder_for_templates_that_cannot_be_made_is_refused_before_anything_runs() {
    let desk = Desk::new();
    desk.write("kept", "a file");
    let ended = desk.ended(&mut command(&desk, "p"));
    insta::assert_snapshot!(desk.refusal(&ended), @"exit 3: error: cannot make the folder for templates kept: File exists (os error 17); name another one with --templates or DBDYNO_TEMPLATES");
    assert!(desk.run_dirs().is_empty());
}
