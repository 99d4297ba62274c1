//! Maps a function over many items on all cores and keeps the items' order.
//!
//! A run has thousands of files and histograms, and its cells and steps do not depend on each other.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

thread_local! {
    /// Whether this thread belongs to a map that has taken all cores.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Does `items.iter().map(function)` and distributes the items over threads one by one. Within a map
/// that has taken all cores it runs on one thread, because more threads would gain nothing.
pub fn map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if IS_WORKER.get() {
        return items.iter().map(function).collect();
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = cores.min(items.len());
    let next = AtomicUsize::new(0);
    let work = || {
        IS_WORKER.set(workers == cores);
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, function(item)));
        }
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.flat_map(|done| done.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1_000).collect();
        assert_eq!(map(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_map_within_a_map_gives_the_same() {
        let items: Vec<u64> = (0..100).collect();
        let sums = map(&items, |item| map(&items, |other| item * other).iter().sum::<u64>());
        assert_eq!(sums, items.iter().map(|item| item * 4_950).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_maps_to_nothing() {
        assert_eq!(map(&[0_u8; 0], |item| *item), [0_u8; 0]);
    }
}
