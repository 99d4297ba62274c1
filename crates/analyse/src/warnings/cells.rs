//! Warns about cells that failed, did not end, did not run or were repeated, and about runs that
//! were stopped and resumed: how often, where, and which blocks have cells from more than one
//! session.
//!
//! A ratio is formed within a block, so what changes from hour to hour affects both of its
//! sides. In a block that was interrupted and resumed, it may affect only one.

use std::collections::BTreeMap;

use dbdyno_model::Design;
use dbdyno_record::{CellEvent, CellId, CellRecord, Outcome, Run, RunEvent};

use crate::model::findings::{end_message, failure_words};
use crate::model::{Code, SessionPart, Warning};

/// Cells that failed, stopped in the middle or did not run.
pub(crate) fn cell_warnings(run: &Run) -> Vec<Warning> {
    let ended = |cell: &CellRecord| {
        let code = match cell.outcome() {
            None if run.is_going_on => return None,
            Some(Outcome::Completed) => return None,
            Some(Outcome::Failed) => {
                let message = failure_words(&end_message(cell));
                return Some(Warning::new(Code::CellFailed).at(cell.id.to_string()).with("message", message));
            }
            Some(Outcome::Interrupted) => Code::CellInterrupted,
            None => Code::CellUnfinished,
        };
        Some(Warning::new(code).at(cell.id.to_string()))
    };
    let mut all: Vec<Warning> = run.cells.iter().filter_map(ended).collect();
    all.extend(repeated(run));
    let planned = run.manifest.order.len();
    let lost = lost_records(run);
    let is_there = |id: &CellId| run.cells.iter().any(|cell| cell.id == *id);
    let ended = completed(run);
    let missing = run.manifest.order.iter().filter(|id| !is_there(id) && !ended.contains(id)).count();
    all.extend(lost);
    if run.is_going_on {
        all.insert(0, going_on(run));
    } else if missing > 0 {
        all.push(Warning::new(Code::CellsMissing).with("missing", missing).with("planned", planned));
    }
    all
}

/// Cells that the run's events call completed and whose records are incomplete, because a directory
/// was copied in part. A cell whose data came from a snapshot does not have the steps that load.
fn lost_records(run: &Run) -> Vec<Warning> {
    let lost = |id: &CellId| {
        let Some(cell) = run.cells.iter().chain(&run.profiled_cells).find(|cell| cell.id == *id) else {
            return Some(Warning::new(Code::CellRecordsMissing).at(id.to_string()));
        };
        let workload = run.manifest.workloads.iter().find(|workload| workload.name == id.workload)?;
        let is_there = |name: &String| cell.steps.iter().any(|step| step.name == *name);
        let is_restore =
            |event: &CellEvent| matches!(event, CellEvent::Work { name, .. } if name == "restore");
        // Servers that stay up from block to block were loaded in an earlier block.
        let stays_up = run.manifest.plan.design == Design::Alternate;
        let is_restored = !cell.steps.is_empty() && (stays_up || cell.events.iter().any(is_restore));
        let steps = run.steps_of(id).unwrap_or(&workload.steps);
        let loads = steps.iter().take_while(|name| is_restored && !is_there(name)).count();
        let lost: Vec<&str> =
            steps[loads..].iter().filter(|name| !is_there(name)).map(String::as_str).collect();
        (!lost.is_empty())
            .then(|| Warning::new(Code::RecordsMissing).at(id.to_string()).with("steps", lost.join(", ")))
    };
    completed(run).into_iter().filter_map(lost).collect()
}

/// Cells whose last attempt completed, by the run's events.
fn completed(run: &Run) -> Vec<&CellId> {
    let mut completed: Vec<&CellId> = Vec::new();
    for event in &run.events {
        match event {
            RunEvent::CellEnded { cell, outcome: Outcome::Completed, .. } => completed.push(cell),
            RunEvent::CellSetAside { cell, .. } => completed.retain(|known| *known != cell),
            _ => {}
        }
    }
    completed
}

/// A warning for a run that is still going on. It says how many cells have ended.
fn going_on(run: &Run) -> Warning {
    let ended = run.cells.iter().filter(|cell| cell.outcome().is_some()).count();
    let under_way = run.cells.iter().find(|cell| cell.outcome().is_none());
    Warning::new(Code::RunGoingOn)
        .with("ended", ended)
        .with("planned", run.manifest.order.len())
        .with_some("under_way", under_way.map(|cell| cell.id.to_string()))
}

/// Cells that failed and were run again in their place in the order. Reports have the later
/// attempt.
fn repeated(run: &Run) -> Vec<Warning> {
    let mut failures: BTreeMap<String, &str> = BTreeMap::new();
    let mut all = Vec::new();
    for event in &run.events {
        match event {
            RunEvent::CellEnded { cell, outcome: Outcome::Failed, message, .. } => {
                failures.insert(cell.to_string(), message.as_deref().unwrap_or("no reason was given"));
            }
            RunEvent::CellSetAside { cell, to, .. } => {
                if let Some(why) = failures.remove(&cell.to_string()) {
                    let is_there = run.cells.iter().any(|again| again.id == *cell);
                    let code = if is_there { Code::CellRepeated } else { Code::CellToRepeat };
                    let warning = Warning::new(code).at(cell.to_string()).with("message", beginning(why));
                    all.push(warning.with("records", to.as_str()));
                }
            }
            _ => {}
        }
    }
    all
}

/// The beginning of a message. The records of the failure have the whole message.
fn beginning(message: &str) -> String {
    const CHARACTERS: usize = 200;
    let line = failure_words(message);
    match line.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Number of a session, which is one invocation of dbdyno on the plan. The first is 0, and each
/// time that the run was resumed adds one.
type SessionIndex = usize;

pub(crate) fn session_warnings(run: &Run) -> Vec<Warning> {
    let started = |event: &&RunEvent| matches!(event, RunEvent::Started { resumed: true, .. });
    let resumes = run.events.iter().filter(started).count();
    if resumes == 0 {
        return Vec::new();
    }
    let mut all = vec![Warning::new(Code::Resumed).at_all(resumed_blocks(run)).with("times", resumes)];
    let mut blocks: BTreeMap<u32, BTreeMap<SessionIndex, Vec<&str>>> = BTreeMap::new();
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
fn begun(run: &Run) -> BTreeMap<&CellId, (SessionIndex, &str)> {
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

/// The blocks in which the run went on when it was resumed.
fn resumed_blocks(run: &Run) -> Vec<String> {
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
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, cell_id, load_step, query_step, run, shown, shown_all};

    fn warnings_of(run: &Run) -> String {
        cell_warnings(run).iter().map(shown).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_run_that_is_going_on_is_not_reported_as_stopped() {
        let mut second = cell(2, "a", Vec::new());
        second.events.pop();
        let mut run = run(&["a"], 3, vec![cell(1, "a", Vec::new()), second]);
        run.is_going_on = true;
        assert_snapshot!(warnings_of(&run), @"run-going-on ended: 1, planned: 3, under_way: block 2 a insert-benchmark");
        run.cells.pop();
        assert_snapshot!(warnings_of(&run), @"run-going-on ended: 1, planned: 3");
    }

    #[test]
    fn a_completed_cell_whose_records_are_not_all_there_is_reported() {
        let whole = || vec![load_step(1_000), query_step(400, 200)];
        let completed = |block| RunEvent::CellEnded {
            at: String::new(),
            cell: cell_id(block, "a"),
            outcome: Outcome::Completed,
            message: None,
            elapsed_us: 0,
        };
        let reported = |cells: Vec<CellRecord>| {
            let mut run = run(&["a"], 2, cells);
            run.events = vec![completed(1), completed(2)];
            warnings_of(&run)
        };
        assert_eq!(reported(vec![cell(1, "a", whole()), cell(2, "a", whole())]), "");
        let mut restored = cell(2, "a", vec![query_step(400, 200)]);
        let (at, name, details) = (String::new(), "restore".to_owned(), serde_json::Map::new());
        restored.events.insert(1, CellEvent::Work { at, name, duration_us: 1, details });
        assert_eq!(reported(vec![cell(1, "a", whole()), restored.clone()]), "");
        restored.steps.clear();
        assert_snapshot!(reported(vec![cell(1, "a", whole()), restored]), @"records-missing [block 2 a insert-benchmark] steps: l.i0, qr100");
        assert_snapshot!(reported(vec![cell(1, "a", vec![query_step(400, 200)])]), @r"
        records-missing [block 1 a insert-benchmark] steps: l.i0
        cell-records-missing [block 2 a insert-benchmark]
        ");
    }

    #[test]
    fn the_beginning_of_a_long_failure_is_reported() {
        assert_eq!(beginning("server died\nlog"), "server died");
        assert_eq!(beginning(&"ä".repeat(300)), format!("{}…", "ä".repeat(200)));
    }

    #[test]
    fn a_failed_cell_that_was_repeated_is_reported_with_its_failure() {
        let steps = vec![load_step(1_000), query_step(400, 200)];
        let mut run = run(&["a"], 2, vec![cell(1, "a", steps), cell(2, "a", Vec::new())]);
        let (one, two) = (run.cells[0].id.clone(), run.cells[1].id.clone());
        let at = String::new;
        let ended = |cell: &CellId, outcome| RunEvent::CellEnded {
            at: at(),
            cell: cell.clone(),
            outcome,
            message: Some("server died.".to_owned()),
            elapsed_us: 0,
        };
        let aside = |cell: &CellId| RunEvent::CellSetAside {
            at: at(),
            cell: cell.clone(),
            to: format!("aside/1/{}", cell.block),
        };
        run.events = vec![
            ended(&one, Outcome::Failed),
            ended(&two, Outcome::Interrupted),
            aside(&two),
            aside(&one),
            ended(&one, Outcome::Completed),
        ];
        let reported = "cell-repeated [block 1 a insert-benchmark] message: server died, records: aside/1/1";
        assert_eq!(warnings_of(&run), reported);
        run.cells.remove(0);
        assert!(
            warnings_of(&run).contains("cell-to-repeat [block 1 a insert-benchmark] message: server died"),
            "{}",
            warnings_of(&run)
        );
    }

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
        shown_all(&session_warnings(&run))
    }

    #[test]
    fn a_run_of_one_session_has_no_session_warning() {
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
    fn a_run_that_was_stopped_between_two_blocks_has_no_divided_block() {
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
