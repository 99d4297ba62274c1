//! Options that several workloads have, and checks of them.

use dbdyno_plan::Mistake;
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
    /// After every step.
    EachStep,
    /// After the last step only.
    End,
    Off,
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

/// They end up in a statement, and there is one statement to send.
pub(crate) fn table_options_problem(options: &str) -> Option<Mistake> {
    options.contains(';').then(|| {
        ("create_table_options", "create_table_options holds `;`: it is part of one statement".to_owned())
    })
}
