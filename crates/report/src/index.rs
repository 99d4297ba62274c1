//! The page for a folder of runs: the runs, newest first, and the histories of plans that ran more
//! than once.

use serde_json::{Value, json};

use crate::document::html::page;
use crate::document::{self, Block, Table, TableCell, Tone};
use crate::words::table;

#[derive(Debug, Clone)]
pub struct RunEntry {
    pub run_id: String,
    pub plan: String,
    /// Time of the start in RFC 3339 format.
    pub started: String,
    pub variants: Vec<String>,
    pub workloads: Vec<String>,
    pub blocks: u32,
    /// Progress and end of the run, such as `6 of 6 cells, complete`.
    pub state: String,
    pub is_going_on: bool,
    /// Address of the run's page, relative to the index.
    pub page: String,
}

/// A plan with two runs or more.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    pub plan: String,
    pub runs: usize,
    /// Address of the history's page, relative to the index.
    pub page: String,
}

/// Writes the index as one page. `live_seconds` is the interval at which the page asks a server for
/// new runs. It is `None` for a page in a file.
pub fn index_html(
    folder: &str,
    runs: &[RunEntry],
    histories: &[HistoryEntry],
    live_seconds: Option<u32>,
) -> String {
    let title = format!("dbdyno runs: {folder}");
    let mut newest: Vec<&RunEntry> = runs.iter().collect();
    newest.sort_by(|one, other| other.started.cmp(&one.started));
    let mut blocks = vec![Block::heading(1, title.clone()), Block::section("Runs", "runs")];
    blocks.push(Block::Table(runs_table(&newest)));
    if !histories.is_empty() {
        blocks.push(Block::section("Histories", "histories"));
        blocks.push(Block::Table(histories_table(histories)));
    }
    let data = live_seconds.map_or(Value::Null, |seconds| json!({ "live": seconds }));
    page(&title, &document::html(&blocks), &data)
}

fn runs_table(runs: &[&RunEntry]) -> Table {
    let mut table = table("runs-of-a-folder");
    for run in runs {
        let name = TableCell { link: Some(run.page.clone()), ..TableCell::from(run.run_id.as_str()) };
        let tone = if run.is_going_on { Tone::Strong } else { Tone::Plain };
        let texts = [
            run.plan.clone(),
            run.started.chars().take(16).collect::<String>().replace('T', " "),
            run.variants.join(", "),
            run.workloads.join(", "),
            run.blocks.to_string(),
        ];
        let texts = texts.into_iter().map(TableCell::from);
        table.push(std::iter::once(name).chain(texts).chain([TableCell::toned(run.state.clone(), tone)]));
    }
    table
}

fn histories_table(histories: &[HistoryEntry]) -> Table {
    let mut table = Table::new("", "", ["plan"], ["runs"]);
    for history in histories {
        let plan = TableCell { link: Some(history.page.clone()), ..TableCell::from(history.plan.as_str()) };
        table.push([plan, TableCell::from(history.runs.to_string())]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(run_id: &str, started: &str) -> RunEntry {
        RunEntry {
            run_id: run_id.to_owned(),
            plan: "nightly".to_owned(),
            started: started.to_owned(),
            variants: vec!["<a>".to_owned(), "b".to_owned()],
            workloads: vec!["oltp".to_owned()],
            blocks: 3,
            state: "1 of 6 cells, going on".to_owned(),
            is_going_on: true,
            page: format!("{run_id}/report.html"),
        }
    }

    #[test]
    fn the_newest_run_is_first_and_links_lead_to_pages() {
        let runs = [entry("one", "2026-01-01T10:00:00Z"), entry("two", "2026-02-01T10:00:00Z")];
        let history =
            HistoryEntry { plan: "nightly".to_owned(), runs: 2, page: "history-nightly.html".to_owned() };
        let text = index_html("runs", &runs, &[history], Some(2));
        let position = |wanted: &str| text.find(wanted).unwrap_or_else(|| panic!("no {wanted}"));
        assert!(position("href=\"two/report.html\"") < position("href=\"one/report.html\""));
        assert!(text.contains("href=\"history-nightly.html\"") && text.contains("{\"live\":2}"));
        assert!(text.contains("&lt;a&gt;, b") && !text.contains("<a>,"));
        assert!(!index_html("runs", &runs, &[], None).contains("{\"live\""));
    }
}
