//! `dbdyno plans` lists the plans that ship with dbdyno, and the files that they refer to.

use dbdyno_report::document::Block;
use toml::{Table, Value};

use crate::args::PlansVerb;
use crate::exit::ExitError;
use crate::shipped::{file, names};
use crate::terminal;

pub(crate) fn plans(verb: Option<&PlansVerb>) -> Result<(), ExitError> {
    match verb {
        None => terminal::out_blocks(&list()),
        Some(PlansVerb::Show { name }) => {
            let (_, text) = file(name.trim_start_matches('@'))?;
            terminal::out(text.trim_end())
        }
    }
}

/// Lists each plan by its name and its first sentence. A plan that follows a published report also
/// names the report and its sizes.
fn list() -> Vec<Block> {
    let about = |(name, text): (&str, &str)| {
        let origin = origin(text).map(|origin| (String::new(), origin));
        [(format!("@{name}"), summary(text))].into_iter().chain(origin)
    };
    vec![
        Block::Facts(names().flat_map(about).collect()),
        Block::text(""),
        Block::text("dbdyno run @NAME runs one; dbdyno plans show NAME prints it"),
    ]
}

/// Writes `after: LINK (AUTHOR, YEAR); --size small`.
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

fn summary(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    let comment = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    comment.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_a_sentence_that_says_what_it_is() {
        for (name, text) in names() {
            assert!(summary(text).split(' ').count() > 3, "{name}: {}", summary(text));
        }
    }
}
