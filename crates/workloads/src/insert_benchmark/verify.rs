//! Compares a table with what the client did to it: row count, column sums, ids.

use std::time::Instant;

use dbdyno_drivers::{AnySession, Session};
use dbdyno_record::{Check, CheckPart};

use crate::Error;
use crate::insert_benchmark::history::{History, TableHistory};
use crate::insert_benchmark::rows::RowSource;
use crate::insert_benchmark::{Setup, sql};

/// What must be in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    rows: i128,
    cashregisterid: i128,
    customerid: i128,
    productid: i128,
    price: i128,
}

/// Checks every client's table.
pub(crate) async fn verify(
    setup: &Setup,
    history: &History,
    session: &mut AnySession,
) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    for client in 1..=setup.options.clients {
        let table = Setup::table(client);
        let began = Instant::now();
        let work = format!("checking table {table}");
        let cells = session.rows(&sql::sums(&table)).await.map_err(Error::during(work.clone()))?;
        let actual: Option<Vec<i128>> = cells
            .first()
            .and_then(|row| row.iter().map(|cell| cell.as_deref().map_or(Ok(0), str::parse).ok()).collect());
        let Some(actual) = actual.filter(|values| values.len() == 8) else {
            return Err(Error::Answer { work, answer: format!("{cells:?}") });
        };
        let of_table = history.of(client);
        checks.push(Check {
            table,
            parts: parts(setup, client, of_table, &actual),
            duration_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(0),
        });
    }
    Ok(checks)
}

/// Everything that is certain after what happened to the table.
fn parts(setup: &Setup, client: u32, table: &TableHistory, actual: &[i128]) -> Vec<CheckPart> {
    if table.strays {
        let expected = i128::from(table.rows_inserted()) - i128::from(table.deleted);
        return vec![part("rows", expected, actual[0])];
    }
    let mut parts = content_parts(&expected(setup, client, table), actual);
    if setup.context.owned && !table.gaps {
        let sets_first = setup.context.endpoint.capabilities.sets_next_key;
        let first_id = if sets_first { setup.options.first_id } else { 1 };
        parts.extend(id_parts(first_id, table.rows_inserted(), table.deleted, actual));
    }
    parts
}

fn part(name: &str, expected: i128, actual: i128) -> CheckPart {
    CheckPart { name: name.to_owned(), expected, actual }
}

fn content_parts(expected: &Sums, actual: &[i128]) -> Vec<CheckPart> {
    vec![
        part("rows", expected.rows, actual[0]),
        part("sum(cashregisterid)", expected.cashregisterid, actual[1]),
        part("sum(customerid)", expected.customerid, actual[2]),
        part("sum(productid)", expected.productid, actual[3]),
        part("sum(price)", expected.price, actual[4]),
    ]
}

/// Ids are given out without gaps by a database that nobody else uses: they are known exactly.
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

/// Makes all rows again and sums those that were not deleted: deletes take the oldest rows first.
fn expected(setup: &Setup, client: u32, history: &TableHistory) -> Sums {
    let mut sums = Sums::default();
    let mut deleted = history.deleted;
    for inserted in &history.inserted {
        if deleted >= inserted.rows() {
            deleted -= inserted.rows();
            continue;
        }
        let source = RowSource::new(&setup.options, setup.context.seed, inserted.step, client);
        for number in 0..inserted.statements {
            if inserted.failed.binary_search(&number).is_ok() {
                continue;
            }
            let rows = u64::from(inserted.rows_per_statement);
            let gone = deleted.min(rows);
            deleted -= gone;
            for row in gone..rows {
                let numbers = source.numbers(number, row as u32);
                sums.rows += 1;
                sums.cashregisterid += i128::from(numbers.cashregisterid);
                sums.customerid += i128::from(numbers.customerid);
                sums.productid += i128::from(numbers.productid);
                sums.price += i128::from(numbers.price);
            }
        }
    }
    sums
}
