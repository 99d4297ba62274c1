//! `dbdyno list workloads` shows the steps of workloads, each with its statements, its parameters
//! and its purpose.

use dbdyno_report::document::Block;
use dbdyno_workloads::{ALL, StepSummary, WorkloadSummary};

use crate::exit::ExitError;

/// Shows the steps of the workload called `name`. Without a name it shows all workloads, with the
/// names of their steps.
pub(crate) fn blocks(name: Option<&str>) -> Result<Vec<Block>, ExitError> {
    let lists = of(name)?;
    if name.is_some() {
        return Ok(lists.iter().flat_map(list).collect());
    }
    let purpose = ALL.iter().map(|kind| (kind.name().to_owned(), kind.purpose()));
    let steps = |list: &WorkloadSummary| {
        let names = list.steps.iter().map(|step_summary| step_summary.step.as_str());
        (title(list), names.collect::<Vec<_>>().join(" "))
    };
    Ok(vec![
        Block::Facts(purpose.collect()),
        Block::heading(3, "steps with every test and part, other options at their defaults"),
        Block::Facts(lists.iter().map(steps).collect()),
        Block::text(""),
        Block::text("each step with its statements, parameters and pitfalls: dbdyno list workloads NAME"),
        Block::text("those that a plan runs: dbdyno plan"),
    ])
}

/// Returns the steps of the workload called `name`, or of all.
pub(crate) fn of(name: Option<&str>) -> Result<Vec<WorkloadSummary>, ExitError> {
    let Some(name) = name else { return Ok(ALL.iter().flat_map(|kind| kind.summaries()).collect()) };
    let Some(kind) = ALL.iter().find(|kind| kind.name() == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
        let message = format!("there is no workload {name:?}; its name must be one of: {}", names.join(", "));
        return Err(ExitError::usage(message));
    };
    let lists = kind.summaries();
    // A build that leaves a workload out knows none of its steps.
    if lists.is_empty() {
        return Err(ExitError::usage(format!("workload {name}: {}", kind.purpose())));
    }
    Ok(lists)
}

fn title(list: &WorkloadSummary) -> String {
    if list.title.is_empty() {
        list.workload.to_owned()
    } else {
        format!("{}, {}", list.workload, list.title)
    }
}

fn list(list: &WorkloadSummary) -> Vec<Block> {
    // These are the steps for the null database, which takes the same statements as the first
    // family.
    let own = dbdyno_products::ALL[0].products.iter().filter(|product| product.base.is_none());
    let products: Vec<&str> = own.map(|product| product.name).collect();
    let what = format!(
        "{} steps with every test and part, other options at their defaults; statements as {} get them",
        list.steps.len(),
        products.join(" and ")
    );
    let mut blocks = vec![Block::heading(2, title(list)), Block::text(what)];
    blocks.extend(list.steps.iter().flat_map(step_summary));
    blocks
}

fn step_summary(step_summary: &StepSummary) -> [Block; 2] {
    let published =
        step_summary.published_as.as_ref().map_or_else(String::new, |name| format!(" (published as {name})"));
    let mut facts = vec![("for", step_summary.purpose.to_owned())];
    for operation in &step_summary.operations {
        facts.push(("sends", format!("{}, {}", operation.kind, operation.protocol)));
        facts.extend(operation.statements.iter().map(|sql| ("", sql.clone())));
    }
    let groups = step_summary.groups.iter().map(|(grouping, group)| format!("{grouping}: {group}"));
    facts.extend([
        ("parameters", step_summary.parameters.to_owned()),
        ("rate", step_summary.rate.clone()),
        ("pitfall", step_summary.pitfall.to_owned()),
        ("groups", groups.collect::<Vec<_>>().join("; ")),
    ]);
    facts.retain(|(_, text)| !text.is_empty());
    let facts = facts.into_iter().map(|(name, text)| (name.to_owned(), text));
    [Block::heading(3, format!("{}{published}", step_summary.step)), Block::Facts(facts.collect())]
}
