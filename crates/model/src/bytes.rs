//! Memory sizes as a plan writes them: `"2 GB"`, `"512 MiB"`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::schema::inline_schema;
use crate::units::{ValueError, decimal};
use crate::{Given, scalar};

/// A size in bytes, written with its unit. `kB`, `MB`, `GB` and `TB` are powers of 1000, `KiB`,
/// `MiB`, `GiB` and `TiB` powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanBytes(pub u64);

/// The units with their bytes, largest first. `KB` is read too, but `kB` is written.
const UNITS: [(&str, u64); 10] = [
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

const HELP: &str = "write a number and its unit (kB, MB, GB, KiB, MiB, GiB) in quotes, e.g. \"2 GB\"";

/// Writes the largest unit that gives a whole number, so that reading it back gives the same value.
impl fmt::Display for PlanBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(&("B", 1));
        write!(f, "{} {name}", self.0 / unit)
    }
}

impl FromStr for PlanBytes {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bad = || ValueError::new(format!("\"{text}\" is not a size: {HELP}"));
        let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..digits_end], text[digits_end..].trim());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
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
            Given::Number(number) => Err(format!("the size {number} has no unit: {HELP}")),
        })
    }
}

inline_schema!(PlanBytes, {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)? ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_with_every_unit_and_show_as_what_reads_back() {
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
            assert_eq!(message, format!("\"{wrong}\" is not a size: {HELP}"));
        }
    }
}
