//! Programmed faults. Errors, disconnects and half answers affect known statements. A freeze is a
//! time in which the server sends no answers. Work in progress stalls during a freeze and continues
//! afterwards.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::script::{Purpose, unit};
use crate::{Error, units};

const ERROR_FORM: &str =
    "a code and when, as in 1213 every 100 (MySQL), 40P01 every 100 (PostgreSQL) or 1213 0.5%";
const HALF_FORM: &str =
    "every 100 (then the connection is closed) or every 100 stall 500ms (then the rest follows)";

/// The statements that a fault affects. Statements are counted per connection, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Occurrence {
    Every(u64),
    /// Each statement is affected with this probability, by its own random draw.
    Share(f64),
}

impl Occurrence {
    pub(crate) fn affects(self, seed: u64, connection: u64, statement: u64) -> bool {
        match self {
            Self::Every(number) => statement.is_multiple_of(number),
            Self::Share(share) => unit(seed, connection, statement, Purpose::Error) < share,
        }
    }
}

/// The statements that are refused, and the error that they get.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The product's own code: a MySQL number (`1213`), or a PostgreSQL SQLSTATE (`40P01`).
    pub code: String,
    pub when: Occurrence,
}

/// Half answers. The server sends the first half and then either pauses or closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half {
    /// Every nth statement on a connection is affected.
    pub every: u64,
    /// The pause before the other half; `None` closes the connection instead.
    pub stall: Option<Duration>,
}

/// The fault in one statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementFault {
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

const FREEZE_FORM: &str = "200ms every 10s, 200ms at 3s, or 200ms every 10s at 3s; add from start to count from the server's start \
                    instead of from its first statement";

/// The moment from which a freeze's times count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FreezeOrigin {
    /// Times count from the arrival of the first statement on any connection. A client can observe
    /// that moment.
    #[default]
    FirstStatement,
    /// Times count from the server's start.
    Start,
}

/// Freezes of the whole server. During a freeze the server sends nothing and burns no CPU, and
/// programmed delays stall. Answers that are delayed by a freeze therefore take longer by its whole
/// length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    pub length: Duration,
    /// Time from the start of a freeze to the start of the next; `None` for a single one.
    pub period: Option<Duration>,
    /// Time from the origin to the start of the first freeze.
    pub first_at: Duration,
    pub origin: FreezeOrigin,
}

impl Freeze {
    /// The time at which work that takes `service` and begins at `begin` is done. `begin` and the
    /// result count from the origin.
    pub(crate) fn done_at(&self, begin: Duration, service: Duration) -> Duration {
        // `worked` and `end` are on a clock that runs only outside freezes.
        let first = self.first_at;
        let worked = if begin < first {
            begin
        } else {
            let (past, within) = match self.period {
                Some(period) => divide(begin - first, period),
                None => (0, begin - first),
            };
            first + self.unfrozen() * past + within.saturating_sub(self.length)
        };
        let end = worked + service;
        if end < first {
            return end;
        }
        let freezes = match self.period {
            Some(_) => divide(end - first, self.unfrozen()).0 + 1,
            None => 1,
        };
        end + self.length * freezes
    }

    /// Whether `at`, counted from the origin, is in a freeze.
    pub fn covers(&self, at: Duration) -> bool {
        let Some(since) = at.checked_sub(self.first_at) else { return false };
        self.period.map_or(since, |period| divide(since, period).1) < self.length
    }

    /// Time from the end of a freeze to the start of the next.
    fn unfrozen(&self) -> Duration {
        self.period.map_or(Duration::ZERO, |period| period - self.length)
    }
}

/// How often `part` fits into `whole`, and the remainder.
fn divide(whole: Duration, part: Duration) -> (u32, Duration) {
    let times = u32::try_from(whole.as_nanos() / part.as_nanos()).unwrap_or(u32::MAX);
    (times, whole.saturating_sub(part * times))
}

impl fmt::Display for Freeze {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", units::show(self.length))?;
        if let Some(period) = self.period {
            write!(formatter, " every {}", units::show(period))?;
        }
        if self.period != Some(self.first_at) {
            write!(formatter, " at {}", units::show(self.first_at))?;
        }
        if self.origin == FreezeOrigin::Start { formatter.write_str(" from start") } else { Ok(()) }
    }
}

impl FromStr for Freeze {
    type Err = Error;

    /// Reads three forms. With `200ms every 10s` the first freeze comes after 10 s. With `200ms
    /// every 10s at 3s` the first freeze comes after 3 s. With `200ms at 3s` there is only one
    /// freeze. The times count from the first statement, or from the server's start if the text
    /// ends with `from start`.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|problem| Error::text(text, problem, FREEZE_FORM))
    }
}

fn parse(text: &str) -> Result<Freeze, String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let origin = if words.ends_with(&["from", "start"]) {
        words.truncate(words.len() - 2);
        FreezeOrigin::Start
    } else {
        FreezeOrigin::FirstStatement
    };
    let (length, period, first) = match words[..] {
        [length, "every", period] => (length, Some(period), period),
        [length, "every", period, "at", first] => (length, Some(period), first),
        [length, "at", first] => (length, None, first),
        _ => return Err("no such freeze".to_owned()),
    };
    let period = period.map(units::duration).transpose()?;
    let freeze =
        Freeze { length: units::duration(length)?, period, first_at: units::duration(first)?, origin };
    if freeze.length.is_zero() || freeze.period.is_some_and(|period| period <= freeze.length) {
        return Err("a freeze must be longer than 0 and shorter than its period".to_owned());
    }
    Ok(freeze)
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
    fn faults_affect_each_nth_statement_or_a_share_of_them() {
        let struck = |when: Occurrence| (1..=100_000).filter(|n| when.affects(1, 0, *n)).count();
        assert_eq!(struck(Occurrence::Every(100)), 1000);
        assert!(Occurrence::Every(3).affects(1, 0, 3) && !Occurrence::Every(3).affects(1, 0, 4));
        // The standard deviation is 31.
        assert!(struck(Occurrence::Share(0.01)).abs_diff(1000) < 125);
        assert_eq!((struck(Occurrence::Share(0.0)), struck(Occurrence::Share(1.0))), (0, 100_000));
    }

    fn read(text: &str) -> Freeze {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls [`Freeze::done_at`] with milliseconds.
    fn done(text: &str, begin: u64, service: u64) -> u128 {
        read(text).done_at(Duration::from_millis(begin), Duration::from_millis(service)).as_millis()
    }

    #[test]
    fn work_stalls_during_a_freeze() {
        let freeze = "200ms every 10s";
        assert_eq!(done(freeze, 0, 5), 5);
        assert_eq!(done(freeze, 9_990, 5), 9_995);
        assert_eq!(done(freeze, 9_990, 30), 10_220, "20 ms of the work are left when the freeze ends");
        assert_eq!(done(freeze, 10_000, 1), 10_201);
        assert_eq!(done(freeze, 10_150, 1), 10_201);
        assert_eq!(done(freeze, 10_150, 0), 10_200);
        assert_eq!(done(freeze, 10_200, 7), 10_207);
        assert_eq!(done(freeze, 19_999, 2), 20_201);
        assert_eq!(done(freeze, 5_000, 20_000), 25_400, "two freezes in the middle");
    }

    #[test]
    fn a_freeze_can_come_once_or_begin_at_another_time() {
        assert_eq!(done("200ms at 3s", 2_999, 2), 3_201);
        assert_eq!(done("200ms at 3s", 3_300, 60_000), 63_300);
        assert_eq!(done("200ms every 10s at 1s", 999, 2), 1_201);
        assert_eq!(done("200ms every 10s at 1s", 11_100, 0), 11_200);
    }

    #[test]
    fn no_answer_is_sent_during_a_freeze_and_no_work_is_lost() {
        let freeze = read("3ms every 10ms at 4ms");
        let step = Duration::from_micros(100);
        for begin in (0..500).map(|n| step * n) {
            for service in (0..300).step_by(7).map(|n| step * n) {
                let end = freeze.done_at(begin, service);
                assert!(!freeze.covers(end), "{begin:?} {service:?}: {end:?}");
                let free = (0..10_000).map(|n| step * n);
                let between = free.skip_while(|at| *at < begin).take_while(|at| *at < end);
                let worked = step * between.filter(|at| !freeze.covers(*at)).count() as u32;
                assert_eq!(worked, service, "{begin:?} {service:?}: {end:?}");
            }
        }
    }

    #[test]
    fn freezes_are_read_and_written_back() {
        for text in ["200ms every 10s", "200ms every 10s at 3s", "1s at 3s", "200ms every 10s from start"] {
            assert_eq!(read(text).to_string(), text);
        }
        for bad in ["", "200ms", "10s every 10s", "0s at 1s", "1s every 3s from end", "x every 1s"] {
            assert!(bad.parse::<Freeze>().is_err(), "{bad}");
        }
    }
}
