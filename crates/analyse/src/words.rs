//! Formats numbers together with the noun that they count.

use std::fmt::Display;

/// The number with its noun, as in `1 step`, `7 steps`. It is for nouns whose plural takes an s.
pub fn numbered<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(&number.to_string()))
}

/// A number with separated thousands: `189,324`.
pub fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let digits = whole.trim_start_matches('-').len();
    let mut text = String::new();
    for (at, character) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > whole.len() - digits && left % 3 == 0 {
            text.push(',');
        }
        text.push(character);
    }
    rest.map_or(text.clone(), |rest| format!("{text}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| numbered(number, "step")), ["0 steps", "1 step", "2 steps"]);
    }
}
