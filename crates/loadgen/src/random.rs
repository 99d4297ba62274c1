//! This is a counter-based random generator. Every draw is a pure function of its address, made of
//! a seed, a stream, a client, an operation and an index. Operation 7 of client 3 is therefore the
//! same for every variant, on every machine, in every version of dbdyno.
//!
//! The generator is Philox-4x32 with 10 rounds, from Salmon, Moraes, Dror, Shaw: "Parallel random
//! numbers: as easy as 1, 2, 3" (SC 2011). The code follows the paper and is tested against the
//! authors' published vectors. The generator passes BigCrush.

/// The paper's factors for the two multiplications in a round.
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// The paper's increments of the key after each round.
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// A stream of draws. It has one key and gives a block of bits for any counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
}

impl Philox {
    /// Returns stream `stream` of `seed`. Streams of one seed do not depend on each other.
    pub fn new(seed: u64, stream: u32) -> Self {
        // One block of the generator itself turns (seed, stream) into a key.
        let seeded = Self { key: [seed as u32, (seed >> 32) as u32] };
        let block = seeded.block([stream, 0x6462_6479, 0x6e6f_0001, 0]);
        Self { key: [block[0], block[1]] }
    }

    /// Returns the 128 bits at `counter`.
    pub fn block(&self, counter: [u32; 4]) -> [u32; 4] {
        let mut c = counter;
        let mut key = self.key;
        for _ in 0..ROUNDS {
            let (high0, low0) = wide_multiply(MULTIPLIERS[0], c[0]);
            let (high1, low1) = wide_multiply(MULTIPLIERS[1], c[2]);
            c = [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        c
    }

    /// Returns draw `index` of operation `number` of `client`. Each draw has 128 bits.
    pub fn at(&self, client: u32, number: u64, index: u32) -> [u32; 4] {
        self.block([number as u32, (number >> 32) as u32, index, client])
    }
}

/// Returns the high and the low half of a product.
fn wide_multiply(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// Returns a uniform number in `0..bound` from 32 random bits (Lemire's multiply-shift). The bias is
/// below `bound` / 2^32.
pub fn draw_below(bits: u32, bound: u32) -> u32 {
    ((u64::from(bits) * u64::from(bound)) >> 32) as u32
}

/// Returns a uniform number in `0..bound` from 64 random bits.
pub fn draw_below_u64(high: u32, low: u32, bound: u64) -> u64 {
    let bits = (u128::from(high) << 32) | u128::from(low);
    ((bits * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors are from the authors' Random123 distribution, `philox4x32 10`.
    #[test]
    fn the_generator_gives_the_published_vectors() {
        let check = |counter, key, expected: [u32; 4]| assert_eq!(Philox { key }.block(counter), expected);
        check([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        check([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        check(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        );
    }

    #[test]
    fn an_address_always_gives_the_same_draw() {
        // The draws are frozen on purpose: when they change, no two runs are comparable any more.
        assert_eq!(Philox::new(1, 0).at(1, 0, 0), Philox::new(1, 0).at(1, 0, 0));
        let draws: std::collections::HashSet<_> = (0..4)
            .flat_map(|client| (0..50).map(move |number| (client, number)))
            .flat_map(|(client, number)| (0..3).map(move |index| (client, number, index)))
            .map(|(client, number, index)| Philox::new(1, 7).at(client, number, index))
            .collect();
        assert_eq!(draws.len(), 4 * 50 * 3);
        assert_ne!(Philox::new(1, 0).at(1, 0, 0), Philox::new(1, 1).at(1, 0, 0));
        assert_ne!(Philox::new(1, 0).at(1, 0, 0), Philox::new(2, 0).at(1, 0, 0));
        assert_ne!(Philox::new(1, 0).at(1, 1 << 32, 0), Philox::new(1, 0).at(1, 0, 0));
    }

    #[test]
    fn bounded_draws_are_uniform_and_stay_inside() {
        let stream = Philox::new(42, 3);
        let mut counts = [0_u32; 10];
        for number in 0..100_000 {
            counts[draw_below(stream.at(1, number, 0)[0], 10) as usize] += 1;
        }
        // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 times.
        let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 33.7, "{counts:?}");
        assert_eq!(draw_below(u32::MAX, 1000), 999);
        assert_eq!(draw_below_u64(u32::MAX, u32::MAX, 5_000_000_000), 4_999_999_999);
        assert_eq!(draw_below_u64(0, 0, 5_000_000_000), 0);
    }
}
