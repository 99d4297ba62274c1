//! Checks the kernel's services for servers and for dbdyno: clocks, timers, asynchronous IO, and
//! statistics.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dbdyno_plan::grouped;
use dbdyno_sample::profile::ProfileError;

use crate::doctor::disk::at;
use crate::doctor::{Finding, good, note, note_if};
use crate::host::HostFiles;

/// A timer that fires later than this distorts loads with an arrival rate.
const LATE: Duration = Duration::from_micros(500);
/// A client that takes longer than this to wake distorts the ratios of cheap statements.
const SLOW_WAKE_UP: Duration = Duration::from_micros(50);
/// Fewest asynchronous IO requests that must be free. A few servers with many IO threads reserve as
/// many.
const AIO_LEFT_MIN: u64 = 20_000;
/// The first kernel version with io_uring.
const IO_URING_SINCE: (u32, u32) = (5, 1);

pub(crate) fn clock_source(files: &HostFiles) -> Finding {
    let name = files.line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match name.as_deref() {
        None => good("not visible"),
        // Reading these clocks accesses a device, which takes a microsecond or more.
        Some(slow @ ("hpet" | "acpi_pm" | "jiffies" | "pit")) => {
            note(slow, "it is slow to read; boot with clocksource=tsc if the CPU has a stable one")
        }
        Some(fast) => good(fast),
    }
}

/// Measures how much later than requested a thread wakes, over 50 sleeps of 1 ms. It returns median
/// and worst.
pub(crate) fn measure_timers() -> (Duration, Duration) {
    const ASKED: Duration = Duration::from_millis(1);
    let late = |_| {
        let began = Instant::now();
        std::thread::sleep(ASKED);
        began.elapsed().saturating_sub(ASKED)
    };
    let mut all: Vec<Duration> = (0..50).map(late).collect();
    all.sort_unstable();
    (all[all.len() / 2], all[all.len() - 1])
}

pub(crate) fn timers((median, worst): (Duration, Duration)) -> Finding {
    let found =
        format!("a sleep of 1 ms is late by {} µs, {} µs at worst", median.as_micros(), worst.as_micros());
    let advice = "scheduled operations will be late; end other programs, or look for power saving (idle states) of the CPU";
    note_if(median > LATE, found, advice)
}

/// Measures the time from a write to a socket until a waiting thread runs, 200 times after a pause
/// of 1 ms. The times are sorted.
pub(crate) fn measure_wake_ups() -> std::io::Result<Vec<Duration>> {
    const COUNT: usize = 200;
    const PAUSE: Duration = Duration::from_millis(1);
    let (mut waking, mut waiting) = UnixStream::pair()?;
    std::thread::scope(|scope| {
        let woken = scope.spawn(move || {
            let woken = |_| waiting.read_exact(&mut [0]).map(|()| Instant::now());
            (0..COUNT).map(woken).collect::<std::io::Result<Vec<Instant>>>()
        });
        let wake = |_| {
            std::thread::sleep(PAUSE);
            let at = Instant::now();
            waking.write_all(&[0]).map(|()| at)
        };
        let written = (0..COUNT).map(wake).collect::<std::io::Result<Vec<Instant>>>();
        // Closing the socket ends the waiting thread, even after an error.
        drop(waking);
        let woken = woken.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let took = |(written, woken): (Instant, Instant)| woken.saturating_duration_since(written);
        let mut all: Vec<Duration> = written?.into_iter().zip(woken).map(took).collect();
        all.sort_unstable();
        Ok(all)
    })
}

pub(crate) fn wake_ups(measured: std::io::Result<Vec<Duration>>) -> Finding {
    let advice = "the server pays for waking a client that sleeps; give each of them CPUs of its own, so that the \
                  client spins";
    match measured {
        Ok(took) => {
            let (median, slow) = (at(&took, 50), at(&took, 99));
            let found = format!(
                "a waiting thread runs after {} µs, p99 {} µs",
                grouped(median.as_micros() as u64),
                grouped(slow.as_micros() as u64)
            );
            note_if(median > SLOW_WAKE_UP, found, advice)
        }
        Err(error) => note(format!("not measured: {error}"), "allow unix sockets"),
    }
}

pub(crate) fn schedstat(files: &HostFiles) -> Finding {
    let ran = files.line("/proc/self/schedstat").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    match ran {
        Some(1..) => good("visible"),
        _ => note(
            "not visible",
            "waiting for a CPU cannot be measured; needs a kernel with schedstats (CONFIG_SCHED_INFO)",
        ),
    }
}

/// Checks io_uring. MariaDB from 10.6 and PostgreSQL from 18 can use it. Without it they use other
/// methods, which give other figures.
pub(crate) fn io_uring(files: &HostFiles) -> Finding {
    let advice = "servers built for it fall back to slower ways, so that figures do not carry over; sysctl kernel.io_uring_disabled=0";
    match files.number::<u32>("/proc/sys/kernel/io_uring_disabled") {
        Some(0) => good("allowed"),
        Some(1) => note("for privileged processes only", advice),
        Some(_) => note("switched off (kernel.io_uring_disabled)", advice),
        // The switch came with Linux 6.6. Before it, any process may use io_uring where the system
        // call exists.
        None => match files.line("/proc/sys/kernel/osrelease").and_then(|text| release(&text)) {
            Some(version) if version >= IO_URING_SINCE => good("in the kernel, without a switch"),
            Some(_) => note("not in this kernel", "servers fall back to other ways; use Linux 5.1 or later"),
            None => good("not visible"),
        },
    }
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Checks the older asynchronous IO, which InnoDB reserves when it starts.
pub(crate) fn aio(files: &HostFiles) -> Finding {
    let number = |name: &str| files.number::<u64>(&format!("/proc/sys/fs/{name}"));
    let (Some(most), Some(used)) = (number("aio-max-nr"), number("aio-nr")) else {
        return good("not visible");
    };
    let found = format!("{} of {} requests reserved", grouped(used), grouped(most));
    let advice = "servers will start without native AIO, or not at all; sysctl fs.aio-max-nr=1048576";
    note_if(most.saturating_sub(used) < AIO_LEFT_MIN, found, advice)
}

/// Checks whether Linux perf can sample servers, for `--profile`. `version` is perf's answer.
pub(crate) fn profiler(files: &HostFiles, version: Result<String, ProfileError>) -> Finding {
    let advice = "--profile cannot say which functions make a difference; apt-get install linux-perf, or the package of the running kernel";
    let Ok(version) = version else { return note("perf is not installed", advice) };
    let paranoid = files.number::<i64>("/proc/sys/kernel/perf_event_paranoid").unwrap_or(0);
    let is_root = nix::unistd::geteuid().is_root();
    let found = format!("{version}, {}", dbdyno_sample::profile::event());
    let advice = "--profile may not sample servers and the kernel; run as root, or sysctl kernel.perf_event_paranoid=1";
    note_if(paranoid > 1 && !is_root, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::host::machine;

    const GOOD: Verdict = Verdict::Good;
    const NOTE: Verdict = Verdict::Note;

    fn verdict(path: &str, text: &str, check: fn(&HostFiles) -> Finding) -> Verdict {
        check(&machine(&[(path, text)]).1).verdict
    }

    #[test]
    fn slow_clocks_and_late_timers_are_noted() {
        let clock = |name| {
            verdict("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, clock_source)
        };
        assert_eq!(
            [clock("tsc\n"), clock("hpet\n"), clock_source(&machine(&[]).1).verdict],
            [GOOD, NOTE, GOOD]
        );
        let micros = Duration::from_micros;
        let late = |median| timers((micros(median), micros(9_000))).verdict;
        assert_eq!([late(60), late(900)], [GOOD, NOTE]);
        let (median, worst) = measure_timers();
        assert!(median <= worst, "{median:?} {worst:?}");
    }

    #[test]
    fn slow_wake_ups_are_noted() {
        let micros = |us: [u64; 3]| Ok(us.map(Duration::from_micros).to_vec());
        assert_eq!(wake_ups(micros([7, 8, 1_234])), good("a waiting thread runs after 8 µs, p99 1,234 µs"));
        assert_eq!(wake_ups(micros([50, 51, 52])).verdict, NOTE);
        let measured = measure_wake_ups().expect("a socket");
        assert!(measured.is_sorted() && measured.len() == 200, "{measured:?}");
    }

    #[test]
    fn run_queue_delay_is_seen_only_where_the_kernel_counts_it() {
        let of = |text| verdict("/proc/self/schedstat", text, schedstat);
        assert_eq!([of("0 0 0\n"), of("12 3 4\n")], [NOTE, GOOD]);
    }

    #[test]
    fn io_uring_is_noted_when_it_is_switched_off_or_missing() {
        let switch = |text| verdict("/proc/sys/kernel/io_uring_disabled", text, io_uring);
        assert_eq!([switch("0\n"), switch("1\n"), switch("2\n")], [GOOD, NOTE, NOTE]);
        let kernel = |text| verdict("/proc/sys/kernel/osrelease", text, io_uring);
        assert_eq!([kernel("6.1.0-13-amd64\n"), kernel("4.19.0\n"), kernel("x")], [GOOD, NOTE, GOOD]);
    }

    #[test]
    fn a_missing_profiler_is_noted() {
        let files = machine(&[("/proc/sys/kernel/perf_event_paranoid", "-1")]).1;
        assert_eq!(profiler(&files, Err(ProfileError::NotInstalled)).verdict, NOTE);
        let found = profiler(&files, Ok("perf version 6.1".to_owned()));
        assert!(found.verdict == GOOD && found.found.starts_with("perf version 6.1, "), "{found:?}");
    }

    #[test]
    fn aio_that_is_nearly_used_up_is_noted() {
        let of = |most: &str, used: &str| {
            aio(&machine(&[("/proc/sys/fs/aio-max-nr", most), ("/proc/sys/fs/aio-nr", used)]).1)
        };
        assert_eq!(of("65536", "60000").verdict, NOTE);
        assert_eq!(of("65536", "2667").found, "2,667 of 65,536 requests reserved");
    }
}
