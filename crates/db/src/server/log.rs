//! Reads the end of a server's log, for error messages.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read from the end. InnoDB on a full disk logs thousands of failed writes after
/// the error that matters.
const TAIL_BYTES: u64 = 4 << 20;

/// Last lines of a log that an error message shows.
const LAST_LINES: usize = 15;

/// Error lines that it shows from further above. MySQL 5.6 names a wrong option first and then logs
/// at length how it shuts down.
const ERROR_LINES: usize = 5;

/// Text that marks such an error line, in this order: for MariaDB and MySQL; for both where InnoDB
/// gives up before a long dump; for PostgreSQL.
const ERRORS: [&str; 3] = ["[ERROR]", "Assertion failure", "FATAL:  "];

/// Text that marks a full disk. MariaDB and MySQL then wait for someone to make room, and answer
/// nothing.
const NO_SPACE: [&str; 3] = ["Disk is full", "Disk full", "No space left on device"];

/// The line that a PostgreSQL server logs for each login while it starts.
const STARTING: &str = "FATAL:  the database system is starting up";

/// The part of a log that belongs to one start.
pub(crate) struct LogPart<'a> {
    pub(crate) path: &'a Path,
    /// Bytes before this part, from earlier starts.
    pub(crate) start: u64,
    /// dbdyno's own logins that were refused because the server was still starting. The same number
    /// of log lines about such logins is left out, because they are no fault and of no interest.
    pub(crate) refused_probes: usize,
}

impl<'a> LogPart<'a> {
    /// The whole log, for a program that no one logs in to.
    pub(crate) fn whole(path: &'a Path) -> Self {
        Self { path, start: 0, refused_probes: 0 }
    }

    /// Reads the end of this part.
    fn read(&self) -> std::io::Result<String> {
        let mut file = File::open(self.path)?;
        let cut = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(cut.max(self.start)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // The first connections to a server are dbdyno's own. Where the start is cut off, the
        // remaining lines come from other connections.
        let mut own = if cut > self.start { 0 } else { self.refused_probes };
        let is_own = |line: &str| {
            let is_own = own > 0 && line.trim_end().ends_with(STARTING);
            own -= usize::from(is_own);
            is_own
        };
        Ok(without(&text, is_own))
    }

    fn shown(&self, choose: impl FnOnce(&[&str]) -> String) -> String {
        match self.read() {
            Ok(text) if text.trim().is_empty() => "(the log is empty)".to_owned(),
            Ok(text) => choose(&text.trim_end().lines().collect::<Vec<_>>()),
            Err(error) => format!("(the log cannot be read: {error})"),
        }
    }
}

fn without(text: &str, mut is_out: impl FnMut(&str) -> bool) -> String {
    text.split_inclusive('\n').filter(|line| !is_out(line)).collect()
}

/// The log's current length, which separates earlier servers' lines from this one's. It is 0 when
/// there is no log.
pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The last `lines` lines, or a sentence when there are none.
pub(crate) fn tail(part: &LogPart<'_>, lines: usize) -> String {
    part.shown(|all| all[all.len().saturating_sub(lines)..].join("\n"))
}

/// The end of the log: the last lines, preceded by the last of the earlier errors.
pub(crate) fn reason(part: &LogPart<'_>) -> String {
    part.shown(|all| {
        let (before, last) = all.split_at(all.len().saturating_sub(LAST_LINES));
        let errors: Vec<&str> =
            before.iter().copied().filter(|line| ERRORS.iter().any(|mark| line.contains(mark))).collect();
        let errors = &errors[errors.len().saturating_sub(ERROR_LINES)..];
        let gap: &[&str] = if errors.is_empty() { &[] } else { &["[...]"] };
        [errors, gap, last].concat().join("\n")
    })
}

/// The last error lines, and the lines about a full disk.
pub(crate) fn errors(part: &LogPart<'_>) -> Option<String> {
    let text = part.read().ok()?;
    let marks: Vec<&str> = ERRORS.into_iter().chain(NO_SPACE).collect();
    let lines: Vec<&str> = text.lines().filter(|line| marks.iter().any(|mark| line.contains(mark))).collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(ERROR_LINES));
    // Among thousands of failed writes, the first one says what went wrong.
    let first = before.iter().find(|line| NO_SPACE.iter().any(|mark| line.contains(mark)));
    let lines: Vec<&str> = first.into_iter().chain(last).copied().collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_an_empty_or_absent_log_is_said() {
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
    fn the_reason_shows_errors_of_this_start_that_many_lines_follow() {
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
    fn of_refused_logins_only_as_many_are_left_out_as_dbdyno_has_made() {
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
