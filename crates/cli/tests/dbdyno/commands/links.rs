//! Tests of symbolic links in place of a run's files and folders. dbdyno must write and remove
//! nothing through them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::{Desk, wait_until_in_step};

/// Returns the directory of a run that was stopped in a step, and a file elsewhere that dbdyno must
/// not touch.
fn stopped(desk: &Desk) -> (PathBuf, PathBuf) {
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"3s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    let first = dbdyno_record::Run::open(&dir).unwrap().manifest.order[0].variant.clone();
    wait_until_in_step(&mut running, &dir, &format!("1/{first}/insert-benchmark/qr100"));
    running.signal(Signal::SIGINT);
    running.wait().expect_code(130);
    let precious = desk.write("theirs/precious", "years of work");
    (dir, precious)
}

fn files_below(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_run_goes_on_only_when_no_link_is_in_the_place_of_its_folders() {
    let desk = Desk::new();
    let (dir, precious) = stopped(&desk);
    let theirs = precious.parent().unwrap();
    let resume = || desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    for name in ["aside", "data"] {
        symlink(theirs, dir.join(name)).unwrap();
        let ended = resume();
        ended.expect_code(3);
        let link = format!("error: {} is a symbolic link, ", dir.join(name).display());
        assert!(ended.err.contains(&link) && ended.err.contains("remove the link"), "{}", ended.err);
        assert_eq!(files_below(theirs), 1, "something was written through {name}");
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    std::fs::rename(dir.join("cells"), desk.path("cells")).unwrap();
    symlink(desk.path("cells"), dir.join("cells")).unwrap();
    let before = files_below(&desk.path("cells/1"));
    resume().expect_code(3);
    assert_eq!(files_below(&desk.path("cells/1")), before);
    std::fs::remove_file(dir.join("cells")).unwrap();
    std::fs::rename(desk.path("cells"), dir.join("cells")).unwrap();

    // The report replaces the link.
    let report = dir.join("report.html");
    std::fs::remove_file(&report).unwrap();
    symlink(&precious, &report).unwrap();
    resume().expect_ok();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "years of work");
    assert!(report.symlink_metadata().unwrap().is_file());
    assert!(std::fs::read_to_string(&report).unwrap().contains("</html>"));
}

#[test]
fn folders_that_the_user_names_may_be_links() {
    let desk = Desk::new();
    for name in ["disk-of-runs", "disk-of-data"] {
        std::fs::create_dir(desk.path(name)).unwrap();
    }
    symlink(desk.path("disk-of-runs"), desk.path("runs")).unwrap();
    symlink(desk.path("disk-of-data"), desk.path("data")).unwrap();
    desk.write("p.toml", &(plan(TWO_VARIANTS, "read_write_time = \"1s\"") + "[host]\ndata_dir = \"data\"\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    assert_eq!(files_below(&desk.path("disk-of-data")), 0, "data are left");
}
