//! Warnings about runs that were stopped and resumed: how often, where, and which blocks have cells
//! from more than one session.
//!
//! A ratio is formed within a block, so that what changes from hour to hour affects both of its
//! sides. In a block that was cut off it does not.

use std::collections::BTreeMap;

use dbdyno_record::{CellId, Run, RunEvent};

use crate::model::{Code, SessionPart, Warning};

/// One invocation of dbdyno on the plan: the first one, then one for each time that the run was
/// resumed.
type Session = usize;

pub(crate) fn warnings(run: &Run) -> Vec<Warning> {
    let started = |event: &&RunEvent| matches!(event, RunEvent::Started { resumed: true, .. });
    let resumes = run.events.iter().filter(started).count();
    if resumes == 0 {
        return Vec::new();
    }
    let mut all = vec![Warning::new(Code::Resumed).at_all(whereabouts(run)).with("times", resumes)];
    let mut blocks: BTreeMap<u32, BTreeMap<Session, Vec<&str>>> = BTreeMap::new();
    for (cell, (session, at)) in begun(run) {
        blocks.entry(cell.block).or_default().entry(session).or_default().push(at);
    }
    for (block, sessions) in blocks.into_iter().filter(|(_, sessions)| sessions.len() > 1) {
        let parts: Vec<SessionPart> = sessions.into_values().filter_map(part).collect();
        all.push(Warning::new(Code::BlockResumed).at(format!("block {block}")).with("parts", parts));
    }
    all
}

fn part(begun: Vec<&str>) -> Option<SessionPart> {
    let from = begun.iter().min()?;
    Some(SessionPart { cells: begun.len(), from: (*from).to_owned() })
}

/// For each cell whose records are in the run, the session and time in which it began.
fn begun(run: &Run) -> BTreeMap<&CellId, (Session, &str)> {
    let mut session = 0;
    let mut begun = BTreeMap::new();
    for event in &run.events {
        match event {
            RunEvent::Started { resumed: true, .. } => session += 1,
            RunEvent::CellStarted { at, cell, .. } if run.cells.iter().any(|known| known.id == *cell) => {
                begun.insert(cell, (session, at.as_str()));
            }
            _ => {}
        }
    }
    begun
}

/// The place where the run went on, for each time that it was resumed.
fn whereabouts(run: &Run) -> Vec<String> {
    let mut blocks: Vec<u32> = Vec::new();
    let mut is_next = false;
    for event in &run.events {
        match event {
            RunEvent::Started { resumed, .. } => is_next = *resumed,
            RunEvent::CellStarted { cell, .. } if is_next => {
                is_next = false;
                blocks.push(cell.block);
            }
            _ => {}
        }
    }
    blocks.dedup();
    blocks.into_iter().map(|block| format!("block {block}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, cell_id, run, shown_all};

    fn started(resumed: bool) -> RunEvent {
        RunEvent::Started { at: String::new(), resumed, tool: dbdyno_record::ToolInfo::default() }
    }

    fn cell_started(block: u32, variant: &str, at: &str) -> RunEvent {
        RunEvent::CellStarted {
            at: format!("2026-03-0{at}:59.5Z"),
            cell: cell_id(block, variant),
            elapsed_us: 0,
        }
    }

    fn reported(events: Vec<RunEvent>) -> String {
        let cells = [(1, "a"), (1, "b"), (2, "a")].map(|(block, name)| cell(block, name, Vec::new()));
        let mut run = run(&["a", "b"], 2, cells.into());
        run.events = events;
        shown_all(&warnings(&run))
    }

    #[test]
    fn a_run_of_one_session_has_nothing_to_tell() {
        assert_eq!(reported(vec![started(false), cell_started(1, "a", "1T12:00")]), "");
    }

    #[test]
    fn a_block_that_was_cut_off_is_named_with_its_times() {
        let events = vec![
            started(false),
            cell_started(1, "a", "1T12:00"),
            cell_started(1, "b", "1T12:01"),
            started(true),
            cell_started(1, "b", "2T07:30"),
            cell_started(2, "a", "2T07:40"),
            cell_started(2, "b", "2T07:50"),
            started(true),
        ];
        insta::assert_snapshot!(reported(events), @r#"
        resumed [block 1] times: 2
        block-resumed [block 1] parts: [{"cells":1,"from":"2026-03-01T12:00:59.5Z"},{"cells":1,"from":"2026-03-02T07:30:59.5Z"}]
        "#);
    }

    #[test]
    fn a_run_that_was_stopped_between_two_blocks_has_whole_blocks() {
        let events = vec![
            started(false),
            cell_started(1, "a", "1T12:00"),
            cell_started(1, "b", "1T12:01"),
            started(true),
            cell_started(2, "a", "2T07:40"),
        ];
        insta::assert_snapshot!(reported(events), @"resumed [block 2] times: 1");
    }
}
