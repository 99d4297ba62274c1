//! Charts of rate ratios, as dots with intervals around 1. There is one chart per group of steps
//! and number of connections.

use dbdyno_analyse::{StepFindings, VariantStep, Verdict, WorkloadFindings};
use serde_json::{Value, json};

use super::{Charts, chart};
use crate::document::Chart;
use crate::views::groups::in_published_order;
use crate::views::sweeps::Sweep;

/// The charts; none where nothing is compared.
pub(super) fn ratios(
    charts: &Charts<'_>,
    workload: &WorkloadFindings,
    sweeps: &[Sweep<'_>],
    base: &str,
) -> Vec<Chart> {
    let mut sets: Vec<(String, Vec<&StepFindings>)> = Vec::new();
    for step in workload.judged_steps() {
        let name = set_of(step, sweeps);
        match sets.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(step),
            None => sets.push((name, vec![step])),
        }
    }
    in_published_order(&mut sets, |(_, steps)| steps[0].groups.values().next().map_or("", String::as_str));
    sets.iter().filter_map(|(name, steps)| of_set(charts, name, steps, (&workload.name, base))).collect()
}

/// The chart in which a step is shown, such as `point, part 1, 16 connections`. It is empty for
/// steps without a group that ran with one number of connections.
fn set_of(step: &StepFindings, sweeps: &[Sweep<'_>]) -> String {
    let group = step.groups.values().next().cloned();
    let has_step = |sweep: &Sweep<'_>| sweep.steps.iter().any(|other| other.name == step.name);
    // If there is only one sweep, its steps are in one chart.
    let is_apart = sweeps.len() > 1 && sweeps.iter().any(has_step);
    let connections = is_apart.then(|| dbdyno_analyse::numbered(step.connections as usize, "connection"));
    group.into_iter().chain(connections).collect::<Vec<_>>().join(", ")
}

fn of_set(
    charts: &Charts<'_>,
    name: &str,
    steps: &[&StepFindings],
    (workload, base): (&str, &str),
) -> Option<Chart> {
    let points: Vec<Value> = steps
        .iter()
        .enumerate()
        .flat_map(|(row, step)| step.variants.iter().map(move |variant| (row, variant)))
        .filter(|(_, variant)| variant.variant != base)
        .filter_map(|(row, variant)| point(charts, row, variant))
        .collect();
    if points.is_empty() {
        return None;
    }
    let is_compared = |name: &str| {
        name != base && steps.iter().any(|step| step.variants.iter().any(|of| of.variant == name))
    };
    let compared = charts.names.iter().enumerate().filter(|(_, name)| is_compared(name));
    let name = if name.is_empty() { String::new() } else { format!(", {name}") };
    let what = if steps.iter().all(|step| step.less_is_better) { "seconds" } else { "rate" };
    Some(chart(
        format!("Relative {what}{name}: new ÷ base, 95 % interval; hollow: undecided. Base: {base}"),
        json!({
            "kind": "ratios",
            "margin": steps.iter().map(|step| step.margin).fold(0.0, f64::max),
            "rows": steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(),
            "keys": steps.iter().map(|step| charts.step_id(workload, &step.name)).collect::<Vec<_>>(),
            "variants": compared.map(|(number, _)| number).collect::<Vec<_>>(),
            "points": points,
        }),
    ))
}

/// The point as row, variant, ratio, ends of the interval, verdict.
fn point(charts: &Charts<'_>, row: usize, variant: &VariantStep) -> Option<Value> {
    let ratio = variant.to_base.value()?;
    let interval = variant.to_base.inference().map(|inference| inference.interval);
    Some(json!([
        row,
        charts.variant(&variant.variant),
        ratio,
        interval.map(|interval| interval.low),
        interval.map(|interval| interval.high),
        variant.to_base.verdict.map(Verdict::word),
    ]))
}
