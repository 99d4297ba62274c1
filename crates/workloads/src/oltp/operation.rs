//! Makes one operation of a test: the mix of its statements, their tables and parameters, and the
//! random numbers that they are drawn from. Each operation reuses the buffers of the one before.

use std::collections::BTreeSet;

use dbdyno_db::Param;

use crate::digits::eight_digits;
use crate::oltp::OltpSetup;
use crate::oltp::distribution::IdDistribution;
use crate::oltp::options::{OltpOptions, OltpTest as Test};
use crate::oltp::rows::{C_LENGTH, PAD_LENGTH, push_c, push_pad};
use crate::oltp::sql::OltpStatement;
use crate::{Philox, draw_below_u64};

/// A statement that is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct ReadyStatement {
    pub(crate) kind: OltpStatement,
    group: u32,
    /// Number of the table, from 0.
    pub(crate) table: usize,
    pub(crate) params: Vec<Param>,
}

#[derive(Debug)]
pub(crate) struct OltpOperation {
    statements: Vec<ReadyStatement>,
    distribution: IdDistribution,
    tables: u64,
    one_table: bool,
    /// The table of all statements (from 0), in a test that gives each connection one table.
    fixed_table: Option<usize>,
    table_size: u64,
    /// This is added to a draw. Draws are from 1 to the table's size, but ids and `k` begin with
    /// the first id.
    offset: u64,
    /// A range spans its first id and this many more.
    span: i64,
}

impl OltpOperation {
    pub(crate) fn new(
        statement_slots: &[StatementSlot],
        setup: &OltpSetup,
        fixed_table: Option<usize>,
    ) -> Self {
        let options = &setup.options;
        let ready = |&StatementSlot { kind, group }: &StatementSlot| ReadyStatement {
            kind,
            group,
            table: 0,
            params: empty_params(kind),
        };
        Self {
            statements: statement_slots.iter().map(ready).collect(),
            distribution: IdDistribution::new(options, options.table_size),
            tables: options.tables.into(),
            one_table: options.one_table,
            fixed_table,
            table_size: options.table_size,
            offset: options.first_id - 1,
            // Where the text of the statement adds the span, both parameters are the first id of
            // the range.
            span: setup.added_span().map_or(i64::from(options.range_size) - 1, |_| 0),
        }
    }

    pub(crate) fn statements(&self) -> &[ReadyStatement] {
        &self.statements
    }

    /// Draws tables and parameters of one operation. `new_id` is the id of a row that the client
    /// numbers.
    pub(crate) fn draw(&mut self, draws: &mut OltpDraws, new_id: i64) {
        let Self { statements, distribution, tables, one_table, fixed_table, table_size, offset, span } =
            self;
        let (mut group, mut table, mut deleted) = (None, 0, 0);
        let id = |draws: &mut OltpDraws| (*offset + distribution.draw(draws)) as i64;
        for statement in statements.iter_mut().filter(|statement| !statement.kind.is_transaction_control()) {
            let is_new = group.is_none_or(|before| before != statement.group && !*one_table);
            if is_new && *tables > 1 {
                table = fixed_table.unwrap_or_else(|| draws.below(*tables) as usize);
            }
            group = Some(statement.group);
            statement.table = table;
            let params = &mut statement.params;
            match statement.kind {
                OltpStatement::Begin | OltpStatement::Commit | OltpStatement::Scan => {}
                OltpStatement::Points(..) => {
                    params.iter_mut().for_each(|param| *param = Param::Int(id(draws)))
                }
                OltpStatement::HotPoints(_) => {
                    let middle = (*offset + *table_size / 2) as i64;
                    (1..).zip(params.iter_mut()).for_each(|(n, param)| *param = Param::Int(middle + n));
                }
                OltpStatement::Range(_, more) => {
                    let first = id(draws);
                    params[0] = Param::Int(first);
                    params[1] = Param::Int(first + i64::from(more));
                }
                OltpStatement::ListUpdate(_) => {
                    params[1..].iter_mut().for_each(|param| *param = Param::Int(id(draws)));
                    set_text(&mut params[0], draws, push_c);
                }
                OltpStatement::Point | OltpStatement::IndexUpdate => params[0] = Param::Int(id(draws)),
                OltpStatement::SimpleRange
                | OltpStatement::SumRange
                | OltpStatement::OrderRange
                | OltpStatement::DistinctRange
                | OltpStatement::CountRange => {
                    let first = id(draws);
                    params[0] = Param::Int(first);
                    params[1] = Param::Int(first + *span);
                }
                OltpStatement::NonIndexUpdate => {
                    params[1] = Param::Int(id(draws));
                    set_text(&mut params[0], draws, push_c);
                }
                OltpStatement::Delete => {
                    deleted = id(draws);
                    params[0] = Param::Int(deleted);
                }
                OltpStatement::Insert => fill_row(params, Some(deleted), id(draws), draws),
                OltpStatement::NewRowWithId => fill_row(params, Some(new_id), id(draws), draws),
                OltpStatement::NewRow => fill_row(params, None, id(draws), draws),
            }
        }
    }
}

/// Returns parameters of the right types, to be filled in.
fn empty_params(kind: OltpStatement) -> Vec<Param> {
    let int = || Param::Int(0);
    let c = || Param::Text(Vec::with_capacity(C_LENGTH));
    let pad = || Param::Text(Vec::with_capacity(PAD_LENGTH));
    match kind {
        OltpStatement::Begin | OltpStatement::Commit | OltpStatement::Scan => vec![],
        OltpStatement::Points(_, count) | OltpStatement::HotPoints(count) => vec![int(); count as usize],
        OltpStatement::ListUpdate(count) => [vec![c()], vec![int(); count as usize]].concat(),
        OltpStatement::Point | OltpStatement::IndexUpdate | OltpStatement::Delete => vec![int()],
        OltpStatement::SimpleRange
        | OltpStatement::SumRange
        | OltpStatement::OrderRange
        | OltpStatement::DistinctRange
        | OltpStatement::CountRange
        | OltpStatement::Range(..) => vec![int(), int()],
        OltpStatement::NonIndexUpdate => vec![c(), int()],
        OltpStatement::Insert | OltpStatement::NewRowWithId => vec![int(), int(), c(), pad()],
        OltpStatement::NewRow => vec![int(), c(), pad()],
    }
}

/// Fills in the columns of a row, with its id where the client gives it.
fn fill_row(params: &mut [Param], id: Option<i64>, k: i64, draws: &mut OltpDraws) {
    let at = usize::from(id.is_some());
    if let Some(id) = id {
        params[0] = Param::Int(id);
    }
    params[at] = Param::Int(k);
    set_text(&mut params[at + 1], draws, push_c);
    set_text(&mut params[at + 2], draws, push_pad);
}

/// Writes a new text into the old one's memory.
fn set_text(param: &mut Param, draws: &mut OltpDraws, push: fn(&mut OltpDraws, &mut Vec<u8>)) {
    if let Param::Text(text) = param {
        text.clear();
        push(draws, text);
    }
}

/// One statement of an operation. Statements of the same group use the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatementSlot {
    pub(crate) kind: OltpStatement,
    pub(crate) group: u32,
}

/// Returns the statements of one operation of `test`. Their order and groups are the original's:
/// all point selects of a transaction share a table, and so do the ranges of one kind, and DELETE
/// and INSERT.
pub(crate) fn statement_slots(test: Test, options: &OltpOptions, client_ids: bool) -> Vec<StatementSlot> {
    let mut mix = Mix::default();
    let in_transaction = test.is_transaction() && !options.skip_trx;
    if in_transaction {
        mix.group(1, &[OltpStatement::Begin]);
    }
    match test {
        Test::PointSelect => mix.group(1, &[OltpStatement::Point]),
        Test::ReadOnly => mix.reads(options),
        Test::ReadWrite => {
            mix.reads(options);
            mix.writes(options);
        }
        Test::WriteOnly => mix.writes(options),
        Test::UpdateIndex => mix.group(options.index_updates, &[OltpStatement::IndexUpdate]),
        Test::UpdateNonIndex => mix.group(options.non_index_updates, &[OltpStatement::NonIndexUpdate]),
        Test::Insert => {
            mix.group(1, &[if client_ids { OltpStatement::NewRowWithId } else { OltpStatement::NewRow }])
        }
        Test::Delete => mix.group(1, &[OltpStatement::Delete]),
    }
    if in_transaction {
        mix.group(1, &[OltpStatement::Commit]);
    }
    mix.statement_slots
}

/// Returns the number of prepared statements that a connection holds open for such an operation:
/// one for each kind of statement and table, one for COMMIT, and one for BEGIN where the server
/// prepares it (`with_begin`).
pub(crate) fn prepared(statement_slots: &[StatementSlot], tables: u32, with_begin: bool) -> u64 {
    let kinds: BTreeSet<OltpStatement> = statement_slots.iter().map(|place| place.kind).collect();
    let count = |kind: OltpStatement| match kind {
        OltpStatement::Begin => with_begin.into(),
        OltpStatement::Commit => 1,
        _ => u64::from(tables),
    };
    kinds.into_iter().map(count).sum()
}

/// The statements of an operation, as they are put together.
#[derive(Debug, Default)]
struct Mix {
    statement_slots: Vec<StatementSlot>,
    groups: u32,
}

impl Mix {
    fn reads(&mut self, options: &OltpOptions) {
        self.group(options.point_selects, &[OltpStatement::Point]);
        if options.range_selects {
            self.group(options.simple_ranges, &[OltpStatement::SimpleRange]);
            self.group(options.sum_ranges, &[OltpStatement::SumRange]);
            self.group(options.order_ranges, &[OltpStatement::OrderRange]);
            self.group(options.distinct_ranges, &[OltpStatement::DistinctRange]);
            self.group(options.count_ranges, &[OltpStatement::CountRange]);
        }
    }

    fn writes(&mut self, options: &OltpOptions) {
        self.group(options.index_updates, &[OltpStatement::IndexUpdate]);
        self.group(options.non_index_updates, &[OltpStatement::NonIndexUpdate]);
        self.group(options.delete_inserts, &[OltpStatement::Delete, OltpStatement::Insert]);
    }

    /// Adds `kinds`, repeated `times` times, on one table.
    fn group(&mut self, times: u32, kinds: &[OltpStatement]) {
        for _ in 0..times {
            self.statement_slots.extend(kinds.iter().map(|&kind| StatementSlot { kind, group: self.groups }));
        }
        self.groups += u32::from(times > 0);
    }
}

/// The draws of operation `number` of `task`. They depend only on these two and the stream.
#[derive(Debug)]
pub(crate) struct OltpDraws {
    stream: Philox,
    task: u32,
    number: u64,
    /// Index of the next block.
    next: u32,
    block: [u32; 4],
    /// Number of words of the block that are used up.
    used: usize,
}

impl OltpDraws {
    pub(crate) fn new(stream: &Philox, task: u32, number: u64) -> Self {
        Self { stream: *stream, task, number, next: 0, block: [0; 4], used: 4 }
    }

    /// Returns 32 random bits.
    pub(crate) fn word(&mut self) -> u32 {
        if self.used == self.block.len() {
            self.block = self.stream.at(self.task, self.number, self.next);
            self.next += 1;
            self.used = 0;
        }
        let word = self.block[self.used];
        self.used += 1;
        word
    }

    /// Returns a uniform number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let (high, low) = (self.word(), self.word());
        draw_below_u64(high, low, bound)
    }

    /// Returns a uniform number in `[0, 1)`, with 53 random bits.
    pub(crate) fn fraction(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        (bits >> 11) as f64 * STEP
    }

    /// Returns 16 random decimal digits as characters: the first 16 digits of a uniform fraction of
    /// 64 bits.
    pub(crate) fn digits(&mut self) -> [u8; 16] {
        const EIGHT: u128 = 100_000_000;
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        let first = u128::from(bits) * EIGHT;
        let second = u128::from(first as u64) * EIGHT;
        let mut digits = [0; 16];
        for (half, value) in digits.chunks_exact_mut(8).zip([first, second]) {
            let eight = eight_digits((value >> 64) as u32);
            half.copy_from_slice(&(eight + 0x3030_3030_3030_3030).to_le_bytes());
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of statements in an operation: reads, writes, others.
    fn split(test: Test, options: &OltpOptions) -> (usize, usize, usize) {
        let statement_slots = statement_slots(test, options, false);
        let count = |wanted: fn(OltpStatement) -> bool| {
            statement_slots.iter().filter(|place| wanted(place.kind)).count()
        };
        let (writes, others) = (count(OltpStatement::is_write), count(OltpStatement::is_transaction_control));
        (statement_slots.len() - writes - others, writes, others)
    }

    #[test]
    fn operations_have_the_originals_numbers_of_statements() {
        let options = OltpOptions::default();
        assert_eq!(split(Test::PointSelect, &options), (1, 0, 0));
        assert_eq!(split(Test::ReadOnly, &options), (14, 0, 2));
        assert_eq!(split(Test::WriteOnly, &options), (0, 4, 2));
        assert_eq!(split(Test::ReadWrite, &options), (14, 4, 2));
        for test in [Test::UpdateIndex, Test::UpdateNonIndex, Test::Insert, Test::Delete] {
            assert_eq!(split(test, &options), (0, 1, 0));
        }
    }

    #[test]
    fn every_option_of_the_mix_has_its_effect() {
        let one_range =
            OltpOptions { simple_ranges: 0, order_ranges: 0, distinct_ranges: 0, ..OltpOptions::default() };
        assert_eq!(split(Test::ReadOnly, &one_range), (11, 0, 2));
        let points = OltpOptions { range_selects: false, skip_trx: true, ..OltpOptions::default() };
        assert_eq!(split(Test::ReadOnly, &points), (10, 0, 0));
        assert_eq!(
            split(Test::PointSelect, &OltpOptions { point_selects: 3, ..OltpOptions::default() }),
            (1, 0, 0)
        );
        let counted = OltpOptions { count_ranges: 3, ..OltpOptions::default() };
        assert_eq!(split(Test::ReadOnly, &counted), (17, 0, 2));
        let many = OltpOptions {
            index_updates: 2,
            non_index_updates: 0,
            delete_inserts: 3,
            ..OltpOptions::default()
        };
        assert_eq!(split(Test::WriteOnly, &many), (0, 8, 2));
        assert_eq!(split(Test::UpdateIndex, &many), (0, 2, 0));
    }

    #[test]
    fn statements_come_in_the_originals_order_and_groups() {
        let options = OltpOptions { point_selects: 2, delete_inserts: 2, ..OltpOptions::default() };
        let text: Vec<String> = statement_slots(Test::ReadWrite, &options, false)
            .iter()
            .map(|place| format!("{}{:?}", place.group, place.kind))
            .collect();
        insta::assert_snapshot!(text.join(" "), @"0Begin 1Point 1Point 2SimpleRange 3SumRange 4OrderRange 5DistinctRange 6IndexUpdate 7NonIndexUpdate 8Delete 8Insert 8Delete 8Insert 9Commit");
    }

    #[test]
    fn the_draws_of_an_operation_do_not_depend_on_earlier_draws() {
        let stream = Philox::new(3, 9);
        let all = |number| {
            let mut draws = OltpDraws::new(&stream, 2, number);
            (0..9).map(|_| draws.word()).collect::<Vec<_>>()
        };
        let first = all(5);
        all(6);
        assert_eq!(first, all(5));
        assert_ne!(first, all(6));
        assert_ne!(first[0], OltpDraws::new(&stream, 3, 5).word());
    }

    #[test]
    fn fractions_and_bounded_draws_stay_inside_and_have_the_right_mean() {
        let stream = Philox::new(1, 1);
        let (mut sum, mut below) = (0.0, [0_u32; 7]);
        for number in 0..100_000 {
            let mut draws = OltpDraws::new(&stream, 1, number);
            let fraction = draws.fraction();
            assert!((0.0..1.0).contains(&fraction));
            sum += fraction;
            below[draws.below(7) as usize] += 1;
        }
        // The standard error of the mean is 0.289 / sqrt(100,000) = 0.0009.
        assert!((sum / 100_000.0 - 0.5).abs() < 0.004, "{sum}");
        // With 6 degrees of freedom, chi-square exceeds 27.9 once in 10,000 times.
        let chi: f64 = below.iter().map(|&n| (f64::from(n) - 14_285.7).powi(2) / 14_285.7).sum();
        assert!(chi < 27.9, "{below:?}");
    }

    #[test]
    fn every_position_has_each_digit_equally_often() {
        let stream = Philox::new(1, 2);
        let mut counts = [[0_u32; 10]; 16];
        for number in 0..50_000 {
            for (place, digit) in OltpDraws::new(&stream, 1, number).digits().into_iter().enumerate() {
                counts[place][usize::from(digit - b'0')] += 1;
            }
        }
        for (place, counts) in counts.iter().enumerate() {
            let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 5000.0).powi(2) / 5000.0).sum();
            // With 9 degrees of freedom, chi-square exceeds 39.3 once in 100,000 times.
            assert!(chi < 39.3, "place {place}: {counts:?}");
        }
    }
}
