//! Reads the end of a server's log, which error messages quote.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read from the log's end. On a full disk, InnoDB logs thousands of failed writes
/// after the error that matters.
const TAIL_BYTES: u64 = 4 << 20;

/// Number of lines from a log's end that an error message shows.
const LAST_LINES: usize = 15;

/// Number of error lines above those last lines that an error message also shows. MySQL 5.6 logs
/// the wrong option first and then many lines about its shutdown.
const ERROR_LINES: usize = 5;

/// Texts that mark an error line. MariaDB and MySQL use the first text. They use the second when
/// InnoDB aborts, and a long dump follows it. PostgreSQL uses the third.
const ERRORS: [&str; 3] = ["[ERROR]", "Assertion failure", "FATAL:  "];

/// Texts that mark a full disk. MariaDB and MySQL then wait until someone frees space, and answer
/// no statement meanwhile.
const NO_SPACE: [&str; 3] = ["Disk is full", "Disk full", "No space left on device"];

/// The end of the line that a PostgreSQL server logs for each login that comes while it starts.
const STARTING: &str = "FATAL:  the database system is starting up";

/// The part of a log that belongs to one start.
pub(crate) struct LogPart<'a> {
    pub(crate) path: &'a Path,
    /// Bytes before this part, from earlier starts.
    pub(crate) start: u64,
    /// Number of dbdyno's own logins that were refused because the server was still starting. The
    /// same number of log lines about refused logins is left out, because those lines report no
    /// fault.
    pub(crate) refused_probes: usize,
}

impl<'a> LogPart<'a> {
    /// Returns the whole log, for a program without logins.
    pub(crate) fn whole(path: &'a Path) -> Self {
        Self { path, start: 0, refused_probes: 0 }
    }

    /// Reads the end of this part, without the lines about dbdyno's own refused logins.
    fn read(&self) -> std::io::Result<String> {
        let mut file = File::open(self.path)?;
        let cut = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(cut.max(self.start)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // The first logins to a server are dbdyno's own. If the beginning of the part is cut off,
        // the remaining lines are about other logins.
        let mut own_left = if cut > self.start { 0 } else { self.refused_probes };
        let is_own = |line: &str| {
            let is_own = own_left > 0 && line.trim_end().ends_with(STARTING);
            own_left -= usize::from(is_own);
            is_own
        };
        Ok(without_lines(&text, is_own))
    }

    /// Returns the text that `choose` makes from the lines, or a sentence if there are none.
    fn quoted(&self, choose: impl FnOnce(&[&str]) -> String) -> String {
        match self.read() {
            Ok(text) if text.trim().is_empty() => "(the log is empty)".to_owned(),
            Ok(text) => choose(&text.trim_end().lines().collect::<Vec<_>>()),
            Err(error) => format!("(the log cannot be read: {error})"),
        }
    }
}

fn without_lines(text: &str, mut is_omitted: impl FnMut(&str) -> bool) -> String {
    text.split_inclusive('\n').filter(|line| !is_omitted(line)).collect()
}

/// Returns the log's current length in bytes, or 0 when there is no log. Bytes after this length
/// belong to the next start.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Returns the last `lines` lines, or a sentence when there are none.
pub(crate) fn tail(part: &LogPart<'_>, lines: usize) -> String {
    part.quoted(|all| all[all.len().saturating_sub(lines)..].join("\n"))
}

/// Returns the last lines, preceded by the last error lines from above them.
pub(crate) fn reason(part: &LogPart<'_>) -> String {
    part.quoted(|all| {
        let (before, last) = all.split_at(all.len().saturating_sub(LAST_LINES));
        let errors: Vec<&str> =
            before.iter().copied().filter(|line| ERRORS.iter().any(|marker| line.contains(marker))).collect();
        let errors = &errors[errors.len().saturating_sub(ERROR_LINES)..];
        let gap: &[&str] = if errors.is_empty() { &[] } else { &["[...]"] };
        [errors, gap, last].concat().join("\n")
    })
}

/// Returns the last lines that mark an error or a full disk, preceded by the first line about a
/// full disk if that line is above them.
pub(crate) fn errors(part: &LogPart<'_>) -> Option<String> {
    let text = part.read().ok()?;
    let markers: Vec<&str> = ERRORS.into_iter().chain(NO_SPACE).collect();
    let lines: Vec<&str> =
        text.lines().filter(|line| markers.iter().any(|marker| line.contains(marker))).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(ERROR_LINES));
    // Among thousands of failed writes, the first one shows the cause.
    let first = before.iter().find(|line| NO_SPACE.iter().any(|marker| line.contains(marker)));
    let lines: Vec<&str> = first.into_iter().chain(last).copied().collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_an_empty_or_absent_log_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        assert!(tail(&LogPart::whole(&path), 2).starts_with("(the log cannot be read"));
        assert_eq!(length(&path), 0);
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(tail(&LogPart::whole(&path), 2), "(the log is empty)");
        std::fs::write(&path, "x\n".repeat(100_000) + "a\nb\nc\n").unwrap();
        assert_eq!(tail(&LogPart::whole(&path), 2), "b\nc");
    }

    #[test]
    fn the_reason_shows_errors_of_this_start_from_above_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let earlier = "[ERROR] of an earlier start\n";
        let notes: String = (1..=20).map(|number| format!("note {number}\n")).collect();
        std::fs::write(&path, format!("{earlier}[ERROR] unknown variable\n{notes}")).unwrap();
        let after = |start: u64| LogPart { start, ..LogPart::whole(&path) };
        let text = reason(&after(earlier.len() as u64));
        assert!(text.starts_with("[ERROR] unknown variable\n[...]\nnote 6\n"), "{text}");
        assert!(text.ends_with("note 20"), "{text}");
        assert_eq!(reason(&after(length(&path))), "(the log is empty)");
        assert_eq!(errors(&after(earlier.len() as u64)).as_deref(), Some("[ERROR] unknown variable"));
        assert_eq!(errors(&after(length(&path))), None);
        std::fs::write(&path, "[ERROR] Disk is full\n".to_owned() + &"[ERROR] write\n".repeat(20)).unwrap();
        let expected = "[ERROR] Disk is full".to_owned() + &"\n[ERROR] write".repeat(ERROR_LINES);
        assert_eq!(errors(&after(0)), Some(expected));
    }

    #[test]
    fn only_dbdynos_own_refused_logins_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let earlier = format!("{STARTING}\n");
        let refused = format!("2026-11-29 08:00:00 UTC [7] {STARTING}\n");
        let other = "FATAL:  role \"nobody\" does not exist\n";
        std::fs::write(&path, format!("{earlier}{refused}{other}{refused}LOG:  ready\n{refused}")).unwrap();
        let part = |refused_probes| LogPart { path: &path, start: earlier.len() as u64, refused_probes };
        assert_eq!(reason(&part(0)).matches("starting up").count(), 3);
        assert_eq!(reason(&part(2)), format!("{other}LOG:  ready\n{refused}").trim_end());
        assert_eq!(errors(&part(2)), Some(format!("{other}{refused}").trim_end().to_owned()));
        assert_eq!(errors(&part(9)).as_deref(), Some(other.trim_end()));
    }
}
