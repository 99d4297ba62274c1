//! Adds up many stored histograms without building a histogram from each one. Building them would
//! take most of an analysis's time.
//!
//! The format is HdrHistogram's version 2, deflated. It begins with a cookie and a length. Then come,
//! compressed by zlib, 40 bytes of settings and the counts from the lowest value up. Counts are zig-zag
//! LEB128 numbers, and a negative number stands for that many zeros. Source: G. Tene, HdrHistogram's
//! `AbstractHistogram.java`, `encodeIntoCompressedByteBuffer` and `fillCountsArrayFromSourceBuffer`.

use fdeflate::Decompressor;
use hdrhistogram::Histogram;

/// The cookies mean "HistV2, deflated" and "HistV2, plain". Their low digits give the size of a
/// number.
const DEFLATED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const PLAIN_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
/// The settings are the cookie, length of the counts, normalizing offset, digits, lowest value, highest
/// value and ratio of doubles.
const SETTINGS_BYTES: usize = 40;
/// dbdyno writes histograms of values from 1 with three digits.
const LOW: u64 = 1;
const DIGITS: u8 = 3;
/// 2 × 10³ rounded up to a power of two. Each value below it has its own count. Above it, each
/// further doubling of the value has half as many counts.
const SUB_BUCKETS: u64 = 2_048;
const HALF_BITS: u32 = (SUB_BUCKETS / 2).trailing_zeros();
/// More counts than a histogram with [`DIGITS`] digits can have.
const MAX_COUNTS: usize = 1 << 16;
/// Largest size of an unpacked histogram, with nine bytes per count.
const MAX_BYTES: usize = SETTINGS_BYTES + 9 * MAX_COUNTS;

/// Counts of histograms that dbdyno wrote.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    /// The counts, in the histogram's own order of values.
    counts: Vec<u64>,
    /// Buffer for the unpacked bytes, reused for each histogram.
    unpacked: Vec<u8>,
}

impl Sum {
    /// Adds a stored histogram. The result is `None` if dbdyno would not have written these bytes,
    /// and the sum must not be used after that.
    pub(crate) fn add(&mut self, compressed: &[u8]) -> Option<()> {
        let length = inflate(compressed, &mut self.unpacked)?;
        let (settings, counts) = self.unpacked[..length].split_at_checked(SETTINGS_BYTES)?;
        let needed = counts_length(settings, counts.len())?;
        if self.counts.len() < needed {
            self.counts.resize(needed, 0);
        }
        let sum = &mut self.counts[..needed];
        let (mut index, mut rest) = (0_usize, counts);
        while !rest.is_empty() {
            let (count, after) = number(rest)?;
            rest = after;
            match u64::try_from(count) {
                Ok(count) => {
                    if count > 0 {
                        let sum = sum.get_mut(index)?;
                        *sum = sum.checked_add(count)?;
                    }
                    index = index.checked_add(1)?;
                }
                Err(_) => index = index.checked_add(usize::try_from(count.unsigned_abs()).ok()?)?,
            }
        }
        Some(())
    }

    /// Returns the sum as a histogram whose range grows.
    pub(crate) fn histogram(&self) -> Option<Histogram<u64>> {
        let last = self.counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        let high = value_at(last).max(2 * LOW);
        let mut histogram = Histogram::new_with_bounds(LOW, high, DIGITS).ok()?;
        for (index, count) in self.counts[..self.counts.len().min(last + 1)].iter().enumerate() {
            if *count > 0 {
                histogram.record_n(value_at(index), *count).ok()?;
            }
        }
        histogram.auto(true);
        Some(histogram)
    }
}

/// Unpacks into `unpacked`. The result is the unpacked length.
fn inflate(compressed: &[u8], unpacked: &mut Vec<u8>) -> Option<usize> {
    let (head, payload) = compressed.split_at_checked(8)?;
    let length = head.strip_prefix(&DEFLATED_COOKIE)?;
    if big_endian(length) != payload.len() as u64 {
        return None;
    }
    let mut inflater = Decompressor::new();
    let (mut read, mut written) = (0, 0);
    while !inflater.is_done() {
        if written == unpacked.len() {
            let longer = (2 * written).max(4_096);
            (longer <= 2 * MAX_BYTES).then(|| unpacked.resize(longer, 0))?;
        }
        let (taken, given) = inflater.read(&payload[read..], unpacked, written, true).ok()?;
        if taken == 0 && given == 0 {
            return None;
        }
        (read, written) = (read + taken, written + given);
    }
    Some(written)
}

/// Returns how many counts a histogram with these settings has, or `None` when they are not
/// dbdyno's.
fn counts_length(settings: &[u8], counts_bytes: usize) -> Option<usize> {
    let of = |from: usize, to: usize| big_endian(&settings[from..to]);
    let is_own = settings.starts_with(&PLAIN_COOKIE)
        && of(4, 8) == counts_bytes as u64
        && of(8, 12) == 0
        && of(12, 16) == u64::from(DIGITS)
        && of(16, 24) == LOW
        && of(32, 40) == 1.0_f64.to_bits();
    let high = of(24, 32);
    // Values below `SUB_BUCKETS` have two times `SUB_BUCKETS / 2` counts, and each further doubling
    // has `SUB_BUCKETS / 2` more.
    let doublings = (high | (SUB_BUCKETS - 1)).ilog2() as usize - HALF_BITS as usize;
    (is_own && high >= 2 * LOW).then_some((doublings + 2) << HALF_BITS)
}

/// Returns the lowest value that the count at `index` includes.
fn value_at(index: usize) -> u64 {
    let index = index as u64;
    if index < SUB_BUCKETS {
        return index;
    }
    let doublings = (index >> HALF_BITS) - 1;
    ((index & (SUB_BUCKETS / 2 - 1)) + SUB_BUCKETS / 2) << doublings
}

/// Reads a number of at most eight bytes, the highest byte first.
pub(crate) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads a zig-zag LEB128 number and returns it with the bytes after it. The number has at most
/// nine bytes, and the ninth has eight bits.
fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut number = 0;
    for (index, byte) in bytes.iter().enumerate().take(9) {
        let is_last = index == 8 || byte & 0x80 == 0;
        let bits = if index == 8 { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * index);
        if is_last {
            let value = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[(u64, u64)], high: u64) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(LOW, high, DIGITS).unwrap();
        values.iter().for_each(|(value, count)| histogram.record_n(*value, *count).unwrap());
        histogram
    }

    fn stored(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).unwrap();
        bytes
    }

    /// Returns the stored form of a histogram's plain form. The crate has no serializer that starts
    /// from plain bytes.
    fn deflated(plain: &[u8]) -> Vec<u8> {
        let payload = fdeflate::compress_to_vec(plain);
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&DEFLATED_COOKIE[..], &length, &payload].concat()
    }

    fn plain(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).unwrap();
        bytes
    }

    fn read_by_crate(bytes: &[u8]) -> Option<Histogram<u64>> {
        Deserializer::new().deserialize(&mut &bytes[..]).ok()
    }

    #[test]
    fn counts_and_values_are_those_of_the_histogram() {
        for high in [2, 2_047, 2_048, 4_095, 4_096, 3_600_000_000, u64::MAX] {
            let histogram = Histogram::<u64>::new_with_bounds(LOW, high, DIGITS).unwrap();
            let found =
                counts_length(&plain(&histogram)[..SETTINGS_BYTES], plain(&histogram).len() - SETTINGS_BYTES);
            assert_eq!(found, Some(histogram.distinct_values()), "{high}");
            for (index, value) in histogram.iter_all().enumerate() {
                assert_eq!(value_at(index), histogram.lowest_equivalent(value.value_iterated_to()));
            }
        }
    }

    #[test]
    fn bytes_that_dbdyno_does_not_write_are_not_added() {
        let whole = plain(&histogram(&[(3, 7), (900, 1), (70_000, 2)], 100_000));
        assert!(Sum::default().add(&deflated(&whole)).is_some());
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = whole.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            deflated(&changed)
        };
        let counts = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
            deflated(&[&whole[..4], &length, &whole[8..SETTINGS_BYTES], bytes].concat())
        };
        let stored = deflated(&whole);
        for (what, bytes) in [
            ("no bytes", Vec::new()),
            ("another cookie", [&[0x1c, 0x84, 0x93, 0x24], &stored[4..]].concat()),
            ("cut off", stored[..stored.len() - 5].to_vec()),
            ("another length", [&stored[..7], &[stored[7] ^ 1], &stored[8..]].concat()),
            ("no zlib", [&stored[..8], &[0; 40]].concat()),
            ("another cookie within", with(3, &[0x12])),
            ("counts longer than they say", with(7, &[1])),
            ("an offset", with(11, &[1])),
            ("other digits", with(15, &[2])),
            ("another least value", with(23, &[2])),
            ("no range", with(24, &[0; 8])),
            ("a ratio", with(32, &2.0_f64.to_be_bytes())),
            ("settings cut off", deflated(&whole[..30])),
            ("a number cut off", counts(&[2, 0x80])),
            ("counts beyond the range", counts(&[0xff, 0xff, 0xff, 0x03, 2])),
            ("zeros without end", counts(&[[0xff; 9], [0xff; 9]].concat())),
        ] {
            assert!(Sum::default().add(&bytes).is_none(), "{what}");
        }
        let mut sum = Sum::default();
        let most = stored_count(i64::MAX as u64);
        assert!(sum.add(&most).is_some() && sum.add(&most).is_some());
        assert!(sum.add(&most).is_none(), "a count beyond what a counter holds");
    }

    fn stored_count(count: u64) -> Vec<u8> {
        stored(&histogram(&[(5, count)], 100))
    }

    #[test]
    fn no_histogram_and_empty_histograms_sum_to_nothing() {
        let mut sum = Sum::default();
        assert!(sum.histogram().unwrap().is_empty());
        sum.add(&stored(&histogram(&[], 100))).unwrap();
        assert!(sum.histogram().unwrap().is_empty());
        sum.add(&stored(&histogram(&[(0, 3)], 100))).unwrap();
        assert_eq!(sum.histogram().unwrap(), histogram(&[(0, 3)], 100));
    }

    #[test]
    fn a_histogram_of_thousands_of_values_is_added_whole_and_a_smaller_one_after_it() {
        let many: Vec<(u64, u64)> = (0..20_000).map(|number| (number * 7, 1_000 + number)).collect();
        let many = histogram(&many, 1_000_000);
        let few = histogram(&[(1, 2), (300, 4)], 1_000_000);
        let (mut sum, mut expected) = (Sum::default(), histogram(&[], 1_000_000));
        for histogram in [&few, &many, &few] {
            assert!(sum.add(&stored(histogram)).is_some());
            expected.add(histogram).unwrap();
        }
        assert!(sum.unpacked.len() > 2 * 4_096, "more than once as long as at first");
        assert_eq!(sum.histogram().unwrap(), expected);
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_histograms_own_reader(
            all in prop::collection::vec(
                (prop::collection::vec((0..3_600_000_000_u64, 1..1_000_000_u64), 0..40), 1..40_u32),
                1..6,
            ),
        ) {
            let (mut sum, mut expected) = (Sum::default(), histogram(&[], 100));
            expected.auto(true);
            for (values, bits) in all {
                // The shift makes values of all magnitudes, because most recorded values are small.
                let values: Vec<_> = values.iter().map(|(value, count)| (value >> (bits % 32), *count)).collect();
                let bytes = stored(&histogram(&values, 3_600_000_000));
                prop_assert!(sum.add(&bytes).is_some());
                expected.add(read_by_crate(&bytes).unwrap()).unwrap();
            }
            let found = sum.histogram().unwrap();
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!((found.len(), found.min(), found.max()), (expected.len(), expected.min(), expected.max()));
            prop_assert_eq!(found.mean().to_bits(), expected.mean().to_bits());
            for quantile in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
                prop_assert_eq!(found.value_at_quantile(quantile), expected.value_at_quantile(quantile));
            }
        }

        #[test]
        fn changed_bytes_are_added_only_as_the_histograms_own_reader_reads_them(
            at in 0..200_usize,
            bits in 1..=u8::MAX,
        ) {
            let mut changed = plain(&histogram(&[(3, 7), (900, 1), (1_000, 300), (70_000, 2)], 100_000));
            let at = at % changed.len();
            changed[at] ^= bits;
            let bytes = deflated(&changed);
            let mut sum = Sum::default();
            if sum.add(&bytes).is_some() {
                prop_assert_eq!(Some(sum.histogram().unwrap()), read_by_crate(&bytes));
            }
        }
    }
}
