//! Reads and writes durations and shares as people write them: `200us`, `1.5ms`, `5%`.

use std::time::Duration;

/// Time units, in nanoseconds.
const UNITS: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9)];

/// Longest duration that is accepted. A longer one is probably a typing mistake.
const LONGEST: Duration = Duration::from_secs(3600);

/// Reads `200us`, `1.5ms`, `10s`, up to one hour. The unit is required.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let Ok(number) = number.parse::<f64>() else {
        return Err(format!("{text} is no duration: a number and a unit, as in 200us or 1.5ms"));
    };
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("{text} has no unit of ns, us, ms, s or m"));
    };
    let nanos = (number * scale).round();
    if nanos > LONGEST.as_nanos() as f64 {
        return Err(format!("{text} is longer than an hour"));
    }
    Ok(Duration::from_nanos(nanos as u64))
}

/// Writes a duration so that [`duration`] reads the same value back, in the largest unit that needs
/// no fraction.
pub(crate) fn show(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, scale) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)] {
        if nanos.is_multiple_of(scale) && nanos > 0 {
            return format!("{}{unit}", nanos / scale);
        }
    }
    format!("{nanos}ns")
}

/// Reads `5%` or `0.05`, a share between 0 and 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.parse::<f64>() {
        Ok(number) if (0.0..=scale).contains(&number) => Ok(number / scale),
        _ => Err(format!("{text} is no share between 0 and 1, as in 5% or 0.05")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_back() {
        for (text, nanos, shown) in [
            ("200us", 200_000, "200us"),
            ("1.5ms", 1_500_000, "1500us"),
            ("10s", 10_000_000_000, "10s"),
            ("0.2us", 200, "200ns"),
            ("2m", 120_000_000_000, "120s"),
            ("7µs", 7000, "7us"),
            ("0s", 0, "0ns"),
        ] {
            let read = duration(text).expect(text);
            assert_eq!((read.as_nanos(), show(read).as_str()), (nanos, shown), "{text}");
            assert_eq!(duration(&show(read)), Ok(read));
        }
        for bad in ["", "10", "us", "1.2.3ms", "-5ms", "10 ms", "2h", "61m", "1e9s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_read_as_percent_or_as_fractions() {
        assert_eq!(
            (share("5%"), share("0.05"), share("1"), share("100%")),
            (Ok(0.05), Ok(0.05), Ok(1.0), Ok(1.0))
        );
        for bad in ["", "%", "101%", "1.01", "-1%", "x"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
