//! `dbdyno list workloads NAME`: every step with its statements, its parameters and what it is for.

use dbdyno_workloads::{ALL, Card, Cards};

use crate::exit::{Ended, OURS, USAGE};

/// The steps of the workload called `name`, or of all.
pub(crate) fn text(name: Option<&str>, json: bool) -> Result<String, Ended> {
    let names: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
    if let Some(unknown) = name.filter(|name| !names.contains(name)) {
        let message =
            format!("there is no workload {unknown:?}; its name must be one of: {}", names.join(", "));
        return Err(Ended::new(USAGE, message));
    }
    let wanted = ALL.iter().filter(|kind| name.is_none_or(|name| name == kind.name()));
    let lists: Vec<Cards> = wanted.flat_map(|kind| kind.cards()).collect();
    if json {
        let text = serde_json::to_string_pretty(&lists).map_err(|error| Ended::new(OURS, error))?;
        return Ok(format!("{text}\n"));
    }
    Ok(lists.iter().map(list).collect::<Vec<_>>().join("\n"))
}

fn list(list: &Cards) -> String {
    let title = if list.title.is_empty() { String::new() } else { format!(", {}", list.title) };
    let steps: Vec<String> = list.steps.iter().map(card).collect();
    let (name, count) = (list.workload, list.steps.len());
    let told = "options at their defaults, statements as MySQL and MariaDB get them";
    format!("{name}{title}: {count} steps, {told}\n\n{}", steps.join("\n"))
}

fn card(card: &Card) -> String {
    let published =
        card.published_as.as_ref().map_or_else(String::new, |name| format!("  (published as {name})"));
    let mut lines = vec![format!("{}{published}", card.step), format!("  for         {}", card.purpose)];
    for operation in &card.operations {
        let head = format!("{}, {}", operation.kind, operation.protocol);
        lines.push(format!("  sends       {head}"));
        lines.extend(operation.statements.iter().map(|sql| format!("                {sql}")));
    }
    lines.push(format!("  parameters  {}", card.parameters));
    lines.push(format!("  rate        {}", card.rate));
    if !card.trap.is_empty() {
        lines.push(format!("  trap        {}", card.trap));
    }
    if !card.groups.is_empty() {
        let groups: Vec<String> =
            card.groups.iter().map(|(grouping, group)| format!("{grouping}: {group}")).collect();
        lines.push(format!("  groups      {}", groups.join("; ")));
    }
    lines.join("\n") + "\n"
}
