//! Escapes text for a terminal: it makes control characters visible and limits the length of lines.

use std::borrow::Cow;
use std::fmt::Write;

/// The colours of dbdyno's own reports. Foreign text that holds one of them is coloured, but it can
/// do nothing else.
pub(crate) const COLOURS: [&str; 7] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m"];

/// Writes out every control character in `text` (`\x1b`), and every character that turns the
/// direction of what follows it. Lines, columns and the sequences `own` stay. Characters that JSON
/// may hold as they are get JSON's way of writing them (`\u009b`).
pub(crate) fn shown<'a>(text: &'a str, own: &[&str]) -> Cow<'a, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(own) = own.iter().find(|own| rest.starts_with(**own)) {
            safe.push_str(own);
            rest = &rest[own.len()..];
            continue;
        }
        let Some(character) = rest.chars().next() else { break };
        let code = u32::from(character);
        // Writing into a String does not fail.
        let _ = match character {
            '\r' if rest.starts_with("\r\n") => write!(safe, "\r"),
            '\0'..='\x1f' => write!(safe, "\\x{code:02x}"),
            _ => write!(safe, "\\u{code:04x}"),
        };
        rest = &rest[character.len_utf8()..];
    }
    safe.push_str(rest);
    Cow::Owned(safe)
}

/// Whether a terminal takes the character as a command.
fn steers(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// Cuts each line of `text` to at most `most` characters. A longer line loses its middle, because
/// its end says what to try.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most || text.lines().all(|line| line.chars().count() <= most) {
        return Cow::Borrowed(text);
    }
    let shortened = |line: &str| {
        let count = line.chars().count();
        if count <= most {
            return line.to_owned();
        }
        let tail = most / 4;
        let head: String = line.chars().take(most - tail - 1).collect();
        let end: String = line.chars().skip(count - tail).collect();
        format!("{head}…{end}")
    };
    Cow::Owned(text.split('\n').map(shortened).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_out_and_lines_stay() {
        let text = "a\u{1b}[2J\u{1b}]0;title\u{7}\rb\u{9b}31m\u{7f}\u{202e}c\td\r\n";
        let expected = "a\\x1b[2J\\x1b]0;title\\x07\\x0db\\u009b31m\\u007f\\u202ec\td\r\n";
        assert_eq!(shown(text, &[]), expected);
        assert!(matches!(shown("ä plain\n\ttext …", &[]), Cow::Borrowed(_)));
    }

    #[test]
    fn own_colours_stay_and_nothing_that_only_begins_like_one() {
        let text = "\u{1b}[31mred\u{1b}[0m \u{1b}[31;8mhidden\u{1b}[3m";
        assert_eq!(shown(text, &COLOURS), "\u{1b}[31mred\u{1b}[0m \\x1b[31;8mhidden\\x1b[3m");
        assert_eq!(shown("\u{1b}[31mred", &[]), "\\x1b[31mred");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "name": "a\u{1b}[2J\u{9b}\u{7f}\u{202e}" });
        let text = serde_json::to_string_pretty(&value).expect("it is JSON");
        let safe = shown(&text, &[]);
        assert!(!safe.contains(steers));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("it is JSON still"), value);
    }

    #[test]
    fn a_long_line_loses_its_middle_and_keeps_its_advice() {
        let text = format!("short\nerror: {}; try this\n", "ä".repeat(5_000));
        let safe = cut(&text, 600);
        let lines: Vec<&str> = safe.split('\n').collect();
        assert_eq!((lines[0], lines[1].chars().count(), lines[2]), ("short", 600, ""));
        assert!(lines[1].starts_with("error: ää") && lines[1].ends_with("ä; try this"));
        assert!(matches!(cut("short\n", 600), Cow::Borrowed(_)));
    }
}
