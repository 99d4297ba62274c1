//! Statements of a step with values for their parameters, for a server to explain.

use crate::Explained;
use crate::insert_benchmark::InsertSetup;
use crate::insert_benchmark::history::History;
use crate::insert_benchmark::sql::{self, RANGES};
use crate::insert_benchmark::steps::{ClientPart, InsertStepKind};

/// Returns the queries of the step and its DELETE, on the first client's table. Queries begin in the
/// middle of what they draw from, and ids lie in the middle of what is in the table by now.
pub(crate) fn explained(step: &ClientPart, setup: &InsertSetup, history: &History) -> Vec<Explained> {
    const CLIENT: u32 = 1;
    let (table, options) = (InsertSetup::table(CLIENT), &setup.options);
    let capabilities = &setup.context.database_server.capabilities;
    let after_last = options.first_id + history.of(CLIENT).rows_inserted();
    let least = after_last.saturating_sub(history.in_table(CLIENT)).max(options.first_id);
    let middle = u64::midpoint(least, after_last);
    let explained =
        |statement: &str, sql: String| Explained { statement: statement.to_owned(), sql, is_executed: false };
    let mut found = Vec::new();
    if step.kind == InsertStepKind::Range {
        let middles = [options.products, options.cashregisters, options.max_price].map(|most| most / 2);
        let kinds = RANGES.iter().zip(middles).take(options.secondary_indexes.clamp(1, 3) as usize);
        found.extend(kinds.map(|(kind, middle)| {
            let parts = sql::range_parts(&table, kind, capabilities, options.rows_per_query);
            explained(&format!("range-{}", kind.suffix), parts.join(&middle.to_string()))
        }));
    }
    if step.kind == InsertStepKind::Point {
        let ids: Vec<String> =
            (0..u64::from(options.points_per_query)).map(|at| (middle + at).to_string()).collect();
        found.push(explained("point", format!("{}{})", sql::point_prefix(&table), ids.join(","))));
    }
    if step.deletes {
        let [head, between, tail] = sql::delete_parts(&table, capabilities);
        found.push(explained("delete", format!("{head}{least}{between}{}{tail}", step.rows_per_commit)));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::insert_benchmark::options::InsertBenchmarkOptions;
    use dbdyno_db::{DatabaseAddress, DatabaseServer, null, postgres};

    use super::*;
    use crate::Context;
    use crate::insert_benchmark::Prepared;
    use crate::insert_benchmark::history::Inserted;
    use crate::step::StepOptions;

    #[test]
    fn queries_and_deletes_are_explained_in_the_middle_of_what_is_there() {
        let database_server = DatabaseServer {
            address: DatabaseAddress::Null(null::Options::default()),
            capabilities: postgres::capabilities(),
        };
        let options = InsertBenchmarkOptions { points_per_query: 3, rates: vec![100], ..InsertBenchmarkOptions::default() };
        let steps = options.list();
        let setup = InsertSetup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
            prepared: Prepared::default(),
        };
        let mut history = History::new(1);
        let table = &mut history.clients_mut()[0];
        table.inserted.push(Inserted {
            step: 0,
            statements: 30,
            rows_per_statement: 100,
            failed: Vec::new(),
            unlisted: 0,
        });
        table.deleted = 1_000;
        let of = |name: &str| {
            let step = steps.iter().find(|step| step.name == name).unwrap();
            let lines = explained(&step.kind, &setup, &history);
            lines
                .iter()
                .map(|line| format!("{}: {}", line.statement, line.sql))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(of("l.i0"), "");
        insta::assert_snapshot!([of("l.i1"), of("qr100"), of("qp100")].join("\n"), @r"
        delete: DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)
        range-marketsegment: SELECT productid, customerid, price FROM pi1 WHERE productid >= 5000 ORDER BY productid, customerid, price LIMIT 10
        range-registersegment: SELECT cashregisterid, customerid, price FROM pi1 WHERE cashregisterid > 500 ORDER BY cashregisterid, customerid, price LIMIT 10
        range-pdc: SELECT price, dateandtime, customerid FROM pi1 WHERE price >= 250 ORDER BY price, dateandtime, customerid LIMIT 10
        delete: DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)
        point: SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN (2001,2002,2003)
        delete: DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE transactionid >= 1001 ORDER BY transactionid ASC LIMIT 50)
        ");
    }
}
