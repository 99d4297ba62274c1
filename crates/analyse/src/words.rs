//! Numbers with what they count.

use std::fmt::Display;

/// `1 step`, `7 steps`: for nouns that take an s.
pub fn numbered<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// `a, b and c`
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| numbered(number, "step")), ["0 steps", "1 step", "2 steps"]);
    }
}
