//! Product versions as numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A version as three numbers, where a missing number is 0: 10.11.5, 8.4.0, 18.0.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub [u32; 3]);

impl Release {
    /// Reads the numbers at the start of `text`: `10.11.19-MariaDB`, `19rc1`, `5.6`. The result is
    /// `None` without any.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = [0; 3];
        for (index, part) in text.split('.').take(3).enumerate() {
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            match part[..digits].parse() {
                Ok(number) => numbers[index] = number,
                Err(_) if index == 0 => return None,
                Err(_) => break,
            }
            if digits < part.len() {
                break;
            }
        }
        Some(Self(numbers))
    }

    /// Whether this version is `major.minor` or later.
    pub fn at_least(self, major: u32, minor: u32) -> bool {
        self >= Self([major, minor, 0])
    }
}

/// Writes the version without zeros at the end beyond the second number: `8.4`, `8.0.30`, `18`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [major, 0, 0] if major >= 13 => write!(f, "{major}"),
            [major, minor, 0] => write!(f, "{major}.{minor}"),
            [major, minor, patch] => write!(f, "{major}.{minor}.{patch}"),
        }
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("{text:?} is not a version")))
    }
}
