//! Text that a plan has for its report, as blocks: prose, set-ups side by side, sections, and
//! published figures next to the measured ones. Where the plan leaves text out, it is drafted from
//! the findings and marked as drafted.

use dbdyno_analyse::{
    Agreement, CLOSE, FindingSeen, Findings, PublishedComparison, PublishedRow, RunSummary, SectionFindings,
    Seen, WorkloadFindings,
};
use dbdyno_model::Quantity;

use crate::document::{Block, Cell, Table, Tone};
use crate::html::charts::Charts;
use crate::number::ratio_text;
use crate::summary::drafted;
use crate::views::{self, Scope};
use crate::words::table;

/// Summary, machine, sponsor, links and deviations, for a plan that has any of them.
pub(crate) fn prose(findings: &Findings) -> Vec<Block> {
    let prose = &findings.prose;
    if prose.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::section("Summary", "summary")];
    match &prose.summary {
        Some(text) => blocks.push(Block::Prose(text.clone())),
        None => {
            blocks.extend(drafted(&findings.run.base, findings.run.again.as_deref(), &findings.workloads))
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

/// Items in Markdown under a small heading; empty without items.
fn list(title: &str, items: &[String]) -> Vec<Block> {
    if items.is_empty() {
        return Vec::new();
    }
    let items: Vec<String> = items.iter().map(|item| format!("* {}", item.replace('\n', " "))).collect();
    vec![Block::heading(3, title), Block::Prose(items.join("\n"))]
}

/// The plan's note on a step or a section.
pub(crate) fn note(findings: &Findings, name: &str) -> Option<Block> {
    findings.prose.notes.get(name).map(|text| Block::Prose(text.clone()))
}

/// Workloads in several set-ups, with one table per variant.
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

/// The plan's sections, each with its own base and, on a page, its own charts.
pub(crate) fn sections(findings: &Findings, charts: Option<&Charts<'_>>) -> Vec<Block> {
    let of = |(number, section): (usize, &SectionFindings)| {
        let mut blocks = vec![Block::section(&section.title, format!("section{number}"))];
        match section.text.as_str() {
            "" => blocks.extend(drafted(&section.base, findings.run.again.as_deref(), &section.workloads)),
            text => blocks.push(Block::Prose(text.to_owned())),
        }
        blocks.extend(note(findings, &section.title));
        let run = views::run_of_section(&findings.run, section);
        for (at, workload) in section.workloads.iter().enumerate() {
            if section.workloads.len() > 1 {
                blocks.push(Block::heading(3, &workload.name));
            }
            let id = format!("section{number}w{at}");
            blocks.extend(
                charts.into_iter().flat_map(|charts| charts.of_workload(workload, &section.base, &id)),
            );
            blocks.extend(views::rates(Scope { run: &run, workload, ..Scope::of(findings, workload) }));
        }
        blocks.extend(set_ups(&run, &section.workloads, ""));
        blocks
    };
    findings.sections.iter().enumerate().flat_map(of).collect()
}

/// Published figures next to the measured ones.
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
    let rows: Vec<&PublishedRow> =
        published.rows.iter().filter(|row| row.agreement != Agreement::NotMeasured).collect();
    let missing = published.rows.len() - rows.len();
    if !published.findings.is_empty() {
        blocks.push(Block::Table(findings_table(&published.findings)));
    }
    if !rows.is_empty() {
        blocks.push(Block::text(counts(&rows, missing)));
        blocks.push(Block::Fold("Figure by figure".to_owned(), vec![Block::Table(figures_table(&rows))]));
    } else if missing > 0 {
        blocks.push(Block::text(format!("None of its {missing} figures was measured here.")));
    }
    blocks
}

/// Words such as `Of 40 published figures that were measured here 10 agree, ...`.
fn counts(rows: &[&PublishedRow], missing: usize) -> String {
    let all = [Agreement::Agrees, Agreement::Contradicts, Agreement::TooWide];
    let counts: Vec<String> = all
        .iter()
        .map(|wanted| (wanted, rows.iter().filter(|row| row.agreement == *wanted).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(agreement, count)| format!("{}: {count}", agreement_word(*agreement)))
        .collect();
    let missing = if missing > 0 { format!(" {missing} more were not measured.") } else { String::new() };
    format!(
        "{} published figures were measured here. {}.{missing} A figure agrees when the whole measured 95 % interval is \
         within {:.0} % of it, and contradicts when none of the interval is; otherwise the interval is too wide to tell.",
        rows.len(),
        counts.join(", "),
        100.0 * CLOSE
    )
}

const fn quantity_word(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Rate => "rate",
        Quantity::Cpu => "CPU per operation",
        Quantity::ReadKb => "KB read per operation",
        Quantity::Seconds => "seconds",
        Quantity::P99 => "p99",
    }
}

const fn agreement_word(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Agrees => "agrees",
        Agreement::Contradicts => "contradicts",
        Agreement::TooWide => "too wide to tell",
        Agreement::NotMeasured => "not measured",
    }
}

const fn seen_word(seen: Seen) -> &'static str {
    match seen {
        Seen::Seen => "seen",
        Seen::NotSeen => "not seen",
        Seen::Undecided => "undecided",
        Seen::Invalid => "invalid here",
        Seen::CannotBeTried => "cannot be tried here",
    }
}

fn figures_table(rows: &[&PublishedRow]) -> Table {
    let mut table = table("published-figures");
    for row in rows {
        let setup = row.setup.as_ref().map_or_else(String::new, |setup| format!("{setup} "));
        let measured = row.measured.map_or_else(|| "n/a".to_owned(), |value| ratio_text(value, 2));
        let tone = if row.agreement == Agreement::Contradicts { Tone::Worse } else { Tone::Plain };
        table.push([
            Cell::from(format!("{setup}{}", row.subject)),
            Cell::from(quantity_word(row.quantity)),
            Cell::from(row.base.as_str()),
            Cell::from(row.variant.as_str()),
            Cell::from(ratio_text(row.published, 2)),
            Cell { interval: row.interval, ..Cell::from(measured) },
            Cell::toned(agreement_word(row.agreement), tone),
        ]);
    }
    table
}

fn findings_table(findings: &[FindingSeen]) -> Table {
    let mut table = table("published-findings");
    for one in findings {
        let tone = match one.seen {
            Seen::NotSeen => Tone::Worse,
            Seen::CannotBeTried | Seen::Invalid => Tone::Muted,
            Seen::Seen | Seen::Undecided => Tone::Plain,
        };
        table.push([
            Cell::from(one.says.as_str()),
            Cell::toned(seen_word(one.seen), tone),
            Cell::from(one.steps_seen.to_string()),
            Cell::from(one.steps_not_seen.to_string()),
            Cell::from(one.steps_undecided.to_string()),
            Cell::from(one.steps_invalid.to_string()),
        ]);
    }
    table
}
