//! The causes of each ratio, as a table and in a sentence.

use dbdyno_analyse::{
    Cause, CostBreakdown, CostPart, RatioContext, StallFigure, StepFindings, VariantStep, Verdict,
    WorkloadFindings,
};

use crate::document::Table;
use crate::number::{self, fixed};
use crate::words::table;

/// Number of differences that are explained in words. The others are in the tables.
const REPORTED: usize = 3;

pub(in crate::views) fn grid(step: &StepFindings) -> Table {
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

/// The cause, with what its figures are for.
pub(crate) fn of_operation(of: Cause) -> String {
    let is_for_one = matches!(of, Cause::CpuUser | Cause::CpuKernel);
    format!("{}{}", cause(of), if is_for_one { " per operation" } else { "" })
}

/// Sentences on the largest certain differences, each with its causes. The largest cause comes
/// first.
pub(crate) fn explanations(workload: &WorkloadFindings) -> Vec<String> {
    let steps = workload.steps.iter();
    let variants = steps.flat_map(|step| step.variants.iter().map(move |variant| (step, variant)));
    let mut found: Vec<(f64, String)> = variants
        .filter(|(_, variant)| matches!(variant.to_base.verdict, Some(Verdict::Faster | Verdict::Slower)))
        .filter_map(|(step, variant)| {
            let ratio = variant.to_base.value()?;
            Some((ratio.ln().abs(), explanation(step, variant, ratio)?))
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(REPORTED).map(|(_, sentence)| sentence).collect()
}

/// The sentence; `None` where nothing but the rate is known to differ.
fn explanation(step: &StepFindings, variant: &VariantStep, ratio: f64) -> Option<String> {
    let causes = variant.to_base.cost_breakdown.as_ref().map(causes);
    let context = context(&variant.context);
    if causes.is_none() && context.is_empty() {
        return None;
    }
    let (name, ratio) = (&variant.variant, number::ratio(Some(ratio), 2));
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

/// Sentences on plans, on stalls and on settings, one each.
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

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{PlanDifference, SettingDifference, StallDifference};

    use super::*;
    use crate::fixture::{of_steps, pair};
    use crate::views::small::rows;

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
    fn only_certain_differences_are_reported_the_greatest_first() {
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
}
