//! The end of a server's log, for error messages.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read from the end. InnoDB on a full disk notes thousands of failed writes after
/// the error that matters.
const TAIL_BYTES: u64 = 4 << 20;

/// Last lines of a log that an error message shows.
const LAST_LINES: usize = 15;

/// Lines marked as errors that it shows from further above: MySQL 5.6 names a wrong option, then
/// writes at length how it shuts down.
const ERROR_LINES: usize = 5;

/// What marks such a line: MariaDB and MySQL, the same where InnoDB gives up before a long dump,
/// PostgreSQL.
const ERRORS: [&str; 3] = ["[ERROR]", "Assertion failure", "FATAL:  "];

/// What marks a disk that is full, at which MariaDB and MySQL wait for someone to make room and
/// answer nothing.
const NO_SPACE: [&str; 3] = ["Disk is full", "Disk full", "No space left on device"];

/// Length of the log now: what is in it belongs to earlier servers. 0 when there is none.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The last `lines` lines of `path`; a sentence instead when there are none.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    shown(path, 0, |all| all[all.len().saturating_sub(lines)..].join("\n"))
}

/// The end of what `path` holds after its first `start` bytes: the last lines, and before them the
/// last of the errors that come earlier.
pub(crate) fn reason(path: &Path, start: u64) -> String {
    shown(path, start, |all| {
        let (before, last) = all.split_at(all.len().saturating_sub(LAST_LINES));
        let errors: Vec<&str> =
            before.iter().copied().filter(|line| ERRORS.iter().any(|mark| line.contains(mark))).collect();
        let errors = &errors[errors.len().saturating_sub(ERROR_LINES)..];
        let gap: &[&str] = if errors.is_empty() { &[] } else { &["[...]"] };
        [errors, gap, last].concat().join("\n")
    })
}

/// The last of the errors, and of the lines on a full disk, in what `path` holds after its first
/// `start` bytes.
pub(crate) fn errors(path: &Path, start: u64) -> Option<String> {
    let text = last_bytes(path, start).ok()?;
    let marks: Vec<&str> = ERRORS.into_iter().chain(NO_SPACE).collect();
    let lines: Vec<&str> = text.lines().filter(|line| marks.iter().any(|mark| line.contains(mark))).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(ERROR_LINES));
    // Of thousands of failed writes the first says what came over the server.
    let first = before.iter().find(|line| NO_SPACE.iter().any(|mark| line.contains(mark)));
    let lines: Vec<&str> = first.into_iter().chain(last).copied().collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn shown(path: &Path, start: u64, choose: impl FnOnce(&[&str]) -> String) -> String {
    match last_bytes(path, start) {
        Ok(text) if text.trim().is_empty() => "(the log is empty)".to_owned(),
        Ok(text) => choose(&text.trim_end().lines().collect::<Vec<_>>()),
        Err(error) => format!("(the log cannot be read: {error})"),
    }
}

fn last_bytes(path: &Path, start: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES).max(start)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_an_empty_or_absent_log_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        assert!(tail(&path, 2).starts_with("(the log cannot be read"));
        assert_eq!(length(&path), 0);
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(tail(&path, 2), "(the log is empty)");
        std::fs::write(&path, "x\n".repeat(100_000) + "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 2), "b\nc");
    }

    #[test]
    fn the_reason_shows_errors_of_this_start_that_many_lines_follow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let earlier = "[ERROR] of an earlier start\n";
        let notes: String = (1..=20).map(|number| format!("note {number}\n")).collect();
        std::fs::write(&path, format!("{earlier}[ERROR] unknown variable\n{notes}")).unwrap();
        let text = reason(&path, earlier.len() as u64);
        assert!(text.starts_with("[ERROR] unknown variable\n[...]\nnote 6\n"), "{text}");
        assert!(text.ends_with("note 20"), "{text}");
        assert_eq!(reason(&path, length(&path)), "(the log is empty)");
        assert_eq!(errors(&path, earlier.len() as u64).as_deref(), Some("[ERROR] unknown variable"));
        assert_eq!(errors(&path, length(&path)), None);
        std::fs::write(&path, "[ERROR] Disk is full\n".to_owned() + &"[ERROR] write\n".repeat(20)).unwrap();
        let expected = "[ERROR] Disk is full".to_owned() + &"\n[ERROR] write".repeat(ERROR_LINES);
        assert_eq!(errors(&path, 0), Some(expected));
    }
}
