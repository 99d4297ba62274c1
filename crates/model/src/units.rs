//! Values with units as a plan writes them: `"30s"`, `"0-1,4"`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::schema::inline_schema;
use crate::{Given, scalar};

/// A value with a unit (a duration, a size, a list of CPUs) is wrong; its place is the caller's to
/// say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ValueError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

/// A length of time in a plan, written with its unit: `"500ms"`, `"30s"`, `"5m"`, `"2h"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanDuration(pub Duration);

/// CPU numbers as the kernel writes them: `"0-1,4"`. Parsed lists are ascending and without
/// repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

/// The units with their nanoseconds, largest first.
const UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Highest CPU number that is believed. A typing error must not become a list of four thousand
/// million numbers.
const MAX_CPU: u32 = 8191;

/// Writes the largest unit that gives a whole number, so that reading it back gives the same value.
impl fmt::Display for PlanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match UNITS.iter().find(|(_, unit)| nanos > 0 && nanos.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", nanos / unit),
            None => f.write_str("0s"),
        }
    }
}

impl FromStr for PlanDuration {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Self::parse(text, IN_PLANS)
    }
}

impl PlanDuration {
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Reads what a plan has in the place of a duration. A bare number gets its own message,
    /// because people most often forget the unit.
    pub fn read(given: &Given<'_>) -> Result<Self, String> {
        match given {
            Given::Text(text) => text.parse().map_err(|error: ValueError| error.to_string()),
            Given::Number(number) => Err(no_unit(number)),
        }
    }

    /// Reads a duration from a command line, where it needs no quotes.
    pub fn of_argument(text: &str) -> Result<Self, ValueError> {
        Self::parse(text, ", e.g. 30s")
    }

    /// Parses a duration. `how` ends the advice in an error.
    fn parse(text: &str, how: &str) -> Result<Self, ValueError> {
        let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits_end], text[digits_end..].trim());
        let bad = |what: String| ValueError::new(advised(&what, how));
        if number.is_empty() {
            return Err(bad(format!("\"{text}\" is not a duration")));
        }
        if unit.is_empty() {
            return Err(bad(format!("the duration \"{text}\" has no unit")));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(bad(format!("\"{unit}\" in \"{text}\" is not a unit of time")));
        };
        decimal(number, *nanos)
            .and_then(|nanos| u64::try_from(nanos).ok())
            .map(|nanos| Self(Duration::from_nanos(nanos)))
            .ok_or_else(|| bad(format!("the duration \"{text}\" is not a number of at most 500 years")))
    }
}

const IN_PLANS: &str = " in quotes, e.g. \"30s\"";

fn advised(what: &str, how: &str) -> String {
    format!("{what}: write a number and its unit (ms, s, m or h){how}")
}

/// Returns the message for a plan's duration that is a bare number.
pub(crate) fn no_unit(number: impl fmt::Display) -> String {
    advised(&format!("the duration {number} has no unit"), IN_PLANS)
}

/// Multiplies `number` (digits, at most one point with digits on both sides) by `unit`, rounded
/// down.
pub(crate) fn decimal(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = whole.parse::<u128>().ok()?.checked_mul(unit)?;
    parts.checked_add(fraction.parse::<u128>().ok()?.checked_mul(unit)? / scale)
}

/// Writes ranges where numbers follow each other: `0-1,4`.
impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|left, right| left.checked_add(1) == Some(*right));
        for (index, run) in runs.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl CpuList {
    /// Names the CPUs in a sentence: `CPU 1`, `CPUs 0-1`.
    pub fn named(&self) -> String {
        format!("{} {self}", if self.0.len() == 1 { "CPU" } else { "CPUs" })
    }
}

impl FromStr for CpuList {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bad = || {
            let help = "write numbers and ranges from 0 to 8191, e.g. \"0-1,4\"";
            ValueError::new(format!("\"{text}\" is not a list of CPUs: {help}"))
        };
        let number =
            |part: &str| part.trim().parse::<u32>().ok().filter(|cpu| *cpu <= MAX_CPU).ok_or_else(bad);
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(bad());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

impl Serialize for PlanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PlanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a duration such as \"30s\"", |given| Self::read(&given))
    }
}

/// Takes a bare number as one CPU, because `--set host.client_cpus=2` must mean what it says.
impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a list of CPUs such as \"0-1,4\"", |given| {
            given.text().parse().map_err(|error: ValueError| error.to_string())
        })
    }
}

inline_schema!(PlanDuration, { "type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s|m|h)$" });

inline_schema!(CpuList, {
    "type": ["string", "integer"],
    "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
    "minimum": 0
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_with_every_unit_and_with_a_point() {
        let nanos = |text: &str| text.parse::<PlanDuration>().map(|value| value.0.as_nanos()).ok();
        assert_eq!(nanos("500ms"), Some(500_000_000));
        assert_eq!(nanos("30s"), Some(30_000_000_000));
        assert_eq!(nanos("30 s"), Some(30_000_000_000));
        assert_eq!(nanos("5m"), Some(300_000_000_000));
        assert_eq!(nanos("2h"), Some(7_200_000_000_000));
        assert_eq!(nanos("1.5s"), Some(1_500_000_000));
        assert_eq!(nanos("7us"), Some(7_000));
        assert_eq!(nanos("0s"), Some(0));
    }

    #[test]
    fn a_wrong_duration_says_which_units_there_are() {
        let check = |text: &str| text.parse::<PlanDuration>().expect_err("must be refused").to_string();
        insta::assert_snapshot!(check("30"), @r#"the duration "30" has no unit: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
        insta::assert_snapshot!(check("30sec"), @r#""sec" in "30sec" is not a unit of time: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
        insta::assert_snapshot!(check("soon"), @r#""soon" is not a duration: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
        insta::assert_snapshot!(check("1.s"), @r#"the duration "1.s" is not a number of at most 500 years: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
        insta::assert_snapshot!(check("99999999999999999999h"), @r#"the duration "99999999999999999999h" is not a number of at most 500 years: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
        insta::assert_snapshot!(check("-3s"), @r#""-3s" is not a duration: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
    }

    #[test]
    fn a_shown_duration_reads_back_as_itself() {
        for nanos in [
            0,
            1,
            999,
            1_500,
            250_000_000,
            1_000_000_000,
            90_000_000_000,
            5_400_000_000_000,
            7_200_000_000_000,
        ] {
            let value = PlanDuration(Duration::from_nanos(nanos));
            assert_eq!(value.to_string().parse::<PlanDuration>().expect("own output"), value);
        }
        assert_eq!(PlanDuration::from_secs(1800).to_string(), "30m");
        assert_eq!(PlanDuration::from_secs(90).to_string(), "90s");
        assert_eq!(PlanDuration(Duration::ZERO).to_string(), "0s");
    }

    #[test]
    fn cpu_lists_read_and_show_as_the_kernel_writes_them() {
        let cpus = |text: &str| text.parse::<CpuList>().map(|list| (list.to_string(), list.0)).ok();
        assert_eq!(cpus("0-1,4"), Some(("0-1,4".to_owned(), vec![0, 1, 4])));
        assert_eq!(cpus("4,0-2,1"), Some(("0-2,4".to_owned(), vec![0, 1, 2, 4])));
        assert_eq!(cpus("7"), Some(("7".to_owned(), vec![7])));
        for wrong in ["", "3-1", "0-", "a", "0,,1", "0-4000000000", "-1"] {
            assert_eq!(cpus(wrong), None, "{wrong:?} must be refused");
        }
    }
}
