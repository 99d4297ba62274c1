//! Shows the progress of a run. A terminal gets a bar with the progress of the plan and of the
//! step, and with the remaining time. Any other output gets one line per step. A server that gives
//! no answer for a while is reported.
//!
//! The progress line is fitted to the terminal. The bar shrinks first, then the names do. The rate
//! and the remaining time are kept longest.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use dbdyno_loadgen::Observer;
use dbdyno_plan::Estimate;
use dbdyno_record::{CellId, Interval, OperationClass, StepSpec, Unit};
use dbdyno_report::{milliseconds, rate as rate_text};
use dbdyno_sample::{Mark, Sampler};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::http::Metrics;
use crate::{terminal, time};

/// Names of a cell's steps and of the work between them, with their forecast durations, in order.
type CellForecast = Vec<(String, Duration)>;

pub(crate) struct Progress {
    pub(crate) metrics: Option<Metrics>,
    bar: ProgressBar,
    /// Forecasts of the first cell and of a later cell, by (variant, workload).
    forecasts: HashMap<(String, String), [CellForecast; 2]>,
    /// Cells that were begun, by (variant, workload).
    begun: HashSet<(String, String)>,
    /// Block and variant of the current cell, in words.
    cell: (String, String),
    forecast: CellForecast,
    /// Forecast time of all cells that are over.
    over: Duration,
    /// Forecast time of everything that is done.
    position: Cell<Duration>,
    total: Duration,
    rest: Duration,
    began: Instant,
    /// Number of machines that work at the same time.
    machines: u32,
}

impl Progress {
    /// Makes the progress of a run of `cells` with the plan's forecast.
    pub(crate) fn new(estimate: &Estimate, cells: &[CellId]) -> Self {
        let forecasts: HashMap<_, _> = estimate
            .cells
            .iter()
            .map(|cell| {
                let steps = || cell.steps.iter().map(|step| (step.name.clone(), step.duration));
                let later = steps().filter(|(name, _)| !cell.once.contains(name)).collect();
                ((cell.variant.clone(), cell.workload.clone()), [steps().collect(), later])
            })
            .collect();
        let mut seen = HashSet::new();
        let forecast = |cell: &CellId| {
            let key = key(cell);
            Some(&forecasts.get(&key)?[usize::from(!seen.insert(key))])
        };
        let worked: Duration = cells.iter().filter_map(forecast).map(sum).sum();
        let total = worked + rests(estimate.rest, cells.len().saturating_sub(1));
        let target =
            if terminal::can_draw() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // The line is cut at the edge of a terminal that has become narrower, because a text of two
        // lines would leave remnants.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            metrics: None,
            bar,
            forecasts,
            begun: HashSet::new(),
            cell: Default::default(),
            forecast: Vec::new(),
            over: Duration::ZERO,
            position: Cell::new(Duration::ZERO),
            total,
            rest: estimate.rest,
            began: Instant::now(),
            machines: 1,
        }
    }

    /// Adds cells while the run goes on. `left_out` holds the steps that they leave out, as
    /// (workload, step). They are later cells of their variant.
    pub(crate) fn more(&mut self, cells: &[CellId], left_out: &BTreeSet<(String, String)>) {
        for cell in cells {
            let Some([_, later]) = self.forecasts.get_mut(&key(cell)) else { continue };
            later.retain(|(name, _)| !left_out.contains(&(cell.workload.clone(), name.clone())));
            self.total += sum(later);
        }
        self.total += rests(self.rest, cells.len());
    }

    pub(crate) fn cell(&mut self, id: &CellId, blocks: u32) {
        let block = if blocks > 1 { format!("block {}/{blocks}", id.block) } else { String::new() };
        self.cell = (block, id.variant.clone());
        let key = key(id);
        let found = self.forecasts.get(&key).map(|both| &both[usize::from(self.begun.contains(&key))]);
        self.forecast = found.cloned().unwrap_or_default();
        self.begun.insert(key);
    }

    /// Ends the cell. Its whole forecast counts as done, even if the cell has ended early.
    pub(crate) fn cell_over(&mut self) {
        self.over += sum(&std::mem::take(&mut self.forecast));
        self.position.set(self.over);
    }

    /// Ends a cell that another process ran.
    pub(crate) fn cell_elsewhere(&mut self, id: &CellId) {
        self.cell(id, 1);
        self.cell_over();
        self.cell = Default::default();
    }

    /// Sets the number of machines at work, and the total time that their tasks have run since the
    /// last cell ended.
    pub(crate) fn elsewhere(&mut self, machines: usize, passed: Duration) {
        self.machines = u32::try_from(machines).unwrap_or(u32::MAX).max(1);
        self.position.set((self.over + passed).min(self.total));
    }

    /// Shows that the machine rests before the next cell, and how much of the rest is left.
    pub(crate) fn resting(&self, passed: Duration, left: Duration) {
        self.position.set(self.over + passed);
        self.busy(&format!("resting  {}", time::clock(left)));
    }

    /// Counts a rest of this length as done.
    pub(crate) fn rested(&mut self, length: Duration) {
        self.over += length;
        self.position.set(self.over);
    }

    /// Shows work that has no rate: initialising, starting, cleanup.
    pub(crate) fn busy(&self, what: &str) {
        self.show(ProgressLine { what: what.to_owned(), ..ProgressLine::default() });
    }

    fn show(&self, line: ProgressLine) {
        let position = self.position.get();
        let done = millis(position).min(millis(self.total)) as f64 / millis(self.total).max(1) as f64;
        let remaining = self.eta(position);
        if let Some(metrics) = &self.metrics {
            metrics.progress(done, remaining.as_secs_f64());
        }
        let eta = time::clock(remaining);
        let (block, variant) = self.cell.clone();
        let line = ProgressLine { done, eta, block, variant, ..line };
        let text = line.fitted(terminal::width_of_progress());
        self.bar.set_message(terminal::message(&text).into_owned());
    }

    /// Shows the progress of a step. Everything that is planned before it counts as done.
    fn within(&self, step: &str, at: Duration, line: ProgressLine) {
        let before = self.forecast.iter().take_while(|entry| entry.0 != step).map(|entry| entry.1);
        self.position.set(self.over + before.sum::<Duration>() + at.min(self.forecast_of(step)));
        self.show(line);
    }

    /// Ends a step. Its forecast counts as done, whatever it really took.
    pub(crate) fn passed(&self, step: &str) {
        self.within(step, Duration::MAX, ProgressLine::default());
    }

    pub(crate) fn line(&self, text: &str) {
        if terminal::can_draw() {
            self.bar.println(terminal::message(text));
        } else {
            terminal::note(text);
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(crate) fn forecast_of(&self, step: &str) -> Duration {
        self.forecast.iter().find(|entry| entry.0 == step).map_or(Duration::ZERO, |entry| entry.1)
    }

    fn eta(&self, position: Duration) -> Duration {
        eta(self.total / self.machines, position / self.machines, self.began.elapsed())
    }
}

fn key(cell: &CellId) -> (String, String) {
    (cell.variant.clone(), cell.workload.clone())
}

/// Returns the remaining part of the forecast, scaled by the ratio of the elapsed time to the
/// forecast so far. This ratio means little until a tenth of the forecast is done: a server that
/// takes ten seconds to initialise says nothing about the steps. The scale therefore begins near 1.
fn eta(total: Duration, position: Duration, elapsed: Duration) -> Duration {
    let doubt = (total / 10).max(Duration::from_secs(1));
    let scale = (elapsed + doubt).as_secs_f64() / (position + doubt).as_secs_f64();
    total.saturating_sub(position).mul_f64(scale.clamp(0.1, 20.0))
}

/// Writes the 99th percentile of the last second, or the longest time when there were few
/// operations.
fn latency(response: &Histogram<u64>) -> String {
    /// With fewer operations the percentile is the longest time.
    const MIN: u64 = 100;
    let ms = |value_us: u64| milliseconds(value_us) + " ms";
    match response.len() {
        0 => String::new(),
        count if count < MIN => format!("max {}", ms(response.max())),
        _ => format!("p99 {}", ms(response.value_at_quantile(0.99))),
    }
}

/// Whether a silence within the step is reported. An index build or the read of a whole table is
/// one long response, so its silence is normal.
fn is_reported(spec: &StepSpec) -> bool {
    let is_one_answer = matches!(spec.headline_class(), OperationClass::Index | OperationClass::Scan);
    !spec.headline.unit.is_time() && !is_one_answer
}

fn rests(rest: Duration, count: usize) -> Duration {
    rest.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
}

fn sum(forecast: &CellForecast) -> Duration {
    forecast.iter().map(|entry| entry.1).sum()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Watches one step: it passes the clock to the sampler and shows the live rate.
pub(crate) struct Watcher<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) sampler: &'a Sampler,
    pub(crate) spec: &'a StepSpec,
    pub(crate) cell: &'a CellId,
    /// Response times of the headline in the second that is about to end, in words.
    pub(crate) latency: String,
    pub(crate) forecast: Duration,
    pub(crate) barrier: Option<Instant>,
    pub(crate) mark: Mark,
    /// Watches for a server that does not answer.
    pub(crate) stall_watch: StallWatch,
}

impl Observer for Watcher<'_> {
    fn barrier(&mut self, start: Instant) {
        self.barrier = Some(start);
        if let Some(metrics) = &self.progress.metrics {
            metrics.begin(self.cell, &self.spec.name);
        }
        self.sampler.begin(start);
    }

    fn times(&mut self, kind: &str, response: &Histogram<u64>) {
        if let Some(metrics) = &self.progress.metrics {
            metrics.times(kind, response);
        }
        if kind == self.spec.headline.kind {
            self.latency = latency(response);
        }
    }

    fn second(&mut self, intervals: &[Interval]) {
        let headline = &self.spec.headline;
        let of_headline = || intervals.iter().filter(|interval| interval.kind == headline.kind);
        let count: u64 = of_headline()
            .map(|interval| if headline.unit == Unit::Rows { interval.rows } else { interval.done })
            .sum();
        let Some(last) = intervals.first() else { return };
        let seconds = (last.to_us - last.from_us) as f64 / 1e6;
        // The last interval of a window or of a step may be too short for a rate.
        if seconds < 0.5 {
            return;
        }
        let at = Duration::from_micros(last.to_us);
        let name = &self.spec.name;
        if let Some(lasts) = self.stall_watch.second(intervals)
            && is_reported(self.spec)
        {
            let lasts = time::about(lasts);
            self.progress
                .line(&format!("warning: {name}: no operation has ended for {lasts}; Ctrl-C ends the run"));
        }
        let silent = self.stall_watch.lasts;
        let what = match silent < FIRST_REPORT {
            true => name.clone(),
            false => format!("{name}  no answer for {}", time::clock(silent)),
        };
        let rate = count as f64 / seconds;
        if let Some(metrics) = &self.progress.metrics {
            metrics.second(intervals, rate, &headline.label);
        }
        let line = ProgressLine {
            what,
            rate: format!("{} {}", rate_text(Some(rate)), headline.label),
            latency: std::mem::take(&mut self.latency),
            times: format!("{} / {}", time::about(at), time::about(self.forecast)),
            ..ProgressLine::default()
        };
        self.progress.within(&self.spec.name, at, line);
    }

    fn warning(&mut self, text: &str) {
        self.progress.line(&format!("warning: {}: {text}", self.spec.name));
    }

    fn window_ended(&mut self) {
        self.mark = self.sampler.mark();
    }

    fn has_sampled(&mut self) -> bool {
        self.mark.is_taken()
    }
}

/// Possible widths of the bar in columns, the widest first. The bar has only two lengths, so that
/// it does not change with each digit of the rate.
const BARS: [usize; 2] = [20, 10];
/// Names are cut down to 14 characters, then to 8, before they are left out.
const SHORT_NAMES: [usize; 2] = [14, 8];
/// The word before a block's number. It is left out where there is little room.
const BLOCK: &str = "block ";
const GAP: &str = "  ";

/// The parts of the progress line at one moment. Empty parts are left out.
#[derive(Debug, Clone, Default)]
struct ProgressLine {
    done: f64,
    eta: String,
    /// `block 3/5`, where there are several blocks.
    block: String,
    variant: String,
    /// The step, or the work outside the measured time.
    what: String,
    rate: String,
    latency: String,
    /// Elapsed time of the step, and its forecast duration.
    times: String,
}

impl ProgressLine {
    fn fitted(&self, width: usize) -> String {
        let mut line = self.clone();
        let over = |line: &Self, bar| line.parts(bar).chars().count().saturating_sub(width);
        let bar = BARS.into_iter().find(|bar| over(&line, *bar) == 0).unwrap_or(0);
        if over(&line, bar) > 0 {
            line.times.clear();
        }
        if over(&line, bar) > 0 {
            line.block = line.block.trim_start_matches(BLOCK).to_owned();
        }
        for lowest in SHORT_NAMES {
            line.variant = shortened(&line.variant, over(&line, bar), lowest);
            line.what = shortened(&line.what, over(&line, bar), lowest);
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
        let parts = [bar_text(bar, self.done), percent, eta];
        let said = [&self.block, &self.variant, &self.what, &self.rate, &self.latency, &self.times];
        let all: Vec<&str> =
            parts.iter().chain(said).map(String::as_str).filter(|part| !part.is_empty()).collect();
        all.join(GAP)
    }
}

fn bar_text(columns: usize, done: f64) -> String {
    if columns == 0 {
        return String::new();
    }
    let full = ((columns as f64 * done.clamp(0.0, 1.0)) as usize).min(columns);
    let head = if full < columns { "╸" } else { "" };
    format!("{}{head}{}", "━".repeat(full), "─".repeat(columns.saturating_sub(full + 1)))
}

/// Cuts `over` characters from the middle of `name`, but keeps at least `lowest` of them. Both ends
/// stay, because names of variants seldom have the same beginning and the same end.
fn shortened(name: &str, over: usize, lowest: usize) -> String {
    let length = name.chars().count();
    if over == 0 || length <= lowest {
        return name.to_owned();
    }
    // The mark for the cut takes one column.
    let kept = length.saturating_sub(over).max(lowest) - 1;
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let begin: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(length - tail).collect();
    format!("{begin}…{end}")
}

/// A silence of the server is reported when it has lasted this long, and again each time that it
/// has doubled.
pub(crate) const FIRST_REPORT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct StallWatch {
    since_us: u64,
    pub(crate) lasts: Duration,
    next_report: Duration,
}

impl Default for StallWatch {
    fn default() -> Self {
        Self { since_us: 0, lasts: Duration::ZERO, next_report: FIRST_REPORT }
    }
}

impl StallWatch {
    /// Takes the last second's intervals of all clients. It returns the length of the server's
    /// silence, if that is to be reported now. A server without requests is not silent.
    pub(crate) fn second(&mut self, intervals: &[Interval]) -> Option<Duration> {
        let last = intervals.first()?;
        let is_silent = intervals.iter().all(|interval| interval.done + interval.failed == 0)
            && intervals.iter().any(|interval| interval.in_flight > 0);
        if !is_silent {
            *self = Self { since_us: last.to_us, ..Self::default() };
            return None;
        }
        self.lasts = Duration::from_micros(last.to_us.saturating_sub(self.since_us));
        let is_time = self.lasts >= self.next_report;
        is_time.then(|| {
            self.next_report = self.next_report.max(self.lasts) * 2;
            self.lasts
        })
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Headline, KindSpec};

    use super::*;

    fn cell(variant: &str) -> CellId {
        CellId { block: 1, variant: variant.to_owned(), workload: "insert-benchmark".to_owned() }
    }

    #[test]
    fn the_eta_follows_the_forecast_first_and_the_pace_of_the_run_later() {
        let seconds = |total, position, elapsed| {
            eta(Duration::from_secs(total), Duration::from_secs(position), Duration::from_secs(elapsed))
                .as_secs()
        };
        assert_eq!(seconds(100, 0, 0), 100);
        assert_eq!(
            seconds(100, 0, 10),
            200,
            "ten seconds before the first step are not twenty times the forecast"
        );
        assert_eq!(seconds(100, 50, 50), 50);
        assert_eq!(seconds(100, 50, 110), 100);
        assert_eq!(seconds(100, 100, 300), 0);
    }

    #[test]
    fn a_silence_is_reported_unless_the_step_is_one_long_response() {
        use OperationClass::{Delete, Index, Insert, Other, Query, Scan};
        let reported = |class: OperationClass| {
            let kind = KindSpec {
                kind: "k".to_owned(),
                class,
                connections_per_client: 1,
                arrivals: "closed".to_owned(),
                protocol: "text".to_owned(),
                rows_per_operation: 1,
                statements_per_operation: 1,
                user_bytes_per_operation: 0.0,
                statement: String::new(),
            };
            let headline = Headline { kind: "k".to_owned(), unit: Unit::Rows, label: "rows/s".to_owned() };
            is_reported(&StepSpec { headline, kinds: vec![kind], ..StepSpec::default() })
        };
        assert!([Insert, Query, Other, Delete].into_iter().all(reported));
        assert!(!reported(Index) && !reported(Scan));
    }

    #[test]
    fn a_step_counts_what_is_planned_before_it_as_done_and_an_ended_cell_counts_whole() {
        let plan = dbdyno_workloads::plans::parse(dbdyno_plan::QUICKSTART, "quickstart").unwrap();
        let cells = ["rollback", "wal"].map(cell);
        let mut progress =
            Progress::new(&dbdyno_plan::estimate(&plan, &dbdyno_plan::Basis::default()), &cells);
        progress.cell(&cells[0], 1);
        progress.passed("l.i0");
        let prepared: Duration = progress.forecast[..2].iter().map(|entry| entry.1).sum();
        assert_eq!((progress.forecast[1].0.as_str(), progress.position.get()), ("l.i0", prepared));
        progress.cell_over();
        progress.cell(&cells[1], 1);
        progress.cell_over();
        assert_eq!(progress.position.get(), progress.total);
    }

    #[test]
    fn rests_between_cells_count_in_the_forecast() {
        let text = format!("{}\n[host]\nrest = \"20m\"\n", dbdyno_plan::QUICKSTART);
        let plan = dbdyno_workloads::plans::parse(&text, "quickstart").unwrap();
        let cells = ["rollback", "wal"].map(cell);
        let estimate = dbdyno_plan::estimate(&plan, &dbdyno_plan::Basis::default());
        let rest = Duration::from_secs(1200);
        let mut progress = Progress::new(&estimate, &cells);
        assert_eq!(progress.total, estimate.duration);
        progress.resting(rest / 4, rest * 3 / 4);
        assert_eq!(progress.position.get(), rest / 4);
        progress.rested(rest);
        assert_eq!((progress.over, progress.position.get()), (rest, rest));
        progress.more(&cells[..1], &BTreeSet::new());
        assert!(progress.total > estimate.duration + rest, "a block that is added rests before its cells");
    }

    fn line() -> ProgressLine {
        let text = |text: &str| text.to_owned();
        ProgressLine {
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

    fn check(line: &ProgressLine, widths: &[usize]) -> String {
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
    fn work_outside_the_measured_time_has_no_rate_and_keeps_its_name() {
        let busy = ProgressLine {
            block: line().block,
            variant: line().variant,
            eta: line().eta,
            done: line().done,
            what: "restoring data".to_owned(),
            ..ProgressLine::default()
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
        let bars = [0.0, 0.26, 0.5, 1.0].map(|done| bar_text(8, done));
        assert_eq!(bars, ["╸───────", "━━╸─────", "━━━━╸───", "━━━━━━━━"]);
    }

    fn at(second: u64, done: u64, in_flight: u64) -> [Interval; 1] {
        let (from_us, to_us) = (second * 1_000_000, (second + 1) * 1_000_000);
        [Interval { from_us, to_us, done, in_flight, ..Interval::default() }]
    }

    /// Returns the seconds after which a silence was reported, each with its length. The server
    /// answers in the seconds for which `answers` holds.
    fn words(seconds: u64, in_flight: u64, answers: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let mut silence = StallWatch::default();
        let said = |second| {
            silence.second(&at(second, answers(second).into(), in_flight)).map(|lasts| lasts.as_secs())
        };
        (0..seconds).zip((0..seconds).map(said)).filter_map(|(second, said)| Some((second, said?))).collect()
    }

    #[test]
    fn a_silence_is_reported_when_it_has_doubled() {
        assert_eq!(words(250, 1, |_| false), [(29, 30), (59, 60), (119, 120), (239, 240)]);
        assert_eq!(words(100, 1, |second| second < 10 || second == 70), [(39, 30), (69, 60)]);
        assert_eq!(words(100, 1, |second| second % 20 == 0), []);
    }

    #[test]
    fn a_server_without_requests_is_not_silent() {
        assert_eq!(words(100, 0, |_| false), []);
    }
}
