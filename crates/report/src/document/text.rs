//! Plain text in columns: counted, cut, wrapped, and without control characters for a terminal.

use super::Tone;

/// Number of columns, for which characters are counted. Names in double-width scripts are therefore
/// misaligned, but all numbers stay readable.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// The text broken at spaces into lines of at most `width` characters, with further lines indented.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let has_word = !line.trim_start().is_empty();
        if has_word && columns_of(&line) + 1 + columns_of(word) > width {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
        } else if has_word {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Text of at most `width` characters. A longer text ends in an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The text on one line. What would break a line or control a terminal becomes a space.
pub(crate) fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control() || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The text in the colour of its tone. It uses only the sixteen colours that a terminal's own theme
/// keeps readable.
pub(crate) fn painted(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Strong => "1",
        Tone::Muted | Tone::Missed => "2",
        Tone::Worse | Tone::Lowest => "31",
        Tone::Better | Tone::Highest => "32",
        Tone::Doubt | Tone::Below => "33",
        Tone::Above => "36",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_every_word_and_the_width() {
        let lines = wrapped("one two three four five", 10, "  ");
        assert_eq!(lines, ["one two", "  three", "  four", "  five"]);
    }

    #[test]
    fn text_from_a_server_cannot_steer_the_terminal() {
        assert_eq!(one_line("a\u{1b}[31mb\r\n\tc"), "a [31mb c");
    }
}
