//! Answer delays: distributions whose mean and quantiles are known by formula.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::Error;
use crate::units;

const FORM: &str = "none, constant 200us, uniform 100us 300us, exponential 200us (the mean), lognormal 200us 0.5 (the \
                    median, and sigma of the logarithm), or bimodal 100us 2ms 5% (fast, slow, share of slow)";

/// Largest sigma for a lognormal delay. At sigma 3 the mean is 90 times the median.
const LARGEST_SIGMA: f64 = 3.0;

/// Upper limit for a delay. A draw beyond it counts as this delay.
const LONGEST: Duration = Duration::from_secs(3600);

/// A distribution of delays.
///
/// The command line and serialized scripts use its text form: see [`Distribution::from_str`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Distribution {
    /// Answers are sent at once.
    #[default]
    None,
    Constant(Duration),
    /// The delay is uniformly distributed between `min` and `max`.
    Uniform {
        min: Duration,
        max: Duration,
    },
    Exponential {
        mean: Duration,
    },
    /// The delay's logarithm is normal, with standard deviation `sigma`.
    LogNormal {
        median: Duration,
        sigma: f64,
    },
    /// The delay is one of two constants, as for a cache that hits or misses.
    Bimodal {
        fast: Duration,
        slow: Duration,
        slow_share: f64,
    },
}

impl Distribution {
    pub fn mean(&self) -> Duration {
        match *self {
            Self::None => Duration::ZERO,
            Self::Constant(delay) => delay,
            Self::Uniform { min, max } => (min + max) / 2,
            Self::Exponential { mean } => mean,
            Self::LogNormal { median, sigma } => median.mul_f64((sigma * sigma / 2.0).exp()),
            Self::Bimodal { fast, slow, slow_share } => {
                fast.mul_f64(1.0 - slow_share) + slow.mul_f64(slow_share)
            }
        }
    }

    /// The delay that a share `probability` (0 to 1) of all draws does not exceed. No draw exceeds
    /// one hour.
    pub fn quantile(&self, probability: f64) -> Duration {
        // Quantile functions have poles at 0 and 1.
        let inside = probability.clamp(f64::EPSILON / 4.0, 1.0 - f64::EPSILON / 2.0);
        let delay = match *self {
            Self::None => Duration::ZERO,
            Self::Constant(delay) => delay,
            Self::Uniform { min, max } => min + (max - min).mul_f64(probability.clamp(0.0, 1.0)),
            Self::Exponential { mean } => mean.mul_f64(-(-inside).ln_1p()),
            Self::LogNormal { median, sigma } => {
                let factor = (sigma * Normal::standard().inverse_cdf(inside)).exp();
                Duration::from_nanos((median.as_nanos() as f64 * factor) as u64)
            }
            Self::Bimodal { fast, slow, slow_share } => {
                if probability < 1.0 - slow_share {
                    fast
                } else {
                    slow
                }
            }
        };
        delay.min(LONGEST)
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = units::show;
        match *self {
            Self::None => formatter.write_str("none"),
            Self::Constant(delay) => write!(formatter, "constant {}", show(delay)),
            Self::Uniform { min, max } => write!(formatter, "uniform {} {}", show(min), show(max)),
            Self::Exponential { mean } => write!(formatter, "exponential {}", show(mean)),
            Self::LogNormal { median, sigma } => write!(formatter, "lognormal {} {sigma}", show(median)),
            Self::Bimodal { fast, slow, slow_share } => {
                write!(formatter, "bimodal {} {} {slow_share}", show(fast), show(slow))
            }
        }
    }
}

impl FromStr for Distribution {
    type Err = Error;

    /// Reads `none`, `constant 200us`, `uniform 100us 300us`, `exponential 200us` (the mean),
    /// `lognormal 200us 0.5` (median, sigma of the logarithm), `bimodal 100us 2ms 5%` (fast, slow,
    /// share of slow).
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|problem| Error::text(text, problem, FORM))
    }
}

fn parse(text: &str) -> Result<Distribution, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["none"] => Distribution::None,
        ["constant", delay] => Distribution::Constant(units::duration(delay)?),
        ["uniform", min, max] => {
            let (min, max) = (units::duration(min)?, units::duration(max)?);
            if min > max {
                return Err("the lowest delay is longer than the highest".to_owned());
            }
            Distribution::Uniform { min, max }
        }
        ["exponential", mean] => Distribution::Exponential { mean: units::duration(mean)? },
        ["lognormal", median, sigma] => {
            let sigma: f64 = sigma.parse().map_err(|_| format!("sigma {sigma} is no number"))?;
            if !(0.0..=LARGEST_SIGMA).contains(&sigma) {
                return Err(format!("sigma {sigma} is not between 0 and {LARGEST_SIGMA}"));
            }
            Distribution::LogNormal { median: units::duration(median)?, sigma }
        }
        ["bimodal", fast, slow, share] => {
            let (fast, slow) = (units::duration(fast)?, units::duration(slow)?);
            if fast > slow {
                return Err("the fast delay is longer than the slow one".to_owned());
            }
            Distribution::Bimodal { fast, slow, slow_share: units::share(share)? }
        }
        _ => return Err("no such delay".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Purpose, unit};

    const ALL: &[&str] = &[
        "none",
        "constant 200us",
        "uniform 100us 300us",
        "exponential 200us",
        "lognormal 200us 0.5",
        "bimodal 100us 2ms 0.05",
    ];

    fn read(text: &str) -> Distribution {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn draws_have_the_mean_and_the_quantiles_that_the_formulas_give() {
        for text in ALL {
            let distribution = read(text);
            let mut random: Vec<Duration> =
                (0..400_000).map(|n| distribution.quantile(unit(1, 0, n, Purpose::Delay))).collect();
            random.sort();
            let mean = random.iter().sum::<Duration>().as_secs_f64() / random.len() as f64;
            let expected = distribution.mean().as_secs_f64();
            // Standard errors are below 0.35 % of the mean.
            assert!((mean - expected).abs() <= 0.012 * expected, "{text}: mean {mean}, not {expected}");
            for probability in [0.01, 0.5, 0.9, 0.99, 0.999] {
                let found = random[(probability * random.len() as f64) as usize].as_secs_f64();
                let expected = distribution.quantile(probability).as_secs_f64();
                let error = (found - expected).abs();
                assert!(error <= 0.04 * expected, "{text} at {probability}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn formulas_give_the_textbook_values() {
        let micros = |text: &str, probability| read(text).quantile(probability).as_nanos() as f64 / 1e3;
        assert_eq!(micros("uniform 100us 300us", 0.25), 150.0);
        assert!((micros("exponential 200us", 0.5) - 200.0 * 2_f64.ln()).abs() < 0.001);
        assert!((micros("exponential 200us", 0.999) - 200.0 * 1000_f64.ln()).abs() < 0.001);
        assert!((micros("lognormal 200us 0.5", 0.5) - 200.0).abs() < 0.001);
        assert!(
            (micros("lognormal 200us 0.5", 0.975) - 200.0 * (0.5 * 1.959_963_985_f64).exp()).abs() < 0.01
        );
        assert_eq!(
            (micros("bimodal 100us 2ms 5%", 0.949), micros("bimodal 100us 2ms 5%", 0.951)),
            (100.0, 2000.0)
        );
        assert_eq!(read("bimodal 100us 2ms 5%").mean(), Duration::from_micros(195));
        assert_eq!(read("lognormal 1s 3").quantile(1.0), LONGEST);
    }

    #[test]
    fn texts_are_read_and_written_back() {
        for text in ALL {
            assert_eq!(read(text).to_string(), *text);
        }
        let wrong = |text: &str| text.parse::<Distribution>().expect_err(text).to_string();
        insta::assert_snapshot!(wrong("exponential"), @r#""exponential": no such delay; write none, constant 200us, uniform 100us 300us, exponential 200us (the mean), lognormal 200us 0.5 (the median, and sigma of the logarithm), or bimodal 100us 2ms 5% (fast, slow, share of slow)"#);
        insta::assert_snapshot!(wrong("uniform 3ms 1ms"), @r#""uniform 3ms 1ms": the lowest delay is longer than the highest; write none, constant 200us, uniform 100us 300us, exponential 200us (the mean), lognormal 200us 0.5 (the median, and sigma of the logarithm), or bimodal 100us 2ms 5% (fast, slow, share of slow)"#);
        for bad in [
            "",
            "constant",
            "constant 5",
            "lognormal 1ms 4",
            "bimodal 2ms 1ms 5%",
            "bimodal 1ms 2ms 5",
            "gamma 1ms",
        ] {
            wrong(bad);
        }
    }

    #[test]
    fn normal_quantiles_are_those_in_published_tables() {
        for (probability, expected) in [
            (0.5, 0.0),
            (0.25, -0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_5),
            (1e-10, -6.361_340_902_404_056),
            (1e-20, -9.262_340_089_798_409),
        ] {
            let found = Normal::standard().inverse_cdf(probability);
            assert!((found - expected).abs() < 1e-9, "{probability}: {found}, not {expected}");
        }
    }
}
