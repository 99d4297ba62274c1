//! A value in a table for programs (CSV or Parquet). It may be missing.

use std::fmt;

use crate::number::NOT_AVAILABLE;

#[derive(Clone)]
pub(crate) enum Value {
    Text(Option<String>),
    Whole(Option<i64>),
    Number(Option<f64>),
    Flag(Option<bool>),
}

/// Numbers are not rounded, and a number is `inf` where the base has 0. A missing value is `NA`.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(Some(text)) => out.write_str(text),
            Self::Whole(Some(number)) => number.fmt(out),
            Self::Number(Some(number)) if !number.is_nan() => number.fmt(out),
            Self::Flag(Some(flag)) => flag.fmt(out),
            _ => out.write_str(NOT_AVAILABLE),
        }
    }
}

/// Conversions into a value, from a type and from an option of it.
macro_rules! from {
    ($($type:ty => $kind:ident($into:path),)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::from(Some(value))
            }
        }

        impl From<Option<$type>> for Value {
            fn from(value: Option<$type>) -> Self {
                Self::$kind(value.and_then($into))
            }
        }
    )*};
}

from! {
    String => Text(Some),
    &str => Text(owned),
    f64 => Number(Some),
    bool => Flag(Some),
    u32 => Whole(whole),
    u64 => Whole(whole),
    usize => Whole(whole),
}

fn owned(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// The number as 63 bits with a sign; `None` where it does not fit.
fn whole(number: impl TryInto<i64>) -> Option<i64> {
    number.try_into().ok()
}
