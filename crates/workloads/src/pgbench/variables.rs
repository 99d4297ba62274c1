//! This module has the variables of a script, and the values of variables and expressions. Values
//! are converted and written as in pgbench.

use std::sync::Arc;

/// Names of all variables that scripts and options use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Returns the index of a variable. A new name gets a new index.
    pub(crate) fn index(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|own| own == name)
    }
}

/// Returns whether a character may be in a name: an ASCII letter, a digit, `_`, or any character
/// beyond ASCII.
pub(crate) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || !character.is_ascii()
}

/// Returns the length in bytes of the name that `text` begins with, or 0 where it begins with none.
/// A name does not begin with a digit, so that `:34` in a time stays text.
pub(crate) fn name_length(text: &str) -> usize {
    if text.starts_with(|character: char| character.is_ascii_digit()) {
        return 0;
    }
    text.find(|character| !is_name_character(character)).unwrap_or(text.len())
}

/// Returns whether all of `name` is the name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}

/// Returns the message for a name that is not valid.
pub(crate) fn invalid_name(name: &str) -> String {
    format!("invalid variable name: \"{name}\"; use letters, digits and _, and a digit not first")
}

#[derive(Debug, Clone, PartialEq)]
enum VariableSlot {
    Nothing,
    Value(Value),
    /// A text from the option `define`, or from a result's column that `\gset` or `\aset` keeps.
    Text(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Variables {
    names: Arc<Names>,
    slots: Vec<VariableSlot>,
}

impl Variables {
    /// Returns the variables. None of them has a value yet.
    pub(crate) fn new(names: Arc<Names>) -> Self {
        let slots = names.0.iter().map(|_| VariableSlot::Nothing).collect();
        Self { names, slots }
    }

    /// Gives a variable a text from an option or a column. A variable that no script uses is
    /// ignored.
    pub(crate) fn set_text(&mut self, name: &str, text: &str) {
        if let Some(index) = self.names.find(name) {
            self.put(index, VariableSlot::Text(text.to_owned()));
        }
    }

    /// Gives a variable a value. A variable that no script uses is ignored.
    pub(crate) fn set_value(&mut self, name: &str, value: Value) {
        if let Some(index) = self.names.find(name) {
            self.set(index, value);
        }
    }

    /// Copies the values of `other` into the slots that are already allocated.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.slots.clone_from(&other.slots);
    }

    pub(crate) fn set(&mut self, index: usize, value: Value) {
        self.put(index, VariableSlot::Value(value));
    }

    fn put(&mut self, index: usize, slot: VariableSlot) {
        if let Some(own) = self.slots.get_mut(index) {
            *own = slot;
        }
    }

    /// Returns the value of a variable in an expression.
    pub(crate) fn value(&self, index: usize) -> Result<Value, String> {
        match self.slots.get(index) {
            Some(VariableSlot::Value(value)) => Ok(*value),
            Some(VariableSlot::Text(text)) => Value::of_text(text)
                .ok_or_else(|| format!("malformed variable \"{}\" value: \"{text}\"", self.name(index))),
            Some(VariableSlot::Nothing) | None => Err(format!("undefined variable \"{}\"", self.name(index))),
        }
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.0.get(index).map_or("", String::as_str)
    }

    /// Returns the value of a variable if it is a whole number.
    pub(crate) fn param(&self, index: usize) -> Option<i64> {
        match self.slots.get(index) {
            Some(VariableSlot::Value(Value::Int(number))) => Some(*number),
            _ => None,
        }
    }

    /// Appends the value of a variable as a statement spells it. Returns whether the variable has a
    /// value.
    pub(crate) fn write(&self, index: usize, out: &mut Vec<u8>) -> bool {
        match self.slots.get(index) {
            Some(VariableSlot::Value(value)) => value.write(out),
            Some(VariableSlot::Text(text)) => out.extend_from_slice(text.as_bytes()),
            Some(VariableSlot::Nothing) | None => return false,
        }
        true
    }
}

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

    /// Returns the value that a text from an option or a column represents, or `None` where it
    /// represents none.
    fn of_text(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let abbreviates = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        match lower.as_str() {
            "" => None,
            "null" => Some(Self::Null),
            "on" => Some(Self::Bool(true)),
            "of" | "off" => Some(Self::Bool(false)),
            _ if abbreviates("true") || abbreviates("yes") => Some(Self::Bool(true)),
            _ if abbreviates("false") || abbreviates("no") => Some(Self::Bool(false)),
            _ => match text.trim_start().parse() {
                Ok(number) => Some(Self::Int(number)),
                Err(_) => text.trim_start().parse().ok().map(Self::Double),
            },
        }
    }

    /// Appends the value as a statement spells it.
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

/// Returns the text of a number without zeros at the end of its fraction.
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

    /// No double equals the highest 64-bit integer. The double that it is rounded to is higher by
    /// one.
    #[test]
    fn the_double_right_above_the_highest_whole_number_is_refused() {
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
