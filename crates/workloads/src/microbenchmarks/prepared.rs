//! How many prepared statements a step holds open at once.

use crate::microbenchmarks::micro_test::Family;
use crate::microbenchmarks::options::{MicroTest, Microbenchmarks};
use crate::oltp::prepared::of_connection;
use crate::options::Protocol;

/// Prepared statements of the step that has the most, all connections together; of BEGIN with
/// `with_begin` only.
pub(crate) fn most(options: &Microbenchmarks, with_begin: bool) -> u64 {
    if options.protocol == Protocol::Text {
        return 0;
    }
    // Kinds of statements, and whether they are in a transaction.
    let of_test = |test: MicroTest| match test {
        MicroTest::ReadOnly => (5, true),
        _ if test.family() == Family::Transactions => (2, true),
        MicroTest::WriteOnly => (4, true),
        MicroTest::ReadWrite => (9, true),
        MicroTest::Insert | MicroTest::Scan if options.protocol == Protocol::Auto => (0, false),
        _ => (1, false),
    };
    let of_rung = |(connections, test): (u32, MicroTest)| {
        let (kinds, is_transaction) = of_test(test);
        u64::from(connections) * of_connection(kinds, options.tables, is_transaction, with_begin)
    };
    options.rungs().iter().map(|rung| of_rung((rung.connections, rung.step.test))).max().unwrap_or(0)
}
