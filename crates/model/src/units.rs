//! Values that are written in a plan as text or as a number, and their units: durations (`"30s"`),
//! lists of CPUs (`"0-1,4"`) and memory sizes (`"2 GB"`, `"512 MiB"`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares a type's JSON Schema and writes it where the type is used.
macro_rules! inline_schema {
    ($Type:ident, $schema:tt) => {
        impl schemars::JsonSchema for $Type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

/// An error for a wrong value with a unit (a duration, a size, a list of CPUs). The caller says
/// where the value is.
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

/// Highest CPU number that is accepted. A typing error must not become a list of four billion
/// numbers.
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

    /// Reads a plan's value for a duration. A bare number gets its own message, because people most
    /// often forget the unit.
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
fn no_unit(number: impl fmt::Display) -> String {
    advised(&format!("the duration {number} has no unit"), IN_PLANS)
}

/// Multiplies `number` (digits, at most one point with digits on both sides) by `unit`, rounded
/// down.
fn decimal(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = whole.parse::<u128>().ok()?.checked_mul(unit)?;
    parts.checked_add(fraction.parse::<u128>().ok()?.checked_mul(unit)? / scale)
}

/// Writes consecutive numbers as ranges: `0-1,4`.
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

/// Takes a bare number as one CPU, because a user who writes `--set host.client_cpus=2` means CPU
/// 2.
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

/// A size in bytes, written with its unit. `kB`, `MB`, `GB` and `TB` are powers of 1000, `KiB`,
/// `MiB`, `GiB` and `TiB` powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanBytes(pub u64);

/// The units with their bytes, largest first. `KB` is read too, but `kB` is written.
const BYTE_UNITS: [(&str, u64); 10] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

const BYTES_HELP: &str = "write a number and its unit (kB, MB, GB, KiB, MiB, GiB) in quotes, e.g. \"2 GB\"";

/// Writes the largest unit that gives a whole number, so that reading it back gives the same value.
impl fmt::Display for PlanBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = BYTE_UNITS.iter().find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(&("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl FromStr for PlanBytes {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bad = || ValueError::new(format!("\"{text}\" is not a size: {BYTES_HELP}"));
        let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits_end], text[digits_end..].trim());
        let (_, unit) = BYTE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        let bytes = decimal(number, u128::from(*unit));
        bytes.and_then(|bytes| u64::try_from(bytes).ok()).map(Self).ok_or_else(bad)
    }
}

impl Serialize for PlanBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Gives a bare number its own message, because people most often forget the unit.
impl<'de> Deserialize<'de> for PlanBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "a size such as \"2 GB\"", |given| match given {
            Given::Text(text) => text.parse().map_err(|error: ValueError| error.to_string()),
            Given::Number(number) => Err(format!("the size {number} has no unit: {BYTES_HELP}")),
        })
    }
}

inline_schema!(PlanBytes, {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)? ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
});

/// A plan's input for a value with a unit: a text in quotes, or a bare number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given<'a> {
    Text(&'a str),
    Number(String),
}

impl Given<'_> {
    /// Returns the text of either kind, for values that mean the same with and without quotes.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number,
        }
    }
}

/// Reads a text or a number, and gives its own message for anything else. The derived code for an
/// enum of both would answer with "did not match any variant".
pub fn scalar<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    read: fn(Given<'_>) -> Result<T, String>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Scalar { expected, read })
}

struct Scalar<T> {
    expected: &'static str,
    read: fn(Given<'_>) -> Result<T, String>,
}

impl<T> Visitor<'_> for Scalar<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(Given::Text(text)).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        (self.read)(Given::Number(number.to_string())).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        (self.read)(Given::Number(number.to_string())).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        (self.read)(Given::Number(number.to_string())).map_err(E::custom)
    }
}

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
    fn a_written_duration_reads_back_as_itself() {
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
    fn cpu_lists_are_read_and_written_as_the_kernel_writes_them() {
        let cpus = |text: &str| text.parse::<CpuList>().map(|list| (list.to_string(), list.0)).ok();
        assert_eq!(cpus("0-1,4"), Some(("0-1,4".to_owned(), vec![0, 1, 4])));
        assert_eq!(cpus("4,0-2,1"), Some(("0-2,4".to_owned(), vec![0, 1, 2, 4])));
        assert_eq!(cpus("7"), Some(("7".to_owned(), vec![7])));
        for wrong in ["", "3-1", "0-", "a", "0,,1", "0-4000000000", "-1"] {
            assert_eq!(cpus(wrong), None, "{wrong:?} must be refused");
        }
    }

    #[test]
    fn sizes_are_read_with_every_unit_and_a_written_size_reads_back() {
        let bytes = |text: &str| text.parse::<PlanBytes>().map(|size| size.0).ok();
        assert_eq!(bytes("2 GB"), Some(2_000_000_000));
        assert_eq!(bytes("2GiB"), Some(2 << 30));
        assert_eq!(bytes("1.5 GB"), Some(1_500_000_000));
        assert_eq!(bytes("64 KB"), bytes("64 kB"));
        assert_eq!(bytes("7 B"), Some(7));
        // A size may have as many digits as a duration.
        assert_eq!(bytes("1.50000000000000 GB"), Some(1_500_000_000));
        for size in [1, 999, 1_000, 1_024, 1 << 30, 1_500_000_000, 3 << 40] {
            assert_eq!(bytes(&PlanBytes(size).to_string()), Some(size), "{}", PlanBytes(size));
        }
        assert_eq!(PlanBytes(2 << 30).to_string(), "2 GiB");
        assert_eq!(PlanBytes(512_000_000).to_string(), "512 MB");
    }

    #[test]
    fn a_wrong_size_says_which_units_there_are() {
        for wrong in ["", "2", "GB", "2 G", "2 gb", "-1 GB", "1.GB", "99999999999 TB"] {
            let message = wrong.parse::<PlanBytes>().expect_err("must be refused").to_string();
            assert_eq!(message, format!("\"{wrong}\" is not a size: {BYTES_HELP}"));
        }
    }
}
