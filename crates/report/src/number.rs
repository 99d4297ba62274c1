//! Formats numbers as text for people, so that they are rounded and their thousands are grouped
//! (`51,167`) in the same way everywhere. Files for programs (CSV, JSON, Parquet, OpenMetrics) hold
//! numbers that are neither rounded nor grouped.

use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{MIN_SECONDS, grouped, unique};

/// Text that is shown where there is no number. It is the word in the original Insert Benchmark's
/// reports.
pub(crate) const NOT_AVAILABLE: &str = "NA";

/// An interval of ratios says nothing if its high end is at least this many times its low end. Two
/// blocks that differ much give such an interval.
const SAYS_NOTHING: f64 = 10_000.0;

/// Writes a value with a fixed number of decimals, or `NA` when there is none.
pub(crate) fn fixed(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => {
            let text = format!("{value:.decimals$}");
            // A tiny negative difference must not print as "-0.0".
            match text.trim_start_matches(['-', '0', '.']).is_empty() {
                true => text.trim_start_matches('-').to_owned(),
                false => grouped(&text),
            }
        }
        _ => NOT_AVAILABLE.to_owned(),
    }
}

/// Writes a ratio as every table shows it. It has `decimals` or, below 0.1, as many decimals as
/// three digits need. Fewer would hide small ratios, even next to an interval that shows them. From
/// 1000 on, decimals say nothing. The interval of a few blocks that hardly agree may reach beyond
/// any useful value, so an end below `MIN` or above `MAX` is not spelt out.
pub(crate) fn ratio_text(ratio: f64, decimals: usize) -> String {
    const MIN: f64 = 1e-6;
    const MAX: f64 = 1e6;
    if ratio > 0.0 && ratio < MIN {
        return "<0.000001".to_owned();
    }
    if ratio > MAX && ratio.is_finite() {
        return ">1,000,000".to_owned();
    }
    if (1_000.0..=MAX).contains(&ratio) {
        return grouped(&format!("{ratio:.0}"));
    }
    // `format!` would round halves to even. A colour is chosen by hundredths with halves rounded
    // up, so a text with two decimals is rounded in that way too.
    let shown = if decimals == 2 { (100.0 * ratio).round() / 100.0 } else { ratio };
    if !(ratio > 0.0 && ratio < 0.0995) {
        return format!("{shown:.decimals$}");
    }
    let zeros = (-ratio.log10()).floor().min(9.0) as usize;
    format!("{ratio:.*}", (zeros + 3).max(decimals))
}

/// Writes a ratio that may be missing.
pub(crate) fn ratio(value: Option<f64>, decimals: usize) -> String {
    match value {
        Some(value) if value.is_finite() => ratio_text(value, decimals),
        _ => fixed(value, decimals),
    }
}

/// Writes an interval of ratios: `0.991–1.049`. If an interval says nothing, ends below 0.001 and
/// above 1000 are not spelt out: `<0.001–>1000`.
pub(crate) fn interval_text(interval: Interval) -> String {
    let says_nothing = interval.high / interval.low >= SAYS_NOTHING;
    let end = |end: f64| match end {
        end if says_nothing && end < 0.001 => "<0.001".to_owned(),
        end if says_nothing && end > 1_000.0 => ">1000".to_owned(),
        end if end >= 99.95 => ratio(Some(end), 0),
        end => ratio(Some(end), 3),
    };
    format!("{}–{}", end(interval.low), end(interval.high))
}

/// Writes a fraction in percent. A few scattered blocks could give any number of digits, so a
/// percentage above 1000 is `>1000`.
pub(crate) fn percent(fraction: f64) -> String {
    if fraction > 10.0 { ">1000".to_owned() } else { fixed(Some(100.0 * fraction), 2) }
}

/// Returns the number of decimals that show three digits of a number, up to `most`.
fn decimals(number: f64, most: usize) -> usize {
    [99.95, 9.995, 0.9995, 0.0995].iter().take(most).filter(|bound| number.abs() < **bound).count()
}

/// Writes a rate per second with three digits, or more for a rate from 1000 on, but with at most
/// two decimals. A further digit would claim a precision that was not measured.
pub fn rate(value: Option<f64>) -> String {
    fixed(value, decimals(value.unwrap_or_default(), 2))
}

/// Writes seconds with three digits, but with at most four decimals. A time below a tenth of a
/// millisecond is `< 0.0001`.
pub fn seconds_text(seconds: f64) -> String {
    if seconds < MIN_SECONDS {
        return format!("< {MIN_SECONDS}");
    }
    fixed(Some(seconds), decimals(seconds, 4))
}

/// Writes a step's figure, which is a time in seconds if `are_seconds`, and otherwise a rate.
pub(crate) fn rate_or_seconds(figure: Option<f64>, are_seconds: bool) -> String {
    figure.filter(|_| are_seconds).map_or_else(|| rate(figure), seconds_text)
}

pub(crate) fn count(number: impl Into<u64>) -> String {
    grouped(&number.into().to_string())
}

/// Writes microseconds as milliseconds with three digits: `0.812`, `15.2`, `2310`.
pub fn milliseconds(us: u64) -> String {
    let ms = us as f64 / 1e3;
    fixed(Some(ms), decimals(ms, 3))
}

/// Says how many blocks a verdict needs, as [`dbdyno_analyse::forecast`] gives it. The number is
/// `None` where 1000 blocks are not enough.
pub(crate) fn needed_blocks(blocks: Option<u32>) -> String {
    blocks.map_or_else(|| "over 1000".to_owned(), |blocks| blocks.to_string())
}

/// Returns the unit that all rates with a unit share. It is empty where none has a unit, and `None`
/// where units differ.
pub(crate) fn shared_unit<'a>(units: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut units = units.filter(|unit| !unit.is_empty());
    let first = units.next().unwrap_or_default();
    units.all(|unit| unit == first).then_some(first)
}

/// Writes the margins: `2.0 %`, or `2.0 % (scan 5.0 %, scan.post 5.0 %)` where steps have their own
/// margin. Each step is named once.
pub(crate) fn margins_text<'a>(general: f64, of_steps: impl Iterator<Item = (&'a str, f64)>) -> String {
    let percent = |margin: f64| format!("{} %", fixed(Some(100.0 * margin), 1));
    let others = of_steps.filter(|(_, margin)| *margin != general);
    let others = unique(others.map(|(step, margin)| format!("{step} {}", percent(margin))));
    let general = percent(general);
    if others.is_empty() { general } else { format!("{general} ({})", others.join(", ")) }
}

/// Writes a length of time in the unit that fits: `812 µs`, `1.52 ms`, `2.31 s`. It has three
/// digits, as many as histograms keep.
pub(crate) fn duration_us(us: f64) -> String {
    if us < 999.5 {
        return if us.fract() == 0.0 { format!("{us:.0} µs") } else { format!("{us:.1} µs") };
    }
    if us < 999_500.0 { three_figures(us / 1e3, "ms") } else { three_figures(us / 1e6, "s") }
}

/// Writes a length of time that is a whole number of microseconds.
pub(crate) fn duration_whole_us(us: u64) -> String {
    duration_us(us as f64)
}

/// Writes a percentage with three decimals, as the original Insert Benchmark prints it. It is empty
/// for no events, and `nonzero` for a share that rounds to 0.
pub(crate) fn bucket_percent(count: u64, percent: f64) -> String {
    if count == 0 {
        return String::new();
    }
    let text = fixed(Some(percent), 3);
    if text == "0.000" { "nonzero".to_owned() } else { text }
}

/// Writes bytes as GiB with one decimal.
pub(crate) fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1_u32 << 30))
}

fn three_figures(value: f64, unit: &str) -> String {
    format!("{} {unit}", fixed(Some(value), decimals(value, 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_infinite_value_is_na() {
        assert_eq!(fixed(None, 1), "NA");
        assert_eq!(fixed(Some(f64::NAN), 1), "NA");
        assert_eq!(fixed(Some(f64::INFINITY), 1), "NA");
    }

    #[test]
    fn percentages_that_say_nothing_are_not_spelt_out() {
        assert_eq!([percent(0.0123), percent(10.0), percent(1e12)], ["1.23", "1,000.00", ">1000"]);
    }

    #[test]
    fn no_number_is_written_as_minus_zero() {
        assert_eq!(fixed(Some(-0.04), 1), "0.0");
        assert_eq!(fixed(Some(-0.06), 1), "-0.1");
        assert_eq!(fixed(Some(-0.0), 0), "0");
    }

    #[test]
    fn a_duration_chooses_its_unit_and_keeps_three_figures() {
        let texts: Vec<_> = [
            0.0,
            3.0,
            12.34,
            812.0,
            999.4,
            999.6,
            1520.0,
            15_230.0,
            152_300.0,
            999_499.0,
            999_500.0,
            2_314_000.0,
            123_400_000.0,
        ]
        .into_iter()
        .map(duration_us)
        .collect();
        assert_eq!(
            texts,
            [
                "0 µs",
                "3 µs",
                "12.3 µs",
                "812 µs",
                "999.4 µs",
                "1.00 ms",
                "1.52 ms",
                "15.2 ms",
                "152 ms",
                "999 ms",
                "1.00 s",
                "2.31 s",
                "123 s"
            ]
        );
    }

    #[test]
    fn a_rate_keeps_at_least_three_figures() {
        let texts: Vec<_> =
            [0.123, 9.994, 9.996, 99.94, 99.96, 123_456.7].into_iter().map(|v| rate(Some(v))).collect();
        assert_eq!(texts, ["0.12", "9.99", "10.0", "99.9", "100", "123,457"]);
    }

    #[test]
    fn seconds_keep_three_figures_within_four_decimals() {
        assert_eq!([0.0, 0.000_04, 0.000_1].map(seconds_text), ["< 0.0001", "< 0.0001", "0.0001"]);
        let texts = [0.00123, 0.0123, 0.123, 1.234, 12.34, 289.0].map(seconds_text);
        assert_eq!(texts, ["0.0012", "0.0123", "0.123", "1.23", "12.3", "289"]);
    }

    #[test]
    fn small_ratios_keep_three_figures() {
        let texts = [0.007, 0.0321, 0.00034, 0.0994, 0.0996, 0.125, 1.0, 12.345, 0.0, f64::INFINITY]
            .map(|ratio| ratio_text(ratio, 2));
        let expected =
            ["0.00700", "0.0321", "0.000340", "0.0994", "0.10", "0.13", "1.00", "12.35", "0.00", "inf"];
        assert_eq!(texts, expected);
        let wide = [1e-12, 0.000_001_5, 999.4, 1_234.56, 1e6, 1.082e15].map(|ratio| ratio_text(ratio, 3));
        assert_eq!(wide, ["<0.000001", "0.00000150", "999.400", "1,235", "1,000,000", ">1,000,000"]);
        assert_eq!([0.007, 0.0321, 0.991].map(|ratio| ratio_text(ratio, 3)), ["0.00700", "0.0321", "0.991"]);
    }

    #[test]
    fn thousands_are_grouped_and_milliseconds_keep_three_figures() {
        let texts = ["1", "999", "1000", "189324", "-1234567", "1234.5"].map(grouped);
        assert_eq!(texts, ["1", "999", "1,000", "189,324", "-1,234,567", "1,234.5"]);
        let texts = [3, 812, 1_520, 15_230, 152_300, 2_314_000].map(milliseconds);
        assert_eq!(texts, ["0.003", "0.812", "1.52", "15.2", "152", "2,314"]);
    }

    #[test]
    fn a_share_that_rounds_to_zero_is_nonzero_and_a_share_of_no_events_is_empty() {
        assert_eq!(bucket_percent(0, 0.0), "");
        assert_eq!(bucket_percent(1, 0.000_4), "nonzero");
        assert_eq!(bucket_percent(1, 0.000_6), "0.001");
        assert_eq!(bucket_percent(10, 100.0), "100.000");
    }
}
