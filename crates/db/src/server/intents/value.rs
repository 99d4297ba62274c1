//! Config intent values: reads them by the intent's kind, compares them, and writes them into
//! options.

use std::fmt;

use super::data::{Intent, Kind};

/// A value that fits its intent's kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestedValue {
    /// A number of bytes.
    Size(u64),
    Number(u64),
    Switch(bool),
    /// A number of seconds.
    Duration(u64),
    Fraction(f64),
    /// One of the intent's words, or a name.
    Word(String),
}

/// Units of sizes. They are powers of 1024, as in the servers' own files. Units such as MB, which
/// often mean powers of 1000, are not accepted.
const SIZE_UNITS: [(&str, u64); 10] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("B", 1),
    ("", 1),
];

/// Units of times, in seconds.
const TIME_UNITS: [(&str, u64); 3] = [("h", 3600), ("m", 60), ("s", 1)];

const SIZE_HELP: &str = "write a number and its unit (KiB, MiB, GiB, TiB) in quotes, e.g. \"1 GiB\"";

impl RequestedValue {
    /// Reads the value that a config gives for `intent`. The error completes a sentence that begins
    /// with the intent's name.
    pub(crate) fn read(intent: &Intent, given: &toml::Value) -> Result<Self, String> {
        let wanted = |help: String| format!("is {}, but {help}", shown(given));
        if let Some(word) = known_word(intent, given) {
            return Ok(Self::Word(word));
        }
        match (intent.kind, given) {
            (Kind::Switch, toml::Value::Boolean(on)) => Ok(Self::Switch(*on)),
            (Kind::Switch, toml::Value::String(text)) if text == "on" || text == "off" => {
                Ok(Self::Switch(text == "on"))
            }
            (Kind::Switch, _) => Err(wanted("it is a switch: write true or false".to_owned())),
            (Kind::Number, toml::Value::Integer(number)) => u64::try_from(*number)
                .map(Self::Number)
                .map_err(|_| wanted("it must be 0 or more".to_owned())),
            (Kind::Number, _) => Err(wanted("it is a whole number".to_owned())),
            (Kind::Size, toml::Value::Integer(0)) => Ok(Self::Size(0)),
            (Kind::Size, toml::Value::String(text)) => {
                with_unit(text, &SIZE_UNITS[..9]).map(Self::Size).ok_or_else(|| wanted(size_help(text)))
            }
            (Kind::Size, _) => Err(wanted(format!("it is a size: {SIZE_HELP}"))),
            (Kind::Duration, toml::Value::String(text)) => {
                with_unit(text, &TIME_UNITS).map(Self::Duration).ok_or_else(|| {
                    wanted("it is a time: write a number and s, m or h in quotes, e.g. \"30m\"".to_owned())
                })
            }
            (Kind::Duration, _) => Err(wanted("it is a time: write e.g. \"30m\"".to_owned())),
            (Kind::Fraction, toml::Value::Float(number)) if (0.0..=1.0).contains(number) => {
                Ok(Self::Fraction(*number))
            }
            (Kind::Fraction, toml::Value::Integer(number @ (0 | 1))) => Ok(Self::Fraction(*number as f64)),
            (Kind::Fraction, _) => Err(wanted("it is a number from 0 to 1".to_owned())),
            (Kind::Word, toml::Value::String(text)) if is_name(text) => Ok(Self::Word(text.clone())),
            (Kind::Word, _) => Err(wanted("it is a name of letters, digits, `-` and `_`".to_owned())),
            (Kind::Choice, _) => Err(wanted(format!("it takes {}", words_of(intent).join(", ")))),
        }
    }

    /// Whether `word`, from `values` or `absent` in the data, stands for this value.
    pub(crate) fn is(&self, word: &str) -> bool {
        match self {
            Self::Size(bytes) => read_size(word) == Some(*bytes),
            Self::Word(own) => own == word,
            _ => self.to_string() == word,
        }
    }

    /// The value as a number in its kind's unit, for comparison with limits.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Size(number) | Self::Number(number) | Self::Duration(number) => Some(*number as f64),
            Self::Fraction(number) => Some(*number),
            Self::Switch(_) | Self::Word(_) => None,
        }
    }

    /// The placeholders in the data's templates, each with the text that replaces it for this
    /// value.
    pub(crate) fn placeholders(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Size(bytes) => vec![
                ("{bytes}", bytes.to_string()),
                ("{kib}", (bytes >> 10).to_string()),
                ("{mib}", (bytes >> 20).to_string()),
            ],
            Self::Switch(on) => {
                let word = if *on { "on" } else { "off" };
                let digit = u8::from(*on).to_string();
                vec![("{on}", word.to_owned()), ("{ON}", word.to_uppercase()), ("{01}", digit)]
            }
            Self::Duration(seconds) => vec![("{seconds}", seconds.to_string())],
            Self::Number(_) | Self::Fraction(_) | Self::Word(_) => vec![("{value}", self.to_string())],
        }
    }
}

/// Writes the value as a plan would, without quotes.
impl fmt::Display for RequestedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => f.write_str(&size(*bytes)),
            Self::Number(number) => write!(f, "{number}"),
            Self::Switch(on) => write!(f, "{on}"),
            Self::Duration(seconds) => write!(f, "{seconds}s"),
            Self::Fraction(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Formats bytes with the largest unit that gives a whole number.
pub(crate) fn size(bytes: u64) -> String {
    match SIZE_UNITS[..4].iter().find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes}"),
    }
}

/// Reads a size as the data and servers write it. A bare number means bytes.
fn read_size(text: &str) -> Option<u64> {
    with_unit(text, &SIZE_UNITS)
}

/// Whether a server reads two texts as the same value: `ON` and `1`, `128 MiB` and `134217728`,
/// `0.5` and `.50`, in any case.
pub fn same_value(left: &str, right: &str) -> bool {
    let plain = |text: &str| {
        let text = text.trim().trim_matches('\'').to_lowercase();
        match text.as_str() {
            "on" | "true" | "yes" => "1".to_owned(),
            "off" | "false" | "no" => "0".to_owned(),
            // The data write PostgreSQL's sizes in its own units.
            _ => text.replace("kb", "k").replace("mb", "m"),
        }
    };
    let (left, right) = (plain(left), plain(right));
    let number = |text: &str| {
        let size = || read_size(&text.to_uppercase().replace("IB", "iB")).map(|bytes| bytes as f64);
        let time = || with_unit(text, &TIME_UNITS).map(|seconds| seconds as f64);
        text.parse().ok().or_else(size).or_else(time)
    };
    left == right || number(&left).zip(number(&right)).is_some_and(|(left, right)| left == right)
}

/// Reads a limit from the data as a number in the unit of `kind`.
pub(crate) fn limit(kind: Kind, text: &str) -> Option<f64> {
    match kind {
        Kind::Duration => with_unit(text, &TIME_UNITS).map(|seconds| seconds as f64),
        Kind::Size => read_size(text).map(|bytes| bytes as f64),
        _ => text.parse().ok(),
    }
}

/// All words that an intent's rules and `absent` entries have, in the data's order.
pub(crate) fn words_of(intent: &Intent) -> Vec<&str> {
    let of_rules = intent.way.iter().chain(&intent.also).flat_map(|rule| rule.values.keys());
    let of_absent = intent.absent.iter().map(|absent| &absent.value);
    let mut words: Vec<&str> = Vec::new();
    for word in of_rules.chain(of_absent) {
        if !words.contains(&word.as_str()) {
            words.push(word);
        }
    }
    words
}

/// Returns the given word if it is one of the intent's words. `true` and `false` count as the words
/// `on` and `off`, because TOML writers tend to use them.
fn known_word(intent: &Intent, given: &toml::Value) -> Option<String> {
    if !matches!(intent.kind, Kind::Choice | Kind::Size) {
        return None;
    }
    let word = match given {
        toml::Value::String(text) => text.as_str(),
        toml::Value::Boolean(true) => "on",
        toml::Value::Boolean(false) => "off",
        _ => return None,
    };
    let is_word = intent.kind == Kind::Choice || word.chars().all(|c| c.is_ascii_lowercase());
    (is_word && words_of(intent).contains(&word)).then(|| word.to_owned())
}

/// Reads digits, at most one point with digits after it, and a unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit = units.iter().find(|(name, _)| *name == text[end..].trim())?.1;
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], "0"));
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let whole = whole.parse::<u128>().ok()?.checked_mul(u128::from(unit))?;
    let part = fraction.parse::<u128>().ok()? * u128::from(unit) / scale;
    u64::try_from(whole.checked_add(part)?).ok()
}

fn size_help(text: &str) -> String {
    match text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' ')) {
        "" => format!("it is a size and has no unit: {SIZE_HELP}"),
        unit @ ("KB" | "kB" | "MB" | "GB" | "TB") => {
            format!("{unit} means 1000 to some and 1024 to others: {SIZE_HELP}")
        }
        _ => format!("it is a size: {SIZE_HELP}"),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn shown(given: &toml::Value) -> String {
    match given {
        toml::Value::Table(_) => "a table".to_owned(),
        toml::Value::Array(_) => "a list".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::intents::data::IntentData;

    fn read(intent: &str, given: impl Into<toml::Value>) -> Result<String, String> {
        let intent = IntentData::get().intent(intent).unwrap();
        RequestedValue::read(intent, &given.into()).map(|value| value.to_string())
    }

    #[test]
    fn values_are_read_by_kind() {
        for (intent, given, wanted) in [
            ("buffer_pool", "1GiB", "1 GiB"),
            ("buffer_pool", "1.5 GiB", "1536 MiB"),
            ("redo", "512M", "512 MiB"),
            ("query_cache", "off", "off"),
            ("durability", "second", "second"),
            ("checkpoint_timeout", "30m", "1800s"),
            ("charset", "latin1", "latin1"),
            ("doublewrite", "off", "false"),
        ] {
            assert_eq!(read(intent, given).as_deref(), Ok(wanted), "{intent} = {given}");
        }
        assert_eq!(read("binlog", false).as_deref(), Ok("off"));
        assert_eq!(read("query_cache", 0).as_deref(), Ok("0"));
        assert_eq!(read("purge_threads", 4).as_deref(), Ok("4"));
        assert_eq!(read("checkpoint_completion_target", 0.9).as_deref(), Ok("0.9"));
    }

    #[test]
    fn values_that_servers_write_differently_are_the_same() {
        for (left, right) in [
            ("ON", "1"),
            ("128 MiB", "134217728"),
            ("0.5", "0.50"),
            ("600s", "600"),
            ("4096kB", "4194304"),
            ("none", "NONE"),
        ] {
            assert!(same_value(left, right), "{left} {right}");
        }
        assert!(!same_value("ON", "2") && !same_value("", "0") && !same_value("1.5", "1"));
    }

    #[test]
    fn a_wrong_value_says_what_would_be_right() {
        let wrong = |intent: &str, given: toml::Value| read(intent, given).unwrap_err();
        insta::assert_snapshot!(wrong("buffer_pool", "1GB".into()), @r#"is "1GB", but GB means 1000 to some and 1024 to others: write a number and its unit (KiB, MiB, GiB, TiB) in quotes, e.g. "1 GiB""#);
        insta::assert_snapshot!(wrong("buffer_pool", 1024.into()), @r#"is 1024, but it is a size: write a number and its unit (KiB, MiB, GiB, TiB) in quotes, e.g. "1 GiB""#);
        insta::assert_snapshot!(wrong("durability", "always".into()), @r#"is "always", but it takes commit, off, second"#);
        insta::assert_snapshot!(wrong("doublewrite", 2.into()), @"is 2, but it is a switch: write true or false");
        insta::assert_snapshot!(wrong("purge_threads", (-1).into()), @"is -1, but it must be 0 or more");
        insta::assert_snapshot!(wrong("charset", "latin1; DROP".into()), @r#"is "latin1; DROP", but it is a name of letters, digits, `-` and `_`"#);
    }
}
