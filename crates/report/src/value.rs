//! A value in a table for programs, CSV or Parquet; it may be missing.

use std::fmt;

use crate::number::NOT_AVAILABLE;

#[derive(Clone)]
pub(crate) enum Value {
    Text(Option<String>),
    Whole(Option<i64>),
    Number(Option<f64>),
    Flag(Option<bool>),
}

/// Numbers are unrounded, `inf` where the base has 0; `NA` is shown where there is none.
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

/// Also of what may be missing.
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

/// A number beyond 63 bits is left out.
fn whole(number: impl TryInto<i64>) -> Option<i64> {
    number.try_into().ok()
}
