//! `dbdyno plan --json`: what a plan would run, for programs.

use dbdyno_plan::{Cell, CellEstimate, Estimate, Plan, StepEstimate, WaitChoice, cells};
use serde_json::{Value, json};

use crate::power::Power;

/// Version of the document's shape. It rises when a key is removed or changes its meaning.
const SCHEMA: u32 = 1;

pub(super) fn document(plan: &Plan, estimate: &Estimate, power: Option<&Power>) -> Value {
    let WaitChoice { wait, reason } = plan.client_wait();
    let ordered =
        |cell: &Cell| json!({ "block": cell.block, "variant": cell.variant, "workload": cell.workload });
    let step = |step: &StepEstimate| json!({ "name": step.name, "detail": step.detail, "duration_seconds": step.duration.as_secs_f64() });
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
        // With the rest between cells.
        "duration_seconds": estimate.duration.as_secs_f64(),
        // Between two cells.
        "rest_seconds": estimate.rest.as_secs_f64(),
        // Of this machine.
        "peak_disk_bytes": estimate.peak_disk_bytes,
        // Of a server that others run; `null` in a plan without addresses.
        "address_disk_bytes": estimate.address_disk_bytes,
        // How load threads wait for answers, `sleep` or `spin`, and why so.
        "client_wait": wait.word(),
        "client_wait_reason": reason,
        // `null` for a plan that compares nothing.
        "power": power,
    })
}
