//! Memory of a server with a memory limit: its own, the page cache of its files, and how often the
//! limit was hit.

use crate::model::GroupMemory;
use crate::window::WindowSummary;
use crate::window::counters::{at_end, greatest};

/// `None` where the server has no control group of its own.
pub(crate) fn group_memory(step: &WindowSummary<'_>) -> Option<GroupMemory> {
    const SOURCE: &str = "cgroup";
    step.counters.get(SOURCE)?;
    let level = |key| at_end(step.counters, SOURCE, key, step.window);
    Some(GroupMemory {
        highest_bytes: greatest(step.counters, SOURCE, "memory_bytes"),
        own_bytes: level("anonymous_bytes"),
        page_cache_bytes: level("file_bytes"),
        dirty_bytes: level("dirty_bytes"),
        limit_hits_per_second: step.change(SOURCE, &["limit_hits"]).map(|change| change.per_second()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{series, summary, with_counters};
    use crate::window::counters::Counters;

    fn of(counters: &Counters) -> Option<GroupMemory> {
        group_memory(&summary(&with_counters(counters)))
    }

    #[test]
    fn levels_are_of_the_windows_end_and_hits_of_its_time() {
        let keys = ["memory_bytes", "anonymous_bytes", "file_bytes", "dirty_bytes", "limit_hits"];
        let samples = [
            (0, vec![90, 60, 30, 1, 10]),
            (1_000_000, vec![100, 65, 35, 9, 40]),
            (2_500_000, vec![95, 70, 25, 2, 60]),
        ];
        let expected = GroupMemory {
            highest_bytes: Some(100),
            own_bytes: Some(70),
            page_cache_bytes: Some(25),
            dirty_bytes: Some(2),
            limit_hits_per_second: Some(20.0), // 50 in 2.5 s
        };
        assert_eq!(of(&series("cgroup", &keys, &samples)), Some(expected));
    }

    #[test]
    fn a_server_without_a_limit_has_none() {
        assert_eq!(of(&Counters::new()), None);
    }
}
