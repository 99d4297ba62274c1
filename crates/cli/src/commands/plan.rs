//! `dbdyno plan`: what a plan would run, how long it takes, how much disk it needs, what it can detect.

use std::path::Path;

use dbdyno_analyse::numbered;
use dbdyno_plan::{Estimate, Plan, VariantKind, WaitChoice, cells, estimate};
use dbdyno_report::parity_terminal;
use dbdyno_workloads::plans::json_schema;

use crate::args::PlanArgs;
use crate::commands::run::warn_of_margins;
use crate::commands::{plan_configs, plan_json};
use crate::exit::{Ended, OURS};
use crate::manifest::manifest;
use crate::{parity, plan_source, power, terminal, time};

pub(crate) fn show(args: &PlanArgs) -> Result<(), Ended> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&json_schema()).map_err(|error| Ended::new(OURS, error))?;
        return terminal::out(&schema);
    }
    let plan = plan_source::plan(&args.source, &args.overrides)?;
    if args.resolved {
        return terminal::out(&toml::to_string(&plan).map_err(|error| Ended::new(OURS, error))?);
    }
    let configs = plan_configs::section(&plan, args.configs)?;
    if args.configs {
        let none = "no variant of this plan has config intents".to_owned();
        return terminal::out(if configs.is_empty() { &none } else { configs.trim() });
    }
    for warning in dbdyno_plan::warnings(&plan) {
        terminal::warning(&warning);
    }
    // Variants are not looked at for this: a plan can be shown where its servers are not.
    let manifest = manifest(&plan, &[], Path::new("."))?;
    warn_of_margins(&manifest);
    let parity = parity::of_plan(&plan)?;
    let estimate = estimate(&plan);
    let power = power::of_plan(&plan, &estimate, &manifest, args)?;
    if args.json {
        return terminal::out(&plan_json::text(&plan, &estimate, power.as_ref())?);
    }
    terminal::out_folded(&describe(&plan, &configs, &estimate))?;
    if let Some(power) = power {
        terminal::out_folded(&format!("\n{}", power.text(terminal::line_width())))?;
    }
    if let Some(parity) = parity.filter(|parity| !parity.classes.is_empty()) {
        let options = terminal::options();
        terminal::out(&format!("\n{}", parity_terminal(&parity, &options)))?;
    }
    Ok(())
}

fn describe(plan: &Plan, configs: &str, estimate: &Estimate) -> String {
    let mut text = format!(
        "plan {}: {} x {}\n\n",
        plan.name,
        numbered(plan.variants.len(), "variant"),
        numbered(plan.blocks as usize, "block")
    );
    let width = plan.variants.iter().map(|variant| variant.name.len()).max().unwrap_or(0);
    for variant in &plan.variants {
        let base = if variant.name == plan.base_name() { "  (base)" } else { "" };
        text.push_str(&format!("  {:<width$}  {}{base}\n", variant.name, server(&variant.kind())));
    }
    text.push_str(configs);
    text.push_str("\norder of cells\n");
    for block in 1..=plan.blocks {
        let order: Vec<String> =
            cells(plan).into_iter().filter(|cell| cell.block == block).map(|cell| cell.variant).collect();
        text.push_str(&format!("  block {block}: {}\n", order.join(", ")));
    }
    for cell in &estimate.cells {
        text.push_str(&format!(
            "\n{} on {}, once: about {}\n",
            cell.workload,
            cell.variant,
            time::about(cell.duration)
        ));
        let name = cell.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0).max(8);
        let detail = cell.steps.iter().map(|step| step.detail.chars().count()).max().unwrap_or(0);
        for step in &cell.steps {
            text.push_str(&format!(
                "  {:<name$}  {:<detail$}  {:>8}\n",
                step.name,
                step.detail,
                time::about(step.duration)
            ));
        }
    }
    text.push_str(&format!("\n{}\n", time_line(plan, estimate)));
    if !estimate.rest.is_zero() {
        text.push_str(&format!("rest: {} between cells, counted in that time\n", plan.host.rest));
    }
    text.push_str(&format!("disk: {}\n", disk(estimate)));
    if let (Some(server), Some(client)) = (&plan.host.server_cpus, &plan.host.client_cpus) {
        text.push_str(&format!("CPUs: {server} for the server, {client} for the client\n"));
    }
    let WaitChoice { wait, reason } = plan.client_wait();
    text.push_str(&format!("client: {}s while waiting for answers: {reason}\n", wait.word()));
    if let Some(budget) = plan.budget.filter(|budget| budget.0 < estimate.duration) {
        text.push_str(&format!("note: the plan's blocks alone take longer than the budget of {budget}\n"));
    }
    if plan.blocks == 1 {
        text.push_str("note: one block shows a ratio, but not whether it is more than noise; plan 5 or more to compare\n");
    }
    text
}

/// Of the plan's blocks, and of those that a budget leaves room for.
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

/// Here, and on servers that others run.
fn disk(estimate: &Estimate) -> String {
    let here = format!("about {} at most", time::bytes(estimate.peak_disk_bytes));
    let Some(there) = estimate.address_disk_bytes.map(time::bytes) else { return here };
    match estimate.peak_disk_bytes {
        0 => format!(
            "about {there} at most, where the server by address keeps its data; none here but the records"
        ),
        _ => format!("{here} here; about {there} where the server by address keeps its data"),
    }
}

fn server(kind: &VariantKind) -> String {
    match kind {
        VariantKind::Sqlite => "SQLite, embedded".to_owned(),
        VariantKind::Null => "nothing (answers at once)".to_owned(),
        VariantKind::BaseDir(path) => format!("server in {}", path.display()),
        VariantKind::Named(name) => format!("server {name}"),
        VariantKind::Address(address) => format!("{address}, external server"),
    }
}
