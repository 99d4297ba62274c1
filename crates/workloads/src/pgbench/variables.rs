//! Variables of scripts. Their names become indexes when scripts are read, so that a transaction looks
//! nothing up.

use std::sync::Arc;

use super::value::Value;

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

/// Returns whether a sign may be in a name: letters, also beyond ASCII, digits and `_`.
pub(crate) fn is_name_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_' || !sign.is_ascii()
}

/// Returns the bytes of the name that `text` begins with, or 0 where it begins with none. A name does
/// not begin with a digit, so that `:34` in a time stays text.
pub(crate) fn name_length(text: &str) -> usize {
    if text.starts_with(|sign: char| sign.is_ascii_digit()) {
        return 0;
    }
    text.find(|sign| !is_name_sign(sign)).unwrap_or(text.len())
}

/// Returns whether all of `name` is the name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}

/// Returns the message for a name that is not valid.
pub(crate) fn no_name(name: &str) -> String {
    format!("invalid variable name: \"{name}\"; use letters, digits and _, and a digit not first")
}

#[derive(Debug, Clone, PartialEq)]
enum VariableSlot {
    Nothing,
    Value(Value),
    /// A text from an option or a column.
    Text(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Variables {
    names: Arc<Names>,
    slots: Vec<VariableSlot>,
}

impl Variables {
    /// Returns variables of which none has a value.
    pub(crate) fn new(names: Arc<Names>) -> Self {
        let slots = names.0.iter().map(|_| VariableSlot::Nothing).collect();
        Self { names, slots }
    }

    /// Gives a variable a text from an option or a column. A variable that no script uses is ignored.
    pub(crate) fn set_named(&mut self, name: &str, text: &str) {
        if let Some(index) = self.names.find(name) {
            self.put(index, VariableSlot::Text(text.to_owned()));
        }
    }

    /// Gives a variable a value in the same way.
    pub(crate) fn give(&mut self, name: &str, value: Value) {
        if let Some(index) = self.names.find(name) {
            self.set(index, value);
        }
    }

    /// Copies the values of `other` and reuses its own memory.
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

    /// Returns the value of a variable that is a whole number.
    pub(crate) fn param(&self, index: usize) -> Option<i64> {
        match self.slots.get(index) {
            Some(VariableSlot::Value(Value::Int(number))) => Some(*number),
            _ => None,
        }
    }

    /// Appends the value of a variable as a statement has it. The result is whether it has one.
    pub(crate) fn write(&self, index: usize, out: &mut Vec<u8>) -> bool {
        match self.slots.get(index) {
            Some(VariableSlot::Value(value)) => value.write(out),
            Some(VariableSlot::Text(text)) => out.extend_from_slice(text.as_bytes()),
            Some(VariableSlot::Nothing) | None => return false,
        }
        true
    }
}
