//! `dbdyno plan --json`: what a plan would run, for programs.

use dbdyno_plan::{Estimate, Plan, WaitChoice, cells};
use serde::Serialize;

use crate::exit::{Ended, OURS};
use crate::power::Power;

#[derive(Serialize)]
struct Document<'a> {
    /// Version of this shape. It rises when a key is removed or changes its meaning.
    schema: u32,
    name: &'a str,
    base: &'a str,
    blocks: u32,
    budget_seconds: Option<f64>,
    variants: Vec<&'a str>,
    order: Vec<OrderedCell>,
    cells: Vec<ForecastCell<'a>>,
    /// With the rest between cells.
    duration_seconds: f64,
    /// Between two cells.
    rest_seconds: f64,
    /// Of this machine.
    peak_disk_bytes: u64,
    /// Of a server that others run; `None` in a plan without addresses.
    address_disk_bytes: Option<u64>,
    /// How load threads wait for answers, `sleep` or `spin`, and why so.
    client_wait: &'static str,
    client_wait_reason: String,
    /// `None` for a plan that compares nothing.
    power: Option<&'a Power>,
}

#[derive(Serialize)]
struct OrderedCell {
    block: u32,
    variant: String,
    workload: String,
}

#[derive(Serialize)]
struct ForecastCell<'a> {
    variant: &'a str,
    workload: &'a str,
    duration_seconds: f64,
    steps: Vec<ForecastStep<'a>>,
}

#[derive(Serialize)]
struct ForecastStep<'a> {
    name: &'a str,
    detail: &'a str,
    duration_seconds: f64,
}

pub(super) fn text(plan: &Plan, estimate: &Estimate, power: Option<&Power>) -> Result<String, Ended> {
    let WaitChoice { wait, reason } = plan.client_wait();
    let document = Document {
        schema: 1,
        name: &plan.name,
        base: plan.base_name(),
        blocks: plan.blocks,
        budget_seconds: plan.budget.map(|budget| budget.0.as_secs_f64()),
        variants: plan.variants.iter().map(|variant| variant.name.as_str()).collect(),
        order: cells(plan)
            .into_iter()
            .map(|cell| OrderedCell { block: cell.block, variant: cell.variant, workload: cell.workload })
            .collect(),
        cells: estimate.cells.iter().map(forecast_cell).collect(),
        duration_seconds: estimate.duration.as_secs_f64(),
        rest_seconds: estimate.rest.as_secs_f64(),
        peak_disk_bytes: estimate.peak_disk_bytes,
        address_disk_bytes: estimate.address_disk_bytes,
        client_wait: wait.word(),
        client_wait_reason: reason,
        power,
    };
    serde_json::to_string_pretty(&document).map_err(|error| Ended::new(OURS, error))
}

fn forecast_cell(cell: &dbdyno_plan::CellEstimate) -> ForecastCell<'_> {
    let step = |step: &'_ dbdyno_plan::StepEstimate| step.duration.as_secs_f64();
    ForecastCell {
        variant: &cell.variant,
        workload: &cell.workload,
        duration_seconds: cell.duration.as_secs_f64(),
        steps: cell
            .steps
            .iter()
            .map(|forecast| ForecastStep {
                name: &forecast.name,
                detail: &forecast.detail,
                duration_seconds: step(forecast),
            })
            .collect(),
    }
}
