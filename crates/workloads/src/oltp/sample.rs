//! Looks at some rows of a loaded table to their last character: counts and sums say nothing of `c`
//! and `pad`.

use dbdyno_drivers::{AnySession, Session};

use crate::oltp::draws::Draws;
use crate::oltp::rows::{RowSource, push_c, push_pad};
use crate::oltp::{Setup, sql};
use crate::{Error, Philox};

/// Rows of each table, the first and the last among them.
const SAMPLE: u64 = 32;

/// Stream of the ids that are looked at.
const IDS: u32 = 0x7361_6d70;

/// Rows of table `number` that were looked at, and how many of them are as they were sent.
pub(crate) async fn compare(
    setup: &Setup,
    number: u32,
    session: &mut AnySession,
) -> Result<(u64, u64), Error> {
    let rows = rows(setup.context.seed, number, setup.options.table_size);
    let source = RowSource::of(setup);
    let ids: Vec<u64> = rows.iter().map(|&row| source.id(row)).collect();
    let table = Setup::table(number);
    let looking = Error::during(format!("comparing rows of table {table}"));
    let found = session.rows(&sql::rows_of(&table, &ids)).await.map_err(looking)?;
    let is_as_sent = |row: u64| {
        let wanted = wanted(&source, number, row);
        found.iter().any(|row| {
            // A CHAR comes with blanks up to its length from some databases.
            let mut cells = row.iter().map(|cell| cell.as_deref().unwrap_or_default().trim_end_matches(' '));
            wanted.iter().all(|wanted| cells.next() == Some(wanted.as_str()))
        })
    };
    Ok((rows.len() as u64, rows.iter().filter(|&&row| is_as_sent(row)).count() as u64))
}

/// Different ones of `count`, in order.
fn rows(seed: u64, table: u32, count: u64) -> Vec<u64> {
    let stream = Philox::new(seed, IDS);
    let mut rows: Vec<u64> =
        (2..SAMPLE).map(|number| 1 + Draws::new(&stream, table, number).below(count)).collect();
    rows.extend([1, count]);
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// `id`, `k`, `c` and `pad` as text.
fn wanted(source: &RowSource, table: u32, row: u64) -> [String; 4] {
    let (k, mut draws) = source.row(table, row);
    let mut text = |push: fn(&mut Draws, &mut Vec<u8>)| {
        let mut out = Vec::new();
        push(&mut draws, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let c = text(push_c);
    [source.id(row).to_string(), k.to_string(), c, text(push_pad)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_row_are_in_every_sample_and_none_is_twice() {
        for count in [1, 2, 20, 10_000_000] {
            let rows = rows(1, 3, count);
            assert_eq!((rows[0], rows[rows.len() - 1]), (1, count));
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
        }
        assert_eq!(rows(1, 3, 10_000_000).len(), 32);
        assert_ne!(rows(1, 3, 10_000_000), rows(1, 4, 10_000_000));
    }
}
