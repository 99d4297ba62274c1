//! The only place that prints. The output may come from servers, records and names, so it is
//! escaped and cannot control a terminal.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use dbdyno_report::TerminalOptions;
use dbdyno_report::document::{self, Block};
use serde::Serialize;

use crate::args::Colour;
use crate::exit::{ExitError, USAGE};
use crate::shown::{COLOURS, cut, shown};

/// Highest number of characters in a message's line. Servers and records have texts of any length,
/// and the record keeps them whole.
const LINE_MAX: usize = 600;

#[derive(Debug, Clone, Copy)]
struct OutputSettings {
    colour: Colour,
    quiet: bool,
}

static SETTINGS: OnceLock<OutputSettings> = OnceLock::new();

/// Takes what the command line says of output. It is called once, before anything is printed.
pub(crate) fn set(colour: Colour, quiet: bool) {
    let _ = SETTINGS.set(OutputSettings { colour, quiet });
}

fn settings() -> OutputSettings {
    SETTINGS.get().copied().unwrap_or(OutputSettings { colour: Colour::Auto, quiet: false })
}

/// Prints results. A reader that has gone away (`dbdyno report | head`) is no error. A full output
/// is one, because a later reader must not believe that the file is complete.
pub(crate) fn out(text: &str) -> Result<(), ExitError> {
    let own: &[&str] = if wants_colour() { &COLOURS } else { &[] };
    print(&mut std::io::stdout().lock(), &shown(text, own))
}

pub(crate) fn out_blocks(blocks: &[Block]) -> Result<(), ExitError> {
    out(&document::terminal(blocks, width(), wants_colour()))
}

pub(crate) fn out_json(value: &impl Serialize) -> Result<(), ExitError> {
    out(&serde_json::to_string_pretty(value).map_err(ExitError::ours)?)
}

/// Prints what the command line itself answers with: help and version as results, mistakes as
/// messages.
pub(crate) fn answer(of_clap: &clap::Error) -> Result<(), ExitError> {
    if of_clap.use_stderr() {
        note(of_clap.render().to_string().trim_end());
        return Err(ExitError::silent(USAGE));
    }
    let printed = of_clap.print().and_then(|()| std::io::stdout().flush());
    printed.map_or_else(|error| lost(&error), Ok)
}

/// Prints results, or writes them into the requested file and says where they are.
pub(crate) fn deliver(what: &str, text: &str, file: Option<&Path>) -> Result<(), ExitError> {
    let Some(path) = file else { return out(text) };
    std::fs::write(path, text).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::NotFound => "make its folder, or name another file with --output",
            _ => "make room there, or name another file with --output",
        };
        ExitError::machine(format!("cannot write {}: {error}; {advice}", path.display()))
    })?;
    note(&format!("{what}: {}", path.display()));
    Ok(())
}

fn print(sink: &mut impl Write, text: &str) -> Result<(), ExitError> {
    let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    let written =
        sink.write_all(text.as_bytes()).and_then(|()| sink.write_all(end)).and_then(|()| sink.flush());
    written.map_or_else(|error| lost(&error), Ok)
}

/// Decides what it means that standard output took no more.
fn lost(error: &std::io::Error) -> Result<(), ExitError> {
    if error.kind() == ErrorKind::BrokenPipe {
        return Ok(());
    }
    let advice = "what it holds is not whole; make room there, or send it elsewhere";
    Err(ExitError::machine(format!("cannot write to standard output: {error}; {advice}")))
}

/// Prints a message about the run that is not a result. Where no one reads it, it is lost, and the
/// command goes on.
pub(crate) fn note(text: &str) {
    if !settings().quiet {
        say(text);
    }
}

pub(crate) fn warning(text: &str) {
    say(&format!("warning: {text}"));
}

pub(crate) fn error(text: &str) {
    say(&format!("error: {text}"));
}

/// Prints a result to standard error, where the original command prints it.
pub(crate) fn aside(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown(text, &[]));
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", message(text));
}

/// Prints an error that the user can mend. It is printed whole, because it may list what can be
/// written instead.
pub(crate) fn mistake(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "error: {}", shown(text, &[]));
}

/// Escapes a message for a terminal, and shortens its lines.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    match shown(text, &[]) {
        Cow::Borrowed(text) => cut(text, LINE_MAX),
        Cow::Owned(text) => Cow::Owned(cut(&text, LINE_MAX).into_owned()),
    }
}

/// Whether there is a person who can be asked.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !settings().quiet
}

/// Returns the answer to a question. It is `None` where the input has ended.
pub(crate) fn ask(question: &str) -> Option<String> {
    let mut sink = std::io::stderr().lock();
    let _ = write!(sink, "{} ", message(question)).and_then(|()| sink.flush());
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

pub(crate) fn can_draw() -> bool {
    std::io::stderr().is_terminal() && !is_dumb() && !settings().quiet
}

/// Whether the terminal supports no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether to print colours: they were requested, or the terminal supports them and NO_COLOR is not
/// set (no-color.org).
pub(crate) fn wants_colour() -> bool {
    match settings().colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            std::io::stdout().is_terminal() && !no_colour && !is_dumb()
        }
    }
}

pub(crate) fn options() -> TerminalOptions {
    TerminalOptions { width: width(), colour: wants_colour(), ..TerminalOptions::PLAIN }
}

/// Returns the columns of the terminal on which progress is drawn, or 80 where it does not report
/// them.
pub(crate) fn width_of_progress() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

/// Returns the columns for results: those of the terminal, otherwise the value of COLUMNS, as in
/// help texts, otherwise 80.
fn width() -> usize {
    let of_terminal = terminal_size::terminal_size_of(std::io::stdout());
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.map(|(width, _)| usize::from(width.0)).or_else(columns).unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::MACHINE;

    /// Takes nothing, and fails for this reason.
    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn results_go_into_the_file_that_was_asked_for_or_it_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("report.md");
        assert!(deliver("report", "a table\n", Some(&file)).is_ok());
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "a table\n");
        let nowhere = Path::new("/nonesuch/report.md");
        let ended = deliver("report", "a table\n", Some(nowhere)).expect_err("there is no such folder");
        let message = "cannot write /nonesuch/report.md: No such file or directory (os error 2); make its folder, or name another \
                       file with --output";
        assert_eq!((ended.code, ended.message.as_deref()), (MACHINE, Some(message)));
    }

    #[test]
    fn lost_results_are_an_error_of_this_machine_unless_their_reader_has_gone_away() {
        let ended = print(&mut Refuses(ErrorKind::StorageFull), "a table").expect_err("nothing was written");
        let message = ended.message.unwrap_or_default();
        assert!(
            ended.code == MACHINE && message.starts_with("cannot write to standard output: "),
            "{message}"
        );
        assert!(print(&mut Refuses(ErrorKind::BrokenPipe), "a table").is_ok());
        let mut taken = Vec::new();
        assert!(print(&mut taken, "a line").and_then(|()| print(&mut taken, "another\n")).is_ok());
        assert_eq!(taken, b"a line\nanother\n");
    }
}
