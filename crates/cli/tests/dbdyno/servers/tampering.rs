//! Tests that the content checks notice a row that someone changes in the middle of a step.

use dbdyno_analyse::Validity;
use dbdyno_record::{Outcome, Run};

use crate::servers::shared::{self, MARIADB};
use crate::servers::small_plan;
use crate::servers::watch::ask;
use crate::support::{Desk, findings, wait_until_in_step};

/// Runs a plan, sends `sql` in the middle of qr100, and returns why qr100 and qp100 are invalid.
fn reasons_after(sql: &str) -> Vec<String> {
    let (desk, database) = (Desk::new(), &*shared::database());
    let address = shared::address(&MARIADB, "root", database);
    let variant = format!("[[variant]]\nname = \"a\"\naddress = \"{address}\"\n");
    desk.write("p.toml", &small_plan(&variant, "read_write_time = \"3s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/a/insert-benchmark/qr100");
    ask(&MARIADB.options(Some(database)), &[sql]);
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
                reasons.extend(found.iter().map(dbdyno_report::warning_text))
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
