//! Failed cells, each with its error message in one line. The lines of a server's log, which
//! records have after the message, are kept apart from it.

use dbdyno_record::{CellEvent, CellRecord, Outcome, Run, StepEvent};
use serde::Serialize;

/// What stands between a failure's own message and the lines of a log.
const LEADS_TO_LOG: &str = "; the end of its log";

/// A cell that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub block: u32,
    pub variant: String,
    pub workload: String,
    /// The error message in one line.
    pub message: String,
    /// The end of the server's log, as it was recorded; `None` where the failure came without one.
    pub log: Option<String>,
}

/// The cells that failed, in the order in which they ran.
pub(crate) fn failures(run: &Run) -> Vec<Failure> {
    let failed = run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Failed));
    let failure = |cell: &CellRecord| {
        let message = end_message(cell);
        Failure {
            block: cell.id.block,
            variant: cell.id.variant.clone(),
            workload: cell.id.workload.clone(),
            message: words(&message),
            log: log(&message).or_else(|| log_of_step(cell)),
        }
    };
    failed.map(failure).collect()
}

/// The end of the log that the failed step has in its message.
fn log_of_step(cell: &CellRecord) -> Option<String> {
    let events = cell.steps.iter().flat_map(|step| &step.events);
    let mut messages = events.filter_map(|event| match event {
        StepEvent::Ended { outcome: Outcome::Failed, message, .. } => message.as_deref(),
        _ => None,
    });
    messages.find_map(log)
}

/// The message's first line without a full stop. Where a log follows, the line goes on with the
/// log's decisive line and the log's path.
pub fn words(message: &str) -> String {
    let line = message.trim_start().lines().next().unwrap_or_default();
    let line = line.trim_end().trim_end_matches(['.', ':']);
    let Some((said, path)) = line.split_once(LEADS_TO_LOG) else { return line.to_owned() };
    let why = log(message).as_deref().and_then(decisive).map_or_else(String::new, |why| format!(": {why}"));
    let path = if path.is_empty() { String::new() } else { format!("; its log is{path}") };
    format!("{said}{why}{path}")
}

/// How servers mark errors in their logs.
const MARKS: [&str; 4] = ["[ERROR] ", "FATAL: ", "PANIC: ", "ERROR: "];

/// The first error in a log, without its time and its codes in brackets. The errors after it mostly
/// result from it.
fn decisive(log: &str) -> Option<String> {
    let after_mark =
        |line: &str| MARKS.iter().find_map(|mark| Some(line.split_once(mark)?.1.trim().to_owned()));
    let mut line = log.lines().find_map(after_mark)?;
    while let Some((_, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        line = rest.to_owned();
    }
    Some(line.trim_end_matches('.').to_owned())
}

/// The lines after the first one, as they were logged; `None` for a message of one line.
fn log(message: &str) -> Option<String> {
    let (_, log) = message.trim().split_once('\n')?;
    Some(log.trim_end().to_owned()).filter(|log| !log.is_empty())
}

/// Why a cell ended as it did, as it was recorded.
pub(crate) fn end_message(cell: &CellRecord) -> String {
    let message = cell.events.iter().rev().find_map(|event| match event {
        CellEvent::Ended { message, .. } => message.clone(),
        _ => None,
    });
    message.unwrap_or_else(|| "no reason was reported; see its events and the server's log".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, ended, failed_cell, load_step, run};

    const DIED: &str =
        "mysqld died at start (exit status: 1); the end of its log a.log:\n[ERROR] one\n\n[ERROR] two\n";

    #[test]
    fn a_failure_is_its_first_line_and_the_log_stands_apart() {
        assert_eq!(words(DIED), "mysqld died at start (exit status: 1): one; its log is a.log");
        assert_eq!(log(DIED).as_deref(), Some("[ERROR] one\n\n[ERROR] two"));
        assert_eq!(
            words("the server ended with signal 9; the end of its log:\nx"),
            "the server ended with signal 9"
        );
        assert_eq!((words("server died.").as_str(), log("server died.")), ("server died", None));
        assert_eq!((words("\nserver died.\n").as_str(), log("\nserver died.\n")), ("server died", None));
        assert_eq!((words("").as_str(), log("")), ("", None));
    }

    #[test]
    fn the_decisive_line_of_a_log_is_its_first_error() {
        let of = |log: &str| decisive(log).unwrap_or_default();
        let mysql = "2026-11-24T12:34:22Z 0 [Warning] [MY-010068] [Server] CA certificate ca.pem is self signed.\n\
                     2026-11-24T12:34:22Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=3'.\n\
                     2026-11-24T12:34:22Z 0 [ERROR] [MY-010119] [Server] Aborting";
        let postgres = "2026-11-24 12:34:22 UTC [1] FATAL:  invalid value for parameter \"wal_level\": \"x\"";
        assert_eq!(of(mysql), "unknown variable 'x=3'");
        assert_eq!(of(postgres), "invalid value for parameter \"wal_level\": \"x\"");
        assert_eq!(of("all is well"), "");
    }

    #[test]
    fn failed_cells_have_the_log_of_their_own_end_or_of_the_step_that_failed() {
        let gone = ended(load_step(1_000), Outcome::Failed, "gone; the end of its log:\nsignal 11");
        let cells = vec![
            cell(1, "a", Vec::new()),
            failed_cell(1, "b", Vec::new(), DIED),
            failed_cell(2, "a", vec![gone], "gone"),
            failed_cell(2, "b", Vec::new(), "no room"),
        ];
        let found = failures(&run(&["a", "b"], 2, cells));
        let logs: Vec<_> = found.iter().map(|one| (one.message.as_str(), one.log.as_deref())).collect();
        assert_eq!(
            logs,
            [
                (
                    "mysqld died at start (exit status: 1): one; its log is a.log",
                    Some("[ERROR] one\n\n[ERROR] two")
                ),
                ("gone", Some("signal 11")),
                ("no room", None)
            ]
        );
        assert_eq!((found[1].block, found[1].variant.as_str()), (2, "a"));
    }
}
