//! The only place of these commands that prints.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the commands speak")]

/// Prints a result.
pub(crate) fn out(text: &str) {
    println!("{text}");
}

/// Says what is going on.
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
