//! Tests of a disk that fills up in the middle of a run. The disk is a small filesystem in its own
//! mount namespace.

use std::process::Command;

use dbdyno_record::{Outcome, Run};

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::{Desk, Ended, faults_but_rates, findings};

/// Shell code that fills the small filesystem once the first second of a read-write step is
/// recorded.
const FILL_IN_MID_STEP: &str = "
(
    until [ -s $(echo $RUNS/*/cells/1/*/insert-benchmark/qr100/intervals.jsonl | cut -d' ' -f1) ]; do sleep 0.05; done
    dd if=/dev/zero of=small/filler bs=64k 2>/dev/null
) &
";

/// Runs `script` with a filesystem of 100 MB mounted at the folder `small`.
fn in_small_filesystem(desk: &Desk, script: &str) -> Ended {
    std::fs::create_dir(desk.path("small")).unwrap();
    let script = format!("set -e; mount -t tmpfs -o size=100m small small; set +e\n{script}");
    let mut command = namespace();
    command.args(["sh", "-c", &script]).env("DBDYNO", env!("CARGO_BIN_EXE_dbdyno"));
    desk.prepare(&mut command);
    desk.ended(&mut command)
}

/// Returns an `unshare` command that works on this machine: with user namespaces for any user, or
/// without them for root.
fn namespace() -> Command {
    let with = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(arguments);
        command
    };
    let works = |mut command: Command| {
        command
            .args(["mount", "-t", "tmpfs", "x", "/mnt"])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    for arguments in [&["--user", "--map-root-user", "--mount"][..], &["--mount"]] {
        if works(with(arguments)) {
            return with(arguments);
        }
    }
    panic!(
        "a full disk needs a filesystem of its own: run as root, or allow user namespaces (unshare --user --mount)"
    );
}

#[test]
fn a_full_disk_under_the_data_fails_the_cell_with_a_clear_sentence() {
    let desk = Desk::new();
    // Inserts may first use space that the log already has, so the step is long enough for them to
    // need more.
    let text = plan(TWO_VARIANTS, "read_write_time = \"600s\"");
    desk.write("p.toml", &format!("{text}[host]\ndata_dir = \"small\"\n"));
    let script = format!("RUNS=runs\n{FILL_IN_MID_STEP}\n$DBDYNO run p.toml\ncode=$?; wait; exit $code");
    let ended = in_small_filesystem(&desk, &script);
    ended.expect_code(4);
    let run = Run::open(&desk.run_dir()).unwrap();
    let first = &run.cells[0];
    assert_eq!(first.outcome(), Some(Outcome::Failed));
    let steps: Vec<_> = first.steps.iter().map(|step| (step.name.as_str(), step.outcome())).collect();
    assert_eq!(steps.last(), Some(&("qr100", Some(Outcome::Failed))), "{}", ended.err);
    let error = ended.err.lines().find(|line| line.starts_with("error: block 1")).unwrap();
    assert!(error.contains("qr100") && error.contains("disk is full"), "{error}");
    assert!(ended.out.contains("failed"), "{}", ended.out);
}

#[test]
#[ignore = "in cargo xtask test --all: a full disk, half a minute"]
fn a_full_disk_under_the_records_stops_the_run_which_goes_on_when_there_is_space() {
    let desk = Desk::new();
    let text = plan(TWO_VARIANTS, "read_write_time = \"3s\"");
    desk.write("p.toml", &format!("{text}[host]\ndata_dir = \"data\"\n"));
    let script = format!(
        "RUNS=small\n{FILL_IN_MID_STEP}\n$DBDYNO run p.toml --out small; echo exit $?; wait\n\
         mkdir runs; cp -a small/2* runs/; mv runs full\n\
         $DBDYNO report small/2* --format json >full.json; echo report $?\n\
         rm small/filler; $DBDYNO run --resume small/2* >resumed.out; echo resumed $?\n\
         mkdir runs; cp -a small/2* runs/"
    );
    let ended = in_small_filesystem(&desk, &script);
    assert_eq!(ended.out, "exit 3\nreport 0\nresumed 0\n", "{}", ended.err);
    let run = desk.run_dir();
    let name = run.file_name().unwrap().to_str().unwrap();
    let error = ended.err.lines().find(|line| line.starts_with("error:")).unwrap();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(
        error.ends_with(&format!(
            "results so far: small/{name}; to continue: dbdyno run --resume small/{name}"
        )),
        "{error}"
    );
    let before = findings(&desk.path("full").join(name));
    let finished = before.workloads[0]
        .steps
        .iter()
        .filter(|step| step.variants.iter().any(|variant| variant.rate.is_some()));
    assert!(finished.count() >= 4, "steps that had ended are lost");
    let after = findings(&run);
    assert_eq!((after.run.cells_completed, faults_but_rates(&after)), (2, Vec::new()));
}
