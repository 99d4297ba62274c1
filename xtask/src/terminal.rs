//! The only place where these commands print.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the commands speak")]

pub(crate) fn out(text: &str) {
    println!("{text}");
}

pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
