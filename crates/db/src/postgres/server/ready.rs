//! Checks whether a PostgreSQL server accepts connections, from the status that it writes to
//! `postmaster.pid`.

use std::path::Path;

/// The first version whose `postmaster.pid` has a status.
pub(super) const SAYS_SO: u32 = 10;

/// The status line's number in `postmaster.pid`, from 0 (`LOCK_FILE_LINE_PM_STATUS` in
/// `utils/pidfile.h`).
const STATUS: usize = 7;

/// Status of a server that accepts connections, and of one that accepts only readers.
const TAKES: [&str; 2] = ["ready", "standby"];

/// Whether the server whose first process is `pid` says in `data_dir` that it accepts connections.
/// Earlier it would refuse a login and log that as an error.
pub(super) fn says_ready(data_dir: &Path, pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(data_dir.join("postmaster.pid")) else { return false };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_its_own = lines.first().is_some_and(|line| *line == pid.to_string());
    is_its_own && lines.get(STATUS).is_some_and(|line| TAKES.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_ready_in_its_own_file_and_on_the_right_line() {
        let folder = tempfile::tempdir().unwrap();
        let says = |text: &str| {
            std::fs::write(folder.path().join("postmaster.pid"), text).unwrap();
            says_ready(folder.path(), 7)
        };
        assert!(!says_ready(folder.path(), 7));
        let before = "/data\n1700000000\n5432\n/run\n\n  1 2\n";
        assert!(says(&format!("7\n{before}ready   \n")));
        assert!(says(&format!("7\n{before}standby \n")));
        assert!(!says(&format!("7\n{before}starting\n")));
        assert!(!says(&format!("7\n{before}")));
        // A killed server leaves its file behind.
        assert!(!says(&format!("8\n{before}ready   \n")));
        assert!(!says("7\nready   \n"));
    }
}
