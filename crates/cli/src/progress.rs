//! What a run says while it goes on: a bar with the plan's and the step's progress and an ETA on a terminal, a line a
//! step otherwise.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dbdyno_loadgen::Observer;
use dbdyno_plan::Estimate;
use dbdyno_record::{Interval, StepSpec, Unit};
use dbdyno_sample::Sampler;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{terminal, time};

/// Progress of a whole run.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Forecast by (variant, workload): names of steps and work between them, with durations.
    forecast: HashMap<(String, String), Vec<(String, Duration)>>,
    cell: String,
    /// Forecast time of everything that is done.
    done: Duration,
    total: Duration,
    began: Instant,
}

impl Progress {
    /// For a run of `cells` (variant, workload) with the plan's forecast.
    pub(crate) fn new(estimate: &Estimate, cells: &[(String, String)]) -> Self {
        let forecast: HashMap<_, _> = estimate
            .cells
            .iter()
            .map(|cell| {
                let steps = cell.steps.iter().map(|step| (step.name.clone(), step.duration)).collect();
                ((cell.variant.clone(), cell.workload.clone()), steps)
            })
            .collect();
        let of_cell = |cell: &(String, String)| {
            forecast.get(cell).map_or(Duration::ZERO, |steps: &Vec<(String, Duration)>| {
                steps.iter().map(|step| step.1).sum()
            })
        };
        let total: Duration = cells.iter().map(of_cell).sum();
        let target =
            if terminal::can_draw() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(millis(total).max(1)), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, forecast, cell: String::new(), done: Duration::ZERO, total, began: Instant::now() }
    }

    /// Something that is not a rate: initialising, starting, cleanup.
    pub(crate) fn busy(&self, what: &str) {
        self.show(Duration::ZERO, what);
    }

    pub(crate) fn cell(&mut self, block: u32, blocks: u32, variant: &str) {
        self.cell = if blocks > 1 { format!("block {block}/{blocks} {variant}") } else { variant.to_owned() };
    }

    /// A step or work is over: its forecast counts as done, whatever it really took.
    pub(crate) fn passed(&mut self, variant: &str, workload: &str, name: &str) {
        self.done += self.forecast_of(variant, workload, name);
        self.show(Duration::ZERO, "");
    }

    /// A line above the bar.
    pub(crate) fn line(&self, text: &str) {
        if terminal::can_draw() {
            self.bar.println(text);
        } else {
            terminal::note(text);
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(crate) fn forecast_of(&self, variant: &str, workload: &str, name: &str) -> Duration {
        let steps = self.forecast.get(&(variant.to_owned(), workload.to_owned()));
        steps.and_then(|steps| steps.iter().find(|step| step.0 == name)).map_or(Duration::ZERO, |step| step.1)
    }

    /// `within` is how much of the current step's forecast has passed.
    fn show(&self, within: Duration, what: &str) {
        let position = self.done + within;
        self.bar.set_position(millis(position).min(millis(self.total)));
        let cell = &self.cell;
        self.bar.set_message(format!("{cell}  {what}  ETA {}", time::clock(self.eta(position))));
    }

    /// The forecast's rest, scaled by how the forecast has held so far.
    fn eta(&self, position: Duration) -> Duration {
        let left = self.total.saturating_sub(position);
        let elapsed = self.began.elapsed().as_secs_f64();
        let scale = if position > Duration::from_secs(2) { elapsed / position.as_secs_f64() } else { 1.0 };
        left.mul_f64(scale.clamp(0.1, 20.0))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Watches one step: tells the sampler of the clock, shows the live rate.
pub(crate) struct Watcher<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) sampler: &'a Sampler,
    pub(crate) spec: &'a StepSpec,
    /// How long the step is expected to take.
    pub(crate) forecast: Duration,
}

impl Observer for Watcher<'_> {
    fn barrier(&mut self, start: Instant) {
        self.sampler.begin(start);
    }

    fn second(&mut self, intervals: &[Interval]) {
        let headline = &self.spec.headline;
        let of_headline = || intervals.iter().filter(|interval| interval.kind == headline.kind);
        let count: u64 = of_headline()
            .map(|interval| if headline.unit == Unit::Rows { interval.rows } else { interval.done })
            .sum();
        let Some(last) = intervals.first() else { return };
        let seconds = (last.to_us - last.from_us) as f64 / 1e6;
        if seconds <= 0.0 {
            return;
        }
        let at = Duration::from_micros(last.to_us);
        let rate = grouped((count as f64 / seconds).round() as u64);
        let step = format!(
            "{}  {rate} {}  {} of about {}",
            self.spec.name,
            headline.label,
            time::about(at),
            time::about(self.forecast)
        );
        self.progress.show(at.min(self.forecast), &step);
    }

    fn window_ended(&mut self) {
        self.sampler.mark();
    }
}

/// 1234567 as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
