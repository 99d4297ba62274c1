//! `dbdyno plan` shows the steps of a plan, how long it takes, how much disk it needs, and which
//! differences it can detect. `dbdyno plans` lists the plans that ship with dbdyno, and the files
//! that they refer to.

use std::path::Path;

use dbdyno_analyse::numbered;
use dbdyno_model::Variant;
use dbdyno_plan::{Cell, CellEstimate, Estimate, Plan, WaitChoice, cells, client_wait};
use dbdyno_products::{EMBEDDED, VariantKind};
use dbdyno_report::document::{Block, Column, Table};
use dbdyno_report::parity_terminal;
use dbdyno_workloads::plans::json_schema;
use serde_json::{Value, json};

use crate::args::{DEFAULT_OUT, PlanArgs, PlansVerb};
use crate::commands::run::warn_of_margins;
use crate::exit::ExitError;
use crate::plan::plan_source::{self, shipped_file, shipped_names};
use crate::plan::power::{self, Power};
use crate::plan::prepare::{Predicted, manifest, predicted};
use crate::plan::{forecast, parity};
use crate::{host, limits, terminal, time};

/// Schema version of the JSON. It rises when a key is removed or changes its meaning.
const SCHEMA: u32 = 1;

pub(crate) fn show(args: &PlanArgs) -> Result<(), ExitError> {
    if args.schema {
        return terminal::out_json(&json_schema());
    }
    let plan = plan_source::plan(&args.source, &args.changes.overrides())?;
    if args.resolved {
        return terminal::out(&plan_source::text(&plan)?);
    }
    if args.configs {
        let files = config_files(&plan)?;
        let none = "no variant of this plan has config intents";
        return terminal::out(if files.is_empty() { none } else { files.trim() });
    }
    let configs = config_facts(&plan)?;
    for warning in dbdyno_plan::warnings(&plan) {
        terminal::warning(&warning);
    }
    // The manifest has no variants, because a plan can also be shown where its servers are not
    // installed.
    let manifest = manifest(&plan, &[], Path::new("."))?;
    warn_of_margins(&manifest);
    // The checks are made in the order in which a run makes them.
    let can_run = foresee(&plan);
    let (parity, variants) = match (parity::of_plan(&plan), &can_run) {
        (Err(_), Err(_)) => return can_run,
        (found, _) => found?,
    };
    let can_run = can_run.and(variants);
    let estimate = forecast::of(&plan);
    let power = power::of_plan(&plan, &estimate, &manifest, args)?;
    if args.json {
        terminal::out_json(&document(&plan, &estimate, power.as_ref()))?;
        return can_run;
    }
    let mut blocks = describe(&plan, configs, &estimate);
    blocks.extend(sizes(&plan, args)?);
    blocks.extend(power.iter().flat_map(power::blocks));
    terminal::out_blocks(&blocks)?;
    for name in dbdyno_plan::published_variants_not_in_plan(&plan) {
        terminal::note(&format!("note: published figures of {name} have no variant in this plan"));
    }
    let settings = parity.map(|parity| parity_terminal(&parity, &terminal::options())).unwrap_or_default();
    if !settings.is_empty() {
        terminal::out(&format!("\n{settings}"))?;
    }
    can_run
}

/// Writes one line per size of the plan, with its duration and the rules by which it was scaled.
fn sizes(plan: &Plan, args: &PlanArgs) -> Result<Vec<Block>, ExitError> {
    let mut lines = Vec::new();
    for (name, size) in plan.sizes.iter().filter(|_| plan.report.size.is_none()) {
        let overrides: Vec<_> =
            [("size".to_owned(), name.clone())].into_iter().chain(args.changes.overrides()).collect();
        let sized = forecast::of(&plan_source::plan(&args.source, &overrides)?);
        lines.push((name.clone(), format!("about {}; {}", time::about(sized.duration), size.about)));
    }
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Block::heading(3, "sizes (--size NAME)"), Block::Facts(lines)])
}

/// Returns the error with which `dbdyno run` would refuse the plan on this machine before it
/// begins.
fn foresee(plan: &Plan) -> Result<(), ExitError> {
    host::event_loop()?;
    host::foresee(plan, Path::new(DEFAULT_OUT))?;
    limits::check(plan)?;
    host::check_life(plan)
}

fn describe(plan: &Plan, configs: Vec<(String, String)>, estimate: &Estimate) -> Vec<Block> {
    let mut blocks = vec![Block::heading(
        1,
        format!(
            "plan {}: {} x {}",
            plan.name,
            numbered(plan.variants.len(), "variant"),
            numbered(plan.blocks as usize, "block")
        ),
    )];
    let fact = |variant: &Variant| {
        let base = if variant.name == plan.base_name() { "  (base)" } else { "" };
        (variant.name.clone(), format!("{}{base}", server(&VariantKind::of(variant))))
    };
    blocks.push(Block::Facts(plan.variants.iter().map(fact).collect()));
    if !configs.is_empty() {
        blocks.push(Block::heading(3, "configs (--configs shows the option files)"));
        blocks.push(Block::Facts(configs));
    }
    blocks.push(Block::heading(3, "order of cells"));
    let several = plan.workload.names().len() > 1;
    let name =
        |cell: Cell| if several { format!("{} {}", cell.variant, cell.workload) } else { cell.variant };
    let order = |block: u32| {
        let of_block = cells(plan).into_iter().filter(|cell| cell.block == block);
        (format!("block {block}"), of_block.map(name).collect::<Vec<_>>().join(", "))
    };
    blocks.push(Block::Facts((1..=plan.blocks).map(order).collect()));
    for (cell, variants) in schedules(estimate) {
        let title = format!(
            "{} on {}, once{}: about {}",
            cell.workload,
            variants.join(", "),
            if variants.len() > 1 { " each" } else { "" },
            time::about(cell.duration)
        );
        let columns = vec![Column::words("step"), Column::words("what"), Column::new("about", "", "")];
        let mut table = Table { title, labels: 1, columns, ..Table::default() };
        for step in &cell.steps {
            table.push([step.name.clone(), step.detail.clone(), time::about(step.duration)]);
        }
        blocks.push(Block::Table(table));
    }
    blocks.push(Block::text(""));
    blocks.extend(notes(plan, estimate).into_iter().map(Block::text));
    blocks
}

fn notes(plan: &Plan, estimate: &Estimate) -> Vec<String> {
    let mut notes = vec![time_line(plan, estimate)];
    if !estimate.rest.is_zero() {
        notes.push(format!("rest: {} between cells, counted in that time", plan.host.rest));
    }
    notes.push(format!("disk: {}", disk(estimate)));
    if let (Some(server), Some(client)) = (&plan.host.server_cpus, &plan.host.client_cpus) {
        notes.push(format!("server on {}, client on {}", server.named(), client.named()));
    }
    let WaitChoice { wait, reason } = client_wait(plan);
    notes.push(format!("client: {}s while waiting for answers: {reason}", wait.name()));
    if let Some(budget) = plan.budget.filter(|budget| budget.0 < estimate.duration) {
        notes.push(format!("note: the plan's blocks alone take longer than the budget of {budget}"));
    }
    if plan.blocks == 1 {
        notes.push(
            "note: one block shows a ratio, but not whether it is more than noise; plan 5 or more to compare"
                .to_owned(),
        );
    }
    notes
}

/// Returns each schedule once, with the variants that have it.
fn schedules(estimate: &Estimate) -> Vec<(&CellEstimate, Vec<&str>)> {
    let mut all: Vec<(&CellEstimate, Vec<&str>)> = Vec::new();
    for cell in &estimate.cells {
        let same = |known: &CellEstimate| known.workload == cell.workload && known.steps == cell.steps;
        match all.iter_mut().find(|(known, _)| same(known)) {
            Some((_, variants)) => variants.push(&cell.variant),
            None => all.push((cell, vec![&cell.variant])),
        }
    }
    all
}

/// Writes the time of the plan's blocks, and the number of blocks that a budget leaves room for.
fn time_line(plan: &Plan, estimate: &Estimate) -> String {
    let known = "steps with a fixed length and pauses are exact, the rest is an estimate";
    let about = time::about(estimate.duration);
    match plan.budget.filter(|budget| budget.0 >= estimate.duration) {
        Some(budget) => {
            format!(
                "time: about {about} for the plan's blocks ({known}), then further ones of what is undecided, up to the budget of {budget}"
            )
        }
        None => format!("time: about {about} in all ({known})"),
    }
}

/// Writes the disk use on this machine, and on servers that others run.
fn disk(estimate: &Estimate) -> String {
    let here = format!("about {} at most", time::bytes(estimate.peak_disk_bytes));
    let Some(there) = estimate.address_disk_bytes.map(time::bytes) else { return here };
    match estimate.peak_disk_bytes {
        0 => format!(
            "about {there} at most, where the server by address keeps its data; only the records are on this machine"
        ),
        _ => format!("{here} here; about {there} where the server by address keeps its data"),
    }
}

fn server(kind: &VariantKind) -> String {
    match kind {
        VariantKind::Embedded => format!("{}, embedded", EMBEDDED.products[0]),
        VariantKind::Null => "nothing (answers at once)".to_owned(),
        VariantKind::BaseDir(path) => format!("server in {}", path.display()),
        VariantKind::Named(name) => format!("server {name}"),
        VariantKind::Address(address) => format!("{address}, external server"),
    }
}

/// Lists each variant with intents, and how they are applied, in few words.
fn config_facts(plan: &Plan) -> Result<Vec<(String, String)>, ExitError> {
    let mut facts = Vec::new();
    for (variant, config) in predicted_configs(plan)? {
        match config {
            Predicted::UnknownServer(why) => facts.push((variant, format!("not rendered: {why}"))),
            Predicted::Config(config) => {
                let options = numbered(config.settings.len() + config.initdb.len(), "option");
                facts.push((variant, format!("{options} for {}", config.title)));
                facts.extend(config.notes.into_iter().map(|note| (String::new(), note)));
            }
        }
    }
    Ok(facts)
}

/// Returns the option files themselves. It is empty for a plan without intents.
fn config_files(plan: &Plan) -> Result<String, ExitError> {
    let file = |(variant, config): (String, Predicted)| match config {
        Predicted::UnknownServer(why) => format!("{variant}: not rendered: {why}\n"),
        Predicted::Config(config) => {
            let notes: String = config.notes.iter().map(|note| format!("# note: {note}\n")).collect();
            format!("\n## variant {variant}\n{notes}{}", config.text())
        }
    };
    Ok(predicted_configs(plan)?.into_iter().map(file).collect())
}

fn predicted_configs(plan: &Plan) -> Result<Vec<(String, Predicted)>, ExitError> {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        match predicted(variant) {
            Ok(found) => all.extend(found.map(|config| (variant.name.clone(), config))),
            Err(error) => wrong.push(format!("variant {}: {error}", variant.name)),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(ExitError::usage(wrong.join("\n"))) }
}

fn document(plan: &Plan, estimate: &Estimate, power: Option<&Power>) -> Value {
    let WaitChoice { wait, reason } = client_wait(plan);
    let ordered =
        |cell: &Cell| json!({ "block": cell.block, "variant": cell.variant, "workload": cell.workload });
    let step = |step: &dbdyno_plan::StepEstimate| json!({ "name": step.name, "detail": step.detail, "duration_seconds": step.duration.as_secs_f64() });
    let cell = |cell: &CellEstimate| {
        json!({
            "variant": cell.variant,
            "workload": cell.workload,
            "duration_seconds": cell.duration.as_secs_f64(),
            "steps": cell.steps.iter().map(step).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": SCHEMA,
        "name": plan.name,
        "base": plan.base_name(),
        "blocks": plan.blocks,
        "budget_seconds": plan.budget.map(|budget| budget.0.as_secs_f64()),
        "variants": plan.variants.iter().map(|variant| &variant.name).collect::<Vec<_>>(),
        "order": cells(plan).iter().map(ordered).collect::<Vec<_>>(),
        "cells": estimate.cells.iter().map(cell).collect::<Vec<_>>(),
        // The duration includes the rests between cells.
        "duration_seconds": estimate.duration.as_secs_f64(),
        // This is the idle time between two cells.
        "rest_seconds": estimate.rest.as_secs_f64(),
        // This is disk space on this machine.
        "peak_disk_bytes": estimate.peak_disk_bytes,
        // This is disk space on a server that others run. It is `null` in a plan without addresses.
        "address_disk_bytes": estimate.address_disk_bytes,
        // This is how load threads wait for answers, `sleep` or `spin`, and why.
        "client_wait": wait.name(),
        "client_wait_reason": reason,
        // The power is `null` for a plan that compares nothing.
        "power": power,
    })
}

pub(crate) fn plans(verb: Option<&PlansVerb>) -> Result<(), ExitError> {
    match verb {
        None => terminal::out_blocks(&list_of_plans()),
        Some(PlansVerb::Show { name }) => {
            let (_, text) = shipped_file(name.trim_start_matches('@'))?;
            terminal::out(text.trim_end())
        }
    }
}

/// Lists each plan by its name and its first sentence. A plan that follows a published report also
/// names the report and its sizes.
fn list_of_plans() -> Vec<Block> {
    let about = |(name, text): (&str, &str)| {
        let origin = origin(text).map(|origin| (String::new(), origin));
        [(format!("@{name}"), summary(text))].into_iter().chain(origin)
    };
    vec![
        Block::Facts(shipped_names().flat_map(about).collect()),
        Block::text(""),
        Block::text("dbdyno run @NAME runs one; dbdyno plans show NAME prints it"),
    ]
}

/// Writes `after: LINK (AUTHOR, YEAR); --size small`.
fn origin(text: &str) -> Option<String> {
    let plan: toml::Table = text.parse().ok()?;
    let report = plan.get("report")?.as_table()?;
    let (author, year) = (report.get("author")?.as_str()?, report.get("year")?.as_integer()?);
    let links = report.get("links").and_then(toml::Value::as_array).into_iter().flatten();
    let links: Vec<&str> = links.filter_map(toml::Value::as_str).collect();
    let sizes = plan.get("size").and_then(toml::Value::as_table).into_iter().flatten();
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
        for (name, text) in shipped_names() {
            assert!(summary(text).split(' ').count() > 3, "{name}: {}", summary(text));
        }
    }
}
