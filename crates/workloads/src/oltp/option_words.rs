//! The words of `[workload.oltp]`: versions, tests, arrivals, distributions and error codes.

use std::borrow::Cow;

use dbdyno_model::{Given, named, scalar};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Which version of the original the defaults follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OltpProfile {
    /// Versions 1.0 and 1.1.
    #[serde(rename = "sysbench-1")]
    Sysbench1,
    /// Version 0.5, as the reports of 2012 used it.
    #[serde(rename = "sysbench-0.5")]
    Sysbench05,
}

/// Type of the columns `id` and `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdType {
    /// 32 bits, as in the original.
    Integer,
    /// 64 bits: tables of more than 2,147,483,647 rows.
    Bigint,
}

/// How rows travel to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadMethod {
    /// Multi-row INSERTs of up to 512 KiB, as in the original; prepared, unless `protocol` is
    /// `text`.
    Insert,
    /// The database's own way for bulk: LOAD DATA LOCAL INFILE, COPY FROM STDIN, or prepared
    /// INSERTs in long transactions; 4 MiB of text at a time, and no file anywhere.
    Stream,
}

named! {
    /// One of the eight classic tests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum OltpTest {
        /// One row by its id.
        PointSelect = "point-select",
        /// Point selects and four kinds of ranges in a transaction.
        ReadOnly = "read-only",
        /// The reads, then the writes, in one transaction.
        ReadWrite = "read-write",
        /// Two updates, a delete and an insert in a transaction.
        WriteOnly = "write-only",
        /// `k = k + 1` of one row.
        UpdateIndex = "update-index",
        /// A new `c` for one row.
        #[serde(alias = "update-nonindex")]
        UpdateNonIndex = "update-non-index",
        /// One new row.
        Insert = "insert",
        /// One row by its id; the table empties.
        Delete = "delete",
    }
}

named! {
    /// When a connection sends its next operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum OltpArrivals {
        /// When the one before is answered.
        Closed = "closed",
        /// At equal distances, whatever the server does.
        Constant = "constant",
        /// After random gaps, as independent users come, whatever the server does.
        Poisson = "poisson",
    }
}

/// How the pauses of a closed loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Think {
    /// All of the same length.
    Fixed,
    /// Of random length; `think_time` is the mean.
    Exponential,
}

/// How ids are drawn from 1 to the table's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    Uniform,
    /// Mostly from a band in the middle, as version 1.0 draws: from the upper three quarters of the
    /// band.
    Special,
    /// Mostly from a band in the middle, as versions before 1.0 draw: from the whole band.
    SpecialWhole,
    /// The mean of some uniform draws.
    Gaussian,
    /// Few small ids get most of the draws.
    Pareto,
    /// The id's rank is its number: id 1 is the most frequent.
    Zipfian,
}

impl OltpTest {
    /// Returns whether the test changes rows.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::PointSelect | Self::ReadOnly)
    }

    /// Returns whether its statements are between BEGIN and COMMIT.
    pub const fn is_transaction(self) -> bool {
        matches!(self, Self::ReadOnly | Self::ReadWrite | Self::WriteOnly)
    }
}

/// Code of an error that a server answers with: a number of MySQL or MariaDB, an SQLSTATE of
/// PostgreSQL, or `all`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ErrorCode(pub String);

impl JsonSchema for ErrorCode {
    fn schema_name() -> Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Code of an error: a number such as 1213, an SQLSTATE such as \"40P01\", or \"all\".",
            "anyOf": [{ "type": "integer", "minimum": 1, "maximum": 65535 }, { "type": "string", "pattern": "^[0-9A-Za-z_]+$" }]
        })
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "the code of an error, such as 1213 or \"40P01\", or \"all\"";
        scalar(deserializer, expected, |given| match given {
            Given::Number(number) if number.parse::<u16>().is_ok() => Ok(Self(number)),
            Given::Number(number) => {
                Err(format!("{number} is no number of an error: they are from 1 to 65535"))
            }
            Given::Text(text) => {
                let is_code =
                    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                is_code
                    .then(|| Self(text.to_owned()))
                    .ok_or_else(|| format!("`{text}` is no code of an error"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_named_as_plans_write_it() {
        for test in OltpTest::ALL {
            assert_eq!(serde_json::to_value(test).unwrap(), test.name());
        }
    }

    #[test]
    fn codes_of_errors_are_numbers_or_words() {
        let read =
            |text: &str| serde_json::from_str::<Vec<ErrorCode>>(text).map_err(|error| error.to_string());
        let codes = read("[1213, \"40P01\", \"all\"]").unwrap();
        assert_eq!(codes.iter().map(|code| code.0.as_str()).collect::<Vec<_>>(), ["1213", "40P01", "all"]);
        assert_eq!(serde_json::to_value(&codes[0]).unwrap(), "1213");
        for wrong in ["[-1]", "[70000]", "[\"\"]", "[\"a b\"]", "[true]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
