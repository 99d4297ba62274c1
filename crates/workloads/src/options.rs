//! Options that several workloads have, and checks of them.

use std::ops::RangeInclusive;
use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_plan::{Mistake, Values};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How statements travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    Auto,
    Text,
    Prepared,
}

impl Protocol {
    /// Whether statements are prepared; `auto` says whether [`Protocol::Auto`] prepares them.
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
    /// Whether tables are checked after a step; `each` says whether [`Verify::EachStep`] does
    /// there.
    pub(crate) const fn holds(self, each: bool, is_last: bool) -> bool {
        match self {
            Self::EachStep => each,
            Self::End => is_last,
            Self::Off => false,
        }
    }
}

/// The first whole number outside the range that the plan schema has for it.
pub(crate) fn range_problem<T: JsonSchema + Values>(options: &T) -> Option<Mistake> {
    let schema = schema_for!(T).to_value();
    let (key, message) = outside(&schema, &options.values(), "", &schema["$defs"])?;
    // A mistake names a key that lives as long as the process; no plan has more than one.
    let key: &'static str = key.leak();
    Some((key, message))
}

/// As [`range_problem`], of a table with this schema whose keys begin with `prefix`.
fn outside(
    schema: &Value,
    values: &Map<String, Value>,
    prefix: &str,
    tables: &Value,
) -> Option<(String, String)> {
    schema["properties"].as_object()?.iter().find_map(|(key, schema)| {
        let (value, key) = (values.get(key)?, format!("{prefix}{key}"));
        if let Value::Object(inner) = value {
            let table = schema["$ref"].as_str()?.strip_prefix("#/$defs/")?;
            return outside(&tables[table], inner, &format!("{key}."), tables);
        }
        let bound = |name: &str| schema[name].as_u64();
        let range = bound("minimum").unwrap_or(0)..=bound("maximum").unwrap_or(u64::MAX);
        number_problem(&key, value.as_u64()?, &range).map(|message| (key, message))
    })
}

/// What to write when `value` is outside `range`.
pub(crate) fn number_problem(key: &str, value: u64, range: &RangeInclusive<u64>) -> Option<String> {
    if range.contains(&value) {
        return None;
    }
    let wanted = match (range.start(), range.end()) {
        (least, &u64::MAX) => format!("at least {least}"),
        (least, greatest) => format!("{least} to {greatest}"),
    };
    Some(format!("{key} is {value}, but must be {wanted}"))
}

/// The first of these that is so: its key, and what to write.
pub(crate) fn first_problem<const N: usize>(cases: [(bool, &'static str, &str); N]) -> Option<Mistake> {
    let (_, key, message) = cases.into_iter().find(|(is_so, ..)| *is_so)?;
    Some((key, message.to_owned()))
}

/// The first value that a list holds for the second time.
pub(crate) fn repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(at, value)| list[..*at].contains(value)).map(|(_, value)| value)
}

/// A time in which too little happens to be counted.
pub(crate) fn time_problem(key: &'static str, time: PlanDuration) -> Option<Mistake> {
    let is_short = time.0 < Duration::from_secs(1);
    is_short.then(|| (key, format!("{key} is {time}, but must be at least 1s")))
}

/// Records are cut at whole seconds: a warm-up that ends between two would be counted in part.
pub(crate) fn warmup_problem(warmup: PlanDuration) -> Option<Mistake> {
    let is_cut = warmup.0.subsec_nanos() != 0;
    is_cut.then(|| ("warmup", format!("warmup is {warmup}, but must be whole seconds")))
}

/// `of` is what it is a multiple of.
pub(crate) fn time_cap_problem(time_cap: f64, of: &str) -> Option<Mistake> {
    let is_good = time_cap >= 1.0 && time_cap.is_finite();
    (!is_good).then(|| ("time_cap", format!("time_cap is a multiple of {of} and must be at least 1")))
}

/// The exponent of a Zipf law.
pub(crate) fn exponent_problem(key: &'static str, exponent: f64) -> Option<Mistake> {
    let is_good = (0.0..=100.0).contains(&exponent);
    (!is_good).then(|| (key, format!("{key} must be 0 to 100, e.g. 0.8")))
}

/// The share of a Pareto law.
pub(crate) fn pareto_problem(key: &'static str, share: f64) -> Option<Mistake> {
    let is_good = share > 0.0 && share < 1.0;
    (!is_good).then(|| (key, format!("{key} must be above 0 and below 1, e.g. 0.2")))
}

/// They end up in a statement, and there is one statement to send.
pub(crate) fn table_options_problem(options: &str) -> Option<Mistake> {
    options.contains(';').then(|| {
        ("create_table_options", "create_table_options holds `;`: it is part of one statement".to_owned())
    })
}
