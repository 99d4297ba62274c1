//! Finds pauses in which the client did not run. A thread wakes at set times and measures for how
//! long it could not run, because the process was stopped (Ctrl-Z, SIGSTOP), its control group was
//! frozen, or the machine was suspended.
//!
//! While a thread waits for a CPU that other threads use, the kernel counts the time as the
//! thread's run delay. Such a wait is not a pause. Load threads that wait for CPUs are reported by
//! their own run delays.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::arrivals::to_ns;
use crate::control::Control;

/// Even on a virtual machine that shares its CPUs, a wake-up takes no longer than this. Only longer
/// delays are pauses.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// The thread wakes this many times in a window. It may miss pauses that are shorter than the time
/// between two wake-ups.
const POLLS_PER_WINDOW: u32 = 100;
/// Polls are not more frequent than this, because each wake-up costs CPU that counts as the
/// client's: 60 µs if the CPU was asleep.
const SHORTEST_POLL: Duration = Duration::from_millis(10);
const LONGEST_POLL: Duration = Duration::from_millis(250);

/// Returns how often the thread wakes to look for pauses. `planned` is when the window will end, if
/// that is known.
fn poll(planned: Option<Duration>) -> Duration {
    planned.map_or(LONGEST_POLL, |planned| (planned / POLLS_PER_WINDOW).clamp(SHORTEST_POLL, LONGEST_POLL))
}

/// A thread that does nothing but look for pauses. A thread that also works could be stopped while it
/// works, and would not notice. This thread ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Vec<Pause>>>,
}

/// A time in which the client did not run, on the step's clock.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Pause {
    pub(crate) to_ns: u64,
    pub(crate) lasted_ns: u64,
}

impl Watching {
    pub(crate) fn start(control: Arc<Control>) -> std::io::Result<Self> {
        let poll = poll(control.planned_end());
        let (stop, stopped) = mpsc::channel::<()>();
        let body = move || {
            let (mut watch, mut found) = (PauseWatch::new(), Vec::new());
            loop {
                watch.begin();
                let is_over = stopped.recv_timeout(poll) != Err(RecvTimeoutError::Timeout);
                if let Some(lasted) = watch.end(poll) {
                    found.push(Pause { to_ns: control.now_ns(), lasted_ns: to_ns(lasted) });
                }
                if is_over {
                    return found;
                }
            }
        };
        let thread = std::thread::Builder::new().name("pauses".to_owned()).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the thread. The result has all pauses up to now.
    pub(crate) fn end(mut self) -> Vec<Pause> {
        drop(self.stop.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Measures the pauses of the thread that created it.
#[derive(Debug)]
struct PauseWatch {
    began: Instant,
    /// `None` where the kernel does not count run delays.
    schedstat: Option<File>,
    delay_ns: u64,
}

impl PauseWatch {
    fn new() -> Self {
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        Self { began: Instant::now(), schedstat, delay_ns: 0 }
    }

    /// Notes the time. It must be called just before the thread waits.
    fn begin(&mut self) {
        self.delay_ns = self.run_delay_ns();
        self.began = Instant::now();
    }

    /// Returns for how long the thread did not run, if that was a pause. It must be called just
    /// after a wait that should have taken at most `asked`.
    fn end(&self, asked: Duration) -> Option<Duration> {
        let waited = self.began.elapsed();
        if waited <= asked + SHORTEST_PAUSE {
            return None;
        }
        let delayed = Duration::from_nanos(self.run_delay_ns().saturating_sub(self.delay_ns));
        let paused = waited.saturating_sub(asked + delayed);
        (paused > SHORTEST_PAUSE).then_some(paused)
    }

    fn run_delay_ns(&self) -> u64 {
        let mut text = [0; 128];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        read.and_then(|length| parse_run_delay_ns(&text[..length])).unwrap_or(0)
    }
}

/// Parses the run delay in nanoseconds, which is the second number in `/proc/PID/schedstat`.
fn parse_run_delay_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_delay_is_the_second_number() {
        assert_eq!(parse_run_delay_ns(b"9512345 778901 42\n"), Some(778_901));
        assert_eq!(parse_run_delay_ns(b"1\n"), None);
    }

    #[test]
    fn a_window_is_polled_a_hundred_times_within_bounds() {
        let poll_ms = |seconds: f64| poll(Some(Duration::from_secs_f64(seconds))).as_millis();
        assert_eq!([poll_ms(0.5), poll_ms(2.0), poll_ms(3600.0)], [10, 20, 250]);
        assert_eq!(poll(None), LONGEST_POLL);
    }

    #[test]
    fn time_for_which_a_thread_slept_longer_than_it_meant_to_is_a_pause() {
        let mut watch = PauseWatch::new();
        watch.begin();
        std::thread::sleep(Duration::from_millis(120));
        let paused = watch.end(Duration::from_millis(20)).expect("a tenth of a second");
        assert!(paused >= Duration::from_millis(80), "{paused:?}");
        assert_eq!(watch.end(Duration::from_secs(600)), None);
    }
}
