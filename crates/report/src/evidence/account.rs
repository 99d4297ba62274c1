//! What each ratio is made of, as a table and in a sentence.

use dbdyno_analyse::{
    Account, Beside, Cause, Part, StallDifference, StallFigure, StepFindings, VariantStep, Verdict,
    WorkloadFindings,
};

use super::{Column, Grid};
use crate::number::{self, fixed};

/// The differences that are explained in words; the others are in the tables.
const TOLD: usize = 3;

pub(super) fn grid(step: &StepFindings) -> Grid {
    let note = "rate = CPUs × utilisation ÷ CPU an operation. The ratio to the base is the product of the factors; each is what \
                its cause alone does to the rate. Without a factor: what else is not like the base, with medians over the blocks. It \
                says where to look; none of it is a test. Idle is what the server left of its CPUs, to the client and others too.";
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
        grid.rows.extend(beside_rows(variant));
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

/// What differs and has no factor.
fn beside_rows(variant: &VariantStep) -> Vec<Vec<String>> {
    let Beside { query_plans, settings, stalls } = &variant.beside;
    let row = |what: String, base: String, new: String| {
        vec![variant.variant.clone(), what, base, new, String::new()]
    };
    let plans = query_plans
        .iter()
        .map(|found| row(format!("plan of {}", found.statement), found.base.clone(), found.variant.clone()));
    let stalls = stalls.iter().map(|found| {
        row(stall(found).to_owned(), stall_text(found, found.base), stall_text(found, found.variant))
    });
    let settings = settings
        .iter()
        .map(|found| row(format!("set: {}", found.class), found.base.clone(), found.variant.clone()));
    plans.chain(stalls).chain(settings).collect()
}

fn stall(stall: &StallDifference) -> &'static str {
    match stall.figure {
        StallFigure::WorstSecondShare => "slowest second, of median",
        StallFigure::LongestGapSeconds => "longest gap",
        StallFigure::ShareBelowHalfMedian => "seconds below half of median",
    }
}

fn stall_text(stall: &StallDifference, value: f64) -> String {
    match stall.figure {
        StallFigure::LongestGapSeconds => format!("{} s", fixed(Some(value), 0)),
        StallFigure::WorstSecondShare | StallFigure::ShareBelowHalfMedian => {
            format!("{} %", fixed(Some(100.0 * value), 1))
        }
    }
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
            let ratio = variant.ratio.as_ref()?.value;
            Some((ratio.ln().abs(), explanation(step, variant, ratio)?))
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(TOLD).map(|(_, sentence)| sentence).collect()
}

/// `None` where nothing is known to differ but the rate.
fn explanation(step: &StepFindings, variant: &VariantStep, ratio: f64) -> Option<String> {
    let causes = variant.account.as_ref().map(causes);
    let beside = beside(&variant.beside);
    if causes.is_none() && beside.is_empty() {
        return None;
    }
    let (name, ratio) = (&variant.variant, number::ratio(Some(ratio), 2));
    let by = causes.map_or_else(String::new, |causes| format!(" by: {causes}"));
    let beside: String = beside.iter().map(|sentence| format!(" {sentence}")).collect();
    Some(format!("{name} has {ratio} times the base's rate in {}{by}.{beside}", step.name))
}

/// The greatest cause first.
fn causes(account: &Account) -> String {
    let mut parts: Vec<&Part> = account.parts.iter().collect();
    parts.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    // The table has those that round to 1 as well.
    let matters = |part: &&&Part| part.factor.ln().abs() >= 0.005;
    let told: Vec<String> = parts
        .iter()
        .filter(matters)
        .map(|part| format!("{} ×{}", cause(part.cause), fixed(Some(part.factor), 2)))
        .collect();
    told.join(", ")
}

/// A sentence each for plans, stalls and settings.
fn beside(beside: &Beside) -> Vec<String> {
    let plans = beside.query_plans.iter().map(|found| {
        format!("The plan of {} differs: {}; the base: {}.", found.statement, found.variant, found.base)
    });
    let stalls: Vec<String> = beside
        .stalls
        .iter()
        .map(|found| {
            format!(
                "{} {} (base {})",
                stall(found),
                stall_text(found, found.variant),
                stall_text(found, found.base)
            )
        })
        .collect();
    let stalls = (!stalls.is_empty()).then(|| format!("Stalls differ: {}.", stalls.join(", ")));
    let settings: Vec<String> = beside
        .settings
        .iter()
        .map(|found| format!("{} {} (base {})", found.class, found.variant, found.base))
        .collect();
    let settings = (!settings.is_empty()).then(|| format!("Not set alike: {}.", settings.join(", ")));
    plans.chain(stalls).chain(settings).collect()
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

    #[test]
    fn plans_stalls_and_settings_that_differ_stand_beside_the_causes() {
        let findings = fixture::with_other_plans();
        insta::assert_snapshot!(explanations(&findings.workloads[0]).join("\n"), @r#"<b>&" has 1.04 times the base's rate in qr100 by: CPU an operation, user ×1.06, CPUs idle otherwise ×0.99, CPUs waiting for IO ×0.99. The plan of range-pdc differs: Limit, then Sort, then Seq Scan on pi1 or Seq Scan on pi1; the base: Limit, then Index Only Scan using pi1_pdc on pi1. Stalls differ: slowest second, of median 0.0 % (base 90.0 %), longest gap 3 s (base 0 s), seconds below half of median 12.5 % (base 0.1 %). Not set alike: durability each second (base each commit)."#);
        let rows = grid(&findings.workloads[0].steps[4]).rows;
        let rows: Vec<String> = rows.iter().map(|row| row.join(" | ").trim_end().to_owned()).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        <b>&" | CPU an operation, user | 70.00 µs/op | 67.31 µs/op | 1.061
        <b>&" | CPU an operation, kernel | 18.12 µs/op | 18.12 µs/op | 1.000
        <b>&" | CPUs waiting for IO | 1.0 % | 2.0 % | 0.990
        <b>&" | CPUs idle otherwise | 0.5 % | 1.5 % | 0.990
        <b>&" | plan of range-pdc | Limit, then Index Only Scan using pi1_pdc on pi1 | Limit, then Sort, then Seq Scan on pi1 or Seq Scan on pi1 |
        <b>&" | slowest second, of median | 90.0 % | 0.0 % |
        <b>&" | longest gap | 0 s | 3 s |
        <b>&" | seconds below half of median | 0.1 % | 12.5 % |
        <b>&" | set: durability | each commit | each second |
        "#);
    }
}
