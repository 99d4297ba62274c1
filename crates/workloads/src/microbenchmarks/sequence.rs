//! The names of the two sequences of microbenchmarks, as plans write them.

use dbdyno_model::scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Which order of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum MicroSequence {
    /// The 42 of the reports of 2023 and 2024.
    #[serde(rename = "42")]
    FortyTwo,
    /// The 32 of the reports since April 2025.
    #[serde(rename = "32")]
    ThirtyTwo,
}

impl MicroSequence {
    pub const ALL: [Self; 2] = [Self::FortyTwo, Self::ThirtyTwo];

    /// Returns the name of the sequence in lists.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FortyTwo => "sequence 42",
            Self::ThirtyTwo => "sequence 32",
        }
    }
}

/// Reads a name. The names are numbers, so they may be written without quotes too.
impl<'de> Deserialize<'de> for MicroSequence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "\"42\" or \"32\"", |given| match given.text() {
            "42" => Ok(Self::FortyTwo),
            "32" => Ok(Self::ThirtyTwo),
            // The message is the library's, because errors of plans are made from its messages.
            other => Err(format!("unknown variant `{other}`, expected `42` or `32`")),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::microbenchmarks::options::MicrobenchmarksOptions;

    #[test]
    fn a_sequence_is_named_with_and_without_quotes_and_a_wrong_one_is_answered_with_the_two() {
        let read = |value: &str, set: &[(String, String)]| {
            let text = format!(
                "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.microbenchmarks]\nsequence = {value}\n"
            );
            let plan = crate::plans::parse_with(&text, "test.toml", set);
            plan.map_or_else(
                |error| error.to_string(),
                |plan| format!("{:?}", plan.workload.options::<MicrobenchmarksOptions>().unwrap().sequence),
            )
        };
        assert_eq!([read("32", &[]), read("\"32\"", &[])], ["ThirtyTwo", "ThirtyTwo"]);
        assert_eq!(
            read("32", &[("workload.microbenchmarks.sequence".to_owned(), "42".to_owned())]),
            "FortyTwo"
        );
        let wrong = [read("\"41\"", &[]), read("41", &[]), read("true", &[])];
        insta::assert_snapshot!(wrong.join("\n"), @r#"
        test.toml:6:12: `41` is not a value of this key (did you mean `42`?); it takes 42, 32
        test.toml:6:12: `41` is not a value of this key (did you mean `42`?); it takes 42, 32
        test.toml:6:12: found boolean `true` where "42" or "32" is wanted
        "#);
    }
}
