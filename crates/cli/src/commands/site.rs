//! Makes the pages of a folder of runs: an index, one page per run, and one history per plan that
//! ran more than once. They become files (`dbdyno report RUNS`), or are made from the records when
//! a browser on this machine requests them (`dbdyno serve`).

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_analyse::{HistoryChoices, Measure, RunValues, analyse, history};
use dbdyno_record::{Run, parallel};
use dbdyno_report::{HistoryEntry, PageOptions, RunEntry, history_html, index_html, run_html};

use crate::commands::list::{progress, run_dirs};
use crate::exit::ExitError;
use crate::http::{self, HttpAnswer};
use crate::{files, terminal};

const INDEX: &str = "index.html";
const REPORT: &str = "report.html";

pub(super) struct Site {
    folder: PathBuf,
}

impl Site {
    /// Opens a folder. It is `None` for a folder without any run.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        (!run_dirs(folder).is_empty()).then(|| Self { folder: folder.to_owned() })
    }

    /// Writes all pages next to their runs. A run that has a page keeps it, unless the run goes on.
    pub(super) fn write(&self) -> Result<(), ExitError> {
        let runs = self.runs();
        let histories = histories(&runs);
        let values = parallel::map(&runs, |(_, outline)| {
            let page = outline.dir.join(REPORT);
            let lacks_page = outline.is_going_on || !page.exists();
            if !lacks_page && !histories.iter().any(|entry| entry.plan == outline.manifest.plan.name) {
                return Ok(None);
            }
            let Some(run) = opened(Run::open(&outline.dir), &outline.dir) else { return Ok(None) };
            let findings = analyse(&run);
            if lacks_page {
                write(&page, &run_html(&findings, PageOptions::default()))?;
            }
            Ok(Some(RunValues::of_findings(&run, &findings)))
        });
        let values = values.into_iter().collect::<Result<Vec<_>, ExitError>>()?;
        let values: Vec<RunValues> = values.into_iter().flatten().collect();
        for entry in &histories {
            if let Some(text) = history_page(&values, &entry.plan) {
                write(&self.folder.join(&entry.page), &text)?;
            }
        }
        let index = self.folder.join(INDEX);
        write(&index, &self.index(&runs, None))?;
        terminal::out(&format!("index: {}", index.display()))
    }

    /// Returns the page at this path, made from the current records. It is `None` where there is no
    /// such page.
    pub(super) fn page(&self, path: &str, live_seconds: u32) -> Option<String> {
        let path = path.trim_start_matches('/');
        if path.is_empty() || path == INDEX {
            return Some(self.index(&self.runs(), Some(live_seconds)));
        }
        if let Some(name) = path.strip_suffix(REPORT).and_then(|name| name.strip_suffix('/')) {
            // Only a run in the folder with this very name matches, so no path leads out of the
            // folder.
            let dir = run_dirs(&self.folder).into_iter().find(|dir| name_of(dir) == name)?;
            let run = Run::open(&dir).ok()?;
            let live_seconds = run.is_going_on.then_some(live_seconds);
            return Some(run_html(&analyse(&run), PageOptions { live_seconds, ..PageOptions::default() }));
        }
        let runs = self.runs();
        let HistoryEntry { plan, .. } = histories(&runs).into_iter().find(|entry| entry.page == path)?;
        let of_plan: Vec<&Run> =
            runs.iter().map(|(_, run)| run).filter(|run| run.manifest.plan.name == plan).collect();
        let values =
            parallel::map(&of_plan, |run| Some(RunValues::of(&opened(Run::open(&run.dir), &run.dir)?)));
        history_page(&values.into_iter().flatten().collect::<Vec<_>>(), &plan)
    }

    /// Returns the readable runs with the names of their directories. Their steps are not read.
    fn runs(&self) -> Vec<(String, Run)> {
        let dirs = run_dirs(&self.folder);
        let read = parallel::map(&dirs, |dir| opened(Run::without_steps(dir), dir));
        dirs.iter().map(|dir| name_of(dir)).zip(read).filter_map(|(name, run)| Some((name, run?))).collect()
    }

    fn index(&self, runs: &[(String, Run)], live_seconds: Option<u32>) -> String {
        let entries: Vec<RunEntry> = runs.iter().map(|(name, run)| entry(name, run)).collect();
        index_html(&self.folder.display().to_string(), &entries, &histories(runs), live_seconds)
    }
}

/// Returns the run, or notes why it cannot be read.
fn opened(run: Result<Run, dbdyno_record::Error>, dir: &Path) -> Option<Run> {
    run.map_err(|error| terminal::note(&format!("note: {} is left out: {error}", dir.display()))).ok()
}

fn name_of(dir: &Path) -> String {
    dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn entry(name: &str, run: &Run) -> RunEntry {
    let manifest = &run.manifest;
    RunEntry {
        run_id: manifest.run_id.clone(),
        plan: manifest.plan.name.clone(),
        started: manifest.started.clone(),
        variants: manifest.variants.iter().map(|variant| variant.name.clone()).collect(),
        workloads: manifest.workloads.iter().map(|workload| workload.name.clone()).collect(),
        blocks: manifest.plan.blocks,
        state: progress(run),
        is_going_on: run.is_going_on,
        page: format!("{name}/{REPORT}"),
    }
}

/// Lists the histories of plans with two runs or more.
fn histories(runs: &[(String, Run)]) -> Vec<HistoryEntry> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, run) in runs {
        *counts.entry(run.manifest.plan.name.as_str()).or_default() += 1;
    }
    let several = counts.into_iter().filter(|(_, count)| *count > 1);
    let entry = |(plan, runs): (&str, usize)| {
        let safe = |letter: char| {
            if letter.is_ascii_alphanumeric() || ".-_".contains(letter) { letter } else { '-' }
        };
        let name: String = plan.chars().map(safe).collect();
        HistoryEntry { plan: plan.to_owned(), runs, page: format!("history-{name}.html") }
    };
    several.map(entry).collect()
}

/// Writes the history of a plan, also when its runs are not comparable. The page begins with the
/// differences.
fn history_page(runs: &[RunValues], plan: &str) -> Option<String> {
    let mut of_plan: Vec<&RunValues> = runs.iter().filter(|run| run.manifest.plan.name == plan).collect();
    of_plan.sort_by(|one, other| one.manifest.started.cmp(&other.manifest.started));
    let choices = HistoryChoices { variant: None, measure: Measure::Rate, margin: None, anyway: true };
    history(&of_plan, choices).ok().map(|found| history_html(&found))
}

fn write(path: &Path, text: &str) -> Result<(), ExitError> {
    files::write_whole(path, text)
        .map_err(|error| ExitError::machine(format!("cannot write {}: {error}", path.display())))
}

pub(super) fn no_runs(folder: &Path) -> ExitError {
    let message = format!(
        "{} is no run directory and holds none; name one, or a folder that holds them (dbdyno run makes them in runs)",
        folder.display()
    );
    ExitError::usage(message)
}

/// Seconds between two requests of an unfinished run's page for new figures.
const LIVE_SECONDS: u32 = 2;
/// Longest time that a browser may take to send its request, and again to receive the response.
const PATIENCE: Duration = Duration::from_secs(5);
const HTML: &str = "text/html; charset=utf-8";

pub(crate) fn serve(folder: &Path, port: u16) -> Result<(), ExitError> {
    let site = Site::of(folder).ok_or_else(|| no_runs(folder))?;
    let cannot =
        |error| ExitError::machine(format!("cannot listen on port {port}: {error}; try another --port"));
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    terminal::out(&format!("runs of {}: http://{address}/ (Ctrl-C ends)", folder.display()))?;
    http::serve(&listener, PATIENCE, move |path| match site.page(path, LIVE_SECONDS) {
        Some(body) => HttpAnswer { status: "200 OK", kind: HTML, body },
        None => {
            let body = "There is no such page; the index is at /.\n".to_owned();
            HttpAnswer { status: "404 Not Found", kind: HTML, body }
        }
    });
    Ok(())
}
