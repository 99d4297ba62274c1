//! Someone changes a row in the middle of a step: the content checks must notice.

use dbdyno_analyse::Validity;
use dbdyno_drivers::mysql::Options;
use dbdyno_record::{Outcome, Run};

use crate::support::{Desk, findings, wait_until_in_step};
use crate::watch::{ask, server_of, socket_of};
use crate::{MARIADB_10_11, small_plan, variant};

/// Runs a plan, sends `sql` in the middle of qr100, and returns why qr100 and qp100 are invalid.
fn reasons_after(sql: &str) -> Vec<String> {
    let desk = Desk::new();
    desk.write("p.toml", &small_plan(&variant("a", MARIADB_10_11, ""), "read_write_time = \"3s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/a/insert-benchmark/qr100");
    let socket = socket_of(server_of(&dir, "a").pid.unwrap());
    ask(&Options::socket(socket, "root").with_database("ib"), &[sql]);
    let ended = running.wait();
    ended.expect_ok();
    assert!(
        ended.err.lines().any(|line| line.contains("qr100") && line.contains("INVALID")),
        "{}",
        ended.err
    );

    let run = Run::open(&dir).unwrap();
    assert_eq!(run.cells[0].outcome(), Some(Outcome::Completed), "the run goes on");
    let mut reasons = Vec::new();
    for step in &findings(&dir).workloads[0].steps {
        match &step.variants[0].runs[0].validity {
            Validity::Valid => assert!(step.name.starts_with('l'), "{} is valid", step.name),
            Validity::Invalid { reasons: found } => {
                reasons.extend(found.iter().map(dbdyno_report::notice_text))
            }
            other => panic!("{}: {other:?}", step.name),
        }
    }
    assert!(ended.out.contains("invalid"), "the summary does not say so:\n{}", ended.out);
    reasons
}

#[test]
fn a_changed_row_makes_its_step_invalid_and_names_the_column() {
    let reasons = reasons_after("UPDATE pi2 SET price = price + 1000000 ORDER BY transactionid DESC LIMIT 1");
    assert!(reasons.iter().all(|reason| reason.starts_with("table pi2: sum(price) is ")), "{reasons:?}");
    assert!(reasons.iter().all(|reason| !reason.contains("rows is")), "{reasons:?}");
}

#[test]
fn a_deleted_row_makes_its_step_invalid_and_names_the_count() {
    let reasons = reasons_after("DELETE FROM pi1 ORDER BY transactionid DESC LIMIT 1");
    assert!(reasons.iter().all(|reason| reason.starts_with("table pi1: rows is ")), "{reasons:?}");
}
