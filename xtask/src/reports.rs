//! `cargo xtask reports` runs the plans that follow published reports in their small size, and
//! writes docs/reports: a page and the findings of each report, and a table that counts which
//! findings were seen again.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};
use toml::Table;

use crate::filled::filled;
use crate::servers::{get_for_plan, measured, servers_of};
use crate::workspace::{self, built_dbdyno, output, run};

/// Run the plans that follow published reports, in their small size, and write docs/reports: pages,
/// findings, and the table that counts which findings were seen again.
///
/// Builds dbdyno in release and gets the servers. A plan takes from ten minutes to more than an
/// hour (`dbdyno plan @NAME --size small`) and begins when the load average of the last minute is
/// below 0.3; nothing else should run on the machine meanwhile. Plans with a server that no one
/// could get yet are passed over.
#[derive(Debug, Parser)]
pub(crate) struct ReportsArgs {
    /// Names of plans; all that have published figures when left out.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Write the page of a run that is there, instead of running plans. May be given more than
    /// once.
    #[arg(long = "run", value_name = "DIR", conflicts_with = "names")]
    runs: Vec<PathBuf>,
}

/// What became of a published finding: its key in the findings, and its column in the table.
const FINDINGS: [(&str, &str); 5] = [
    ("seen", "seen"),
    ("not_seen", "not seen"),
    ("undecided", "undecided"),
    ("invalid", "invalid"),
    ("cannot_be_tried", "cannot be tried"),
];

/// What the words in the table mean, as the analysis uses them.
const RULES: &str = "\
* *Seen*: in more than half of the finding's steps the [comparison](../concepts/statistics.md) is \
decided as the report says.
* *Not seen*: it is decided against the report in as many steps, or more.
* *Undecided*: neither.
* *Invalid*: its steps ran, and none is valid.
* *Cannot be tried*: the small size lacks the servers or settings.

Of single figures, which are ratios: *agrees*: the whole measured 95 % interval is within 10 % of the \
published one; *contradicts*: none of the interval is; *too wide*: neither.
";

pub(crate) fn make(args: &ReportsArgs) -> Result<()> {
    let dbdyno = built_dbdyno()?;
    for run in &args.runs {
        write_page(&dbdyno, &std::path::absolute(run)?)?;
    }
    let names = if args.runs.is_empty() { names(&args.names)? } else { Vec::new() };
    for name in names {
        let plan = [&format!("@{name}"), "--size", "small"];
        let servers = servers_of(&dbdyno, &plan)?;
        if let Some(entry) = servers.iter().find(|entry| entry.untested && args.names.is_empty()) {
            workspace::note(&format!("{name} is passed over: no one could get {} yet", entry.name));
            continue;
        }
        let runs = workspace::target().join("reports").join(&name);
        get_for_plan(&servers)?;
        workspace::wait_until_quiet()?;
        write_page(&dbdyno, &measured(&dbdyno, &plan, &runs, None)?)?;
    }
    let page = folder().join("README.md");
    let text = std::fs::read_to_string(&page)?;
    let text = with_part(&text, "rules", &filled(RULES)).unwrap_or(text);
    Ok(std::fs::write(&page, with_table(&text, &published()?, &found()?))?)
}

fn folder() -> PathBuf {
    workspace::root().join("docs/reports")
}

/// Returns the plans in `asked`. If it is empty, returns all plans whose text names published
/// figures.
fn names(asked: &[String]) -> Result<Vec<String>> {
    if !asked.is_empty() {
        return Ok(asked.iter().map(|name| name.trim_start_matches('@').to_owned()).collect());
    }
    let plans = files(&workspace::root().join("plans"), "toml")?.into_iter();
    let follows =
        plans.filter(|(_, text)| text.lines().any(|line| line.starts_with("published = \"published/")));
    Ok(follows.map(|(name, _)| name).collect())
}

/// Returns the names without ending, and the texts, of a folder's files in the order of their
/// names.
fn files(folder: &Path, ending: &str) -> Result<Vec<(String, String)>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|own| own == ending) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((stem, std::fs::read_to_string(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

/// Writes the page of a run, and its findings.
fn write_page(dbdyno: &Path, directory: &Path) -> Result<()> {
    let report = output(Command::new(dbdyno).arg("report").arg(directory).args(["--format", "json"]))?;
    let report: Value = serde_json::from_str(&report).context("the report is not JSON")?;
    let findings = findings(&report)?;
    let stem = folder().join(report["run"]["name"].as_str().unwrap_or_default());
    let page = stem.with_extension("html");
    run(Command::new(dbdyno)
        .arg("report")
        .arg(directory)
        .args(["--style", "published", "--without-details", "--output"])
        .arg(page))?;
    let text = serde_json::to_string_pretty(&findings)? + "\n";
    Ok(std::fs::write(stem.with_extension("json"), text)?)
}

/// Returns what is kept of a report: the machine that it was measured on, the findings, and the
/// figures that contradict the published ones.
fn findings(report: &Value) -> Result<Value> {
    let published = &report["published"];
    let (Some(rows), Some(variants)) = (report["comparisons"].as_array(), report["variants"].as_array())
    else {
        bail!("the report of run {} has no comparisons", report["run"]["run_id"]);
    };
    if published.is_null() {
        bail!("the plan of run {} names no published figures", report["run"]["run_id"]);
    }
    let of = |agreement: &str| -> Vec<Value> {
        let found = rows.iter().filter(|row| row["agreement"] == agreement);
        found.map(|row| with_measured(row, rows)).collect()
    };
    let counts = ["agrees", "contradicts", "too_wide"];
    let counts: serde_json::Map<String, Value> =
        counts.iter().map(|agreement| ((*agreement).to_owned(), of(agreement).len().into())).collect();
    Ok(json!({
        "follows": published["title"],
        "run": report["run"]["run_id"],
        "dbdyno": report["run"]["tool"]["version"],
        "size": report["prose"]["size"],
        "blocks": report["run"]["blocks_planned"],
        "cells": [report["run"]["cells_completed"], report["run"]["cells_planned"]],
        "servers": variants.iter().map(|variant| variant["server"].clone()).collect::<Vec<_>>(),
        "findings": published["findings"],
        "figures": counts,
        "contradicting": of("contradicts"),
    }))
}

/// Returns a published figure with the measured one, which has the same keys.
fn with_measured(published: &Value, rows: &[Value]) -> Value {
    let keys = ["setup", "step", "variant", "base", "metric"];
    let is_measured =
        |row: &&Value| row["source"] == "as_published" && keys.iter().all(|key| row[*key] == published[*key]);
    let mut row: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), published[*key].clone())).collect();
    row.retain(|_, value| !value.is_null());
    row.insert("published".to_owned(), published["ratio"].clone());
    if let Some(found) = rows.iter().find(is_measured) {
        let parts = [("measured", "ratio"), ("low", "low"), ("high", "high")];
        row.extend(parts.map(|(name, key)| (name.to_owned(), found[key].clone())));
    }
    Value::Object(row)
}

/// Returns the published reports by name.
fn published() -> Result<Vec<(String, Table)>> {
    let files = files(&workspace::root().join("plans/published"), "toml")?.into_iter();
    files.map(|(name, text)| Ok((name, text.parse()?))).collect()
}

/// Returns what [`write_page`] wrote, by plan.
fn found() -> Result<Vec<(String, Value)>> {
    let files = files(&folder(), "json")?.into_iter();
    files.map(|(name, text)| Ok((name, serde_json::from_str(&text)?))).collect()
}

/// Returns the page with the table of the reports written again.
fn with_table(page: &str, published: &[(String, Table)], found: &[(String, Value)]) -> String {
    with_part(page, "reports", &table(published, found)).unwrap_or_else(|| page.to_owned())
}

/// Returns a table with a row for each plan that follows a published report. It counts the report's
/// findings and figures; the plan's page lists them.
fn table(published: &[(String, Table)], found: &[(String, Value)]) -> String {
    let columns: Vec<&str> = FINDINGS.iter().map(|(_, name)| *name).collect();
    let columns = format!("| report | {} | published figures |\n", columns.join(" | "));
    let mut text = format!("{columns}|{}\n", "---|".repeat(FINDINGS.len() + 2));
    for (plan, run) in found {
        text.push_str(&format!("| [{plan}]({plan}.html) | {} |\n", counts(run).join(" | ")));
    }
    let is_followed = |title: Option<&str>| found.iter().any(|(_, run)| run["follows"].as_str() == title);
    let titles = published.iter().map(|(_, report)| report["title"].as_str());
    let untried: Vec<&str> = titles.filter(|title| !is_followed(*title)).flatten().collect();
    if !untried.is_empty() {
        text.push_str(&format!("\n{}\n", filled(&format!("Not tried yet: {}.", untried.join("; ")))));
    }
    text
}

/// Returns a run's findings, counted by what became of them, and its figures.
fn counts(run: &Value) -> Vec<String> {
    let findings = run["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |key: &str| findings.iter().filter(|finding| finding["seen"] == key).count().to_string();
    let figures = run["figures"].as_object().into_iter().flatten().filter(|(_, count)| **count != 0);
    let figures: Vec<String> =
        figures.map(|(agreement, count)| format!("{}: {count}", agreement.replace('_', " "))).collect();
    let figures = if figures.is_empty() { "none compared".to_owned() } else { figures.join(", ") };
    FINDINGS.iter().map(|(key, _)| of(key)).chain([figures]).collect()
}

const END: &str = "<!-- end -->";

/// Returns the page with `text` between `<!-- part -->` and the next `<!-- end -->`. It is `None`
/// where the page lacks one of them.
pub(crate) fn with_part(page: &str, part: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- {part} -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n{}\n\n{END}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report of a run with three findings.
    fn report() -> Value {
        let finding = |says: &str, seen: &str, [yes, no, open]: [u32; 3]| json!({ "says": says, "seen": seen, "steps_seen": yes, "steps_not_seen": no, "steps_undecided": open });
        json!({
            "run": { "run_id": "r1", "name": "p", "blocks_planned": 3, "cells_completed": 5, "cells_planned": 6, "tool": { "version": "0" } },
            "prose": { "size": "small: tiny" },
            "variants": [{ "server": "B 2 (b-2)" }, { "server": "A 1" }, { "server": "B 2 (b-2)" }],
            "published": {
                "title": "T",
                "findings": [finding("x is faster", "seen", [4, 1, 1]), finding("y too", "cannot_be_tried", [0; 3]), finding("w", "invalid", [0; 3])],
            },
            "comparisons": [
                { "step": "a", "metric": "rate", "source": "published", "ratio": 2.0, "agreement": "agrees" },
                { "step": "b", "metric": "rate", "source": "published", "ratio": 3.0, "agreement": "contradicts" },
                { "step": "b", "metric": "rate", "source": "run", "ratio": 9.0 },
                { "step": "b", "metric": "rate", "source": "as_published", "ratio": 1.5, "low": 1.4, "high": 1.6 },
                { "step": "c", "metric": "rate", "source": "published", "ratio": 1.0, "agreement": "not_measured" },
            ],
        })
    }

    #[test]
    fn the_table_has_a_row_for_each_plan_and_text_around_it_stays() {
        let of = |name: &str, title: &str| (name.to_owned(), format!("title = '{title}'").parse().unwrap());
        let published = [of("t", "T"), of("u", "U")];
        let page = "# A\n\n<!-- reports -->\nold\n<!-- end -->\n\nWhy: b.\n";
        let found = [("p".to_owned(), findings(&report()).unwrap())];
        let text = with_table(page, &published, &found);
        insta::assert_snapshot!(text, @r"
        # A

        <!-- reports -->

        | report | seen | not seen | undecided | invalid | cannot be tried | published figures |
        |---|---|---|---|---|---|---|
        | [p](p.html) | 1 | 0 | 0 | 1 | 1 | agrees: 1, contradicts: 1 |

        Not tried yet: U.

        <!-- end -->

        Why: b.
        ");
        assert_eq!(with_table(&text, &published, &found), text, "written twice it is the same");
    }

    #[test]
    fn a_figure_that_contradicts_is_kept_with_the_measured_one() {
        let found = &findings(&report()).unwrap()["contradicting"];
        let row = json!({ "step": "b", "metric": "rate", "published": 3.0, "measured": 1.5, "low": 1.4, "high": 1.6 });
        assert_eq!(found, &json!([row]));
    }

    #[test]
    fn a_run_without_published_figures_is_refused() {
        let report = json!({ "run": { "run_id": "r9" }, "variants": [], "comparisons": [] });
        let error = findings(&report).unwrap_err().to_string();
        assert_eq!(error, "the plan of run \"r9\" names no published figures");
    }

    /// `DBDYNO_UPDATE=1` writes the table again.
    #[test]
    fn the_page_has_the_table_of_what_was_found() {
        let path = folder().join("README.md");
        let mut page = std::fs::read_to_string(&path).unwrap();
        let wanted = with_table(&page, &published().unwrap(), &found().unwrap());
        if std::env::var_os("DBDYNO_UPDATE").is_some() {
            std::fs::write(&path, &wanted).unwrap();
            page.clone_from(&wanted);
        }
        assert!(page == wanted, "the table is not that of the findings; write it again: DBDYNO_UPDATE=1");
        assert!(page.contains("<!-- reports -->"), "the table has no place");
    }
}
