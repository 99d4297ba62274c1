//! Makes the rows of a table. `k`, `c` and `pad` are a pure function of (seed, table, row), so that
//! every server gets the same rows.

use crate::Philox;
use crate::oltp::OltpSetup;
use crate::oltp::operation::OltpDraws;

/// Numbers of groups in `c` and `pad`, and of digits in a group.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
const GROUP: usize = 11;
/// Characters of `c` and `pad`, whose groups are joined by `-`.
pub(crate) const C_LENGTH: usize = C_GROUPS * (GROUP + 1) - 1;
pub(crate) const PAD_LENGTH: usize = PAD_GROUPS * (GROUP + 1) - 1;

/// Stream of the rows that are loaded.
const ROWS: u32 = 0x6f6c_7470;

/// Makes the rows that are loaded.
#[derive(Debug, Clone)]
pub(crate) struct OltpRowSource {
    stream: Philox,
    /// Lowest value of both `id` and `k`. There are as many values as rows.
    first_id: u64,
    table_size: u64,
}

impl OltpRowSource {
    pub(crate) fn of(setup: &OltpSetup) -> Self {
        Self::new(setup.context.seed, setup.options.first_id, setup.options.table_size)
    }

    fn new(seed: u64, first_id: u64, table_size: u64) -> Self {
        Self { stream: Philox::new(seed, ROWS), first_id, table_size }
    }

    /// Returns the id of row `row` (from 1).
    pub(crate) fn id(&self, row: u64) -> u64 {
        self.first_id + row - 1
    }

    /// Returns row `row` (from 1) of table `table`: its `k`, which is uniform whatever the tests draw,
    /// and the draws for the rest.
    pub(crate) fn row(&self, table: u32, row: u64) -> (u64, OltpDraws) {
        let mut draws = OltpDraws::new(&self.stream, table, row);
        (self.first_id + draws.below(self.table_size), draws)
    }
}

pub(crate) fn push_c(draws: &mut OltpDraws, out: &mut Vec<u8>) {
    out.extend_from_slice(&groups::<112, C_LENGTH>(draws));
}

pub(crate) fn push_pad(draws: &mut OltpDraws, out: &mut Vec<u8>) {
    out.extend_from_slice(&groups::<64, PAD_LENGTH>(draws));
}

/// Returns `LENGTH` characters, which are groups of random digits joined by `-`. `DIGITS` digits
/// are drawn, 16 at a time. The compiler knows all lengths, so the function becomes a handful of
/// copies.
fn groups<const DIGITS: usize, const LENGTH: usize>(draws: &mut OltpDraws) -> [u8; LENGTH] {
    let mut digits = [0; DIGITS];
    for sixteen in digits.chunks_exact_mut(16) {
        sixteen.copy_from_slice(&draws.digits());
    }
    let mut text = [b'-'; LENGTH];
    for (place, group) in text.chunks_mut(GROUP + 1).zip(digits.chunks_exact(GROUP)) {
        place[..GROUP].copy_from_slice(group);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seed: u64, table: u32, row: u64) -> String {
        let source = OltpRowSource::new(seed, 1, 100_000);
        let (k, mut draws) = source.row(table, row);
        let mut out = format!("{k} ").into_bytes();
        push_c(&mut draws, &mut out);
        out.push(b' ');
        push_pad(&mut draws, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The rows are frozen. A change of them makes runs before and after it incomparable, and must
    /// raise the workload's version.
    #[test]
    fn the_first_rows_of_seed_1_are_these() {
        let rows = [row(1, 1, 1), row(1, 1, 2), row(1, 2, 1)].join("\n");
        insta::assert_snapshot!(rows, @r"
        41462 02806312118-82588332556-52403296696-63434532838-89509260022-90497495114-80756266755-35736341878-42714364477-10732259684 67256145394-43212799381-18278236162-64061144792-17940602846
        68944 32643145871-60200651745-66960631519-74698310702-78552084219-30210547597-60043737447-44015854510-40787372772-10720465022 28825956890-88809862587-60936015868-92717618079-08877998469
        47765 67439347347-35439387612-99497161535-72633671702-46387070281-38695943828-30637806281-83791326566-87300162032-77764718335 15656411849-04739839385-98786473556-25373485681-08805054582
        ");
        assert_eq!(<crate::oltp::Oltp as crate::Workload>::VERSION, 4);
    }

    #[test]
    fn texts_have_the_originals_form() {
        for number in 1..=200 {
            let text = row(7, 3, number);
            let parts: Vec<&str> = text.split(' ').collect();
            assert_eq!((parts[1].len(), parts[2].len()), (119, 59));
            assert_eq!((C_LENGTH, PAD_LENGTH), (119, 59));
            for (text, groups) in [(parts[1], 10), (parts[2], 5)] {
                let groups_seen: Vec<&str> = text.split('-').collect();
                assert_eq!(groups_seen.len(), groups, "{text}");
                assert!(groups_seen.iter().all(|g| g.len() == 11 && g.bytes().all(|b| b.is_ascii_digit())));
            }
        }
    }

    #[test]
    fn ids_and_k_begin_where_the_plan_says_and_are_otherwise_the_same() {
        let (near, far) = (OltpRowSource::new(1, 1, 1000), OltpRowSource::new(1, 3_000_000_001, 1000));
        for row in [1, 17, 1000] {
            assert_eq!((near.id(row), far.id(row)), (row, 3_000_000_000 + row));
            let (mut one, mut other) = (near.row(2, row), far.row(2, row));
            assert_eq!(other.0 - one.0, 3_000_000_000);
            assert_eq!(one.1.digits(), other.1.digits());
        }
    }

    #[test]
    fn k_is_uniform_over_the_table() {
        let source = OltpRowSource::new(7, 1, 100_000);
        let ks: Vec<u64> = (1..=100_000).map(|number| source.row(1, number).0).collect();
        let distinct = ks.iter().collect::<std::collections::HashSet<_>>().len();
        // The expected number is (1 - 1/e) of 100,000, as in the original with a uniform distribution.
        assert!(distinct.abs_diff(63_212) < 600, "{distinct}");
        let middle = ks.iter().filter(|&&k| (49_500..50_500).contains(&k)).count();
        assert!(middle.abs_diff(1_000) < 150, "{middle}");
    }
}
