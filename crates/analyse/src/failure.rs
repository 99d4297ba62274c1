//! What failed in a cell: its own words on one line, without the lines of a log behind them.

use dbdyno_record::{CellEvent, CellRecord};

/// What a message says itself: its first line, without the colon that leads to a log and without a full stop.
pub(crate) fn words(message: &str) -> &str {
    let line = message.trim_start().lines().next().unwrap_or_default();
    line.trim_end().trim_end_matches(['.', ':'])
}

/// Why a cell ended as it did, as it was recorded.
pub(crate) fn end_message(cell: &CellRecord) -> String {
    let message = cell.events.iter().rev().find_map(|event| match event {
        CellEvent::Ended { message, .. } => message.clone(),
        _ => None,
    });
    message.unwrap_or_else(|| "it does not say why; see its events and the server's log".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_its_first_line() {
        let message =
            "mysqld died at start (exit status: 1); the end of its log a.log:\n[ERROR] one\n\n[ERROR] two\n";
        assert_eq!(words(message), "mysqld died at start (exit status: 1); the end of its log a.log");
        assert_eq!(
            [words("server died."), words("\nserver died.\n"), words("")],
            ["server died", "server died", ""]
        );
    }
}
