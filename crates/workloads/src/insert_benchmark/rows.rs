//! Makes row contents. Every column except the time is a pure function of (seed, step, client,
//! operation number, row).

use crate::insert_benchmark::options::InsertBenchmarkOptions;

use crate::digits::push_part;
use crate::{Philox, draw_below};

/// Characters of the random part of `data`. They are those of base64, as in the original's buffer.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Random characters that one 128-bit draw gives. Each takes 6 bits, so each of four 32-bit words gives
/// 5.
const CHARACTERS_PER_DRAW: usize = 20;

/// The four integer columns of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) cashregisterid: u32,
    pub(crate) customerid: u32,
    pub(crate) productid: u32,
    pub(crate) price: u32,
}

/// Makes the rows of one client in one step.
#[derive(Debug, Clone)]
pub(crate) struct InsertRowSource {
    numbers: Philox,
    texts: Philox,
    client: u32,
    cashregisters: u32,
    customers: u32,
    products: u32,
    max_price: u32,
    length_min: u32,
    lengths: u32,
    random_percent: u32,
}

impl InsertRowSource {
    /// Returns the source of the rows that client `client` inserts in step `step`.
    pub(crate) fn new(options: &InsertBenchmarkOptions, seed: u64, step: usize, client: u32) -> Self {
        Self {
            numbers: Philox::new(seed, stream(step, Purpose::Numbers)),
            texts: Philox::new(seed, stream(step, Purpose::Texts)),
            client,
            cashregisters: options.cashregisters,
            customers: options.customers,
            products: options.products,
            max_price: options.max_price,
            length_min: options.data_length_min,
            lengths: options.data_length_max - options.data_length_min + 1,
            random_percent: options.data_random_percent,
        }
    }

    /// Returns the integer columns of row `row` of statement `number`.
    pub(crate) fn numbers(&self, number: u64, row: u32) -> Numbers {
        let [a, b, c, d] = self.numbers.at(self.client, number, row);
        Numbers {
            cashregisterid: draw_below(a, self.cashregisters),
            customerid: draw_below(b, self.customers),
            productid: draw_below(c, self.products),
            price: draw_below(d, self.max_price),
        }
    }

    /// Appends column `data` of row `row` of statement `number`: a run of `a`, then the random part.
    pub(crate) fn write_data(&self, number: u64, row: u32, out: &mut Vec<u8>) {
        // Draw 0 of a row gives the length and the first 15 characters, enough for the original's
        // lengths.
        let index = row << 8;
        let [bits, words @ ..] = self.texts.at(self.client, number, index);
        let length = self.length_min + draw_below(bits, self.lengths);
        let random = random_length(length, self.random_percent);
        write_filler((length - random) as usize, out);
        let mut left = random as usize;
        left -= write_characters(&words, left, out);
        let mut more = 1;
        while left > 0 {
            let words = self.texts.at(self.client, number, index + more);
            left -= write_characters(&words, left, out);
            more += 1;
        }
    }
}

/// Returns the length of the random part. It is `percent` of three quarters of the text, rounded
/// down.
fn random_length(length: u32, percent: u32) -> u32 {
    length * 3 * percent / 400
}

/// Appends the letter a `count` times.
fn write_filler(count: usize, out: &mut Vec<u8>) {
    const SHORT: [u8; 32] = [b'a'; 32];
    if count <= SHORT.len() {
        push_part(out, &SHORT, count);
    } else {
        out.resize(out.len() + count, b'a');
    }
}

/// Appends up to `count` characters, five from each word. The result is how many it appended.
fn write_characters(words: &[u32], count: usize, out: &mut Vec<u8>) -> usize {
    let mut characters = [0; CHARACTERS_PER_DRAW];
    for (word, five) in words.iter().zip(characters.chunks_exact_mut(5)) {
        for (place, character) in five.iter_mut().enumerate() {
            *character = ALPHABET[(word >> (6 * place) & 63) as usize];
        }
    }
    let written = count.min(words.len() * 5);
    push_part(out, &characters, written);
    written
}

/// What a stream of draws is for. Each purpose in each step has a stream of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Numbers = 0,
    Texts = 1,
    Queries = 2,
    /// When the background writers' statements are due.
    ArrivalProcess = 3,
}

/// Returns the number of the stream for `purpose` in step `step`.
pub(crate) fn stream(step: usize, purpose: Purpose) -> u32 {
    u32::try_from(step).unwrap_or(u32::MAX / 8) * 8 + purpose as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(source: &InsertRowSource, number: u64, row: u32) -> String {
        let mut out = Vec::new();
        source.write_data(number, row, &mut out);
        String::from_utf8(out).expect("the alphabet is ASCII")
    }

    #[test]
    fn the_random_part_is_as_long_as_in_the_original() {
        let lengths: Vec<u32> = (10..=20).map(|length| random_length(length, 50)).collect();
        assert_eq!(lengths, [3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7]);
    }

    #[test]
    fn columns_are_uniform_over_their_domains() {
        let source = InsertRowSource::new(&InsertBenchmarkOptions::default(), 9, 0, 1);
        let rows: Vec<Numbers> = (0..2000)
            .flat_map(|n| (0..100).map(move |r| (n, r)))
            .map(|(n, r)| source.numbers(n, r))
            .collect();
        let mean = |column: fn(&Numbers) -> u32| {
            rows.iter().map(|row| f64::from(column(row))).sum::<f64>() / rows.len() as f64
        };
        // The standard error of a uniform mean over 200,000 rows is domain / sqrt(12 * 200,000) =
        // domain * 0.00065.
        for (mean, domain) in [
            (mean(|row| row.cashregisterid), 1000.0),
            (mean(|row| row.customerid), 100_000.0),
            (mean(|row| row.productid), 10_000.0),
            (mean(|row| row.price), 500.0),
        ] {
            assert!((mean / domain - 0.5).abs() < 0.003, "{mean} of {domain}");
        }
        assert!(rows.iter().all(|row| row.cashregisterid < 1000 && row.price < 500));
        assert!(
            rows.iter().any(|row| row.cashregisterid == 0)
                && rows.iter().any(|row| row.cashregisterid == 999)
        );
    }

    #[test]
    fn data_is_filler_then_random_and_averages_fifteen_characters() {
        let source = InsertRowSource::new(&InsertBenchmarkOptions::default(), 9, 0, 1);
        let texts: Vec<String> = (0..20_000).map(|number| data(&source, number, 3)).collect();
        for text in &texts {
            let length = u32::try_from(text.len()).expect("short");
            assert!((10..=20).contains(&length), "{text}");
            let filler = (length - random_length(length, 50)) as usize;
            assert!(text[..filler].bytes().all(|byte| byte == b'a'), "{text}");
        }
        let mean = texts.iter().map(String::len).sum::<usize>() as f64 / texts.len() as f64;
        assert!((mean - 15.0).abs() < 0.1, "{mean}");
        let distinct: std::collections::HashSet<_> = texts.iter().collect();
        assert!(distinct.len() > 19_900);
    }

    #[test]
    fn long_data_is_random_to_its_end() {
        let options = InsertBenchmarkOptions {
            data_length_min: 4000,
            data_length_max: 4000,
            data_random_percent: 100,
            ..InsertBenchmarkOptions::default()
        };
        let text = data(&InsertRowSource::new(&options, 1, 0, 1), 5, 0);
        assert_eq!(text.len(), 4000);
        assert!(text.starts_with(&"a".repeat(1000)) && !text[3900..].bytes().all(|byte| byte == b'a'));
    }

    #[test]
    fn rows_do_not_depend_on_earlier_draws() {
        let source = InsertRowSource::new(&InsertBenchmarkOptions::default(), 4, 2, 3);
        let first = (source.numbers(7, 49), data(&source, 7, 49));
        for number in 0..10 {
            source.numbers(number, 0);
        }
        assert_eq!(first, (source.numbers(7, 49), data(&source, 7, 49)));
        assert_ne!(first.0, InsertRowSource::new(&InsertBenchmarkOptions::default(), 4, 2, 4).numbers(7, 49));
    }
}
