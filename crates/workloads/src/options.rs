//! Options that several workloads have, and checks of options. The concurrency levels of a sweep
//! are one number of connections, a list, or a range that doubles, such as `"1..4096"`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_plan::{Mistake, Values};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use crate::plans::{MIN_MS, STEP_TIME, WHOLE_SECONDS};

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    Auto,
    Text,
    Prepared,
}

impl Protocol {
    /// Returns whether statements are prepared. `auto` says whether [`Protocol::Auto`] prepares
    /// them.
    pub(crate) const fn prepares(self, auto: bool) -> bool {
        match self {
            Self::Auto => auto,
            Self::Text => false,
            Self::Prepared => true,
        }
    }
}

/// When table contents are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// After each step that may change tables; in the Insert Benchmark after every step.
    EachStep,
    /// After the last step only.
    End,
    Off,
}

impl Verify {
    /// Returns whether tables are checked after a step. `each` says whether [`Verify::EachStep`]
    /// does so there.
    pub(crate) const fn holds(self, each: bool, is_last: bool) -> bool {
        match self {
            Self::EachStep => each,
            Self::End => is_last,
            Self::Off => false,
        }
    }
}

/// Returns the first value that breaks a rule of the plan schema: numbers in their ranges, lists
/// that are not empty and hold nothing twice, times that are long enough. The schema takes these
/// rules from the option's declaration, so no workload checks them again. Tables within lists and
/// maps are not checked.
pub(crate) fn schema_problem<T: JsonSchema + Values>(options: &T) -> Option<Mistake> {
    let schema = schema_for!(T).to_value();
    let (key, message) = table_problem(&schema, &options.values(), "", &schema["$defs"])?;
    // A mistake names a key that lives as long as the process. No plan has more than one.
    let key: &'static str = key.leak();
    Some((key, message))
}

/// Returns the first mistake in a table with this schema whose keys begin with `prefix`: the key,
/// and a message that says what to write.
fn table_problem(
    schema: &Value,
    values: &Map<String, Value>,
    prefix: &str,
    tables: &Value,
) -> Option<(String, String)> {
    schema["properties"].as_object()?.iter().find_map(|(key, schema)| {
        let (value, key) = (values.get(key)?, format!("{prefix}{key}"));
        let schema = schema_of(schema, value, tables);
        if let Value::Object(inner) = value {
            return table_problem(schema, inner, &format!("{key}."), tables);
        }
        value_problem(&key, schema, value).map(|message| (key, message))
    })
}

/// Returns the schema to which a reference leads. Where there are several schemas, it is the one
/// that fits the type of `value`.
fn schema_of<'a>(schema: &'a Value, value: &Value, tables: &'a Value) -> &'a Value {
    if let Some(table) = schema["$ref"].as_str().and_then(|table| table.strip_prefix("#/$defs/")) {
        return schema_of(&tables[table], value, tables);
    }
    let Some(variants) = schema["anyOf"].as_array() else { return schema };
    let wanted = if value.is_array() { "array" } else { "object" };
    let mut variants = variants.iter().map(|variant| schema_of(variant, value, tables));
    variants.find(|variant| variant["type"] == wanted).unwrap_or(schema)
}

fn value_problem(key: &str, schema: &Value, value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => {
            let wanted = wanted(schema, number)?;
            Some(format!("{key} is {}, but must be {wanted}", plain(number)))
        }
        // JSON has no number for infinity.
        Value::Null if schema["type"] == "number" => Some(format!("{key} must be a finite number")),
        Value::Array(list) => list_problem(key, schema, list),
        Value::String(text) => Some(format!("{key} is {text}, but must be {}", time_problem(schema, text)?)),
        _ => None,
    }
}

fn list_problem(key: &str, schema: &Value, list: &[Value]) -> Option<String> {
    if list.is_empty() && schema["minItems"].as_u64().is_some_and(|min| min > 0) {
        return Some(format!("{key} is empty: name at least one"));
    }
    let out_of_range = |value: &Value| match value {
        Value::Number(number) => Some((plain(number), wanted(&schema["items"], number)?)),
        _ => None,
    };
    if let Some((value, wanted)) = list.iter().find_map(out_of_range) {
        return Some(format!("{key} holds {value}, but each must be {wanted}"));
    }
    let twice = if schema["uniqueItems"] == true { repeated(list)? } else { return None };
    let shown = twice.as_str().map_or_else(|| twice.to_string(), str::to_owned);
    Some(format!("{key} holds {shown} twice"))
}

/// Returns what a number outside its range must be. The result is `None` for a number inside it.
fn wanted(schema: &Value, number: &Number) -> Option<String> {
    let bound = |name: &str| schema[name].as_number();
    let (min, max) = (bound("minimum"), bound("maximum"));
    let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
    let is_inside = min.is_none_or(|min| order(number, min).is_ge())
        && max.is_none_or(|max| order(number, max).is_le())
        && above.is_none_or(|above| order(number, above).is_gt())
        && below.is_none_or(|below| order(number, below).is_lt());
    if is_inside {
        return None;
    }
    if let (Some(min), Some(max)) = (min, max) {
        return Some(format!("{} to {}", plain(min), plain(max)));
    }
    let parts = [("at least", min), ("above", above), ("at most", max), ("below", below)];
    let parts = parts.into_iter().filter_map(|(word, bound)| Some(format!("{word} {}", plain(bound?))));
    Some(parts.collect::<Vec<_>>().join(" and "))
}

/// Compares numbers. Whole numbers are compared as such, because a float has too few digits for the
/// highest ids.
fn order(one: &Number, other: &Number) -> Ordering {
    match (one.as_u64(), other.as_u64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.as_f64().unwrap_or(f64::NAN).total_cmp(&other.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Formats a number. Both 1 and 1.0 become `1`.
fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => value.to_string(),
        _ => number.to_string(),
    }
}

/// Returns what the time in `text` must be, or `None` where it is right or `text` is not a time. A
/// step that is shorter than a second has too little to count. Records are cut at whole seconds, so
/// a warm-up that ends between two would be counted in part.
fn time_problem(schema: &Value, text: &str) -> Option<String> {
    let time: PlanDuration = serde_json::from_value(Value::from(text)).ok()?;
    let of_step = (schema[STEP_TIME] == true).then_some(1_000);
    let min = schema[MIN_MS].as_u64().or(of_step).map(Duration::from_millis);
    if let Some(min) = min.filter(|min| time.0 < *min) {
        return Some(format!("at least {}", PlanDuration(min)));
    }
    (schema[WHOLE_SECONDS] == true && time.0.subsec_nanos() != 0).then(|| "whole seconds".to_owned())
}

/// Returns the first case whose condition is true: its key, and a message that says what to write.
pub(crate) fn first_problem<const N: usize>(cases: [(bool, &'static str, &str); N]) -> Option<Mistake> {
    let (_, key, message) = cases.into_iter().find(|(is_so, ..)| *is_so)?;
    Some((key, message.to_owned()))
}

/// Returns the first value that a list holds for the second time.
pub(crate) fn repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(at, value)| list[..*at].contains(value)).map(|(_, value)| value)
}

/// Refuses table options with `;`. The options become part of a statement, and only one statement
/// is sent.
pub(crate) fn table_options_problem(options: &str) -> Option<Mistake> {
    options.contains(';').then(|| {
        ("create_table_options", "create_table_options holds `;`: it is part of one statement".to_owned())
    })
}

const HELP: &str =
    "a number of connections, a list such as [1, 16, 64], or a range such as \"1..4096\", which doubles";

/// More connections than any server accepts.
const MOST_CONNECTIONS: u32 = 65_536;

/// Gives concurrency levels their schema. The options themselves hold them as a list.
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

/// Reads concurrency levels into a list, for `deserialize_with` of serde.
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

/// Reads a range that doubles. It has the first number, its doubles below the last number, and the
/// last number: `"3..20"` is 3, 6, 12, 20.
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
