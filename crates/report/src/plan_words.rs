//! Text that a plan has for its report, as blocks: prose, set-ups side by side, sections, and
//! published figures next to the measured ones. Where the plan leaves text out, it is drafted from
//! the findings and marked as drafted.

use dbdyno_analyse::{Findings, PublishedComparison, RunSummary, SectionFindings, WorkloadFindings};

use crate::document::{Block, Tone};
use crate::html::charts::Charts;
use crate::summary::drafted;
use crate::views::{self, Scope};

/// Returns summary, machine, sponsor, links and deviations, for a plan that has any of them.
pub(crate) fn prose(findings: &Findings) -> Vec<Block> {
    let prose = &findings.prose;
    if prose.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::section("Summary", "summary")];
    match &prose.summary {
        Some(text) => blocks.push(Block::Prose(text.clone())),
        None => {
            blocks.extend(drafted(&findings.run.base, findings.run.control.as_deref(), &findings.workloads))
        }
    }
    blocks.extend(prose.machine.iter().map(|text| Block::Prose(format!("**Machine.** {text}"))));
    let mut facts: Vec<(String, String)> = Vec::new();
    let follows = [prose.author.clone(), prose.year.map(|year| year.to_string())];
    let follows = follows.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let rows = [
        ("follows", Some(follows).filter(|text| !text.is_empty())),
        ("sponsor", prose.sponsor.clone()),
        ("size", prose.size.clone()),
    ];
    facts.extend(rows.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))));
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    blocks.extend(list("Links", &prose.links));
    blocks.extend(list("Differences from the original report", &prose.deviations));
    blocks
}

/// Returns items in Markdown under a small heading, and nothing without items.
fn list(title: &str, items: &[String]) -> Vec<Block> {
    if items.is_empty() {
        return Vec::new();
    }
    let items: Vec<String> = items.iter().map(|item| format!("* {}", item.replace('\n', " "))).collect();
    vec![Block::heading(3, title), Block::Prose(items.join("\n"))]
}

/// Returns the plan's note on a step or a section.
pub(crate) fn note(findings: &Findings, name: &str) -> Option<Block> {
    findings.prose.notes.get(name).map(|text| Block::Prose(text.clone()))
}

/// Returns the workloads that ran in several set-ups, with one table per variant.
pub(crate) fn set_ups(run: &RunSummary, workloads: &[WorkloadFindings], id: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (number, (workload, tables)) in views::side_by_side(run, workloads).into_iter().enumerate() {
        let title = format!("Set-ups of {workload} side by side");
        blocks.push(match id {
            "" => Block::heading(3, title),
            id => Block::section(title, format!("{id}{number}")),
        });
        blocks.extend(tables.into_iter().map(Block::Table));
    }
    blocks
}

/// Returns the plan's sections, each with its own base and, on a page, its own charts.
pub(crate) fn sections(findings: &Findings, charts: Option<&Charts<'_>>) -> Vec<Block> {
    let of = |(number, section): (usize, &SectionFindings)| {
        let mut blocks = vec![Block::section(&section.title, format!("section{number}"))];
        match section.text.as_str() {
            "" => blocks.extend(drafted(&section.base, findings.run.control.as_deref(), &section.workloads)),
            text => blocks.push(Block::Prose(text.to_owned())),
        }
        blocks.extend(note(findings, &section.title));
        let run = views::run_of_section(&findings.run, section);
        for (at, workload) in section.workloads.iter().enumerate() {
            if section.workloads.len() > 1 {
                blocks.push(Block::heading(3, &workload.name));
            }
            let id = format!("section{number}w{at}");
            let scope = Scope { run: &run, workload, ..Scope::of(findings, workload) };
            blocks.extend(charts.into_iter().flat_map(|charts| charts.of_workload(scope, &id)));
            blocks.extend(views::rates(scope));
        }
        blocks.extend(set_ups(&run, &section.workloads, ""));
        blocks
    };
    findings.sections.iter().enumerate().flat_map(of).collect()
}

/// Returns published figures next to the measured ones.
pub(crate) fn published(findings: &Findings) -> Vec<Block> {
    let Some(published) = &findings.published else { return Vec::new() };
    let PublishedComparison { title, author, year, sponsor, machine, .. } = published;
    let mut blocks = vec![Block::section("Published and measured", "published")];
    let sponsor = sponsor.as_ref().map_or_else(String::new, |sponsor| format!(", sponsored by {sponsor}"));
    blocks.push(Block::text(format!("{title} ({author}, {year}{sponsor}). Measured there on: {machine}.")));
    blocks.push(Block::Text(
        Tone::Muted,
        "Another machine, other sizes and often other builds: this compares findings, and is no verdict between machines."
            .to_owned(),
    ));
    let [of_findings, of_figures] = views::published(findings);
    blocks.extend(of_findings.map(Block::Table));
    blocks.extend(views::published_counts(findings).map(Block::text));
    blocks.extend(
        of_figures.map(|table| Block::Fold("Figure by figure".to_owned(), vec![Block::Table(table)])),
    );
    blocks
}
