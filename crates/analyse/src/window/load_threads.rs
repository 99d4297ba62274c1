//! How long the load client's threads ran, or waited for a CPU.
//!
//! A load thread serves its connections one after the other. While it is on a CPU, or waits for
//! one, an answer that arrives waits for the thread and not for the server.

use crate::window::counters::Counters;
use crate::window::{Hosting, Span, WindowSummary};

/// The load thread that was busiest in the common window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Busiest {
    /// Share of the window in which it was on a CPU, without polls that found nothing.
    pub(crate) on_cpu: f64,
    /// Share of the window in which it waited for a CPU.
    pub(crate) waiting: f64,
}

impl Busiest {
    /// Share of the window in which it had work to do.
    pub(crate) fn wanted(self) -> f64 {
        self.on_cpu + self.waiting
    }
}

/// `None` where load threads were not sampled. `None` also where the database works in these
/// threads, because they are the server then.
pub(crate) fn busiest(step: &WindowSummary<'_>) -> Option<Busiest> {
    of_threads(step).into_iter().max_by(|a, b| a.wanted().total_cmp(&b.wanted()))
}

/// Share of the window for which a load thread waited for a CPU, for the thread that waited
/// longest. `None` as for [`busiest`].
pub(crate) fn longest_wait(step: &WindowSummary<'_>) -> Option<f64> {
    of_threads(step).into_iter().map(|thread| thread.waiting).max_by(f64::total_cmp)
}

/// Every load thread whose CPU time was seen to rise.
fn of_threads(step: &WindowSummary<'_>) -> Vec<Busiest> {
    if matches!(step.hosting, Hosting::Embedded | Hosting::Nothing) {
        return Vec::new();
    }
    let of_thread = |thread: &str| {
        let cpu = format!("{thread}.cpu_us");
        // Load threads end with the window. A sample after that repeats their last values.
        let seen_us = last_change_us(step.counters, &cpu)?;
        let window = Span { to_us: step.window.to_us.min(seen_us), ..step.window };
        let share = |key: &str| Some(step.change_over("load", &[key], window)?.per_second() / 1e6);
        // A thread that spins is always on its CPU. Polls that found nothing are not work.
        let polled = share(&format!("{thread}.polled_us")).unwrap_or(0.0);
        let on_cpu = (share(&cpu)? - polled).max(0.0);
        Some(Busiest { on_cpu, waiting: share(&format!("{thread}.run_delay_us"))? })
    };
    threads(step.counters).iter().filter_map(|thread| of_thread(thread)).collect()
}

/// When a counter of the source `load` was last seen to have risen; `None` when it never was.
fn last_change_us(counters: &Counters, key: &str) -> Option<i64> {
    let values: Vec<(i64, i64)> = counters.get("load")?.values(key).collect();
    values.windows(2).filter(|pair| pair[1].1 != pair[0].1).map(|pair| pair[1].0).next_back()
}

/// Names of the load threads that were sampled.
fn threads(counters: &Counters) -> Vec<String> {
    let Some(load) = counters.get("load") else { return Vec::new() };
    load.keys().filter_map(|key| Some(key.strip_suffix(".cpu_us")?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{read_write_step, series, summary, with_counters};

    const KEYS: [&str; 6] = [
        "cpu_us",
        "run_delay_us",
        "load-0.cpu_us",
        "load-0.run_delay_us",
        "load-1.cpu_us",
        "load-1.run_delay_us",
    ];

    fn busiest_of(hosting: Hosting, end: Vec<i64>) -> Option<Busiest> {
        let counters = series("load", &KEYS, &[(0, vec![0; 6]), (2_500_000, end)]);
        busiest(&WindowSummary::of(&with_counters(&counters), hosting, 4))
    }

    #[test]
    fn the_thread_that_had_most_to_do_decides_and_waiting_counts() {
        let end = vec![3_250_000, 1_500_000, 1_500_000, 250_000, 1_750_000, 1_250_000];
        let busiest = busiest_of(Hosting::Process, end).unwrap();
        assert_eq!((busiest.on_cpu, busiest.waiting), (0.7, 0.5)); // 1.75 s and 1.25 s of 2.5 s
        assert_eq!(busiest.wanted(), 1.2);
    }

    #[test]
    fn a_thread_that_polls_in_vain_has_nothing_to_do() {
        let keys = ["load-0.cpu_us", "load-0.run_delay_us", "load-0.polled_us"];
        let counters = series("load", &keys, &[(0, vec![0; 3]), (2_500_000, vec![2_500_000, 0, 1_875_000])]);
        let found = busiest(&summary(&with_counters(&counters)));
        assert_eq!(found, Some(Busiest { on_cpu: 0.25, waiting: 0.0 }));
    }

    #[test]
    fn the_thread_that_waited_longest_need_not_be_the_busiest() {
        let counters = |delay_us| {
            series("load", &KEYS, &[(0, vec![0; 6]), (2_500_000, vec![0, 0, 500_000, delay_us, 900_000, 10])])
        };
        let waits = |hosting, delay_us| {
            longest_wait(&WindowSummary::of(&with_counters(&counters(delay_us)), hosting, 4))
        };
        // The second thread is the busier one.
        assert_eq!(waits(Hosting::Process, 500_000), Some(0.2));
        assert_eq!(waits(Hosting::Embedded, 500_000), None);
    }

    #[test]
    fn where_the_database_works_in_the_load_threads_they_are_not_judged() {
        let end = vec![0, 0, 2_500_000, 0, 0, 0];
        assert!(busiest_of(Hosting::Embedded, end.clone()).is_none());
        assert!(busiest_of(Hosting::Nothing, end.clone()).is_none());
        assert!(busiest_of(Hosting::Process, end).is_some());
    }

    #[test]
    fn samples_after_the_end_of_a_thread_do_not_dilute_what_it_did() {
        let keys = &KEYS[2..4];
        let samples =
            [(0, vec![0; 2]), (1_000_000, vec![800_000, 150_000]), (2_500_000, vec![800_000, 150_000])];
        let of =
            |samples: &[(i64, Vec<i64>)]| busiest(&summary(&with_counters(&series("load", keys, samples))));
        assert_eq!(of(&samples), Some(Busiest { on_cpu: 0.8, waiting: 0.15 }));
        // A thread that was never seen at work gives no figure.
        assert_eq!(of(&[(0, vec![0; 2]), (2_500_000, vec![0; 2])]), None);
    }

    #[test]
    fn a_record_without_load_threads_is_not_judged() {
        assert_eq!(busiest(&summary(&read_write_step())), None);
    }
}
