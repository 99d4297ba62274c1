//! Concurrency levels of a sweep: one number of connections, a list, or a range that doubles,
//! `"1..4096"`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

const HELP: &str =
    "a number of connections, a list such as [1, 16, 64], or a range such as \"1..4096\", which doubles";

/// More connections than a server of any product takes.
const MOST_CONNECTIONS: u32 = 65_536;

/// Stands for concurrency levels in the schema; plans hold them as a list.
#[derive(Debug)]
pub(crate) struct ConcurrencyLevels;

impl JsonSchema for ConcurrencyLevels {
    fn schema_name() -> Cow<'static, str> {
        "ConcurrencyLevels".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 1, "maximum": MOST_CONNECTIONS });
        json_schema!({
            "description": "Numbers of connections: one, a list, or a range that doubles: \"1..4096\" is 1, 2, 4, ... 4096.",
            "anyOf": [number, { "type": "array", "minItems": 1, "uniqueItems": true, "items": number }, { "type": "string", "pattern": "^[0-9]+\\.\\.[0-9]+$" }]
        })
    }
}

/// Reads concurrency levels into a list, for a field of serde.
pub(crate) fn concurrency_levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    deserializer.deserialize_any(Levels)
}

struct Levels;

impl<'de> Visitor<'de> for Levels {
    type Value = Vec<u32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HELP)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Vec<u32>, E> {
        let level = u32::try_from(number).map_err(|_| E::custom(format!("{number} is not {HELP}")))?;
        Ok(vec![level])
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Vec<u32>, E> {
        let level = u32::try_from(number).map_err(|_| E::custom(format!("{number} is not {HELP}")))?;
        Ok(vec![level])
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u32>, E> {
        doubled(text).ok_or_else(|| E::custom(format!("\"{text}\" is not {HELP}")))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<u32>, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(list))
    }
}

/// Returns the first number, doubled as long as it is below the last, and the last: `"3..20"` is 3, 6,
/// 12, 20.
fn doubled(text: &str) -> Option<Vec<u32>> {
    let (first, last) = text.split_once("..")?;
    let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    if first == 0 || first > last {
        return None;
    }
    let below =
        std::iter::successors(Some(first), |level| level.checked_mul(2)).take_while(|&level| level < last);
    Some(below.chain([last]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_doubles_up_to_its_last_number() {
        assert_eq!(doubled("1..4096").map(|levels| levels.len()), Some(13));
        assert_eq!(doubled("1..8"), Some(vec![1, 2, 4, 8]));
        assert_eq!(doubled("3..20"), Some(vec![3, 6, 12, 20]));
        assert_eq!(doubled("7..7"), Some(vec![7]));
        for wrong in ["0..4", "8..1", "1...8", "1..", "many"] {
            assert_eq!(doubled(wrong), None, "{wrong}");
        }
    }
}
