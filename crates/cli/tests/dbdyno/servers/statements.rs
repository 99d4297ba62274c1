//! Tests prepared statements by the server's counters. Each session prepares its own statements
//! once and leaves none behind.

use dbdyno_record::{CellRecord, Run};

use crate::servers::{MARIADB_10_11, MYSQL_5_5, MYSQL_8_0, small_plan, variant};
use crate::support::{Desk, faults, findings};

/// The number of statements that all sessions prepare in each step. Each of the two clients
/// prepares one to insert and, from l.i1 on, one to delete. In read-write steps it also prepares
/// three or one to query.
const STATEMENTS: [(&str, i64); 6] =
    [("l.i0", 2), ("l.x", 0), ("l.i1", 4), ("l.i2", 4), ("qr100", 10), ("qp100", 6)];

fn statements_are_prepared_once_and_end_with_their_step(cell: &CellRecord) {
    let (mut prepared_before, mut of_last_step) = (0, 0);
    for (step, (name, statements)) in cell.steps.iter().zip(STATEMENTS) {
        assert_eq!(step.name, name);
        let status = &step.counters["status"];
        let counter = |at: usize, name: &str| status.value(name, at).unwrap();
        // The first sample is taken when all sessions are ready, so it counts their statements. The
        // sessions of the previous step have logged out, but the server may not have noticed that
        // yet. The statements of all earlier steps are gone.
        let held = counter(0, "Prepared_stmt_count");
        assert!((statements..=statements + of_last_step).contains(&held), "{name}: {held}, not {statements}");
        of_last_step = statements;
        prepared_before += statements;
        for at in [0, status.len() - 1] {
            assert_eq!(counter(at, "Com_stmt_prepare"), prepared_before, "{name}, sample {at}");
        }
        let aborted = counter(status.len() - 1, "Aborted_clients");
        assert_eq!(aborted, 0, "{name}: sessions say goodbye");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn each_session_prepares_its_statements_once_and_leaves_none_behind() {
    let desk = Desk::new();
    let variants =
        variant("my", MYSQL_8_0, "") + &variant("old", MYSQL_5_5, "") + &variant("maria", MARIADB_10_11, "");
    desk.write("p.toml", &small_plan(&variants, "protocol = \"prepared\"\nread_write_time = \"2s\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(faults(&findings(&dir)), [""; 0]);
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.cells.len(), 3);
    run.cells.iter().for_each(statements_are_prepared_once_and_end_with_their_step);
}
