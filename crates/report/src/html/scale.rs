//! Axes: from zero to a round number, with few round ticks.

/// A linear axis from zero.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    /// End of the axis; not less than the greatest value.
    pub(super) end: f64,
    pub(super) ticks: Vec<f64>,
}

impl Scale {
    /// An axis that holds `greatest`, with about `count` ticks at 1, 2 or 5 times a power of ten. Without a positive
    /// value it ends at 1.
    pub(super) fn from_zero(greatest: f64, count: u32) -> Self {
        let greatest = if greatest.is_finite() && greatest > 0.0 { greatest } else { 1.0 };
        let raw = greatest / f64::from(count.max(1));
        let power = 10_f64.powf(raw.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .find(|factor| raw <= factor * power * (1.0 + 1e-9))
            .unwrap_or(10.0);
        let step = factor * power;
        let steps = (greatest / step - 1e-9).ceil().max(1.0);
        let ticks = std::iter::successors(Some(0.0), |tick| (tick + 1.0 <= steps).then_some(tick + 1.0));
        Self { end: steps * step, ticks: ticks.map(|tick| tick * step).collect() }
    }

    /// The value's place between 0 and `length`.
    pub(super) fn place(&self, value: f64, length: f64) -> f64 {
        (value / self.end).clamp(0.0, 1.0) * length
    }
}

/// A tick as text: `0`, `0.5`, `1200`, `25k`, `1.5M`.
pub(super) fn tick_text(value: f64) -> String {
    let (scaled, suffix) = if value >= 1e6 {
        (value / 1e6, "M")
    } else if value >= 1e4 {
        (value / 1e3, "k")
    } else {
        (value, "")
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_the_axis_holds_the_greatest_value() {
        assert_eq!(Scale::from_zero(181_234.0, 4).ticks, [0.0, 50_000.0, 100_000.0, 150_000.0, 200_000.0]);
        assert_eq!(Scale::from_zero(3.0, 3).ticks, [0.0, 1.0, 2.0, 3.0]);
        for greatest in [0.000_3, 0.7, 1.0, 9.99, 10.0, 12_345.0, 7e9] {
            let scale = Scale::from_zero(greatest, 4);
            assert!(scale.end >= greatest * (1.0 - 1e-6), "{greatest}: {scale:?}");
            assert!((2..=8).contains(&scale.ticks.len()), "{greatest}: {scale:?}");
        }
    }

    #[test]
    fn nothing_or_nonsense_still_has_an_axis() {
        for greatest in [0.0, -3.0, f64::NAN, f64::INFINITY] {
            assert!(Scale::from_zero(greatest, 4).end >= 1.0);
        }
    }

    #[test]
    fn ticks_are_short() {
        let texts: Vec<_> = [0.0, 0.5, 1200.0, 25_000.0, 1_500_000.0].into_iter().map(tick_text).collect();
        assert_eq!(texts, ["0", "0.5", "1200", "25k", "1.5M"]);
    }
}
