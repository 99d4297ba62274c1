//! What a bench found: dbdyno's figures next to what each is compared with, round by round.

use std::iter::once;

/// Bound on the ratio of a figure to what it is compared with. It holds for the median of the
/// rounds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// The ratio is 1, with at most this deviation as a share.
    Within(f64),
    /// The ratio is 1, or up to so many times more or less.
    Factor(f64),
    /// The figure is only shown for comparison.
    Shown,
}

struct Row {
    case: String,
    figure: String,
    bound: Bound,
    /// dbdyno's figure, and what it is compared with, which is NaN for nothing.
    pairs: Vec<[f64; 2]>,
}

/// Rows in the order in which they were first measured.
#[derive(Default)]
pub(super) struct Table(Vec<Row>);

impl Table {
    /// Adds a measurement of a figure, with what it is compared with in the same round.
    pub(super) fn add(&mut self, case: &str, figure: &str, bound: Bound, pair: [f64; 2]) {
        match self.0.iter_mut().find(|row| row.case == case && row.figure == figure) {
            Some(row) => row.pairs.push(pair),
            None => {
                let (case, figure) = (case.to_owned(), figure.to_owned());
                self.0.push(Row { case, figure, bound, pairs: vec![pair] });
            }
        }
    }

    /// Adds a measurement that is only shown.
    pub(super) fn show(&mut self, case: &str, figure: &str, value: f64) {
        self.add(case, figure, Bound::Shown, [value, f64::NAN]);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_met(&self) -> bool {
        self.0.iter().all(Row::is_met)
    }

    /// Returns header and rows. `other` heads the column that dbdyno is compared with.
    fn cells(&self, other: &str) -> Vec<Vec<String>> {
        let header = ["case", "figure", "dbdyno", other, "ratio (range)", "target"].map(str::to_owned);
        let mut last = "";
        let rows = self.0.iter().map(|row| {
            // A case is named only in its first row.
            let case = if row.case == last { "" } else { &row.case };
            last = &row.case;
            row.cells(case)
        });
        once(header.to_vec()).chain(rows).collect()
    }

    /// Writes the columns aligned by blanks.
    pub(super) fn text(&self, other: &str) -> String {
        let rows = self.cells(other);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn markdown(&self, other: &str) -> String {
        let rows = self.cells(other);
        let mut lines: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
        lines.insert(1, format!("|{}", "---|".repeat(rows[0].len())));
        lines.join("\n").replace("|  |", "| |")
    }
}

impl Row {
    fn ratios(&self) -> Vec<f64> {
        self.pairs.iter().map(|[own, other]| own / other).collect()
    }

    fn is_met(&self) -> bool {
        let median = median(self.ratios());
        match self.bound {
            Bound::AtMost(most) => median <= most,
            Bound::AtLeast(least) => median >= least,
            Bound::Within(share) => (median - 1.0).abs() <= share,
            Bound::Factor(most) => (1.0 / most..=most).contains(&median),
            Bound::Shown => true,
        }
    }

    fn cells(&self, case: &str) -> Vec<String> {
        let met = if self.is_met() { "met" } else { "MISSED" };
        let target = match self.bound {
            Bound::AtMost(most) => format!("≤ {most:.2} {met}"),
            Bound::AtLeast(least) => format!("≥ {least:.2} {met}"),
            Bound::Within(share) => format!("1 ± {} % {met}", share * 100.0),
            Bound::Factor(most) => format!("1 ×÷ {most} {met}"),
            Bound::Shown => "–".to_owned(),
        };
        let of = |place: usize| median(self.pairs.iter().map(|pair| pair[place]));
        let ratios = self.ratios();
        let (least, greatest) =
            ratios.iter().fold((f64::MAX, f64::MIN), |(a, b), one| (a.min(*one), b.max(*one)));
        let ratio = format!("{:.3} ({least:.3} to {greatest:.3})", median(ratios));
        let [other, ratio] =
            if of(1).is_nan() { ["–".to_owned(), "–".to_owned()] } else { [number(of(1)), ratio] };
        vec![case.to_owned(), self.figure.clone(), number(of(0)), other, ratio, target]
    }
}

/// Returns the median, or NaN without values.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(last / 2), at(last.div_ceil(2)))
}

/// Writes a number with as many decimals as its size needs.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged_by_the_median_of_its_ratios_and_a_missed_target_is_said_aloud() {
        let mut table = Table::default();
        for (own, other) in [(5.0, 10.0), (6.0, 10.0), (20.0, 20.0)] {
            table.add("16 connections", "client CPU, µs", Bound::AtMost(0.6), [own, other]);
        }
        table.add("16 connections", "rate", Bound::AtLeast(1.1), [1100.0, 1000.0]);
        table.show("delay", "lateness", 25.25);
        table.add("delay", "mean", Bound::Within(0.03), [102.9, 100.0]);
        assert!(table.is_met());
        table.add("delay", "p99", Bound::Within(0.03), [96.9, 100.0]);
        insta::assert_snapshot!(table.text("sysbench"), @r"
        case            figure          dbdyno  sysbench  ratio (range)           target
        16 connections  client CPU, µs  6.000   10.0      0.600 (0.500 to 1.000)  ≤ 0.60 met
                        rate            1100    1000      1.100 (1.100 to 1.100)  ≥ 1.10 met
        delay           lateness        25.2    –         –                       –
                        mean            102.9   100.0     1.029 (1.029 to 1.029)  1 ± 3 % met
                        p99             96.9    100.0     0.969 (0.969 to 0.969)  1 ± 3 % MISSED
        ");
        insta::assert_snapshot!(table.markdown("truth").lines().take(4).collect::<Vec<_>>().join("\n"), @r"
        | case | figure | dbdyno | truth | ratio (range) | target |
        |---|---|---|---|---|---|
        | 16 connections | client CPU, µs | 6.000 | 10.0 | 0.600 (0.500 to 1.000) | ≤ 0.60 met |
        | | rate | 1100 | 1000 | 1.100 (1.100 to 1.100) | ≥ 1.10 met |
        ");
        assert!(!table.is_met());
    }

    #[test]
    fn nothing_measured_has_no_median_and_meets_no_target() {
        assert!(median([]).is_nan());
        assert_eq!(median([10.0, 1.0, 2.0, 3.0]), 2.5);
        let mut table = Table::default();
        table.add("a", "b", Bound::AtMost(1.0), [f64::NAN, 1.0]);
        assert!(!table.is_met());
    }
}
