//! Steps that no count of faster, slower and same holds: stalled ones, and those whose rate is the plan's.

use dbdyno_analyse::{RunSummary, StepFindings, TableRow, VariantStep, Verdict, WorkloadFindings, numbered};

use crate::number::duration_whole_us;

/// Steps of a row with a verdict, each with its cell's text and its findings.
fn of<'a>(
    workload: &'a WorkloadFindings,
    row: &'a TableRow,
    verdict: Verdict,
) -> Vec<(&'a str, &'a StepFindings, &'a VariantStep)> {
    let cells = row.cells.iter().zip(&workload.summary.relative.columns);
    let found = |name: &str| {
        let step = workload.steps.iter().find(|step| step.name == name)?;
        Some((step, step.variants.iter().find(|variant| variant.variant == row.label)?))
    };
    cells
        .filter(|(cell, _)| cell.verdict == Some(verdict))
        .filter_map(|(cell, name)| found(name).map(|(step, variant)| (cell.text.as_str(), step, variant)))
        .collect()
}

/// `stalled in 1 step (qr100: answered nothing in block 2 of 5, in which wal did)`
pub(crate) fn stalled(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> Option<String> {
    let steps: Vec<String> = of(workload, row, Verdict::Stalled)
        .into_iter()
        .map(|(_, step, variant)| {
            let text = variant.standstills.text(&run.base).unwrap_or_default();
            format!("{}: {text}", step.name)
        })
        .collect();
    (!steps.is_empty())
        .then(|| format!("stalled in {} ({})", numbered(steps.len(), "step"), steps.join("; ")))
}

/// ` wal answered nothing in block 3 of 5 of qr100: nothing is faster or the same there.`; empty where the base always answered.
pub(crate) fn base_stalled(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> String {
    let of_step = |step: &StepFindings| {
        let variant = step.variants.iter().find(|variant| variant.variant == row.label)?;
        let blocks = variant.standstills.base_blocks_text()?;
        Some(format!("{blocks} of {}", step.name))
    };
    let steps: Vec<String> = workload.judged_steps().filter_map(of_step).collect();
    if steps.is_empty() {
        return String::new();
    }
    format!(" {} answered nothing in {}: no verdict of faster or same there.", run.base, steps.join(", "))
}

/// Names of the steps whose schedule the row's variant did not keep, and the base did.
pub(crate) fn missed_schedules<'a>(
    run: &RunSummary,
    workload: &'a WorkloadFindings,
    row: &TableRow,
) -> Vec<&'a str> {
    let missed = workload.steps.iter().filter(|step| step.misses_schedule_of(&run.base, &row.label));
    missed.map(|step| step.name.as_str()).collect()
}

/// Steps whose rate is the plan's: missed, and kept.
pub(crate) fn paced(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> Vec<String> {
    let mut parts = Vec::new();
    let missed: Vec<String> = of(workload, row, Verdict::Missed)
        .into_iter()
        .filter(|(_, step, _)| step.misses_schedule_of(&run.base, &row.label))
        .filter_map(|(_, step, variant)| Some(format!("{}: {}", step.name, step.pace(variant)?.text())))
        .collect();
    if !missed.is_empty() {
        parts.push(format!(
            "schedule missed, which {} kept, in {} ({})",
            run.base,
            numbered(missed.len(), "step"),
            missed.join("; ")
        ));
    }
    let paced: Vec<String> = of(workload, row, Verdict::Paced)
        .into_iter()
        .map(|(_, step, variant)| times(run, step, variant))
        .collect();
    if !paced.is_empty() {
        parts.push(format!(
            "paced in {} (the plan fixes the rate; p99 response time: {})",
            numbered(paced.len(), "step"),
            paced.join(", ")
        ));
    }
    parts
}

/// `qr100 1.52 ms against 1.40 ms`; medians over the blocks.
fn times(run: &RunSummary, step: &StepFindings, variant: &VariantStep) -> String {
    let base = step.variants.iter().find(|variant| variant.variant == run.base);
    let text = |variant: &VariantStep| {
        let p99_us = step.response_p99_us(variant)?;
        Some(duration_whole_us(p99_us.round() as u64))
    };
    match (text(variant), base.and_then(text)) {
        (Some(own), Some(base)) => format!("{} {own} against {base}", step.name),
        _ => step.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Colour, Findings, Standstills};

    use crate::facts::sentences;
    use crate::fixture;

    use super::*;

    /// The second variant answered nothing in block 2 in this step.
    fn stalled(mut findings: Findings, step: usize) -> String {
        let workload = &mut findings.workloads[0];
        let standstills = Standstills { stalled: vec![2], base_stalled: Vec::new(), blocks: 4 };
        workload.steps[step].variants[1].standstills = standstills;
        let cell = &mut workload.summary.relative.rows[1].cells[step];
        (cell.verdict, cell.colour) = (Some(Verdict::Stalled), Colour::Red);
        sentences(&findings.run, workload)[0].clone()
    }

    #[test]
    fn a_standstill_is_the_first_thing_that_is_said() {
        insta::assert_snapshot!(stalled(fixture::findings(), 5), @r#"<b>&" against rollback: stalled in 1 step (qp100: answered nothing in block 2 of 4, in which rollback answered); more than 5 % above in 2 steps (up to 9.87 in l.i2); more than 5 % below in 1 step (down to 0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
        insta::assert_snapshot!(stalled(fixture::with_blocks(3), 5), @r#"<b>&" against rollback: stalled in 1 step (qp100: answered nothing in block 2 of 4, in which rollback answered); faster in 2 steps (l.i1 2.50, l.i2 9.87); slower in 1 step (qr1000 0.80); same in 1 step; undecided in 3 steps; no ratio in 2 steps."#);
    }

    #[test]
    fn a_base_that_stood_still_is_said_as_well() {
        let mut findings = fixture::with_blocks(3);
        let workload = &mut findings.workloads[0];
        for step in [4, 5] {
            let standstills = Standstills { stalled: Vec::new(), base_stalled: vec![1, 3], blocks: 4 };
            workload.steps[step].variants[1].standstills = standstills;
        }
        let told = sentences(&findings.run, workload)[0].clone();
        let expected = ". rollback answered nothing in blocks 1 and 3 of qr100, blocks 1 and 3 of \
                        qp100: no verdict of faster or same there.";
        assert!(told.ends_with(expected), "{told}");
    }

    #[test]
    fn steps_whose_rate_is_the_plans_are_counted_apart_with_their_response_times() {
        let mut findings = fixture::with_blocks(3);
        let workload = &mut findings.workloads[0];
        workload.summary.relative.rows[1].cells[5].verdict = Some(Verdict::Paced);
        insta::assert_snapshot!(sentences(&findings.run, workload)[0], @r#"<b>&" against rollback: faster in 2 steps (l.i1 2.50, l.i2 9.87); slower in 1 step (qr1000 0.80); same in 1 step; undecided in 3 steps; paced in 1 step (the plan fixes the rate; p99 response time: qp100 1.52 ms against 1.52 ms); no ratio in 2 steps."#);
    }
}
