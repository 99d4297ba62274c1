//! Summaries for a group of values: average, median, extremes, standard deviation, geometric mean.

use serde::Serialize;

/// The figures that published tables give for a group of rates or ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Group {
    pub count: usize,
    pub average: f64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Standard deviation with n − 1 in the divisor; `None` for a single value.
    pub deviation: Option<f64>,
    /// Geometric mean; `None` when a value is not above 0.
    pub geometric_mean: Option<f64>,
}

/// A function that picks one figure; `None` where the group has too few values.
pub type GroupFigure = fn(&Group) -> Option<f64>;

impl Group {
    /// The figures in published tables of groups, in their order.
    pub const PUBLISHED: [(&'static str, GroupFigure); 5] = [
        ("average", |group| Some(group.average)),
        ("median", |group| Some(group.median)),
        ("min", |group| Some(group.min)),
        ("max", |group| Some(group.max)),
        ("stddev", |group| group.deviation),
    ];
}

/// The group's summary; `None` for no values.
pub fn group(values: &[f64]) -> Option<Group> {
    Some(Group {
        count: values.len(),
        average: mean(values)?,
        median: median(values)?,
        min: values.iter().copied().reduce(f64::min)?,
        max: values.iter().copied().reduce(f64::max)?,
        deviation: deviation(values),
        geometric_mean: geometric_mean(values),
    })
}

/// Sum of the values ÷ their number; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, or the mean of the two middle ones for an even number; `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

/// Standard deviation with n − 1 in the divisor; `None` for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// exp of the mean logarithm; `None` for no values, and when one is not above 0.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_summarised_as_published_tables_do() {
        // The squared distances from 5 are 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32, divided by 7. The
        // product is 2 * 4^3 * 5^2 * 7 * 9 = 201600.
        let found = group(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((found.count, found.average, found.median, found.min, found.max), (8, 5.0, 4.5, 2.0, 9.0));
        assert!((found.deviation.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((found.geometric_mean.unwrap() - 201_600_f64.powf(0.125)).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_deviation_and_no_values_have_no_summary() {
        let one = group(&[3.0]).unwrap();
        assert_eq!((one.average, one.median, one.deviation), (3.0, 3.0, None));
        assert!(group(&[]).is_none());
    }

    #[test]
    fn a_value_of_zero_has_no_geometric_mean() {
        assert_eq!(group(&[0.0, 1.0]).unwrap().geometric_mean, None);
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
