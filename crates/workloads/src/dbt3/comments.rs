//! Comments of rows. They are pieces of one text of 300 MB that the specification gives by a grammar.
//!
//! `tpchgen` keeps that text as it is. Here it is kept as the words that it consists of, one byte each,
//! in a fifth of the memory. Its rows are made with a small text, which gives each comment its length,
//! and their comments are overwritten.

use std::sync::LazyLock;

use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::generators::SupplierGenerator;
use tpchgen::random::RowRandomInt;
use tpchgen::text::TextPool;

use crate::dbt3::schema::CommentDraws;

/// Bytes of the whole text.
const SIZE: usize = 300 << 20;
const SEED: i64 = 933_588_178;
/// Bytes of text from one mark to the next.
const STRIDE: usize = 128;
/// Bits of a mark that say how far into its word it is.
const INTO_BITS: u32 = 5;
/// Bytes of the small text. It is longer than the longest comment.
const SMALL: i32 = 1 << 10;

static COMMENT_TEXT: LazyLock<CommentText> = LazyLock::new(CommentText::new);
static SMALL_TEXT: LazyLock<TextPool> =
    LazyLock::new(|| TextPool::new(SMALL, Distributions::static_default()));

/// Returns the text from which `tpchgen` takes the lengths of comments.
pub(super) fn small_text() -> &'static TextPool {
    &SMALL_TEXT
}

/// Makes the whole text, unless it exists. The result is how many bytes of memory it takes.
pub(super) fn make_text() -> usize {
    COMMENT_TEXT.text.capacity() + size_of_val(&COMMENT_TEXT.marks[..])
}

/// The text as numbers of words. Each word begins with the space before it. The text begins with its
/// first word's second byte.
struct CommentText {
    /// The words by number.
    known: Vec<&'static [u8]>,
    text: Vec<u8>,
    /// For each stride of the text, the word that its first byte lies in, and how far into it.
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
                    let place = at << INTO_BITS | (next_mark - length);
                    words.marks.push(u32::try_from(place).expect("2^27 words are more than the text has"));
                    next_mark += STRIDE;
                }
                length += size;
            }
        }
        words.text.truncate(count);
        words.text.shrink_to_fit();
        words
    }

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

/// Returns the place of the next value among `length` values, drawn like [`RowRandomInt`] draws it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a length")]
fn drawn(seed: &mut i64, length: usize) -> usize {
    const MODULUS: i64 = 2_147_483_647;
    *seed = *seed * 16_807 % MODULUS;
    (*seed as f64 / MODULUS as f64 * length as f64) as usize
}

/// Kinds of words, by their letter in phrases: nouns, verbs, adjectives, adverbs, auxiliaries.
const KINDS: [u8; 5] = *b"NVJDX";

/// A phrase: places in [`KINDS`], and the number of the comma after all of those.
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
            let place = |letter| match letter {
                b',' => Some(KINDS.len()),
                letter => KINDS.iter().position(|kind| *kind == letter),
            };
            text.bytes().filter_map(place).collect()
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
pub(super) struct Comments {
    random: RowRandomInt,
    shortest: i32,
    longest: i32,
    text: &'static CommentText,
    /// Words in small texts that stay.
    kept: &'static [&'static str],
}

impl Comments {
    /// `passed_over` is how many units come before the first one. A unit is what a row belongs to, such
    /// as an order.
    pub(super) fn new(draws: CommentDraws, passed_over: i64) -> Self {
        let CommentDraws { seed, average_length: average, per_unit } = draws;
        let mut random = RowRandomInt::new(seed, 2 * per_unit);
        random.advance_rows(passed_over);
        // `tpchgen` rounds in this way: 0.4 and 1.6 of the average.
        let (shortest, longest) = (average * 4 / 10, average * 16 / 10);
        Self { random, shortest, longest, text: &COMMENT_TEXT, kept: &[] }
    }

    /// Returns the comments of suppliers. What customers say about some of them lies in the small text
    /// and must stay.
    pub(super) fn around_what_is_said(self) -> Self {
        const SAID: [&str; 3] = [
            SupplierGenerator::BBB_BASE_TEXT,
            SupplierGenerator::BBB_COMPLAINT_TEXT,
            SupplierGenerator::BBB_RECOMMEND_TEXT,
        ];
        Self { kept: &SAID, ..self }
    }

    /// Notes that the rows that belong to one unit have ended.
    pub(super) fn unit_ended(&mut self) {
        self.random.row_finished();
    }

    /// Puts the next comment into the end of `line`, which ends with a comment of its length.
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
    use super::*;

    #[test]
    fn pieces_of_the_words_are_those_of_the_text() {
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
