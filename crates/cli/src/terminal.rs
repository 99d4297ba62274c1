//! The only place that prints.

#![expect(clippy::print_stderr, reason = "this is where the command speaks")]

use std::io::{IsTerminal, Write};

/// Prints results. A reader that has gone away (`dbdyno report | head`) is no error.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stdout.write_all(b"\n");
    }
    let _ = stdout.flush();
}

/// Says something about the run that is not a result.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn warning(text: &str) {
    eprintln!("warning: {text}");
}

pub(crate) fn error(text: &str) {
    eprintln!("error: {text}");
}

/// Whether results go to a person's terminal.
pub(crate) fn is_interactive() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether progress may be drawn.
pub(crate) fn can_draw() -> bool {
    std::io::stderr().is_terminal()
}

/// Colours are wanted: a terminal, and no NO_COLOR (no-color.org).
pub(crate) fn wants_colour() -> bool {
    is_interactive() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal; 100 where there is none.
pub(crate) fn width() -> usize {
    match terminal_size::terminal_size() {
        Some((width, _)) if is_interactive() => usize::from(width.0),
        _ => 100,
    }
}
