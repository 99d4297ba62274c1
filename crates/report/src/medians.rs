//! A sentence on steps whose medians and ratio point in opposite directions, so that a reader does
//! not take one of the two for a mistake.

use dbdyno_analyse::{RunSummary, StepFindings, VariantStep, WorkloadFindings};

/// A figure that differs from 1 by less than this is near it, as in the colours.
const NEAR: f64 = 0.05;

/// One sentence; `None` where there is no such step.
///
/// A ratio is formed within each block, and the rates are medians over the blocks. Where blocks
/// differ much, the variant with the higher median can be slower in most blocks.
pub(crate) fn opposite(run: &RunSummary, workload: &WorkloadFindings) -> Option<String> {
    let mut found = Vec::new();
    for step in &workload.steps {
        let Some(base) = step.variant(&run.base) else { continue };
        for variant in &step.variants {
            found.extend(in_step(step, base, variant));
        }
    }
    let found = (!found.is_empty()).then(|| found.join(", "))?;
    Some(format!(
        "Medians and ratio disagree in {found}: the ratio is the mean over the blocks' ratios, not \
         the quotient of the medians."
    ))
}

fn in_step(step: &StepFindings, base: &VariantStep, variant: &VariantStep) -> Option<String> {
    let (quotient, ratio) = (variant.rate? / base.rate?, variant.to_base.value()?);
    let is_opposite = (quotient - 1.0) * (ratio - 1.0) < 0.0;
    let is_seen = [quotient, ratio].iter().any(|value| (value - 1.0).abs() > NEAR);
    (is_opposite && is_seen).then(|| format!("{} ({})", step.name, variant.variant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn said(base: f64, variant: f64, ratio: f64) -> Option<String> {
        let findings = fixture::with_blocks(3);
        let mut workload = findings.workloads[0].clone();
        workload.steps.truncate(1);
        let [first, second] = workload.steps[0].variants.as_mut_slice() else { panic!("two variants") };
        (first.rate, second.rate) = (Some(base), Some(variant));
        second.to_base.ratio.as_mut().unwrap().value = ratio;
        opposite(&findings.run, &workload)
    }

    #[test]
    fn a_ratio_above_1_with_a_lower_median_is_explained() {
        let text = said(7_106.0, 4_139.0, 1.17).unwrap();
        assert!(text.starts_with("Medians and ratio disagree in l.i0 (<b>&\"): "), "{text}");
    }

    #[test]
    fn medians_and_ratios_that_agree_or_hardly_differ_need_no_words() {
        assert_eq!(said(7_106.0, 4_139.0, 0.6), None);
        assert_eq!(said(1_000.0, 999.0, 1.01), None);
    }
}
