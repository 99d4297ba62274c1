//! Tables of the cost per operation. One table shows the causes of each ratio, and sentences name
//! them too. Another table shows who used the CPU and the IO. Two more show whether a run's CPU
//! figures can be trusted: how much of the host's time the measured parts explain, and how near the
//! client came to the rate that it can reach.

use dbdyno_analyse::metrics::Figures;
use dbdyno_analyse::{
    Cause, CostBreakdown, CostPart, HostCheck, Ratio, RatioContext, StallFigure, StepFindings, StepRun,
    VariantStep, Verdict, WorkloadFindings,
};

use super::of_runs;
use crate::document::{Column, Table, TableCell};
use crate::number::{count, fixed, rate};
use crate::views::bounded_text;
use crate::views::cells::known;
use crate::words::table;

/// Number of differences that are explained in words. The others are in the tables.
const REPORTED: usize = 3;

pub(crate) fn grid(step: &StepFindings) -> Table {
    let mut grid = table("cost-breakdown");
    for variant in &step.variants {
        for part in variant.to_base.cost_breakdown.iter().flat_map(|cost_breakdown| &cost_breakdown.parts) {
            grid.push(row(variant, part));
        }
        context_rows(variant).into_iter().for_each(|row| grid.push(row));
    }
    grid
}

fn row(variant: &VariantStep, part: &CostPart) -> Vec<String> {
    let figure = |value: f64| match part.cause {
        Cause::CpuUser | Cause::CpuKernel => format!("{} µs/op", fixed(Some(value), 2)),
        Cause::IoWait | Cause::Idle => format!("{} %", fixed(Some(value), 1)),
    };
    vec![
        variant.variant.clone(),
        of_operation(part.cause),
        figure(part.base),
        figure(part.variant),
        fixed(Some(part.factor), 3),
    ]
}

/// A difference without a factor: what differs, the base's value, and the variant's value.
type Difference = [String; 3];

fn plans(context: &RatioContext) -> impl Iterator<Item = Difference> {
    let plans = context.query_plans.iter().cloned();
    plans.map(|found| [found.statement, found.base, found.variant])
}

fn settings(context: &RatioContext) -> impl Iterator<Item = Difference> {
    let settings = context.settings.iter().cloned();
    settings.map(|found| [found.class, found.base, found.variant])
}

fn stalls(context: &RatioContext) -> impl Iterator<Item = Difference> {
    context.stalls.iter().map(|found| {
        let (name, factor, decimals, unit) = match found.figure {
            StallFigure::WorstSecondShare => ("slowest second ÷ median", 100.0, 1, "%"),
            StallFigure::LongestGapSeconds => ("longest gap", 1.0, 0, "s"),
            StallFigure::ShareBelowHalfMedian => ("seconds below half the median", 100.0, 1, "%"),
        };
        let text = |value: f64| format!("{} {unit}", fixed(Some(factor * value), decimals));
        [name.to_owned(), text(found.base), text(found.variant)]
    })
}

fn context_rows(variant: &VariantStep) -> Vec<Vec<String>> {
    let context = &variant.context;
    let plans = plans(context).map(|[what, base, new]| [format!("plan of {what}"), base, new]);
    let settings = settings(context).map(|[what, base, new]| [format!("setting: {what}"), base, new]);
    let all = plans.chain(stalls(context)).chain(settings);
    all.map(|[what, base, new]| vec![variant.variant.clone(), what, base, new, String::new()]).collect()
}

pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::CpuUser => "user CPU",
        Cause::CpuKernel => "kernel CPU",
        Cause::IoWait => "IO wait",
        Cause::Idle => "idle",
    }
}

/// Names the cause, and says whether its figures are per operation.
pub(crate) fn of_operation(of: Cause) -> String {
    let is_per_operation = matches!(of, Cause::CpuUser | Cause::CpuKernel);
    format!("{}{}", cause(of), if is_per_operation { " per operation" } else { "" })
}

/// Returns sentences on the largest certain differences, each with its causes. The largest
/// difference and the largest cause come first.
pub(crate) fn explanations(workload: &WorkloadFindings) -> Vec<String> {
    let steps = workload.steps.iter();
    let variants = steps.flat_map(|step| step.variants.iter().map(move |variant| (step, variant)));
    let mut found: Vec<(f64, String)> = variants
        .filter(|(_, variant)| matches!(variant.to_base.verdict, Some(Verdict::Faster | Verdict::Slower)))
        .filter_map(|(step, variant)| {
            let ratio = variant.to_base.ratio.as_ref()?;
            Some((ratio.value.ln().abs(), explanation(step, variant, ratio)?))
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(REPORTED).map(|(_, sentence)| sentence).collect()
}

/// Returns the sentence on one difference. It is `None` where nothing but the rate is known to
/// differ.
fn explanation(step: &StepFindings, variant: &VariantStep, ratio: &Ratio) -> Option<String> {
    let causes = variant.to_base.cost_breakdown.as_ref().map(causes);
    let context = context(&variant.context);
    if causes.is_none() && context.is_empty() {
        return None;
    }
    let (name, ratio) = (&variant.variant, bounded_text(ratio));
    let factors = causes.map_or_else(String::new, |causes| format!(": {causes}"));
    let context: String = context.iter().map(|sentence| format!(" {sentence}")).collect();
    Some(format!("Cost breakdown of {name}, {} {ratio}{factors}.{context}", step.name))
}

fn causes(cost_breakdown: &CostBreakdown) -> String {
    let mut parts: Vec<&CostPart> = cost_breakdown.parts.iter().collect();
    parts.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    // The table also has the causes whose factor rounds to 1.
    let matters = |part: &&&CostPart| part.factor.ln().abs() >= 0.005;
    let reported: Vec<String> = parts
        .iter()
        .filter(matters)
        .map(|part| format!("{} ×{}", of_operation(part.cause), fixed(Some(part.factor), 2)))
        .collect();
    reported.join(", ")
}

/// Returns sentences on plans, on stalls and on settings.
fn context(context: &RatioContext) -> Vec<String> {
    let plans = plans(context).map(|[what, base, new]| format!("Plan of {what}: {new} (base: {base})."));
    let listed = |differences: Vec<Difference>, head: &str| {
        let items = differences.iter().map(|[what, base, new]| format!("{what} {new} (base {base})"));
        let items = items.collect::<Vec<_>>().join(", ");
        (!differences.is_empty()).then(|| format!("{head}: {items}."))
    };
    let stalls = listed(stalls(context).collect(), "Stalls");
    let settings = listed(settings(context).collect(), "Different settings");
    plans.chain(stalls).chain(settings).collect()
}

/// Name of a user of CPU or IO, and the function that returns what it used per operation.
type UserShare = (&'static str, fn(&StepRun) -> Option<f64>);

pub(crate) const CPU_UNIT: &str = "µs/op";
pub(crate) const IO_UNIT: &str = "KiB/op";

const CPU: [UserShare; 5] = [
    ("server, user", |run| run.cost.server_user_us),
    ("server, kernel", |run| run.cost.server_kernel_us),
    // The CPU time of the client includes that of an embedded database.
    ("client", |run| run.cost.client_cpu_us),
    ("rest of the host", |run| run.cost.rest_cpu_us),
    ("IO wait", |run| run.cost.host_iowait_us),
];
const IO: [UserShare; 3] = [
    ("read by the server", |run| run.cost.server_read_kib),
    ("read by others", StepRun::others_read_kib),
    ("written", |run| run.written_kib),
];

/// Makes the table of CPU and IO by who used them. Parts that nobody used have no column. There are
/// no rows where nothing was sampled.
pub(crate) fn by_user(step: &StepFindings) -> Table {
    let is_measured = |variant: &&VariantStep| variant.valid_runs().next().is_some();
    let variants: Vec<&VariantStep> = step.variants.iter().filter(is_measured).collect();
    let all = CPU.iter().map(|part| (CPU_UNIT, part)).chain(IO.iter().map(|part| (IO_UNIT, part)));
    let medians = |of: fn(&StepRun) -> Option<f64>| variants.iter().map(move |variant| variant.median(of));
    let shown: Vec<(Column, Vec<Option<f64>>)> = all
        .map(|(unit, (name, of))| (Column::new(name, unit, ""), medians(*of).collect::<Vec<_>>()))
        .filter(|(_, values)| values.iter().flatten().any(|value| *value > 0.0))
        .collect();
    let heads = shown.iter().map(|(column, _)| column.clone());
    let mut table =
        Table::new("CPU and IO by who used it", "Medians of the valid blocks.", ["variant"], heads);
    for (at, variant) in variants.iter().enumerate().filter(|_| !shown.is_empty()) {
        let cells = shown.iter().map(|(column, values)| {
            let decimals = if column.unit == IO_UNIT { 3 } else { 2 };
            known(values[at], fixed(values[at], decimals))
        });
        table.push(std::iter::once(TableCell::from(variant.variant.as_str())).chain(cells));
    }
    table
}

pub(crate) fn host_check(step: &StepFindings) -> Table {
    let mut table = table("host-check");
    table.columns.splice(0..0, HostCheck::METRICS.iter().map(Column::from));
    of_runs(step, table, |run| {
        run.host_check.as_ref().map(|check| {
            let parts = check.figures().into_iter().map(|(metric, value)| fixed(value, metric.decimals));
            let unexplained = fixed(Some(100.0 * check.unexplained_share), 1);
            let bound = format!("±{}", fixed(Some(100.0 * check.bound_share), 1));
            parts.chain([unexplained, bound]).collect()
        })
    })
}

/// Makes the table of how near the client came to the rate that it can reach. It has no rows for
/// runs without a calibration of the client.
pub(crate) fn client_headroom(step: &StepFindings) -> Table {
    of_runs(step, table("client"), |run| {
        run.client_headroom.map(|client_headroom| {
            let sign = if client_headroom.at_least { "≥ " } else { "" };
            vec![
                rate(Some(client_headroom.statements_per_second)),
                format!("{sign}{}", rate(Some(client_headroom.could_per_second))),
                count(client_headroom.could_connections),
                fixed(Some(100.0 * client_headroom.share()), 0),
                fixed(run.cost.busiest_load_thread_share, 3),
            ]
        })
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{ClientHeadroom, PlanDifference, SettingDifference, StallDifference};

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::testing::{heads, rows};

    fn explained(steps: Vec<StepFindings>) -> String {
        explanations(&of_steps(steps).workloads[0]).join("\n")
    }

    #[test]
    fn the_table_has_a_row_for_each_cause() {
        insta::assert_snapshot!(rows(&grid(&pair("l.i0", 1.02, 3))), @r#"
        <b>&" | user CPU per operation | 70.00 µs/op | 68.63 µs/op | 1.041
        <b>&" | kernel CPU per operation | 18.12 µs/op | 18.12 µs/op | 1.000
        <b>&" | IO wait | 1.0 % | 2.0 % | 0.990
        <b>&" | idle | 0.5 % | 1.5 % | 0.990
        "#);
    }

    #[test]
    fn only_certain_differences_are_reported_the_largest_first() {
        let steps = [("l.i0", 1.02), ("qp500", 1.1), ("l.i1", 2.5), ("l.i2", 9.87), ("qp100", 1.3)];
        let of = |blocks| explained(steps.map(|(name, ratio)| pair(name, ratio, blocks)).to_vec());
        insta::assert_snapshot!(of(3), @r#"
        Cost breakdown of <b>&", l.i2 9.87: user CPU per operation ×10.07, idle ×0.99, IO wait ×0.99.
        Cost breakdown of <b>&", l.i1 2.50: user CPU per operation ×2.55, idle ×0.99, IO wait ×0.99.
        Cost breakdown of <b>&", qp100 1.30: user CPU per operation ×1.33, idle ×0.99, IO wait ×0.99.
        "#);
        assert_eq!(of(1), "");
    }

    #[test]
    fn plans_stalls_and_settings_that_differ_follow_the_causes() {
        let mut step = pair("qr100", 1.04, 3);
        let stall = |figure, base, variant| StallDifference { figure, base, variant };
        step.variants[1].to_base.verdict = Some(Verdict::Faster);
        step.variants[1].context = RatioContext {
            query_plans: vec![PlanDifference {
                statement: "range-pdc".to_owned(),
                base: "Limit, then Index Only Scan using pi1_pdc on pi1".to_owned(),
                variant: "Limit, then Sort, then Seq Scan on pi1 or Seq Scan on pi1".to_owned(),
            }],
            settings: vec![SettingDifference {
                class: "durability".to_owned(),
                base: "each commit".to_owned(),
                variant: "each second".to_owned(),
            }],
            stalls: vec![
                stall(StallFigure::WorstSecondShare, 0.9, 0.0),
                stall(StallFigure::LongestGapSeconds, 0.0, 3.0),
                stall(StallFigure::ShareBelowHalfMedian, 0.001, 0.125),
            ],
        };
        insta::assert_snapshot!(rows(&grid(&step)), @r#"
        <b>&" | user CPU per operation | 70.00 µs/op | 67.31 µs/op | 1.061
        <b>&" | kernel CPU per operation | 18.12 µs/op | 18.12 µs/op | 1.000
        <b>&" | IO wait | 1.0 % | 2.0 % | 0.990
        <b>&" | idle | 0.5 % | 1.5 % | 0.990
        <b>&" | plan of range-pdc | Limit, then Index Only Scan using pi1_pdc on pi1 | Limit, then Sort, then Seq Scan on pi1 or Seq Scan on pi1 |
        <b>&" | slowest second ÷ median | 90.0 % | 0.0 % |
        <b>&" | longest gap | 0 s | 3 s |
        <b>&" | seconds below half the median | 0.1 % | 12.5 % |
        <b>&" | setting: durability | each commit | each second |
        "#);
        insta::assert_snapshot!(explained(vec![step]), @r#"Cost breakdown of <b>&", qr100 1.04: user CPU per operation ×1.06, idle ×0.99, IO wait ×0.99. Plan of range-pdc: Limit, then Sort, then Seq Scan on pi1 or Seq Scan on pi1 (base: Limit, then Index Only Scan using pi1_pdc on pi1). Stalls: slowest second ÷ median 0.0 % (base 90.0 %), longest gap 3 s (base 0 s), seconds below half the median 12.5 % (base 0.1 %). Different settings: durability each second (base each commit)."#);
    }

    #[test]
    fn parts_that_nobody_used_have_no_column_and_variants_without_a_valid_run_no_row() {
        let mut step = pair("l.i0", 1.0, 3);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.cost.host_iowait_us = Some(0.0);
        }
        step.variants[1].runs.clear();
        let table = by_user(&step);
        insta::assert_snapshot!(heads(&table).join(" | "), @"variant | client µs/op | rest of the host µs/op | written KiB/op");
        insta::assert_snapshot!(rows(&table), @"rollback | 7.50 | 1.75 | 185.385");
    }

    #[test]
    fn what_the_client_could_reach_is_next_to_what_it_reached() {
        let mut step = pair("qr100", 1.0, 1);
        assert_eq!(client_headroom(&step).rows.len(), 0, "no calibration, no table");
        let headroom = ClientHeadroom {
            statements_per_second: 50_000.0,
            connections: 8,
            could_per_second: 200_000.0,
            could_connections: 16,
            at_least: false,
        };
        step.variants[0].runs[0].client_headroom = Some(headroom);
        step.variants[1].runs[0].cost.busiest_load_thread_share = Some(0.412);
        step.variants[1].runs[0].client_headroom = Some(ClientHeadroom { at_least: true, ..headroom });
        insta::assert_snapshot!(rows(&client_headroom(&step)), @r#"
        rollback | 50,000 | 200,000 | 16 | 25 | NA
        <b>&" | 50,000 | ≥ 200,000 | 16 | 25 | 0.412
        "#);
    }
}
