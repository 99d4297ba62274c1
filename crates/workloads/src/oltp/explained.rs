//! Statements of a test with values for their parameters, for a server to explain.

use dbdyno_db::Param;

use crate::Explained;
use crate::oltp::OltpSetup;
use crate::oltp::mix::StatementSlot;
use crate::oltp::sql::{self, OltpStatement};
use crate::oltp::text::Template;

/// Returns each statement that looks for rows, once, on the first table, in its order. The values are
/// the same for every server: ids and values of `k` from the middle of the table, where the skewed
/// distributions have most of theirs.
pub(crate) fn explained(setup: &OltpSetup, places: &[StatementSlot]) -> Vec<Explained> {
    let mut found: Vec<Explained> = Vec::new();
    for kind in places.iter().map(|place| place.kind) {
        let Some(values) = values(setup, kind) else { continue };
        let mut text = Vec::new();
        Template::new(&sql::statement_of(setup, kind, &OltpSetup::table(1), false)).write(&values, &mut text);
        let explained = Explained {
            statement: kind.name().to_owned(),
            sql: String::from_utf8_lossy(&text).into_owned(),
            is_executed: false,
        };
        if !found.contains(&explained) {
            found.push(explained);
        }
    }
    found
}

/// Returns values for the parameters, or `None` for statements that look for nothing.
fn values(setup: &OltpSetup, kind: OltpStatement) -> Option<Vec<Param>> {
    let rows = setup.options.table_size.max(1);
    let middle = rows.div_ceil(2);
    // Ids and `k` begin where the tables do.
    let skipped = setup.options.first_id.saturating_sub(1);
    let id =
        |id: u64| Param::Int(i64::try_from(id.clamp(1, rows).saturating_add(skipped)).unwrap_or(i64::MAX));
    let spread = |count: u32| (0..u64::from(count)).map(move |at| 1 + at * rows / u64::from(count.max(1)));
    let text = || Param::Text(b"0".to_vec());
    Some(match kind {
        OltpStatement::Begin | OltpStatement::Commit | OltpStatement::Insert | OltpStatement::NewRow | OltpStatement::NewRowWithId => return None,
        OltpStatement::Scan => Vec::new(),
        OltpStatement::Point | OltpStatement::IndexUpdate | OltpStatement::Delete => vec![id(middle)],
        OltpStatement::NonIndexUpdate => vec![text(), id(middle)],
        kind if kind.is_range() && setup.added_span().is_some() => vec![id(middle), id(middle)],
        OltpStatement::SimpleRange | OltpStatement::SumRange | OltpStatement::OrderRange | OltpStatement::DistinctRange | OltpStatement::CountRange => {
            vec![id(middle), id(middle + u64::from(setup.options.range_size) - 1)]
        }
        OltpStatement::Range(_, length) => vec![id(middle), id(middle + u64::from(length))],
        OltpStatement::Points(_, count) => spread(count).map(id).collect(),
        OltpStatement::HotPoints(count) => (0..u64::from(count)).map(|at| id(middle + at)).collect(),
        OltpStatement::ListUpdate(count) => std::iter::once(text()).chain(spread(count).map(id)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::oltp::options::{IdType, OltpOptions, OltpProfile, OltpTest};
    use dbdyno_db::{DatabaseAddress, DatabaseServer, mysql, null};

    use super::*;
    use crate::Context;
    use crate::oltp::mix::places;
    use crate::oltp::sql::Fetch;

    fn setup(options: OltpOptions) -> OltpSetup {
        let capabilities = mysql::capabilities("innodb", true);
        let database_server =
            DatabaseServer { address: DatabaseAddress::Null(null::Options::default()), capabilities };
        OltpSetup { options, context: Context { database_server, owned: true, seed: 1, draws: 1, device: None } }
    }

    fn text(setup: &OltpSetup, places: &[StatementSlot]) -> String {
        let lines = explained(setup, places);
        lines.iter().map(|line| format!("{}: {}", line.statement, line.sql)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_transactions_statements_are_explained_once_each_without_brackets_and_inserts() {
        let setup = setup(OltpOptions { table_size: 1_000, ..OltpOptions::default() });
        let places = places(OltpTest::ReadWrite, &setup.options, false);
        insta::assert_snapshot!(text(&setup, &places), @r"
        point-select: SELECT c FROM sbtest1 WHERE id=500
        simple-range: SELECT c FROM sbtest1 WHERE id BETWEEN 500 AND 599
        sum-range: SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 500 AND 599
        order-range: SELECT c FROM sbtest1 WHERE id BETWEEN 500 AND 599 ORDER BY c
        distinct-range: SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN 500 AND 599 ORDER BY c
        index-update: UPDATE sbtest1 SET k=k+1 WHERE id=500
        non-index-update: UPDATE sbtest1 SET c='0' WHERE id=500
        delete: DELETE FROM sbtest1 WHERE id=500
        ");
    }

    #[test]
    fn ids_lie_where_the_tables_begin() {
        let first_id = 5_000_000_000;
        let options = OltpOptions { table_size: 1_000, id: IdType::Bigint, first_id, ..OltpOptions::default() };
        let setup = setup(options);
        let places = [OltpStatement::Point, OltpStatement::HotPoints(2)].map(|kind| StatementSlot { kind, group: 1 });
        insta::assert_snapshot!(text(&setup, &places), @r"
        point-select: SELECT c FROM sbtest1 WHERE id=5000000499
        points: SELECT c FROM sbtest1 WHERE id IN (5000000499, 5000000500)
        ");
    }

    #[test]
    fn lists_ranges_and_the_old_profile_have_values_for_all_of_their_marks() {
        let old = OltpOptions { profile: OltpProfile::Sysbench05, table_size: 1_000, ..OltpOptions::default() };
        let old = setup(old);
        let kinds = [
            OltpStatement::SimpleRange,
            OltpStatement::Points(Fetch { columns: "c", by: "k" }, 3),
            OltpStatement::HotPoints(2),
            OltpStatement::Range(Fetch { columns: "id", by: "k" }, 10),
            OltpStatement::ListUpdate(2),
            OltpStatement::Scan,
            OltpStatement::NewRow,
        ];
        let places = kinds.map(|kind| StatementSlot { kind, group: 1 });
        insta::assert_snapshot!(text(&old, &places), @r"
        simple-range: SELECT c FROM sbtest1 WHERE id BETWEEN 500 AND 500+99
        points: SELECT c FROM sbtest1 WHERE k IN (1, 334, 667)
        points: SELECT c FROM sbtest1 WHERE id IN (500, 501)
        range: SELECT id FROM sbtest1 WHERE k BETWEEN 500 AND 510
        list-update: UPDATE sbtest1 SET c='0' WHERE id IN (1, 501)
        scan: SELECT * FROM sbtest1 WHERE LENGTH(c) < 0
        ");
    }
}
