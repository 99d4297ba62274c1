//! Options that several workloads have, and checks of them.

use std::time::Duration;

use dbdyno_plan::{Mistake, PlanDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How statements travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    Auto,
    Text,
    Prepared,
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

/// A whole number of a plan: its key, its value, the least and the greatest allowed one.
pub(crate) type Number = (&'static str, u64, u64, u64);

/// The first number outside its range.
pub(crate) fn number_problem(numbers: impl IntoIterator<Item = Number>) -> Option<Mistake> {
    let outside = |(_, value, least, greatest): &Number| value < least || value > greatest;
    let (key, value, least, greatest) = numbers.into_iter().find(outside)?;
    let range =
        if greatest == u64::MAX { format!("at least {least}") } else { format!("{least} to {greatest}") };
    Some((key, format!("{key} is {value}, but must be {range}")))
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
