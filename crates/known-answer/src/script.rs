//! The script that programs the server. Pure functions compute the delay and the fault of each
//! connection's statements.
//!
//! A random draw is a pure function of its address (seed, connection, request, purpose), so what a
//! run should show can be computed without observing the run. The mixing function is SplitMix64's
//! (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014), applied
//! once for each part of the address. This file contains the function, so that no change of a
//! dependency can change it.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Distribution, Error, Freeze, Half, Protocol, Refusal, StatementFault, units};

/// Size limit for an answer in bytes, with all rows and columns in a result.
const LARGEST_ANSWER: u64 = 1 << 30;

/// The script of a known-answer server. By default the server answers at once with one row that has
/// one column of ten bytes.
///
/// Service is serial on each connection. An answer's delay begins when the request is read, or when
/// the previous answer has been sent. A statement should take `burn + delay`, plus the freezes
/// during that time. Statements are queries and executions. Everything else (login, prepare, ping)
/// is answered at once, but not during a freeze.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Rows in the answer to each statement that returns rows.
    pub rows: u32,
    /// Columns in each row, at least 1.
    pub columns: u16,
    /// Bytes in each column, which are digits.
    pub bytes: u32,
    pub delay: Distribution,
    /// CPU time that each statement costs the server, in addition to the protocol's cost.
    #[serde(serialize_with = "show", deserialize_with = "read")]
    pub burn: Duration,
    /// Whether delay, burn and faults apply only to executions of prepared statements, and only
    /// these are counted for them. Query text is then answered at once, so that a client's own
    /// queries do not trigger delays and faults.
    pub prepared_only: bool,
    pub freeze: Option<Freeze>,
    pub error: Option<Refusal>,
    /// On every nth statement, the connection is closed instead of answered. Statements are counted
    /// per connection.
    pub disconnect_every: Option<u64>,
    pub half: Option<Half>,
    #[serde(serialize_with = "show", deserialize_with = "read")]
    pub login_delay: Duration,
    /// Connections beyond this number are refused with the product's own error.
    pub connection_limit: Option<u64>,
    /// MySQL: whether to offer `CLIENT_DEPRECATE_EOF`, as servers from 5.7.5 on do.
    pub deprecate_eof: bool,
    /// The seed for all random draws.
    pub seed: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rows: 1,
            columns: 1,
            bytes: 10,
            delay: Distribution::None,
            burn: Duration::ZERO,
            prepared_only: false,
            freeze: None,
            error: None,
            disconnect_every: None,
            half: None,
            login_delay: Duration::ZERO,
            connection_limit: None,
            deprecate_eof: true,
            seed: 1,
        }
    }
}

impl Script {
    /// The delay for a connection's `statement`th statement, from 1. Connections are numbered from
    /// 0 in the order in which they were accepted, including refused ones.
    pub fn delay_of(&self, connection: u64, statement: u64) -> Duration {
        match self.delay {
            Distribution::None => Duration::ZERO,
            Distribution::Constant(delay) => delay,
            drawn => drawn.quantile(unit(self.seed, connection, statement, Purpose::Delay)),
        }
    }

    /// The fault in a connection's `statement`th statement. A disconnect takes precedence over a
    /// half answer, and that over an error.
    pub fn fault_of(&self, connection: u64, statement: u64) -> StatementFault {
        let affects = |error: &Refusal| error.when.affects(self.seed, connection, statement);
        let is_refused = || self.error.as_ref().is_some_and(affects);
        if self.disconnect_every.is_some_and(|every| statement.is_multiple_of(every)) {
            StatementFault::Disconnected
        } else if self.half.is_some_and(|half| statement.is_multiple_of(half.every)) {
            StatementFault::Half
        } else if is_refused() {
            StatementFault::Refused
        } else {
            StatementFault::None
        }
    }

    /// Checks for values that `protocol` does not support.
    pub(crate) fn check(&self, protocol: Protocol) -> Result<(), Error> {
        let complain = |what: String, advice| Err(Error::Script { what, advice });
        if self.columns == 0 || self.columns > protocol.most_columns() {
            let what = format!("an answer of {} columns", self.columns);
            return complain(what, "MySQL has 1 to 4096, PostgreSQL 1 to 1664");
        }
        let size = u64::from(self.rows) * u64::from(self.columns) * (u64::from(self.bytes) + 9);
        if size > LARGEST_ANSWER {
            let what = format!("an answer of about {size} bytes");
            return complain(what, "the limit is 1 GiB: use fewer rows or bytes");
        }
        if self.disconnect_every == Some(0) || self.half.is_some_and(|half| half.every == 0) {
            return complain("a fault at every 0th statement".to_owned(), "count from 1");
        }
        match &self.error {
            Some(error) if !protocol.has_code(&error.code) => {
                let advice = "name an error number of MySQL, as 1213, or an SQLSTATE of PostgreSQL, as 40P01";
                complain(format!("no error has the code {}", error.code), advice)
            }
            _ => Ok(()),
        }
    }
}

fn show<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&units::show(*duration))
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    units::duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Serializes types that have a text form as that text.
macro_rules! serialized_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

serialized_as_text!(Distribution, Freeze, Refusal, Half);

/// The increment in SplitMix64's published definition.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The purpose of a draw. Draws for different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Delay = 1,
    Error = 2,
}

/// A uniform draw in the open interval (0, 1), in steps of 2^-53.
pub(crate) fn unit(seed: u64, connection: u64, request: u64, purpose: Purpose) -> f64 {
    let bits = [purpose as u64, connection, request]
        .iter()
        .fold(seed, |state, part| mix(state.wrapping_add(part.wrapping_add(1).wrapping_mul(GOLDEN))));
    // Adding 0.5 excludes 0 and 1, where quantile functions have poles.
    ((bits >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_written_as_readable_text_and_read_back() {
        let script = Script {
            rows: 2,
            columns: 3,
            bytes: 4,
            delay: "exponential 200us".parse().expect("a delay"),
            burn: Duration::from_micros(20),
            freeze: Some("200ms every 10s".parse().expect("a freeze")),
            error: Some("1213 every 100".parse().expect("an error")),
            half: Some("every 9".parse().expect("half answers")),
            ..Script::default()
        };
        let text = serde_json::to_string(&script).expect("JSON");
        insta::assert_snapshot!(text, @r#"{"rows":2,"columns":3,"bytes":4,"delay":"exponential 200us","burn":"20us","prepared_only":false,"freeze":"200ms every 10s","error":"1213 every 100","disconnect_every":null,"half":"every 9","login_delay":"0ns","connection_limit":null,"deprecate_eof":true,"seed":1}"#);
        assert_eq!(serde_json::from_str::<Script>(&text).expect("the same"), script);
        assert_eq!(serde_json::from_str::<Script>("{}").expect("defaults"), Script::default());
        assert!(serde_json::from_str::<Script>("{\"rowz\":1}").is_err());
    }

    #[test]
    fn delays_and_faults_are_pure_functions() {
        let script = Script { delay: "exponential 200us".parse().expect("a delay"), ..Script::default() };
        assert_eq!(script.delay_of(3, 7), script.delay_of(3, 7));
        assert_ne!(script.delay_of(3, 7), script.delay_of(3, 8));
        assert_ne!(script.delay_of(3, 7), script.delay_of(4, 7));
        assert_ne!(script.delay_of(3, 7), (Script { seed: 2, ..script.clone() }).delay_of(3, 7));
    }

    #[test]
    fn a_disconnect_takes_precedence_over_a_half_answer_and_that_over_an_error() {
        let script = Script {
            error: Some("1213 every 2".parse().expect("an error")),
            half: Some("every 4".parse().expect("half answers")),
            disconnect_every: Some(8),
            ..Script::default()
        };
        let faults: Vec<StatementFault> = (1..=8).map(|n| script.fault_of(0, n)).collect();
        use StatementFault::{Disconnected, Half, None, Refused};
        assert_eq!(faults, [None, Refused, None, Half, None, Refused, None, Disconnected]);
    }

    #[test]
    fn an_impossible_script_is_refused_with_advice() {
        let refuse = |script: Script, protocol| script.check(protocol).expect_err("a refusal").to_string();
        let error = |text: &str| Script { error: Some(text.parse().expect(text)), ..Script::default() };
        insta::assert_snapshot!(refuse(Script { rows: 1, columns: 0, bytes: 1, ..Script::default() }, Protocol::Mysql), @"an answer of 0 columns; MySQL has 1 to 4096, PostgreSQL 1 to 1664");
        insta::assert_snapshot!(refuse(Script { rows: 1, columns: 2000, bytes: 1, ..Script::default() }, Protocol::Postgres), @"an answer of 2000 columns; MySQL has 1 to 4096, PostgreSQL 1 to 1664");
        insta::assert_snapshot!(refuse(Script { rows: 1 << 30, columns: 1, bytes: 1, ..Script::default() }, Protocol::Mysql), @"an answer of about 10737418240 bytes; the limit is 1 GiB: use fewer rows or bytes");
        insta::assert_snapshot!(refuse(error("40P01 every 1"), Protocol::Mysql), @"no error has the code 40P01; name an error number of MySQL, as 1213, or an SQLSTATE of PostgreSQL, as 40P01");
        insta::assert_snapshot!(refuse(error("1213 every 1"), Protocol::Postgres), @"no error has the code 1213; name an error number of MySQL, as 1213, or an SQLSTATE of PostgreSQL, as 40P01");
        assert!(error("40P01 every 1").check(Protocol::Postgres).is_ok());
        assert!(error("1213 every 1").check(Protocol::Mysql).is_ok());
    }

    #[test]
    fn the_mixing_function_gives_the_published_stream() {
        // These are SplitMix64's first values from seed 1234567, as in the reference
        // implementation's test.
        let stream = |n: u64| mix(1_234_567_u64.wrapping_add(GOLDEN.wrapping_mul(n)));
        assert_eq!(
            [stream(1), stream(2), stream(3)],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_are_uniform_along_requests_and_along_connections() {
        let along: [fn(u64) -> f64; 3] = [
            |n| unit(7, 3, n, Purpose::Delay),
            |n| unit(7, n, 3, Purpose::Delay),
            |n| unit(n, 1, 1, Purpose::Error),
        ];
        for draw in along {
            let mut counts = [0_u32; 10];
            for number in 0..100_000 {
                counts[(draw(number) * 10.0) as usize] += 1;
            }
            // With 9 degrees of freedom, chi-square exceeds 33.7 once in 10,000 cases.
            let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 10_000.0).powi(2) / 10_000.0).sum();
            assert!(chi < 33.7, "{counts:?}");
        }
    }

    #[test]
    fn draws_at_neighbouring_addresses_are_independent() {
        let correlation = |other: fn(u64) -> f64| {
            let sum: f64 =
                (0..100_000).map(|n| (unit(1, 1, n, Purpose::Delay) - 0.5) * (other(n) - 0.5)).sum();
            sum / 100_000.0 * 12.0
        };
        // The standard deviation of such a correlation is 0.0032.
        assert!(correlation(|n| unit(1, 1, n + 1, Purpose::Delay)).abs() < 0.013);
        assert!(correlation(|n| unit(1, 2, n, Purpose::Delay)).abs() < 0.013);
        assert!(correlation(|n| unit(1, 1, n, Purpose::Error)).abs() < 0.013);
    }
}
