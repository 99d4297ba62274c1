//! Writes counts as people read them.

use std::fmt::Display;

/// Writes 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("decimal digits are ASCII"))
        .collect();
    groups.join(",")
}

/// Writes `1 check` and `3 checks`. It fits nouns that take an s.
pub fn numbered<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three_and_only_one_is_singular() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped).join(" "), "0 999 1,000 1,234,567");
        assert_eq!([0, 1, 2].map(|number| numbered(number, "check")), ["0 checks", "1 check", "2 checks"]);
    }
}
