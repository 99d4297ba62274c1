//! Programmed faults: errors, disconnects and half answers, each at known statements.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Error;
use crate::random::{Purpose, unit};
use crate::units;

const ERROR_FORM: &str =
    "a code and when, as in 1213 every 100 (MySQL), 40P01 every 100 (PostgreSQL) or 1213 0.5%";
const HALF_FORM: &str =
    "every 100 (then the connection is closed) or every 100 stall 500ms (then the rest follows)";

/// The statements at which something happens. They are counted per connection, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Occurrence {
    Every(u64),
    /// Each statement is hit with this probability, by a separate draw.
    Share(f64),
}

impl Occurrence {
    pub(crate) fn strikes(self, seed: u64, connection: u64, statement: u64) -> bool {
        match self {
            Self::Every(number) => statement.is_multiple_of(number),
            Self::Share(share) => unit(seed, connection, statement, Purpose::Error) < share,
        }
    }
}

/// Which statements are refused, and with which error.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The product's own code: a MySQL number (`1213`), or a PostgreSQL SQLSTATE (`40P01`).
    pub code: String,
    pub when: Occurrence,
}

/// Answers that are sent only by half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half {
    /// Every nth statement of a connection is hit.
    pub every: u64,
    /// The pause before the other half; `None` closes the connection instead.
    pub stall: Option<Duration>,
}

/// What happens to one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    Refused,
    Half,
    Disconnected,
}

impl fmt::Display for Occurrence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(number) => write!(formatter, "every {number}"),
            Self::Share(share) => write!(formatter, "{share}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.code, self.when)
    }
}

impl fmt::Display for Half {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "every {}", self.every)?;
        self.stall.map_or(Ok(()), |stall| write!(formatter, " stall {}", units::show(stall)))
    }
}

impl FromStr for Refusal {
    type Err = Error;

    /// Reads `1213 every 100`, `40P01 0.5%`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let when = match words[1.min(words.len())..] {
            ["every", number] => every(number).map(Occurrence::Every),
            [share] => units::share(share).map(Occurrence::Share),
            _ => Err("no such error".to_owned()),
        };
        let when = when.map_err(|problem| Error::text(text, problem, ERROR_FORM))?;
        Ok(Self { code: words[0].to_owned(), when })
    }
}

impl FromStr for Half {
    type Err = Error;

    /// Reads `every 100`, `every 100 stall 500ms`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["every", number] => every(number).map(|every| Self { every, stall: None }),
            ["every", number, "stall", stall] => {
                every(number).and_then(|every| Ok(Self { every, stall: Some(units::duration(stall)?) }))
            }
            _ => Err("no such half answer".to_owned()),
        };
        parsed.map_err(|problem| Error::text(text, problem, HALF_FORM))
    }
}

fn every(number: &str) -> Result<u64, String> {
    match number.parse() {
        Ok(0) | Err(_) => Err(format!("{number} is no number from 1 on")),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_back() {
        for text in ["1213 every 100", "40P01 0.005"] {
            assert_eq!(text.parse::<Refusal>().expect(text).to_string(), text);
        }
        for text in ["every 100", "every 7 stall 500ms"] {
            assert_eq!(text.parse::<Half>().expect(text).to_string(), text);
        }
        for bad in ["", "1213", "1213 every 0", "1213 every x", "1213 101%", "1213 every 1 2"] {
            assert!(bad.parse::<Refusal>().is_err(), "{bad}");
        }
        for bad in ["", "5", "every", "every 0", "every 1 stall", "every 1 stall x"] {
            assert!(bad.parse::<Half>().is_err(), "{bad}");
        }
    }

    #[test]
    fn faults_strike_each_nth_statement_or_a_share_of_them() {
        let struck = |when: Occurrence| (1..=100_000).filter(|n| when.strikes(1, 0, *n)).count();
        assert_eq!(struck(Occurrence::Every(100)), 1000);
        assert!(Occurrence::Every(3).strikes(1, 0, 3) && !Occurrence::Every(3).strikes(1, 0, 4));
        // The standard deviation is 31.
        assert!(struck(Occurrence::Share(0.01)).abs_diff(1000) < 125);
        assert_eq!((struck(Occurrence::Share(0.0)), struck(Occurrence::Share(1.0))), (0, 100_000));
    }
}
