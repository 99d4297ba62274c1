//! The F test for whether several groups have the same mean (one-way analysis of variance).
//!
//! Source: R. A. Fisher, "Statistical Methods for Research Workers" (1925), chapter VII. The
//! incomplete beta function, by which the distribution of F is computed, is that of the crate
//! `statrs`.

use statrs::function::beta::beta_reg;

use super::describe::mean;

/// Probability of means at least this far apart if all values came from one normal distribution.
/// With two groups it is Student's t test with the pooled variance, so that one of them may have a
/// single value. `None` for fewer than two groups, for an empty one, and where each has one value.
pub fn p_of_one_mean(groups: &[&[f64]]) -> Option<f64> {
    let all = groups.concat();
    let between_degrees = groups.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let within_degrees = all.len().checked_sub(groups.len()).filter(|degrees| *degrees > 0)? as f64;
    let of_all = mean(&all)?;
    let (mut between, mut within) = (0.0, 0.0);
    for group in groups {
        let own = mean(group)?;
        between += group.len() as f64 * (own - of_all).powi(2);
        within += group.iter().map(|value| (value - own).powi(2)).sum::<f64>();
    }
    if within == 0.0 {
        // Groups without any spread leave no doubt.
        return Some(if between > 0.0 { 0.0 } else { 1.0 });
    }
    let f = (between / between_degrees) / (within / within_degrees);
    let x = within_degrees / (within_degrees + between_degrees * f);
    Some(beta_reg(within_degrees / 2.0, between_degrees / 2.0, x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulations::close;
    use crate::statistics::student::Estimate;

    /// Shell lengths of mussels from five places. It is the example in SciPy's `f_oneway`, from
    /// McDonald, Seed, Koehn (1991).
    const MUSSELS: [&[f64]; 5] = [
        &[0.0571, 0.0813, 0.0831, 0.0976, 0.0817, 0.0859, 0.0735, 0.0659, 0.0923, 0.0836],
        &[0.0873, 0.0662, 0.0672, 0.0819, 0.0749, 0.0649, 0.0835, 0.0725],
        &[0.0974, 0.1352, 0.0817, 0.1016, 0.0968, 0.1064, 0.105],
        &[0.1033, 0.0915, 0.0781, 0.0685, 0.0677, 0.0697, 0.0764, 0.0689],
        &[0.0703, 0.1026, 0.0956, 0.0973, 0.1039, 0.1045],
    ];

    #[test]
    fn the_probability_is_that_of_an_independent_implementation() {
        close(p_of_one_mean(&MUSSELS).unwrap(), 0.000_281_224_231_453_454_4, 1e-12);
    }

    #[test]
    fn of_two_groups_it_is_students_t_with_the_pooled_variance() {
        // For groups of the same size and variance, Welch's test gives the same result.
        let (base, new) = ([1.0, 2.0, 4.0], [3.0, 4.0, 6.0]);
        let expected = Estimate::of_difference(&base, &new).unwrap().p_of_difference();
        close(p_of_one_mean(&[&base, &new]).unwrap(), expected, 1e-12);
        // A single value is tested against three: t = (4 − 2) ÷ (1 × √(1 + 1 ÷ 3)) with 2 degrees
        // of freedom.
        let single = Estimate { value: 2.0, standard_error: (4.0_f64 / 3.0).sqrt(), degrees: 2.0 };
        close(p_of_one_mean(&[&[4.0], &[1.0, 2.0, 3.0]]).unwrap(), single.p_of_difference(), 1e-12);
    }

    #[test]
    fn groups_without_spread_are_certain_and_single_values_say_nothing() {
        assert_eq!(p_of_one_mean(&[&[1.0, 1.0], &[2.0, 2.0]]), Some(0.0));
        assert_eq!(p_of_one_mean(&[&[1.0, 1.0], &[1.0, 1.0]]), Some(1.0));
        assert_eq!(p_of_one_mean(&[&[1.0], &[2.0]]), None);
        assert_eq!(p_of_one_mean(&[&[1.0, 2.0]]), None);
        assert_eq!(p_of_one_mean(&[&[1.0, 2.0], &[]]), None);
        assert_eq!(p_of_one_mean(&[]), None);
    }
}
