//! Values that a plan writes as a text or as a number.

use std::fmt;

use serde::Deserializer;
use serde::de::{self, Visitor};

/// The value that the plan has in such a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given<'a> {
    Text(&'a str),
    Number(String),
}

impl Given<'_> {
    /// Returns the text of either kind, for values to which quotes make no difference.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number,
        }
    }
}

/// Reads a value with a message of its own for what does not fit. The derived code for an enum of
/// both would answer with "did not match any variant".
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
