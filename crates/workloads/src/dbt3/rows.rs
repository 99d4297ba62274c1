//! Makes the rows of the tables, and the text that their comments are cut from.

use std::fmt::Display;
use std::io::Write as _;
use std::ops::Range;
use std::sync::LazyLock;

use dbdyno_db::RowStream;
use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, PartGenerator,
    PartSupp, PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::random::RowRandomInt;
use tpchgen::text::TextPool;

use crate::dbt3::Dbt3Setup;
use crate::dbt3::schema::{CommentDraws, Dbt3Table};

/// Separates two columns. No text holds it.
pub(crate) const SEPARATOR: char = '|';
/// About this many bytes are sent with one statement. Compared with so many rows, a commit costs
/// nothing.
pub(crate) const BATCH_BYTES: u64 = 4 << 20;
/// Number of sets into which the orders are divided for refresh functions. Each set has a
/// thousandth of the orders.
const REFRESH_SETS: i32 = 1_000;
/// Distance of a new order's key from that of the loaded order that it resembles. The load takes
/// the first 8 of each 32 keys.
const NEW_KEYS: i64 = 8;

/// Rows of one table that go with one statement: part `part` (from 1) of `parts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dbt3RowBatch {
    pub(crate) table: Dbt3Table,
    pub(crate) part: i32,
    pub(crate) parts: i32,
}

/// Returns the approximate bytes of all rows of `table`.
pub(crate) fn about_bytes(table: Dbt3Table, scale_factor: f64) -> u64 {
    table.definition().row_bytes * table.about_rows(scale_factor)
}

/// Returns the table whose rows are divided into the parts of `table`. Line items come with their
/// order, and suppliers of parts with their part.
fn units(table: Dbt3Table) -> Dbt3Table {
    match table {
        Dbt3Table::LineItem => Dbt3Table::Orders,
        Dbt3Table::PartSupp => Dbt3Table::Part,
        table => table,
    }
}

pub(crate) fn batches(table: Dbt3Table, scale_factor: f64) -> Vec<Dbt3RowBatch> {
    let wanted = about_bytes(table, scale_factor).div_ceil(BATCH_BYTES).max(1);
    let units = units(table).about_rows(scale_factor).max(1);
    let parts = i32::try_from(wanted.min(units)).unwrap_or(i32::MAX);
    (1..=parts).map(|part| Dbt3RowBatch { table, part, parts }).collect()
}

/// Returns the batches of each connection. Where rows stay in the order in which they came, each table
/// has one connection.
pub(crate) fn assigned(setup: &Dbt3Setup) -> Vec<Vec<Dbt3RowBatch>> {
    let capabilities = &setup.context.database_server.capabilities;
    let scale_factor = setup.options.scale_factor;
    let wanted = if capabilities.parallel_writers { setup.options.load_connections as usize } else { 1 };
    let mut largest_first = Dbt3Table::ALL;
    largest_first.sort_by_key(|table| std::cmp::Reverse(about_bytes(*table, scale_factor)));
    if capabilities.keeps_arrival_order {
        let mut shares: Vec<(u64, Vec<Dbt3RowBatch>)> =
            vec![(0, Vec::new()); wanted.min(Dbt3Table::ALL.len())];
        for table in largest_first {
            let smallest =
                shares.iter_mut().min_by_key(|(bytes, _)| *bytes).expect("one connection at least");
            smallest.0 += about_bytes(table, scale_factor);
            smallest.1.extend(batches(table, scale_factor));
        }
        return shares.into_iter().map(|(_, batches)| batches).collect();
    }
    let all: Vec<Dbt3RowBatch> =
        largest_first.into_iter().flat_map(|table| batches(table, scale_factor)).collect();
    let count = wanted.min(all.len());
    (0..count).map(|at| all[all.len() * at / count..all.len() * (at + 1) / count].to_vec()).collect()
}

/// Writes the rows of `batch` as lines into `out`. The result is how many there are.
pub(crate) fn write(batch: Dbt3RowBatch, scale_factor: f64, out: &mut Vec<u8>) -> u64 {
    out.clear();
    let mut count = 0;
    each_row(batch, scale_factor, 0, |row| {
        out.extend_from_slice(row);
        out.push(b'\n');
        count += 1;
    });
    count
}

/// Hands the rows of `batch` to `take`, with columns divided by separators. Keys of orders are
/// raised by `moved`.
fn each_row(batch: Dbt3RowBatch, scale_factor: f64, moved: i64, take: impl FnMut(&[u8])) {
    let Dbt3RowBatch { table, part, parts } = batch;
    let (all, text) = (Distributions::static_default(), small_text());
    let before = units(table).generated_rows(scale_factor, parts) * i64::from(part - 1);
    let comments = Comments::new(table.definition().comments, before);
    macro_rules! rows {
        ($generator:ident) => {
            $generator::new_with_distributions_and_text_pool(scale_factor, part, parts, all, text).iter()
        };
    }
    match table {
        Dbt3Table::Region => {
            let rows = RegionGenerator::new_with_distributions_and_text_pool(all, text).iter();
            lines(rows, comments, |_| true, take);
        }
        Dbt3Table::Nation => {
            let rows = NationGenerator::new_with_distributions_and_text_pool(all, text).iter();
            lines(rows, comments, |_| true, take);
        }
        Dbt3Table::Supplier => {
            lines(rows!(SupplierGenerator), comments.keeping_customers_words(), |_| true, take);
        }
        Dbt3Table::Part => lines(rows!(PartGenerator), comments, |_| true, take),
        Dbt3Table::PartSupp => {
            let rows = PartSuppGenerator::new_with_text_pool(scale_factor, part, parts, text).iter();
            let mut part = 0;
            let is_of_next_part = |row: &PartSupp<'_>| std::mem::replace(&mut part, row.ps_partkey) != part;
            lines(rows, comments, is_of_next_part, take);
        }
        Dbt3Table::Customer => lines(rows!(CustomerGenerator), comments, |_| true, take),
        Dbt3Table::Orders => {
            let rows =
                rows!(OrderGenerator).map(|order| Order { o_orderkey: order.o_orderkey + moved, ..order });
            lines(rows, comments, |_| true, take);
        }
        Dbt3Table::LineItem => {
            let rows =
                rows!(LineItemGenerator).map(|item| LineItem { l_orderkey: item.l_orderkey + moved, ..item });
            lines(rows, comments, |item| item.l_linenumber == 1, take);
        }
    }
}

/// Hands rows to `take` as `tpchgen` writes them, with a comment and a separator at the end.
/// `begins_unit` says that a row belongs to another part or order than the row before.
fn lines<R: Display>(
    rows: impl Iterator<Item = R>,
    mut comments: Comments,
    mut begins_unit: impl FnMut(&R) -> bool,
    mut take: impl FnMut(&[u8]),
) {
    let mut line = Vec::new();
    for (at, row) in rows.enumerate() {
        if begins_unit(&row) && at > 0 {
            comments.unit_ended();
        }
        line.clear();
        write!(line, "{row}").expect("memory takes all");
        line.pop();
        comments.put(&mut line);
        take(&line);
    }
}

/// Returns the statement that takes lines of `table`, or a prepared INSERT.
pub(crate) fn load_sql(table: Dbt3Table, form: RowStream) -> String {
    let name = table.name();
    match form {
        RowStream::LocalInfile => format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '{SEPARATOR}' ESCAPED BY ''"
        ),
        RowStream::CopyIn => format!("COPY {name} FROM STDIN WITH (DELIMITER '{SEPARATOR}')"),
        RowStream::PreparedRows => {
            let marks = vec!["?"; table.definition().columns.len()].join(", ");
            format!("INSERT INTO {name} VALUES ({marks})")
        }
    }
}

/// Orders of a refresh function that change together, in one transaction.
const ORDERS_PER_TRANSACTION: usize = 100;

/// The statements of a refresh function, and how many rows it inserts or deletes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refresh {
    pub(crate) statements: Vec<String>,
    pub(crate) rows: u64,
}

/// The orders of a set and their line items. Each row comes with the key of its order.
struct Set {
    orders: Vec<(i64, String)>,
    items: Vec<(i64, String)>,
}

impl Set {
    /// Returns the loaded orders of set `number` (from 1), with their keys raised by `moved`.
    fn new(number: u32, scale_factor: f64, moved: i64) -> Self {
        let part = i32::try_from(number).unwrap_or(REFRESH_SETS);
        // The last set also has the remainder of the division, so it is not used.
        let parts = REFRESH_SETS
            .min(i32::try_from(Dbt3Table::Orders.about_rows(scale_factor)).unwrap_or(REFRESH_SETS));
        let rows = |table| {
            let mut rows = Vec::new();
            each_row(Dbt3RowBatch { table, part, parts }, scale_factor, moved, |row| {
                let row = String::from_utf8_lossy(row).into_owned();
                let key = row.split(SEPARATOR).next().and_then(|key| key.parse().ok()).unwrap_or(0);
                rows.push((key, row));
            });
            rows
        };
        Self { orders: rows(Dbt3Table::Orders), items: rows(Dbt3Table::LineItem) }
    }

    /// Returns the range of orders and the range of items of each transaction.
    fn transactions(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let mut first_item = 0;
        let starts = (0..self.orders.len()).step_by(ORDERS_PER_TRANSACTION);
        let transaction = |start: usize| {
            let end = (start + ORDERS_PER_TRANSACTION).min(self.orders.len());
            let last_key = self.orders[end - 1].0;
            let count = self.items[first_item..].iter().take_while(|(key, _)| *key <= last_key).count();
            let items = first_item..first_item + count;
            first_item += count;
            (start..end, items)
        };
        starts.map(transaction).collect()
    }

    /// Returns the statements that change the orders of each transaction, and their items, with two
    /// statements per transaction.
    fn changed(
        &self,
        begin: &str,
        change: impl Fn(&[(i64, String)], &[(i64, String)]) -> [String; 2],
    ) -> Refresh {
        let of = |(orders, items): (Range<usize>, Range<usize>)| {
            let [first, second] = change(&self.orders[orders], &self.items[items]);
            [begin.to_owned(), first, second, "COMMIT".to_owned()]
        };
        let rows = (self.orders.len() + self.items.len()) as u64;
        Refresh { statements: self.transactions().into_iter().flat_map(of).collect(), rows }
    }
}

/// Returns the first refresh function of set `number`, which inserts new orders with their line items.
/// They resemble those of the loaded set, under keys that the load leaves free for them.
pub(crate) fn insert_orders(number: u32, scale_factor: f64, begin: &str) -> Refresh {
    let set = Set::new(number, scale_factor, NEW_KEYS);
    let insert = |table: Dbt3Table, rows: &[(i64, String)]| {
        let values: Vec<String> = rows.iter().map(|(_, row)| values(table, row)).collect();
        format!("INSERT INTO {} VALUES {}", table.name(), values.join(", "))
    };
    set.changed(begin, |orders, items| {
        [insert(Dbt3Table::Orders, orders), insert(Dbt3Table::LineItem, items)]
    })
}

/// Returns the second refresh function of set `number`, which deletes loaded orders with their line
/// items.
pub(crate) fn delete_orders(number: u32, scale_factor: f64, begin: &str) -> Refresh {
    let set = Set::new(number, scale_factor, 0);
    set.changed(begin, |orders, _| {
        let keys: Vec<String> = orders.iter().map(|(key, _)| key.to_string()).collect();
        let keys = keys.join(", ");
        [
            format!("DELETE FROM lineitem WHERE l_orderkey IN ({keys})"),
            format!("DELETE FROM orders WHERE o_orderkey IN ({keys})"),
        ]
    })
}

/// Returns a row as values of an INSERT.
fn values(table: Dbt3Table, row: &str) -> String {
    let cells = row.split(SEPARATOR).zip(&table.definition().columns).map(|(cell, column)| {
        if column.is_whole { cell.to_owned() } else { format!("'{}'", cell.replace('\'', "''")) }
    });
    format!("({})", cells.collect::<Vec<_>>().join(", "))
}

/// Bytes of the text that comments are cut from.
const SIZE: usize = 300 << 20;
const SEED: i64 = 933_588_178;
/// Bytes of text from one mark to the next. A mark is a position from which a piece of the text is
/// found quickly.
const STRIDE: usize = 128;
/// Number of the lowest bits of a mark, which say how many bytes after the beginning of its word it
/// is. The other bits are the word's index.
const INTO_BITS: u32 = 5;
/// Bytes of the small text, from which `tpchgen` itself cuts comments. It is longer than the
/// longest comment.
const SMALL: i32 = 1 << 10;

static COMMENT_TEXT: LazyLock<CommentText> = LazyLock::new(CommentText::new);
static SMALL_TEXT: LazyLock<TextPool> =
    LazyLock::new(|| TextPool::new(SMALL, Distributions::static_default()));

/// Returns the text from which `tpchgen` cuts comments. Only the lengths of these comments are
/// used, and what customers say about suppliers.
fn small_text() -> &'static TextPool {
    &SMALL_TEXT
}

/// Makes the whole text, unless it exists. The result is how many bytes of memory it takes.
pub(super) fn make_text() -> usize {
    COMMENT_TEXT.text.capacity() + size_of_val(&COMMENT_TEXT.marks[..])
}

/// The text that comments are cut from, kept as the numbers of its words. A word includes the space
/// before it, so the text begins with the second byte of its first word.
struct CommentText {
    /// The words by number.
    known: Vec<&'static [u8]>,
    text: Vec<u8>,
    /// A mark for each stride of the text: the index of the word that has the stride's first byte,
    /// and the position of that byte in the word.
    marks: Vec<u32>,
}

impl CommentText {
    /// Draws 46 million words. It must take only a second or two even when built without optimisation,
    /// so it works in slices and without calls for each word.
    fn new() -> Self {
        let mut words = Self { known: Vec::new(), text: vec![0; SIZE / 6], marks: Vec::new() };
        let grammar = Grammar::new(&mut words);
        let lengths: Vec<usize> = words.known.iter().map(|word| word.len()).collect();
        let (text, lengths) = (&mut words.text[..], &lengths[..]);
        let (mut seed, mut count, mut length, mut next_mark) = (SEED, 0, 0, 0);
        while length <= SIZE {
            let first = count;
            grammar.sentence(&mut seed, text, &mut count);
            for at in first..count {
                let size = lengths[text[at] as usize];
                if length + size > next_mark {
                    let mark = at << INTO_BITS | (next_mark - length);
                    words.marks.push(u32::try_from(mark).expect("2^27 words are more than the text has"));
                    next_mark += STRIDE;
                }
                length += size;
            }
        }
        words.text.truncate(count);
        words.text.shrink_to_fit();
        words
    }

    /// Adds a word, and returns its number.
    fn number(&mut self, text: String) -> u8 {
        let number = u8::try_from(self.known.len()).expect("the grammar has fewer words than 256");
        self.known.push(Box::leak(text.into_boxed_str()).as_bytes());
        number
    }

    /// Fills `piece` with the text from `begin` on.
    fn copy(&self, begin: usize, piece: &mut [u8]) {
        // The text begins after the space of the first word.
        let begin = begin + 1;
        let mark = self.marks[begin / STRIDE] as usize;
        let mut from = begin % STRIDE + (mark & ((1 << INTO_BITS) - 1));
        let mut filled = 0;
        for word in &self.text[mark >> INTO_BITS..] {
            let word = self.known[usize::from(*word)];
            if from >= word.len() {
                from -= word.len();
                continue;
            }
            let count = (word.len() - from).min(piece.len() - filled);
            piece[filled..filled + count].copy_from_slice(&word[from..from + count]);
            (filled, from) = (filled + count, 0);
            if filled == piece.len() {
                return;
            }
        }
    }
}

/// Returns each value as often as its weight says.
fn weighted<T: Clone>(distribution: &Distribution, mut value: impl FnMut(&'static str) -> T) -> Vec<T> {
    let mut all = Vec::new();
    for (at, text) in distribution.get_values().iter().enumerate() {
        let value = value(text);
        all.resize(usize::try_from(distribution.get_weight(at)).unwrap_or_default(), value);
    }
    all
}

/// Returns the index of the next value among `length` values, drawn as [`RowRandomInt`] draws it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a length")]
fn drawn(seed: &mut i64, length: usize) -> usize {
    const MODULUS: i64 = 2_147_483_647;
    *seed = *seed * 16_807 % MODULUS;
    (*seed as f64 / MODULUS as f64 * length as f64) as usize
}

/// Kinds of words, by their letter in phrases: nouns, verbs, adjectives, adverbs, auxiliaries.
const KINDS: [u8; 5] = *b"NVJDX";

/// A phrase, as indexes in [`KINDS`]. The index after the last kind means a comma.
type Phrase = Vec<usize>;

/// The grammar. Sentences consist of noun phrases (N), verb phrases (V), prepositions with noun phrases
/// (P) and ends (T). Phrases consist of words.
struct Grammar {
    sentences: Vec<&'static [u8]>,
    noun_phrases: Vec<Phrase>,
    verb_phrases: Vec<Phrase>,
    kinds: [Vec<u8>; KINDS.len()],
    prepositions: Vec<u8>,
    ends: Vec<u8>,
    the: u8,
    comma: u8,
}

impl Grammar {
    fn new(words: &mut CommentText) -> Self {
        let all = Distributions::static_default();
        let phrase = |text: &str| -> Phrase {
            let index = |letter| match letter {
                b',' => Some(KINDS.len()),
                letter => KINDS.iter().position(|kind| *kind == letter),
            };
            text.bytes().filter_map(index).collect()
        };
        let mut spaced = |distribution| weighted(distribution, |word| words.number(format!(" {word}")));
        Self {
            sentences: weighted(all.grammar(), str::as_bytes),
            noun_phrases: weighted(all.noun_phrase(), phrase),
            verb_phrases: weighted(all.verb_phrase(), phrase),
            kinds: [all.nouns(), all.verbs(), all.adjectives(), all.adverbs(), all.auxiliaries()]
                .map(&mut spaced),
            prepositions: spaced(all.prepositions()),
            ends: weighted(all.terminators(), |end| words.number(end.to_owned())),
            the: words.number(" the".to_owned()),
            comma: words.number(",".to_owned()),
        }
    }

    /// Writes the next sentence into `text` from `at` on, and moves `at` to its end.
    fn sentence(&self, seed: &mut i64, text: &mut [u8], at: &mut usize) {
        let sentences = &self.sentences[..];
        for part in sentences[drawn(seed, sentences.len())] {
            match part {
                b'N' => self.phrase(&self.noun_phrases, seed, text, at),
                b'V' => self.phrase(&self.verb_phrases, seed, text, at),
                b'P' => {
                    let all = &self.prepositions[..];
                    text[*at] = all[drawn(seed, all.len())];
                    text[*at + 1] = self.the;
                    *at += 2;
                    self.phrase(&self.noun_phrases, seed, text, at);
                }
                b'T' => {
                    let all = &self.ends[..];
                    text[*at] = all[drawn(seed, all.len())];
                    *at += 1;
                }
                _ => {}
            }
        }
    }

    fn phrase(&self, phrases: &[Phrase], seed: &mut i64, text: &mut [u8], at: &mut usize) {
        let phrase = &phrases[drawn(seed, phrases.len())][..];
        for &kind in phrase {
            text[*at] = if kind == KINDS.len() {
                self.comma
            } else {
                let all = &self.kinds[kind][..];
                all[drawn(seed, all.len())]
            };
            *at += 1;
        }
    }
}

/// Comments of a table's rows, one after the other.
pub(crate) struct Comments {
    random: RowRandomInt,
    shortest: i32,
    longest: i32,
    text: &'static CommentText,
    /// Words of the small text that stay in a comment.
    kept: &'static [&'static str],
}

impl Comments {
    /// `passed_over` is the number of units before the first one. A unit is a group of rows, such
    /// as the line items of an order.
    pub(super) fn new(draws: CommentDraws, passed_over: i64) -> Self {
        let CommentDraws { seed, average_length: average, per_unit } = draws;
        let mut random = RowRandomInt::new(seed, 2 * per_unit);
        random.advance_rows(passed_over);
        // `tpchgen` rounds in this way: 0.4 and 1.6 of the average.
        let (shortest, longest) = (average * 4 / 10, average * 16 / 10);
        Self { random, shortest, longest, text: &COMMENT_TEXT, kept: &[] }
    }

    /// Returns comments for suppliers. `tpchgen` has written what customers say about some of them
    /// over the small text, and these words must stay.
    fn keeping_customers_words(self) -> Self {
        const CUSTOMERS_WORDS: [&str; 3] = [
            SupplierGenerator::BBB_BASE_TEXT,
            SupplierGenerator::BBB_COMPLAINT_TEXT,
            SupplierGenerator::BBB_RECOMMEND_TEXT,
        ];
        Self { kept: &CUSTOMERS_WORDS, ..self }
    }

    /// Notes that the rows that belong to one unit have ended.
    fn unit_ended(&mut self) {
        self.random.row_finished();
    }

    /// Writes the next comment over the end of `line`, which ends with a comment of the same
    /// length.
    pub(super) fn put(&mut self, line: &mut [u8]) {
        let size = i32::try_from(SIZE).unwrap_or(i32::MAX);
        let begin = self.random.next_int(0, size - self.longest).unsigned_abs() as usize;
        let length = self.random.next_int(self.shortest, self.longest).unsigned_abs() as usize;
        let start = line.len() - length;
        let comment = &mut line[start..];
        let small = std::str::from_utf8(comment).unwrap_or_default();
        let kept: Vec<_> =
            self.kept.iter().filter_map(|kept| small.find(kept).map(|at| (at, kept.as_bytes()))).collect();
        self.text.copy(begin, comment);
        for (at, kept) in kept {
            comment[at..at + kept.len()].copy_from_slice(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_db::{Capabilities, DatabaseAddress, DatabaseServer, mysql, null, postgres, sqlite};

    use super::*;
    use crate::Context;
    use crate::dbt3::options::Dbt3Options;

    fn shares(capabilities: Capabilities) -> Vec<Vec<Dbt3RowBatch>> {
        let database_server =
            DatabaseServer { address: DatabaseAddress::Null(null::Options::default()), capabilities };
        let options = Dbt3Options { scale_factor: 0.1, ..Dbt3Options::default() };
        assigned(&Dbt3Setup {
            options,
            context: Context { database_server, owned: true, seed: 1, draws: 1, device: None },
        })
    }

    #[test]
    fn every_batch_has_one_connection_and_a_heap_is_filled_by_one() {
        let expected: usize = Dbt3Table::ALL.iter().map(|table| batches(*table, 0.1).len()).sum();
        for (capabilities, connections) in [
            (mysql::capabilities("InnoDB", true), 4),
            (mysql::capabilities("MyISAM", true), 4),
            (postgres::capabilities(), 4),
            (sqlite::capabilities(), 1),
        ] {
            let is_heap = capabilities.keeps_arrival_order;
            let shares = shares(capabilities);
            assert_eq!(shares.len(), connections);
            let all: Vec<Dbt3RowBatch> = shares.concat();
            assert_eq!(all.len(), expected);
            assert!(all.iter().all(|batch| all.iter().filter(|other| *other == batch).count() == 1));
            let with_items = shares
                .iter()
                .filter(|share| share.iter().any(|one| one.table == Dbt3Table::LineItem))
                .count();
            assert_eq!(with_items == 1, is_heap || connections == 1);
        }
    }

    #[test]
    fn batches_together_are_the_table() {
        for table in Dbt3Table::ALL {
            let mut all = Vec::new();
            let mut text = Vec::new();
            let rows: u64 = batches(table, 0.05)
                .into_iter()
                .map(|batch| {
                    let rows = write(batch, 0.05, &mut text);
                    all.extend_from_slice(&text);
                    rows
                })
                .sum();
            assert_eq!(rows, table.rows(0.05), "{table:?}");
            let whole = write(Dbt3RowBatch { table, part: 1, parts: 1 }, 0.05, &mut text);
            assert_eq!((rows, &all), (whole, &text), "{table:?}");
            let columns = table.definition().columns.len();
            let text = String::from_utf8(all).unwrap();
            assert!(text.lines().all(|line| line.split(SEPARATOR).count() == columns), "{table:?}");
        }
        assert!(batches(Dbt3Table::LineItem, 0.05).len() > 5);
    }

    #[test]
    fn rows_are_those_of_the_generator_with_its_whole_text() {
        let whole = |table| -> Vec<String> {
            macro_rules! lines {
                ($generator:ident) => {
                    $generator::new(0.01, 1, 1)
                        .iter()
                        .map(|row| format!("{row}\n").replace("|\n", "\n"))
                        .collect()
                };
            }
            match table {
                Dbt3Table::Region => lines!(RegionGenerator),
                Dbt3Table::Nation => lines!(NationGenerator),
                Dbt3Table::Supplier => lines!(SupplierGenerator),
                Dbt3Table::Part => lines!(PartGenerator),
                Dbt3Table::PartSupp => lines!(PartSuppGenerator),
                Dbt3Table::Customer => lines!(CustomerGenerator),
                Dbt3Table::Orders => lines!(OrderGenerator),
                Dbt3Table::LineItem => lines!(LineItemGenerator),
            }
        };
        for table in Dbt3Table::ALL {
            let (mut text, mut all) = (Vec::new(), Vec::new());
            // Region and nation come as a whole.
            let parts = if matches!(table, Dbt3Table::Region | Dbt3Table::Nation) { 1 } else { 3 };
            for part in 1..=parts {
                write(Dbt3RowBatch { table, part, parts }, 0.01, &mut text);
                all.extend_from_slice(&text);
            }
            assert!(String::from_utf8(all).unwrap() == whole(table).concat(), "{table:?}");
        }
    }

    #[test]
    fn refresh_functions_insert_as_many_rows_as_they_delete_under_keys_of_their_own() {
        let inserted = insert_orders(2, 0.1, "BEGIN");
        let deleted = delete_orders(2, 0.1, "BEGIN");
        assert_eq!((inserted.rows, inserted.statements.len()), (deleted.rows, 8));
        // There are 150,000 orders at this scale factor, and a set has 150 of them.
        let keys =
            deleted.statements[2].matches(',').count() + 1 + deleted.statements[6].matches(',').count() + 1;
        assert_eq!(keys, 150);
        let first = OrderGenerator::make_order_key(151);
        assert!(deleted.statements[2].contains(&format!("({first}, ")));
        assert!(inserted.statements[1].starts_with(&format!("INSERT INTO orders VALUES ({}, ", first + 8)));
        let items = inserted.statements[2].matches("), (").count()
            + inserted.statements[6].matches("), (").count()
            + 2;
        assert_eq!(inserted.rows, 150 + items as u64);
    }

    #[test]
    fn no_new_order_has_the_key_of_a_loaded_order() {
        let loaded: std::collections::BTreeSet<i64> =
            (1..=100_000).map(OrderGenerator::make_order_key).collect();
        assert!(
            (1..=100_000).all(|index| !loaded.contains(&(OrderGenerator::make_order_key(index) + NEW_KEYS)))
        );
    }

    #[test]
    fn pieces_made_from_words_equal_those_of_the_whole_text() {
        let text = TextPool::get_or_init_default();
        let mut random = RowRandomInt::new(7, 2);
        let size = text.size();
        let ends = [(0, 40), (size - 200, 200)];
        let drawn = (0..20_000).map(|_| (random.next_int(0, size - 200), random.next_int(1, 198)));
        for (begin, length) in ends.into_iter().chain(drawn) {
            let mut piece = vec![0; length as usize];
            COMMENT_TEXT.copy(begin as usize, &mut piece);
            assert_eq!(String::from_utf8(piece).unwrap(), text.text(begin, begin + length), "{begin}");
        }
        assert!(make_text() < 64 << 20, "{} bytes", make_text());
    }
}
