//! What each ratio is made of, as a table and in a sentence.

use dbdyno_analyse::{Account, Cause, Part, StepFindings, VariantStep, Verdict, WorkloadFindings};

use super::{Column, Grid};
use crate::number::fixed;

/// The differences that are explained in words; the others are in the tables.
const TOLD: usize = 3;

pub(super) fn grid(step: &StepFindings) -> Grid {
    let note = "rate = CPUs × utilisation ÷ CPU an operation. The ratio to the base is the product of the factors; each is what \
                its cause alone does to the rate.";
    let figures = [
        ("base", "", "Mean over the blocks: µs an operation, or % of the CPUs' time."),
        ("variant", "", "The same of the variant."),
        ("factor", "", "0.95 is 5 % less of the rate."),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let labels = vec![Column::new("variant", "", ""), Column::new("cause", "", "")];
    let mut grid = Grid::new("What the difference is made of", note, labels, figures);
    for variant in &step.variants {
        for part in variant.account.iter().flat_map(|account| &account.parts) {
            grid.rows.push(row(variant, part));
        }
    }
    grid
}

fn row(variant: &VariantStep, part: &Part) -> Vec<String> {
    let figure = |value: f64| match part.cause {
        Cause::CpuUser | Cause::CpuKernel => format!("{} µs/op", fixed(Some(value), 2)),
        Cause::IoWait | Cause::Idle => format!("{} %", fixed(Some(value), 1)),
    };
    let cause = cause(part.cause).to_owned();
    vec![variant.variant.clone(), cause, figure(part.base), figure(part.variant), fixed(Some(part.factor), 3)]
}

fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::CpuUser => "CPU an operation, user",
        Cause::CpuKernel => "CPU an operation, kernel",
        Cause::IoWait => "CPUs waiting for IO",
        Cause::Idle => "CPUs idle otherwise",
    }
}

/// The greatest differences that are certain, each with what it is made of; the greatest cause first.
pub(crate) fn explanations(workload: &WorkloadFindings) -> Vec<String> {
    let steps = workload.steps.iter();
    let variants = steps.flat_map(|step| step.variants.iter().map(move |variant| (step, variant)));
    let mut found: Vec<(f64, String)> = variants
        .filter(|(_, variant)| matches!(variant.verdict, Some(Verdict::Faster | Verdict::Slower)))
        .filter_map(|(step, variant)| {
            let (ratio, account) = variant.ratio.as_ref().zip(variant.account.as_ref())?;
            Some((ratio.value.ln().abs(), sentence(step, variant, ratio.value, account)))
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(TOLD).map(|(_, sentence)| sentence).collect()
}

fn sentence(step: &StepFindings, variant: &VariantStep, ratio: f64, account: &Account) -> String {
    let mut parts: Vec<&Part> = account.parts.iter().collect();
    parts.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    // The table has those that round to 1 as well.
    let matters = |part: &&&Part| part.factor.ln().abs() >= 0.005;
    let told: Vec<String> = parts
        .iter()
        .filter(matters)
        .map(|part| format!("{} ×{}", cause(part.cause), fixed(Some(part.factor), 2)))
        .collect();
    let (name, ratio) = (&variant.variant, fixed(Some(ratio), 2));
    format!("{name} has {ratio} times the base's rate in {} by: {}.", step.name, told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_table_has_a_row_for_each_cause() {
        let rows = grid(&fixture::with_blocks(3).workloads[0].steps[0]).rows;
        let rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        <b>&" | CPU an operation, user | 70.00 µs/op | 68.63 µs/op | 1.041
        <b>&" | CPU an operation, kernel | 18.12 µs/op | 18.12 µs/op | 1.000
        <b>&" | CPUs waiting for IO | 1.0 % | 2.0 % | 0.990
        <b>&" | CPUs idle otherwise | 0.5 % | 1.5 % | 0.990
        "#);
    }

    #[test]
    fn only_certain_differences_are_told_the_greatest_first() {
        let told = explanations(&fixture::with_blocks(3).workloads[0]);
        insta::assert_snapshot!(told.join("\n"), @r#"
        <b>&" has 9.87 times the base's rate in l.i2 by: CPU an operation, user ×10.07, CPUs idle otherwise ×0.99, CPUs waiting for IO ×0.99.
        <b>&" has 2.50 times the base's rate in l.i1 by: CPU an operation, user ×2.55, CPUs idle otherwise ×0.99, CPUs waiting for IO ×0.99.
        <b>&" has 1.30 times the base's rate in qp100 by: CPU an operation, user ×1.33, CPUs idle otherwise ×0.99, CPUs waiting for IO ×0.99.
        "#);
        assert!(explanations(&fixture::findings().workloads[0]).is_empty());
    }
}
