//! Wall-clock time for records and names, and durations for people.

use std::time::Duration;

/// Returns the current time in RFC 3339, UTC, with milliseconds.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Returns the current time as it starts a run directory's name. Such names sort by time.
pub(crate) fn for_folder() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Returns the time from one recorded time to a later one. It is `None` when one of them is not
/// a time, or when the second is earlier.
pub(crate) fn between(from: &str, to: &str) -> Option<Duration> {
    let [from, to] = [from, to].map(|text| text.parse::<jiff::Timestamp>());
    Duration::try_from(to.ok()?.duration_since(from.ok()?)).ok()
}

pub(crate) fn to_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Writes `0:42`, `12:05` or `3:07:00`.
pub(crate) fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Writes `0.8 s`, `42 s`, `12 min` or `3.5 h`.
pub(crate) fn about(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 119.5 => format!("{s:.0} s"),
        s if s < 7170.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Writes `12 MB`, `3.4 GB` or `1.2 TB`, in powers of ten.
pub(crate) fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match value {
        v if v < 999.5e6 => format!("{:.0} MB", (v / 1e6).max(1.0)),
        v if v < 9.95e9 => format!("{:.1} GB", v / 1e9),
        v if v < 9.995e11 => format!("{:.0} GB", v / 1e9),
        v => format!("{:.1} TB", v / 1e12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_recorded_times_have_a_duration_between_them() {
        let of = |to| between("2026-11-22T03:00:00.000Z", to);
        assert_eq!(of("2026-11-22T03:01:00.250Z"), Some(Duration::from_millis(60_250)));
        assert_eq!((of("2026-11-22T02:00:00Z"), of("noon")), (None, None));
        assert!(between(&now(), &now()).is_some());
    }

    #[test]
    fn durations_read_well() {
        let clocks = [42, 725, 11_220].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(clocks, ["0:42", "12:05", "3:07:00"]);
        let words = [0.84, 42.0, 720.0, 12_600.0].map(|seconds| about(Duration::from_secs_f64(seconds)));
        assert_eq!(words, ["0.8 s", "42 s", "12 min", "3.5 h"]);
        assert_eq!(
            [bytes(12_000_000), bytes(3_400_000_000), bytes(34_000_000_000), bytes(195_000_000_000_000)],
            ["12 MB", "3.4 GB", "34 GB", "195.0 TB"]
        );
    }
}
