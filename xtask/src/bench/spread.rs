//! Least, middle and greatest of repeated measurements.

/// What a few rounds gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) greatest: f64,
}

impl Spread {
    /// Of `part` of each measurement of one kind over its pair of another, round by round.
    pub(super) fn ratio<T>(of: &[T], to: &[T], part: impl Fn(&T) -> f64) -> Self {
        Self::of(of.iter().zip(to).map(|(of, to)| part(of) / part(to)))
    }

    /// Median and range: `1.30 (1.25 to 1.40)`.
    pub(super) fn shown(self, decimals: usize) -> String {
        let Self { least, median, greatest } = self;
        format!("{median:.decimals$} ({least:.decimals$} to {greatest:.decimals$})")
    }

    /// Of `values`; all zero without any.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        let last = values.len().saturating_sub(1);
        Self { least: at(0), median: f64::midpoint(at(last / 2), at(last.div_ceil(2))), greatest: at(last) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0, 10.0]), Spread { least: 1.0, median: 2.5, greatest: 10.0 });
        assert_eq!(Spread::of([]), Spread { least: 0.0, median: 0.0, greatest: 0.0 });
    }
}
