//! Prints results and messages. They may hold text from servers, records and names, so they are
//! escaped and cannot control a terminal: control characters become visible. Long lines of messages
//! are cut.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use dbdyno_report::TerminalOptions;
use dbdyno_report::document::{self, Block};
use serde::Serialize;

use crate::args::Colour;
use crate::exit::{ExitError, USAGE};

/// Highest number of characters in a message's line. Servers and records have texts of any length,
/// and the record keeps them whole.
const LINE_MAX: usize = 600;

#[derive(Debug, Clone, Copy)]
struct OutputSettings {
    colour: Colour,
    quiet: bool,
}

static SETTINGS: OnceLock<OutputSettings> = OnceLock::new();

/// Takes the command line's settings for output. It is called once, before anything is printed.
pub(crate) fn set(colour: Colour, quiet: bool) {
    let _ = SETTINGS.set(OutputSettings { colour, quiet });
}

fn settings() -> OutputSettings {
    SETTINGS.get().copied().unwrap_or(OutputSettings { colour: Colour::Auto, quiet: false })
}

/// Prints results. A reader that has gone away (`dbdyno report | head`) is not an error. A full
/// disk is one, because a later reader must not believe that the file is complete.
pub(crate) fn out(text: &str) -> Result<(), ExitError> {
    let own: &[&str] = if wants_colour() { &COLOURS } else { &[] };
    print(&mut std::io::stdout().lock(), &escaped(text, own))
}

pub(crate) fn out_blocks(blocks: &[Block]) -> Result<(), ExitError> {
    out(&document::terminal(blocks, width(), wants_colour()))
}

pub(crate) fn out_json(value: &impl Serialize) -> Result<(), ExitError> {
    out(&serde_json::to_string_pretty(value).map_err(ExitError::ours)?)
}

/// Prints clap's own output: help and version as results, mistakes as messages.
pub(crate) fn answer(of_clap: &clap::Error) -> Result<(), ExitError> {
    if of_clap.use_stderr() {
        note(of_clap.render().to_string().trim_end());
        return Err(ExitError::silent(USAGE));
    }
    let printed = of_clap.print().and_then(|()| std::io::stdout().flush());
    printed.map_or_else(|error| lost(&error), Ok)
}

/// Prints results, or writes them to the requested file and prints its path.
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

/// Returns an error for results that standard output did not take, unless their reader has gone
/// away.
fn lost(error: &std::io::Error) -> Result<(), ExitError> {
    if error.kind() == ErrorKind::BrokenPipe {
        return Ok(());
    }
    let advice = "the output is incomplete; make room there, or send it elsewhere";
    Err(ExitError::machine(format!("cannot write to standard output: {error}; {advice}")))
}

/// Prints a message that is not a result, unless `--quiet` is given. Where it cannot be printed it
/// is lost, and the command goes on.
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
    let _ = writeln!(std::io::stderr().lock(), "{}", escaped(text, &[]));
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", message(text));
}

/// Prints an error that the user can correct. It is printed whole, because it may list the valid
/// values.
pub(crate) fn mistake(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "error: {}", escaped(text, &[]));
}

/// Escapes a message for a terminal, and shortens its lines.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    match escaped(text, &[]) {
        Cow::Borrowed(text) => cut(text, LINE_MAX),
        Cow::Owned(text) => Cow::Owned(cut(&text, LINE_MAX).into_owned()),
    }
}

/// Whether a user is at the terminal and can answer a question.
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

/// The sequences for the colours of dbdyno's own reports. Foreign text that holds one of them is
/// coloured, but it can do nothing else.
pub(crate) const COLOURS: [&str; 7] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m"];

/// Writes out every control character in `text` (`\x1b`), and every character that changes the
/// direction of the text after it. Newlines, tabs and the sequences `own` stay. Characters above
/// U+001F, which JSON may hold unescaped, are written as JSON escapes (`\u009b`), so that JSON
/// stays valid.
pub(crate) fn escaped<'a>(text: &'a str, own: &[&str]) -> Cow<'a, str> {
    if !text.contains(controls_terminal) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(controls_terminal) {
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
fn controls_terminal(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// Cuts each line of `text` to at most `most` characters. A longer line loses its middle, because
/// its end holds the advice.
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
    use crate::exit::MACHINE;

    /// A writer that accepts no bytes and fails with this kind of error.
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
    fn results_go_into_the_requested_file_or_an_error_names_it() {
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

    #[test]
    fn control_characters_are_written_out_and_lines_stay() {
        let text = "a\u{1b}[2J\u{1b}]0;title\u{7}\rb\u{9b}31m\u{7f}\u{202e}c\td\r\n";
        let expected = "a\\x1b[2J\\x1b]0;title\\x07\\x0db\\u009b31m\\u007f\\u202ec\td\r\n";
        assert_eq!(escaped(text, &[]), expected);
        assert!(matches!(escaped("ä plain\n\ttext …", &[]), Cow::Borrowed(_)));
    }

    #[test]
    fn own_colours_stay_and_nothing_that_only_begins_like_one() {
        let text = "\u{1b}[31mred\u{1b}[0m \u{1b}[31;8mhidden\u{1b}[3m";
        assert_eq!(escaped(text, &COLOURS), "\u{1b}[31mred\u{1b}[0m \\x1b[31;8mhidden\\x1b[3m");
        assert_eq!(escaped("\u{1b}[31mred", &[]), "\\x1b[31mred");
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({ "name": "a\u{1b}[2J\u{9b}\u{7f}\u{202e}" });
        let text = serde_json::to_string_pretty(&value).expect("it is JSON");
        let safe = escaped(&text, &[]);
        assert!(!safe.contains(controls_terminal));
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
