//! Lines that are wider than the terminal, folded where a person reads them; files and pipes get them whole.

/// Columns from which a line counts as a row of a table with figures: folded in the middle it could not be read.
const TABLE_COLUMNS: usize = 6;

/// Characters that a column needs to be folded below itself.
const ROOM: usize = 16;

/// Each line at most `width` characters, broken at spaces. What goes on below is under the last column of its line, so that
/// lists of names and what they are stay lists; rows of tables, and words that are wider, are left as they are.
pub(crate) fn folded(text: &str, width: usize) -> String {
    text.split('\n').map(|line| folded_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn folded_line(line: &str, width: usize) -> String {
    let characters: Vec<char> = line.chars().collect();
    let columns = columns(&characters);
    if characters.len() <= width || columns.len() >= TABLE_COLUMNS {
        return line.to_owned();
    }
    let first = columns.first().copied().unwrap_or(0);
    // Under a column at the right edge there is no room.
    let last = columns.last().copied().filter(|last| *last > first && last + ROOM <= width);
    let (indent, least) = last.map_or((first + 2, first), |last| (last, last));
    let mut lines = Vec::new();
    let mut rest = characters.as_slice();
    let mut start = String::new();
    while start.len() + rest.len() > width {
        let room = width.saturating_sub(start.len());
        // Not within what is left of the words that are folded.
        let least = if start.is_empty() { least.min(room) } else { 0 };
        let within = (least + 1..=room.min(rest.len() - 1)).rev().find(|at| rest[*at] == ' ');
        let Some(at) = within.or_else(|| (room..rest.len()).find(|at| rest[*at] == ' ')) else { break };
        lines.push(format!("{start}{}", rest[..at].iter().collect::<String>().trim_end()));
        rest = &rest[at..];
        while rest.first() == Some(&' ') {
            rest = &rest[1..];
        }
        start = " ".repeat(indent);
    }
    if !rest.is_empty() {
        lines.push(format!("{start}{}", rest.iter().collect::<String>()));
    }
    lines.join("\n")
}

/// Where each column begins: after two spaces or more.
fn columns(line: &[char]) -> Vec<usize> {
    let begins = |at: usize| {
        line[at] != ' ' && (at == 0 || line[..at].iter().rev().take_while(|c| **c == ' ').count() >= 2)
    };
    let mut all: Vec<usize> = (0..line.len()).filter(|at| begins(*at)).collect();
    let first = line.iter().position(|c| *c != ' ');
    all.extend(first.filter(|first| !all.contains(first)));
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_is_goes_on_below_itself() {
        let text =
            "p99    A slow second: 99 % of the seconds were at least this fast.\nqps    Queries a second.\n";
        insta::assert_snapshot!(folded(text, 40), @r"
        p99    A slow second: 99 % of the
               seconds were at least this fast.
        qps    Queries a second.
        ");
        assert_eq!(folded(text, 80), text);
    }

    #[test]
    fn a_sentence_goes_on_behind_its_own_indentation() {
        insta::assert_snapshot!(folded("  note: one block shows a ratio, but not more", 30), @r"
          note: one block shows a
            ratio, but not more
        ");
    }

    #[test]
    fn a_note_far_to_the_right_goes_below_its_line() {
        insta::assert_snapshot!(folded("mysql-9  MySQL 9.7   here  Debian, goes on", 34), @r"
        mysql-9  MySQL 9.7   here  Debian,
          goes on
        ");
        insta::assert_snapshot!(folded("pg-18  here  Debian, goes on with its suite", 34), @r"
        pg-18  here  Debian, goes on with
                     its suite
        ");
    }

    #[test]
    fn rows_of_tables_and_long_words_are_left_whole() {
        let row = "name  1.5 %  2.0 %  3.0 %  4.0 %  5.0 %";
        assert_eq!(folded(row, 20), row);
        let path = format!("/{}", "x".repeat(50));
        assert_eq!(folded(&path, 20), path);
        assert_eq!(folded(&format!("in {path} now"), 20), format!("in\n  {path}\n  now"));
    }

    #[test]
    fn no_word_is_lost_at_any_width() {
        let text =
            "name   what it is, in äöü words  and  a column\n\n    deeper  text that goes on for a while";
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for width in 1..100 {
            assert_eq!(words(&folded(text, width)), words(text), "{width}");
        }
    }
}
