//! Fits the line of a run's progress to the terminal. Its bar shrinks first, then names do, and
//! rate, latency and time left stay.

/// Columns of the bar, where there is room for them. It has few lengths, so that it does not follow
/// each digit of the rate.
const BARS: [usize; 2] = [20, 10];
/// Names are cut down to 14 characters, then to 8, before they are left out.
const SHORT_NAMES: [usize; 2] = [14, 8];
/// This word is left out where there is little room for the numbers after it.
const BLOCK: &str = "block ";
const GAP: &str = "  ";

/// What there is to show at a moment. Empty parts are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) done: f64,
    pub(super) eta: String,
    /// `block 3/5`, where there are several blocks.
    pub(super) block: String,
    pub(super) variant: String,
    /// The step, or the work outside the measured time.
    pub(super) what: String,
    pub(super) rate: String,
    pub(super) latency: String,
    /// How far the step is, and how long it is expected to take.
    pub(super) times: String,
}

impl Line {
    pub(super) fn fitted(&self, width: usize) -> String {
        let mut line = self.clone();
        let over = |line: &Self, bar| line.parts(bar).chars().count().saturating_sub(width);
        let bar = BARS.into_iter().find(|bar| over(&line, *bar) == 0).unwrap_or(0);
        if over(&line, bar) > 0 {
            line.times.clear();
        }
        if over(&line, bar) > 0 {
            line.block = line.block.trim_start_matches(BLOCK).to_owned();
        }
        for least in SHORT_NAMES {
            line.variant = shortened(&line.variant, over(&line, bar), least);
            line.what = shortened(&line.what, over(&line, bar), least);
        }
        let parts: [fn(&mut Self) -> &mut String; 3] =
            [|line| &mut line.variant, |line| &mut line.latency, |line| &mut line.block];
        for part in parts {
            if over(&line, bar) > 0 {
                part(&mut line).clear();
            }
        }
        if over(&line, bar) == 0 {
            return line.parts(bar);
        }
        let first = if line.rate.is_empty() { &line.what } else { &line.rate };
        format!("{first}{GAP}ETA {}", line.eta)
    }

    fn parts(&self, bar: usize) -> String {
        let percent = format!("{:>3.0} %", (100.0 * self.done).floor());
        let eta = format!("ETA {}", self.eta);
        let parts = [drawn(bar, self.done), percent, eta];
        let said = [&self.block, &self.variant, &self.what, &self.rate, &self.latency, &self.times];
        let all: Vec<&str> =
            parts.iter().chain(said).map(String::as_str).filter(|part| !part.is_empty()).collect();
        all.join(GAP)
    }
}

fn drawn(columns: usize, done: f64) -> String {
    if columns == 0 {
        return String::new();
    }
    let full = ((columns as f64 * done.clamp(0.0, 1.0)) as usize).min(columns);
    let head = if full < columns { "╸" } else { "" };
    format!("{}{head}{}", "━".repeat(full), "─".repeat(columns.saturating_sub(full + 1)))
}

/// Cuts `over` characters from the middle of `name`, as far as that leaves enough to recognise it.
/// Names of variants are seldom alike at both ends.
fn shortened(name: &str, over: usize, least: usize) -> String {
    let length = name.chars().count();
    if over == 0 || length <= least {
        return name.to_owned();
    }
    // The mark for the cut takes one column.
    let kept = length.saturating_sub(over).max(least) - 1;
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let begin: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(length - tail).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let text = |text: &str| text.to_owned();
        Line {
            done: 0.4321,
            eta: text("0:02:10"),
            block: text("block 3/5"),
            variant: text("mariadb-10.11-pool-of-threads"),
            what: text("range-notcovered-si.pre.c64"),
            rate: text("197,739 queries/s"),
            latency: text("p99 3.1 ms"),
            times: text("12 s / 30 s"),
        }
    }

    fn check(line: &Line, widths: &[usize]) -> String {
        let fit = |width: &usize| {
            let text = line.fitted(*width);
            assert!(text.chars().count() <= *width, "{width}: {text}");
            format!("{width:>3} |{text}")
        };
        widths.iter().map(fit).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_bar_gives_way_first_then_names_and_rate_and_eta_last() {
        insta::assert_snapshot!(check(&line(), &[150, 140, 130, 100, 80, 60, 50, 40, 30]), @r"
        150 |━━━━╸─────   43 %  ETA 0:02:10  block 3/5  mariadb-10.11-pool-of-threads  range-notcovered-si.pre.c64  197,739 queries/s  p99 3.1 ms  12 s / 30 s
        140 | 43 %  ETA 0:02:10  block 3/5  mariadb-10.11-pool-of-threads  range-notcovered-si.pre.c64  197,739 queries/s  p99 3.1 ms  12 s / 30 s
        130 | 43 %  ETA 0:02:10  block 3/5  mariadb-10.11-pool-of-threads  range-notcovered-si.pre.c64  197,739 queries/s  p99 3.1 ms
        100 | 43 %  ETA 0:02:10  3/5  mariadb…threads  range-notcovered-si.pre.c64  197,739 queries/s  p99 3.1 ms
         80 | 43 %  ETA 0:02:10  3/5  mari…ads  range-n…re.c64  197,739 queries/s  p99 3.1 ms
         60 | 43 %  ETA 0:02:10  3/5  rang…c64  197,739 queries/s
         50 | 43 %  ETA 0:02:10  rang…c64  197,739 queries/s
         40 |197,739 queries/s  ETA 0:02:10
         30 |197,739 queries/s  ETA 0:02:10
        ");
    }

    #[test]
    fn work_outside_the_clock_has_no_rate_and_keeps_its_name() {
        let busy = Line {
            block: line().block,
            variant: line().variant,
            eta: line().eta,
            done: line().done,
            what: "restoring data".to_owned(),
            ..Line::default()
        };
        insta::assert_snapshot!(check(&busy, &[100, 80, 60, 40]), @r"
        100 |━━━━━━━━╸───────────   43 %  ETA 0:02:10  block 3/5  mariadb-10.11-pool-of-threads  restoring data
         80 | 43 %  ETA 0:02:10  block 3/5  mariadb-10.11-pool-of-threads  restoring data
         60 | 43 %  ETA 0:02:10  3/5  mariadb-1…f-threads  restoring data
         40 | 43 %  ETA 0:02:10  3/5  rest…ata
        ");
    }

    #[test]
    fn the_bar_is_as_full_as_the_run() {
        let bars = [0.0, 0.26, 0.5, 1.0].map(|done| drawn(8, done));
        assert_eq!(bars, ["╸───────", "━━╸─────", "━━━━╸───", "━━━━━━━━"]);
    }
}
