//! Random draws by address. A draw is a pure function of (seed, connection, request, purpose), so a
//! run's truth can be computed without observing the run.
//!
//! The mixing function is SplitMix64's (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", OOPSLA 2014), applied once for each part of the address. It is written out here, so
//! that no dependency can change it.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a draw decides. Draws for different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Delay = 1,
    Error = 2,
}

/// A uniform draw in the open interval (0, 1), in steps of 2^-53.
pub(crate) fn unit(seed: u64, connection: u64, request: u64, purpose: Purpose) -> f64 {
    let bits = [purpose as u64, connection, request]
        .iter()
        .fold(seed, |state, part| mix(state.wrapping_add(part.wrapping_add(1).wrapping_mul(GOLDEN))));
    // The half keeps 0 and 1 out, where quantile functions have poles.
    ((bits >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixing_function_gives_the_published_stream() {
        // These are SplitMix64's first values from seed 1234567, as in the reference
        // implementation's test.
        let stream = |n: u64| mix(1_234_567_u64.wrapping_add(GOLDEN.wrapping_mul(n)));
        assert_eq!(
            [stream(1), stream(2), stream(3)],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_are_uniform_along_requests_and_along_connections() {
        let along: [fn(u64) -> f64; 3] = [
            |n| unit(7, 3, n, Purpose::Delay),
            |n| unit(7, n, 3, Purpose::Delay),
            |n| unit(n, 1, 1, Purpose::Error),
        ];
        for draw in along {
            let mut counts = [0_u32; 10];
            for number in 0..100_000 {
                counts[(draw(number) * 10.0) as usize] += 1;
            }
            // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 cases.
            let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
            assert!(chi < 33.7, "{counts:?}");
        }
    }

    #[test]
    fn neighbouring_addresses_do_not_depend_on_each_other() {
        let correlation = |other: fn(u64) -> f64| {
            let sum: f64 =
                (0..100_000).map(|n| (unit(1, 1, n, Purpose::Delay) - 0.5) * (other(n) - 0.5)).sum();
            sum / 100_000.0 * 12.0
        };
        // The standard deviation of such a correlation is 0.0032.
        assert!(correlation(|n| unit(1, 1, n + 1, Purpose::Delay)).abs() < 0.013);
        assert!(correlation(|n| unit(1, 2, n, Purpose::Delay)).abs() < 0.013);
        assert!(correlation(|n| unit(1, 1, n, Purpose::Error)).abs() < 0.013);
    }
}
