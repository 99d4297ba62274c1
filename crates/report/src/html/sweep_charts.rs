//! Charts of a sweep as SVG: rate and 95th percentile of response times over the number of connections.

use dbdyno_analyse::{Sweep, SweepRung};

use super::chart::{Axis, Line, chart_on};
use super::scale::tick_text;

/// More labels than these would touch each other.
const MOST_LABELS: usize = 14;
/// All rungs are drawn.
const POINTS: usize = usize::MAX;

/// Captions and charts; `names` are all variants of the report in their order. Connections double from rung to rung, so their
/// axis is logarithmic; so is that of response times, which grow with them.
pub(super) fn sweep_charts(sweep: &Sweep, names: &[String]) -> Vec<(String, String)> {
    let across = across(sweep);
    let rates = lines(sweep, names, |rung| Some(rung.median_rate));
    let times = lines(sweep, names, |rung| Some((rung.p95_us? / 1e3).log10()));
    let greatest = values(&rates).fold(0.0, f64::max);
    let caption = |what: &str, lines: &[Line]| {
        let has_gaps = lines.iter().flat_map(|line| &line.points).any(|point| point.1.is_none());
        let gaps = if has_gaps { " ×: no valid value there." } else { "" };
        format!("{}: {what}, by connections.{gaps}", sweep.test)
    };
    let rate_caption = caption(&format!("{} of {}", sweep.rate_label, sweep.rate_of.text()), &rates);
    let time_caption = caption("95th percentile of response times in ms", &times);
    let rate =
        chart_on(&rate_caption, (&across, &Axis::from_zero(&sweep.rate_label, greatest, 4)), &rates, POINTS);
    let (up, times) = decades(times);
    let time = chart_on(&time_caption, (&across, &up), &times, POINTS);
    let charts = [(rate_caption, rate), (time_caption, time)];
    charts.into_iter().filter_map(|(caption, svg)| Some((caption, svg?))).collect()
}

fn across(sweep: &Sweep) -> Axis {
    let every = sweep.connections.len().div_ceil(MOST_LABELS);
    let shown = sweep.connections.iter().step_by(every);
    Axis {
        name: "connections".to_owned(),
        end: sweep.connections.iter().map(|number| place(sweep, *number)).fold(f64::MIN_POSITIVE, f64::max),
        ticks: shown.map(|number| (place(sweep, *number), number.to_string())).collect(),
    }
}

/// Doublings from the first rung.
fn place(sweep: &Sweep, connections: u32) -> f64 {
    f64::from(connections).log2() - sweep.connections.first().map_or(0.0, |least| f64::from(*least).log2())
}

fn lines(sweep: &Sweep, names: &[String], value: fn(&SweepRung) -> Option<f64>) -> Vec<Line> {
    let line = |(at, of): (usize, &dbdyno_analyse::SweepVariant)| Line {
        variant: names.iter().position(|name| *name == of.variant).unwrap_or(at),
        name: of.variant.clone(),
        block: 0,
        points: sweep
            .connections
            .iter()
            .zip(&of.rungs)
            .map(|(number, rung)| (place(sweep, *number), rung.as_ref().and_then(value)))
            .map(|(at, value)| (at, value.filter(|value| value.is_finite())))
            .collect(),
    };
    sweep.variants.iter().enumerate().map(line).collect()
}

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|line| &line.points).filter_map(|point| point.1)
}

/// Lines of logarithms moved to an axis of whole powers of ten, from the one below the least value to the one above the greatest.
fn decades(mut lines: Vec<Line>) -> (Axis, Vec<Line>) {
    let least = values(&lines).fold(f64::INFINITY, f64::min).floor();
    let greatest = values(&lines).fold(f64::NEG_INFINITY, f64::max).ceil();
    let (first, end) = if least.is_finite() { (least, (greatest - least).max(1.0)) } else { (0.0, 1.0) };
    for value in lines.iter_mut().flat_map(|line| &mut line.points).filter_map(|point| point.1.as_mut()) {
        *value -= first;
    }
    let powers = std::iter::successors(Some(0.0), |power| (power + 1.0 <= end).then_some(power + 1.0));
    let ticks = powers.map(|power| (power, tick_text(10_f64.powf(first + power)))).collect();
    (Axis { name: "ms".to_owned(), end, ticks }, lines)
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::RateOf;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_sweep_has_a_chart_of_rates_and_one_of_response_times() {
        let sweep = fixture::sweep();
        let names = fixture::NAMES.map(str::to_owned);
        let charts = sweep_charts(&sweep, &names);
        let captions: Vec<&str> = charts.iter().map(|(caption, _)| caption.as_str()).collect();
        assert_eq!(
            captions,
            [
                "read-only: transactions/s of the median second, by connections. ×: no valid value there.",
                "read-only: 95th percentile of response times in ms, by connections. ×: no valid value there.",
            ]
        );
        for (_, svg) in &charts {
            assert_eq!(svg.matches("class=\"l s").count(), 2, "a line a variant: {svg}");
            for label in ["1", "2", "4", "1024"] {
                assert!(svg.contains(&format!(">{label}</text>")), "{label}: {svg}");
            }
            assert_eq!(svg.matches("class=\"m s").count(), 7, "a marker a rung: {svg}");
            assert_eq!(svg.matches("class=\"x s1").count(), 1, "a cross for the one without a value: {svg}");
            assert!(svg.contains(">connections</text>") && !svg.contains("block"), "{svg}");
        }
        // 0.5 ms to 2 s: powers of ten from 0.1 to 10,000.
        for label in ["0.1", "1", "10", "100", "1000", "10k"] {
            assert!(charts[1].1.contains(&format!(">{label}</text>")), "{label}: {}", charts[1].1);
        }
    }

    #[test]
    fn the_chart_of_scans_says_that_its_rates_are_of_the_whole_window() {
        let scans = Sweep { rate_of: RateOf::Window, ..fixture::sweep() };
        let charts = sweep_charts(&scans, &fixture::NAMES.map(str::to_owned));
        assert!(charts[0].0.starts_with("read-only: transactions/s of the whole window, by connections."));
    }

    #[test]
    fn the_line_breaks_at_a_rung_without_a_valid_value_and_a_lone_rung_is_a_dot() {
        let mut sweep = fixture::sweep();
        sweep.variants[0].rungs[1] = None;
        for rung in &mut sweep.variants[1].rungs[1..] {
            *rung = None;
        }
        for (caption, svg) in sweep_charts(&sweep, &fixture::NAMES.map(str::to_owned)) {
            let path = |class: &str| {
                let found = svg.split(class).nth(1).and_then(|rest| rest.split(" d=\"").nth(1));
                found.and_then(|rest| rest.split('"').next()).unwrap_or("?").to_owned()
            };
            let first = path("class=\"l s0\"");
            assert_eq!((first.matches('M').count(), first.matches('L').count()), (1, 1), "{caption} {first}");
            assert_eq!(path("class=\"l s1\""), "", "{caption}");
            assert_eq!(svg.matches("class=\"m s0").count(), 3, "{caption}");
            assert_eq!(svg.matches("class=\"m s1").count(), 1, "{caption}");
            assert_eq!(svg.matches("class=\"x s").count(), 4, "{caption}");
        }
    }

    #[test]
    fn doublings_have_equal_distances() {
        let sweep = fixture::sweep();
        let places: Vec<f64> = sweep.connections.iter().map(|number| place(&sweep, *number)).collect();
        assert_eq!(places, [0.0, 1.0, 2.0, 10.0]);
    }
}
