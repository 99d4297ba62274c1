//! `dbdyno plans`: the plans that ship, and what they refer to.

use toml::{Table, Value};

use crate::args::{PlansArgs, PlansVerb};
use crate::exit::Ended;
use crate::shipped::{file, names};
use crate::terminal;

pub(crate) fn plans(args: &PlansArgs) -> Result<(), Ended> {
    match &args.verb {
        None => terminal::out_folded(&list()),
        Some(PlansVerb::Show { name }) => {
            let (_, text) = file(name.trim_start_matches('@'))?;
            terminal::out(text.trim_end())
        }
    }
}

/// A line a plan: its name, and its first sentence. One that follows a published report says which, and its sizes.
fn list() -> String {
    let width = names().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, text): (&str, &str)| {
        let origin = origin(text).map_or_else(String::new, |origin| format!("\n{:width$}   {origin}", ""));
        format!("@{name:width$}  {}{origin}", summary(text))
    };
    let lines: Vec<String> = names().map(line).collect();
    lines.join("\n") + "\n\ndbdyno run @NAME runs one; dbdyno plans show NAME prints it"
}

/// `after: LINK (AUTHOR, YEAR); --size small`
fn origin(text: &str) -> Option<String> {
    let plan: Table = text.parse().ok()?;
    let report = plan.get("report")?.as_table()?;
    let (author, year) = (report.get("author")?.as_str()?, report.get("year")?.as_integer()?);
    let links = report.get("links").and_then(Value::as_array).into_iter().flatten();
    let links: Vec<&str> = links.filter_map(Value::as_str).collect();
    let sizes = plan.get("size").and_then(Value::as_table).into_iter().flatten();
    let sizes: Vec<String> = sizes.map(|(name, _)| format!("; --size {name}")).collect();
    Some(format!("after: {} ({author}, {year}){}", links.join("; "), sizes.concat()))
}

/// Characters of a summary, so that its line fits a terminal.
const SUMMARY_MAX: usize = 75;

/// The first sentence of the comment that a plan begins with, or its first clause.
fn summary(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    let comment = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let sentence = comment.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let clause = sentence.split(": ").next().unwrap_or_default();
    if sentence.chars().count() > SUMMARY_MAX { clause.to_owned() } else { sentence.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_a_summary_that_fits_a_line() {
        for (name, text) in names() {
            let length = summary(text).chars().count();
            assert!((10..=SUMMARY_MAX + 25).contains(&length), "{name}: {}", summary(text));
        }
    }
}
