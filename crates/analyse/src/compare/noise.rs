//! How much ratios scatter from block to block. The power of the next plan is computed from it.

use serde::{Deserialize, Serialize};

use crate::model::{Findings, StepFindings, VariantStep};

/// The scatter of one step's ratios in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepNoise {
    pub workload: String,
    pub step: String,
    /// Standard deviation of a block's log ratio; 0.01 is about 1 %.
    pub deviation: f64,
    /// Degrees of freedom of the estimate: blocks − 1, added up over the variants.
    pub degrees: u32,
    /// The noise is from the control (the base against itself), not from variants against the base.
    pub control: bool,
}

/// The noise of every step with two blocks or more. It is from the control where there is one, and
/// otherwise from all variants pooled. A difference between variants is not noise: each variant's
/// ratios scatter around their own mean.
pub fn noise(findings: &Findings) -> Vec<StepNoise> {
    let control = findings.run.control.as_deref();
    let of_step = |workload: &str, step: &StepFindings| {
        let control = control.and_then(|control| step.variant(control));
        let (parts, is_control): (Vec<_>, bool) = match control.and_then(part) {
            Some(found) => (vec![found], true),
            None => (step.variants.iter().filter_map(part).collect(), false),
        };
        let (deviation, degrees) = pooled(&parts)?;
        Some(StepNoise {
            workload: workload.to_owned(),
            step: step.name.clone(),
            deviation,
            degrees,
            control: is_control,
        })
    };
    let workloads = findings.workloads.iter();
    workloads
        .flat_map(|workload| workload.steps.iter().filter_map(move |step| of_step(&workload.name, step)))
        .collect()
}

/// Deviation and degrees of freedom of a variant's log ratios.
fn part(variant: &VariantStep) -> Option<(f64, u32)> {
    let ratio = variant.to_base.ratio.as_ref()?;
    let deviation = ratio.inference.as_ref()?.paired.as_ref()?.deviation;
    Some((deviation, u32::try_from(ratio.blocks.len()).ok()?.checked_sub(1)?))
}

/// Combines several deviations into one, each weighted by its degrees of freedom; `None` for none.
pub fn pooled(parts: &[(f64, u32)]) -> Option<(f64, u32)> {
    let degrees: u32 = parts.iter().map(|(_, degrees)| degrees).sum();
    let squares: f64 = parts.iter().map(|(deviation, degrees)| f64::from(*degrees) * deviation.powi(2)).sum();
    (degrees > 0).then(|| ((squares / f64::from(degrees)).sqrt(), degrees))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{add_control, cell, load_step, run};
    use crate::simulations::close;

    #[test]
    fn deviations_are_pooled_by_their_degrees_of_freedom() {
        let (deviation, degrees) = pooled(&[(0.01, 4), (0.02, 2)]).unwrap();
        close(deviation, (12e-4_f64 / 6.0).sqrt(), 1e-12);
        assert_eq!((degrees, pooled(&[])), (6, None));
    }

    #[test]
    fn the_noise_is_that_of_the_base_against_itself_where_there_is_one() {
        let rates = [(1_000, 1_010, 2_000), (1_000, 990, 2_100), (1_000, 1_000, 1_900)];
        let cells = rates.iter().zip(1..).flat_map(|((a, control, b), block)| {
            [("a", a), ("a~control", control), ("b", b)]
                .map(|(name, rate)| cell(block, name, vec![load_step(rate * 100)]))
        });
        let mut run = run(&["a", "a~control", "b"], 3, cells.collect());
        let all = noise(&analyse(&run));
        assert_eq!((all.len(), all[0].degrees, all[0].control), (1, 4, false));
        add_control(&mut run);
        let control = noise(&analyse(&run));
        assert_eq!((control[0].degrees, control[0].control), (2, true));
        close(control[0].deviation, 0.01, 1e-4);
        assert!(all[0].deviation > 2.0 * control[0].deviation, "{all:?}");
    }
}
