//! The end of a server's log, for error messages.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read from the end; a line of a server's log seldom exceeds 1 KiB.
const TAIL_BYTES: u64 = 64 * 1024;

/// Lines of a log that an error message shows.
pub(crate) const SHOWN_LINES: usize = 15;

/// The last `lines` lines of `path`; a sentence instead when there are none.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    match last_bytes(path) {
        Ok(text) if text.trim().is_empty() => "(the log is empty)".to_owned(),
        Ok(text) => {
            let all: Vec<&str> = text.trim_end().lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
        Err(error) => format!("(the log cannot be read: {error})"),
    }
}

fn last_bytes(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
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
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(tail(&path, 2), "(the log is empty)");
        std::fs::write(&path, "x\n".repeat(100_000) + "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 2), "b\nc");
    }
}
