//! Checks memory: how much is free, in which page sizes, and whether it may be swapped out.

use crate::doctor::finding::{Finding, bad, good, note, note_if};
use crate::host_files::HostFiles;
use crate::time;

const GB: u64 = 1_000_000_000;
/// Above this swappiness the kernel swaps out processes to keep file pages.
const SWAPPINESS_MAX: u32 = 10;

pub(crate) fn free(files: &HostFiles) -> Finding {
    let Some(free) = files.meminfo("MemAvailable") else { return good("not visible") };
    let found = format!("{} free", time::bytes(free));
    match free {
        free if free < GB / 5 => bad(found, "end other programs"),
        free if free < GB => note(found, "servers with usual settings need more; end other programs"),
        _ => good(found),
    }
}

pub(crate) fn huge_pages(files: &HostFiles) -> Finding {
    match files.chosen("/sys/kernel/mm/transparent_hugepage/enabled").as_deref() {
        Some("always") => note(
            "transparent: always",
            "servers stall while pages are merged, and use more memory; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(other) => good(format!("transparent: {other}")),
        None => good("not transparent"),
    }
}

pub(crate) fn swap(files: &HostFiles) -> Finding {
    let total = files.meminfo("SwapTotal").unwrap_or(0);
    if total == 0 {
        return good("none");
    }
    let used = total.saturating_sub(files.meminfo("SwapFree").unwrap_or(total));
    let swappiness = files.number::<u32>("/proc/sys/vm/swappiness");
    let eager = swappiness.is_some_and(|value| value > SWAPPINESS_MAX);
    let reported = swappiness.map_or(String::new(), |value| format!(", vm.swappiness = {value}"));
    let found = format!("{} used of {}{reported}", time::bytes(used), time::bytes(total));
    let advice = "a swapped-out server measures the disk; swapoff -a, or sysctl vm.swappiness=1";
    note_if(used > 0 || eager, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;
    use crate::host_files::machine;

    #[test]
    fn too_little_memory_is_bad() {
        let verdict = |kb: u64| {
            let text = format!("MemTotal: 1 kB\nMemAvailable:   {kb} kB\n");
            free(&machine(&[("/proc/meminfo", &text)]).1).verdict
        };
        assert_eq!([100_000, 500_000, 8_000_000].map(verdict), [Verdict::Bad, Verdict::Note, Verdict::Good]);
    }

    #[test]
    fn huge_pages_for_all_and_an_eager_swap_are_noted() {
        let pages = |text: &str| {
            huge_pages(&machine(&[("/sys/kernel/mm/transparent_hugepage/enabled", text)]).1).verdict
        };
        assert_eq!(
            [pages("[always] madvise never"), pages("always [madvise] never")],
            [Verdict::Note, Verdict::Good]
        );
        let swap = |free: u64, swappiness: &str| {
            let text = format!("SwapTotal: 1000 kB\nSwapFree: {free} kB\n");
            swap(&machine(&[("/proc/meminfo", &text), ("/proc/sys/vm/swappiness", swappiness)]).1).verdict
        };
        assert_eq!(
            [swap(1000, "60"), swap(900, "1"), swap(1000, "1")],
            [Verdict::Note, Verdict::Note, Verdict::Good]
        );
        assert_eq!(super::swap(&machine(&[]).1).found, "none");
    }
}
