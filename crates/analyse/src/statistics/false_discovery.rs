//! Adjusts the p-values of many tests, so that at most a given share of the findings is false.
//!
//! Sources: Y. Benjamini, Y. Hochberg, "Controlling the False Discovery Rate", J. R. Statist. Soc.
//! B 57 (1995); Y. Benjamini, D. Yekutieli, "The control of the false discovery rate in multiple
//! testing under dependency", Annals of Statistics 29 (2001).

/// Adjusted p-values in the order of `p`. Those that are at most 0.05 form a set of which on
/// average at most 5 % are false.
///
/// This is Benjamini and Hochberg's procedure: the minimum of p × m ÷ rank over ranks from the
/// value's own on, at most 1. It holds for tests that are independent. By the proof of Benjamini
/// and Yekutieli it also holds for tests that depend on each other positively, as comparisons with
/// one base do.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut result = vec![1.0; p.len()];
    let mut lowest: f64 = 1.0;
    for (position, &index) in order.iter().enumerate() {
        let rank = p.len() - position;
        lowest = lowest.min(p[index] * p.len() as f64 / rank as f64);
        result[index] = lowest;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;

    /// The 15 p-values in Benjamini and Hochberg's own example (1995, section 3).
    const PUBLISHED: [f64; 15] = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
        0.6528, 0.7590, 1.0,
    ];

    /// The result of SciPy 1.17's false_discovery_control for [`PUBLISHED`].
    const HOCHBERG: [f64; 15] = [
        0.001_5,
        0.003,
        0.009_5,
        0.035_625,
        0.060_3,
        0.063_857_142_857_142_86,
        0.063_857_142_857_142_86,
        0.064_5,
        0.076_5,
        0.486,
        0.581_181_818_181_818_1,
        0.714_875,
        0.753_230_769_230_769_3,
        0.813_214_285_714_285_7,
        1.0,
    ];

    #[test]
    fn the_published_example_has_four_findings() {
        let found = benjamini_hochberg(&PUBLISHED).iter().filter(|q| **q <= 0.05).count();
        assert_eq!(found, 4);
    }

    #[test]
    fn adjusted_values_are_those_of_an_independent_implementation() {
        for (found, expected) in benjamini_hochberg(&PUBLISHED).iter().zip(HOCHBERG) {
            close(*found, expected, 1e-12);
        }
    }

    #[test]
    fn the_order_of_the_tests_does_not_matter() {
        let mut turned = PUBLISHED;
        turned.reverse();
        let mut found = benjamini_hochberg(&turned);
        found.reverse();
        assert_eq!(found, benjamini_hochberg(&PUBLISHED));
    }

    #[test]
    fn one_test_is_not_adjusted_and_none_gives_none() {
        assert_eq!(benjamini_hochberg(&[0.03]), [0.03]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
