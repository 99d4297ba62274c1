//! The greatest resident memory of a child process, as the kernel counts it.

use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};

/// The kernel keeps the greatest value itself; only what comes after the last look is missed.
const POLL: Duration = Duration::from_millis(50);

/// Waits until `child` ends. Returns the greatest memory that it had resident, in bytes, and how it
/// ended.
pub(in crate::bench) fn watched(child: Child) -> Result<(f64, ExitStatus)> {
    looked_at(child, of)
}

/// [`watched`], with the look at the process's memory as a function of its number.
fn looked_at(mut child: Child, mut look: impl FnMut(u32) -> Option<f64>) -> Result<(f64, ExitStatus)> {
    let mut peak_bytes = None;
    loop {
        // After its end the process has no memory, and the line is not there.
        peak_bytes = look(child.id()).or(peak_bytes);
        if let Some(status) = child.try_wait()? {
            let Some(peak_bytes) = peak_bytes else { bail!("it ended at once, with {status}") };
            return Ok((peak_bytes, status));
        }
        sleep(POLL);
    }
}

/// `VmHWM` of process `pid`, in bytes.
fn of(pid: u32) -> Option<f64> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_peak_is_read_from_the_kernels_line() {
        assert_eq!(parse("VmPeak:\t  99 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 7 kB\n"), Some(2_097_152.0));
        assert_eq!(parse("Name:\tzombie\n"), None);
    }

    #[test]
    fn a_child_that_ends_is_reported_with_what_it_had() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        // It ends with its input, and that once it has been seen with its program loaded.
        let mut input = child.stdin.take();
        let look = |pid| of(pid).inspect(|&bytes| drop(input.take_if(|_| bytes > 100_000.0)));
        let (peak_bytes, status) = looked_at(child, look).unwrap();
        assert!(peak_bytes > 100_000.0 && status.success(), "{peak_bytes} {status}");
    }
}
