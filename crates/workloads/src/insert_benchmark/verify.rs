//! Checks that each table holds what its client's statements must have left: the number of rows,
//! the sums of columns, and the ids.

use std::time::Instant;

use dbdyno_db::{AnySession, KeySource};
use dbdyno_record::{Check, CheckPart};

use crate::Result;
use crate::checks::{check, numbers, part};
use crate::insert_benchmark::history::{Deletes, History, TableHistory};
use crate::insert_benchmark::rows::{InsertRowSource, Numbers};
use crate::insert_benchmark::{InsertSetup, sql};

/// What is compared in every table, in the order of [`sql::sums`].
const SUMMED: [&str; 5] = ["rows", "sum(cashregisterid)", "sum(customerid)", "sum(productid)", "sum(price)"];

/// Checks every client's table. If nothing is certain about a table's content, its check has no parts.
pub(crate) async fn verify(
    setup: &InsertSetup,
    history: &History,
    session: &mut AnySession,
) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for client in 1..=setup.options.clients {
        let table = InsertSetup::table(client);
        if history.of(client).unknown().is_some() {
            checks.push(Check { table, parts: Vec::new(), duration_us: 0 });
            continue;
        }
        let began = Instant::now();
        let work = format!("checking table {table}");
        let actual: [i128; 8] = numbers(session, &sql::sums(&table), work).await?;
        let of_table = history.of(client);
        let mut parts = parts(setup, client, of_table, &actual);
        parts.extend(delete_part(of_table));
        checks.push(check(table, parts, began));
    }
    Ok(checks)
}

/// Compares everything about the table that is certain after its history.
fn parts(setup: &InsertSetup, client: u32, table: &TableHistory, actual: &[i128]) -> Vec<CheckPart> {
    if table.strays {
        let expected = i128::from(table.rows_inserted()) - i128::from(table.deleted);
        return vec![part("rows", expected, actual[0])];
    }
    let mut parts = content_parts(&expected(setup, client, table), actual);
    let capabilities = &setup.context.database_server.capabilities;
    if setup.context.owned && capabilities.contiguous_keys && !table.gaps {
        let sets_first = capabilities.key_source != KeySource::Table;
        let first_id = if sets_first { setup.options.first_id } else { 1 };
        parts.extend(id_parts(first_id, table.rows_inserted(), table.deleted, actual));
    }
    parts
}

/// Compares the number of rows that the DELETEs took with the number that they should have taken.
/// This needs a comparison of its own, because the expected number of remaining rows is computed
/// from what the DELETEs reported.
fn delete_part(table: &TableHistory) -> Option<CheckPart> {
    let Deletes { due, done } = table.deletes;
    (due > 0).then(|| part("rows deleted", due.into(), done.into()))
}

fn content_parts(expected: &[i128; 5], actual: &[i128]) -> Vec<CheckPart> {
    let sums = SUMMED.iter().zip(expected).zip(actual);
    sums.map(|((name, expected), actual)| part(name, *expected, *actual)).collect()
}

/// Compares the ids. They are known exactly, because a database that no one else uses gives them
/// out without gaps.
fn id_parts(first_id: u64, inserted: u64, deleted: u64, actual: &[i128]) -> Vec<CheckPart> {
    let (first, last) = if inserted == deleted {
        (0, 0)
    } else {
        (i128::from(first_id) + i128::from(deleted), i128::from(first_id) + i128::from(inserted) - 1)
    };
    let rows = i128::from(inserted) - i128::from(deleted);
    vec![
        part("min(transactionid)", first, actual[5]),
        part("max(transactionid)", last, actual[6]),
        part("sum(transactionid)", (first + last) * rows / 2, actual[7]),
    ]
}

/// Returns the expected sums. It makes all rows again and adds up those that were not deleted,
/// because deletes take the oldest rows first.
fn expected(setup: &InsertSetup, client: u32, history: &TableHistory) -> [i128; 5] {
    let mut sums = [0; 5];
    let mut deleted = history.deleted;
    for inserted in &history.inserted {
        if deleted >= inserted.rows() {
            deleted -= inserted.rows();
            continue;
        }
        let source = InsertRowSource::new(&setup.options, setup.context.seed, inserted.step, client);
        for number in 0..inserted.statements {
            if inserted.failed.binary_search(&number).is_ok() {
                continue;
            }
            let rows = u64::from(inserted.rows_per_statement);
            let gone = deleted.min(rows);
            deleted -= gone;
            for row in gone..rows {
                let Numbers { cashregisterid, customerid, productid, price } =
                    source.numbers(number, row as u32);
                let values = [1, cashregisterid, customerid, productid, price];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += i128::from(value));
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::insert_benchmark::options::{InsertBenchmarkOptions, RowsPerCommit};
    use dbdyno_db::{DatabaseAddress, DatabaseServer, null};
    use dbdyno_loadgen::{StepEnd, TaskEnd};
    use dbdyno_record::Outcome;

    use super::*;
    use crate::Context;
    use crate::insert_benchmark::Prepared;
    use crate::insert_benchmark::steps::ClientPart;
    use crate::insert_benchmark::tasks::Client;
    use crate::insert_benchmark::tasks::InsertBuilder;
    use crate::step::StepOptions;

    const CLIENT: u32 = 2;

    fn setup(options: InsertBenchmarkOptions) -> InsertSetup {
        let address = DatabaseAddress::Null(null::Options::default());
        let database_server = DatabaseServer { address, capabilities: null::capabilities() };
        InsertSetup {
            options,
            context: Context { database_server, owned: true, seed: 3, draws: 3, device: None },
            prepared: Prepared::default(),
        }
    }

    fn small() -> InsertBenchmarkOptions {
        let rows_per_commit = RowsPerCommit { load: 10, write_1: 4, write_2: 3, read_write: 5 };
        InsertBenchmarkOptions {
            clients: 2,
            load_rows: 60,
            write_rows: 50,
            rows_per_commit,
            ..InsertBenchmarkOptions::default()
        }
    }

    /// Returns the end of a task of [`CLIENT`] that sent all statements of `step`, of which those
    /// with the numbers `failed` failed.
    fn task(step: &ClientPart, kind: usize, failed: &[u64]) -> TaskEnd {
        let done = step.inserts - failed.len() as u64;
        TaskEnd {
            client: CLIENT,
            kind,
            started: step.inserts,
            done,
            rows: done * u64::from(step.rows_per_commit),
            retries: 0,
            failed_numbers: failed.to_vec(),
            unknown_numbers: Vec::new(),
            reconnects: 0,
            complete: true,
            unanswered: false,
        }
    }

    fn add(history: &mut History, options: &InsertBenchmarkOptions, index: usize, tasks: Vec<TaskEnd>) {
        let end = StepEnd { outcome: Outcome::Completed, message: None, at_us: 1, tasks };
        history.add(index, &options.list()[index].kind, &end);
    }

    /// Returns the history after load, index and l.i1, with `failed` INSERTs of l.i1 and `deleted` rows
    /// gone.
    fn history(options: &InsertBenchmarkOptions, failed: &[u64], deleted: u64) -> History {
        let steps = options.list();
        let mut history = History::new(options.clients);
        add(&mut history, options, 0, vec![task(&steps[0].kind, 0, &[])]);
        add(&mut history, options, 1, vec![TaskEnd { started: 1, ..task(&steps[1].kind, 0, &[]) }]);
        add(&mut history, options, 2, vec![task(&steps[2].kind, 0, failed)]);
        history.clients_mut()[CLIENT as usize - 1].deleted = deleted;
        history
    }

    /// Returns the rows of the text statements that were answered, oldest first: cashregisterid,
    /// customerid, productid, price.
    fn rows_by_text(setup: InsertSetup, failed: &[u64]) -> Vec<[i128; 4]> {
        let setup = Arc::new(setup);
        let steps = setup.options.list();
        let mut rows = Vec::new();
        for (step, plan) in steps.iter().enumerate().take(3) {
            let rows_before = steps[..step].iter().map(|step| step.kind.rows()).sum();
            let mut builder = InsertBuilder::new(&Client {
                setup: Arc::clone(&setup),
                number: CLIENT,
                step,
                rows_before,
                rows_in_table: 0,
                rows_per_commit: plan.kind.rows_per_commit,
            });
            let answered = (0..plan.kind.inserts).filter(|number| step != 2 || !failed.contains(number));
            for number in answered {
                let mut sql = Vec::new();
                builder.text(number, &mut sql);
                let sql = String::from_utf8(sql).unwrap();
                let (_, tuples) = sql.split_once(" VALUES (").unwrap();
                rows.extend(tuples.split("),(").map(|tuple| {
                    let cells: Vec<&str> = tuple.split(',').collect();
                    std::array::from_fn(|column| cells[column + 1].trim_end_matches(".00").parse().unwrap())
                }));
            }
        }
        rows
    }

    /// Returns the sums of `rows`, in the order of [`content_parts`].
    fn sums_of(rows: &[[i128; 4]]) -> Vec<i128> {
        let sum = |column: usize| rows.iter().map(|row| row[column]).sum();
        vec![rows.len() as i128, sum(0), sum(1), sum(2), sum(3)]
    }

    fn expected_values(setup: &InsertSetup, history: &History) -> Vec<i128> {
        let expected = expected(setup, CLIENT, history.of(CLIENT));
        content_parts(&expected, &[0; 8]).into_iter().map(|part| part.expected).collect()
    }

    #[test]
    fn the_oldest_rows_are_left_out_even_in_the_middle_of_a_statement_and_across_steps() {
        let rows = rows_by_text(setup(small()), &[]);
        assert_eq!(rows.len(), 60 + 10 + 40);
        for deleted in [0, 1, 9, 10, 13, 60, 65, 70, 71, 74, 109, 110] {
            let values = expected_values(&setup(small()), &history(&small(), &[], deleted));
            assert_eq!(values, sums_of(&rows[deleted as usize..]), "{deleted} deleted");
        }
    }

    #[test]
    fn failed_statements_are_left_out_and_do_not_count_as_deleted() {
        let failed = [0, 3, 9];
        let rows = rows_by_text(setup(small()), &failed);
        assert_eq!(rows.len(), 60 + 10 + 28);
        for deleted in [0, 65, 70, 72, 75, 98] {
            let values = expected_values(&setup(small()), &history(&small(), &failed, deleted));
            assert_eq!(values, sums_of(&rows[deleted as usize..]), "{deleted} deleted");
        }
    }

    #[test]
    fn sums_beyond_31_and_63_bits_are_exact() {
        let wide = InsertBenchmarkOptions { customers: i32::MAX as u32, ..small() };
        let values = expected_values(&setup(wide.clone()), &history(&wide, &[], 0));
        assert!(values[2] > 1 << 32, "{values:?}");
        assert_eq!(values, sums_of(&rows_by_text(setup(wide), &[])));
        // The table has 10^9 rows, and its ids begin with the highest one that a plan may name.
        let first = 1_i128 << 62;
        let rows = 1_000_000_000;
        let last = first + rows - 1;
        let sum = (first + last) * rows / 2;
        let parts = id_parts(1 << 62, 1_000_000_000, 0, &[0, 0, 0, 0, 0, first, last, sum]);
        assert!(parts.iter().all(|part| part.expected == part.actual), "{parts:?}");
    }

    #[test]
    fn ids_beyond_31_bits_are_known_exactly() {
        let parts = id_parts(3_000_000_000, 110, 13, &[0; 8]);
        let expected: Vec<(String, i128)> =
            parts.into_iter().map(|part| (part.name, part.expected)).collect();
        let ids = 3_000_000_013_i128..=3_000_000_109;
        let sum = ids.clone().sum();
        let named = |name: &str, value| (format!("{name}(transactionid)"), value);
        assert_eq!(expected, [named("min", *ids.start()), named("max", *ids.end()), named("sum", sum)]);
    }

    #[test]
    fn an_empty_table_has_no_ids() {
        let parts = id_parts(3_000_000_000, 110, 110, &[0; 8]);
        assert!(parts.iter().all(|part| part.expected == 0), "{parts:?}");
    }

    fn names(setup: &InsertSetup, history: &History) -> Vec<String> {
        parts(setup, CLIENT, history.of(CLIENT), &[0; 8]).into_iter().map(|part| part.name).collect()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_table_with_a_statement_of_unknown_outcome_is_not_checked_at_all() {
        let (setup, options) = (setup(small()), small());
        let mut history = history(&options, &[], 0);
        let step = &options.list()[3].kind;
        let lost = TaskEnd { unknown_numbers: vec![2], reconnects: 1, ..task(step, 0, &[2]) };
        add(&mut history, &options, 3, vec![lost]);
        let mut session = setup.context.database_server.connect().await.unwrap();
        let checks = verify(&setup, &history, &mut session).await.unwrap_err();
        // Only the other client's table is read, and the null driver has no tables.
        assert!(checks.to_string().contains("pi1"), "{checks}");
        assert!(history.of(CLIENT).unknown().is_some() && history.of(1).unknown().is_none());
    }

    #[test]
    fn what_is_not_certain_is_not_checked() {
        let (setup, options) = (setup(small()), small());
        let steps = options.list();
        let after = |insert: TaskEnd, delete: TaskEnd| {
            let mut history = history(&options, &[], 0);
            add(&mut history, &options, 3, vec![insert, delete]);
            names(&setup, &history)
        };
        let (insert, delete) = (task(&steps[3].kind, 0, &[]), task(&steps[3].kind, 1, &[]));
        assert_eq!(after(insert.clone(), delete.clone()).len(), 8);
        // A deadlock's victim was rolled back and sent again, so its first ids are lost.
        assert_eq!(after(TaskEnd { retries: 1, ..insert.clone() }, delete.clone()).len(), 5);
        assert_eq!(after(task(&steps[3].kind, 0, &[1]), delete.clone()).len(), 5);
        // The failed DELETE left its rows, but the cursor advanced beyond them.
        assert_eq!(after(insert.clone(), task(&steps[3].kind, 1, &[1])), ["rows"]);
        assert_eq!(after(insert, TaskEnd { rows: delete.rows - 1, ..delete }), ["rows"]);
    }
}
