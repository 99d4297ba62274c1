//! Values of expressions and variables, with pgbench's conversions and texts.

/// The value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl Value {
    /// Returns the value as a condition, in which NULL and zeros are false.
    pub(crate) fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(flag) => flag,
            Self::Int(number) => number != 0,
            Self::Double(number) => number != 0.0,
        }
    }

    pub(crate) fn to_bool(self) -> Result<bool, String> {
        match self {
            Self::Bool(flag) => Ok(flag),
            other => Err(format!("cannot coerce {} to boolean", other.type_name())),
        }
    }

    pub(crate) fn to_int(self) -> Result<i64, String> {
        match self {
            Self::Int(number) => Ok(number),
            Self::Double(number) => {
                let whole = number.round_ties_even();
                let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole);
                if fits { Ok(whole as i64) } else { Err(format!("double to int overflow for {number:.6}")) }
            }
            other => Err(format!("cannot coerce {} to int", other.type_name())),
        }
    }

    pub(crate) fn to_double(self) -> Result<f64, String> {
        match self {
            Self::Int(number) => Ok(number as f64),
            Self::Double(number) => Ok(number),
            other => Err(format!("cannot coerce {} to double", other.type_name())),
        }
    }

    fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Returns the value that a text from an option or a column is taken for.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        match lower.as_str() {
            "" => None,
            "null" => Some(Self::Null),
            "on" => Some(Self::Bool(true)),
            "of" | "off" => Some(Self::Bool(false)),
            _ if begins("true") || begins("yes") => Some(Self::Bool(true)),
            _ if begins("false") || begins("no") => Some(Self::Bool(false)),
            _ => match text.trim_start().parse() {
                Ok(number) => Some(Self::Int(number)),
                Err(_) => text.trim_start().parse().ok().map(Self::Double),
            },
        }
    }

    /// Appends the value as a statement has it.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Bool(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
            Self::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            Self::Double(number) => out.extend_from_slice(general(number).as_bytes()),
        }
    }
}

/// Returns a number in the form of C's `%.15g`.
fn general(number: f64) -> String {
    const DIGITS: i32 = 15;
    if !number.is_finite() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let text = format!("{number:.*}", (DIGITS - 1 - exponent) as usize);
        return trimmed(&text).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

/// Returns the text without zeros at the end of a fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_fifteen_digits_as_in_c() {
        for (number, text) in [
            (0.0, "0"),
            (1.0 / 3.0, "0.333333333333333"),
            (1e20, "1e+20"),
            (123_456.5, "123456.5"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(general(number), text);
        }
    }

    #[test]
    fn texts_from_outside_become_the_values_that_they_look_like() {
        for (text, value) in [
            ("12", Some(Value::Int(12))),
            ("-1.5e2", Some(Value::Double(-150.0))),
            ("NULL", Some(Value::Null)),
            ("y", Some(Value::Bool(true))),
            ("fal", Some(Value::Bool(false))),
            ("off", Some(Value::Bool(false))),
            ("o", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(Value::of_text(text), value, "{text}");
        }
    }

    /// The highest whole number of 64 bits is not among the doubles. The double that it is rounded to
    /// is higher by one.
    #[test]
    fn a_double_right_above_the_greatest_whole_number_is_none() {
        let above = i64::MAX as f64;
        assert_eq!(above, 2_f64.powi(63));
        assert_eq!(
            Value::Double(above).to_int(),
            Err("double to int overflow for 9223372036854775808.000000".to_owned())
        );
        assert_eq!(Value::Double(above.next_down()).to_int(), Ok(i64::MAX - 1023));
        assert_eq!(Value::Double(-above).to_int(), Ok(i64::MIN));
        assert!(Value::Double((-above).next_down()).to_int().is_err());
    }

    #[test]
    fn doubles_become_whole_numbers_by_rounding_to_even() {
        assert_eq!(Value::Double(2.5).to_int(), Ok(2));
        assert_eq!(Value::Double(3.5).to_int(), Ok(4));
        assert!(Value::Double(1e19).to_int().is_err() && Value::Double(f64::NAN).to_int().is_err());
        assert!(Value::Bool(true).to_int().is_err() && Value::Int(1).to_bool().is_err());
    }
}
