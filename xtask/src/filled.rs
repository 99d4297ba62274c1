//! Fills the text of generated pages to the width of the documents. Tests of crates that write
//! pages use this file too.

const WIDTH: usize = 100;

/// Returns the page with its long lines filled, except those of tables.
pub(crate) fn filled(page: &str) -> String {
    let line = |line: &str| if line.starts_with('|') { line.to_owned() } else { filled_line(line) };
    page.lines().map(|text| line(text) + "\n").collect()
}

fn filled_line(line: &str) -> String {
    let indent = if line.starts_with("* ") { "\n  " } else { "\n" };
    let (mut text, mut column) = (String::new(), 0);
    for word in line.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            text.push_str(indent);
            column = indent.len() - 1;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}
