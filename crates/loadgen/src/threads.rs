//! Decides which tasks each load thread runs, and on which CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use crate::{HostShare, TaskSpec};

/// Connections that one load thread carries before a second one is started. The more answers are there
/// when a thread wakes, the less often it sleeps: at 64 connections two threads use a third more CPU
/// per query than one.
const CONNECTIONS_PER_THREAD: usize = 64;

#[derive(Debug, Clone, Default)]
pub struct Threads {
    /// CPUs that the load threads may use, where `None` means all.
    pub cpus: Option<Vec<u32>>,
    /// How many threads there are. `None` means one for every 64 connections, but at most one per CPU.
    /// There are never more threads than units to distribute. A unit is a client with coupled tasks, or
    /// otherwise a single task.
    pub count: Option<u32>,
    /// Whether a task blocks its thread. Each task then gets a thread of its own.
    pub blocking: bool,
    /// Thread n never sleeps while the step runs, and counts in entry n the nanoseconds of polls that
    /// found nothing. With `None`, and for threads beyond the last entry, a thread sleeps until an
    /// answer wakes it. This is not for blocking tasks.
    pub polled_ns: Option<Arc<[AtomicU64]>>,
    /// Time for which a task keeps its thread busy after each answer. It shows what a slower client
    /// would change.
    pub added_work: Duration,
}

/// A task as a thread is given it. `number` counts all tasks of the step.
#[derive(Debug)]
pub(crate) struct Assigned<F> {
    pub(crate) number: usize,
    pub(crate) spec: TaskSpec,
    pub(crate) factory: F,
}

/// The tasks of one thread, and the CPUs that it may use.
type Assignment<F> = (Vec<Assigned<F>>, Option<Vec<u32>>);

/// Distributes the tasks of `part` over threads. Tasks of a client with coupled tasks share a thread.
/// All others go round the threads one by one. A blocking task gets a thread of its own.
pub(crate) fn assign<F>(tasks: Vec<(TaskSpec, F)>, part: HostShare, threads: &Threads) -> Vec<Assignment<F>> {
    let number = |own: usize| usize::try_from(part.of_all(own as u64)).unwrap_or(usize::MAX);
    let tasks = tasks.into_iter().enumerate();
    let tasks = tasks.map(|(own, (spec, factory))| Assigned { number: number(own), spec, factory });
    if threads.blocking {
        return tasks.map(|task| (vec![task], threads.cpus.clone())).collect();
    }
    let tasks: Vec<Assigned<F>> = tasks.collect();
    let all = || thread::available_parallelism().map_or(1, usize::from);
    let available = threads.cpus.as_ref().map_or_else(all, Vec::len);
    let wanted = threads
        .count
        .map_or_else(|| tasks.len().div_ceil(CONNECTIONS_PER_THREAD).min(available), |count| count as usize);
    let coupled: BTreeSet<u32> =
        tasks.iter().filter(|task| task.spec.coupling.is_some()).map(|task| task.spec.client).collect();
    let mut parts: BTreeMap<(u32, Option<usize>), Vec<Assigned<F>>> = BTreeMap::new();
    for task in tasks {
        let alone = (!coupled.contains(&task.spec.client)).then_some(task.number);
        parts.entry((task.spec.client, alone)).or_default().push(task);
    }
    let count = wanted.clamp(1, parts.len().max(1));
    let mut jobs: Vec<Vec<Assigned<F>>> = (0..count).map(|_| Vec::new()).collect();
    for (index, part) in parts.into_values().enumerate() {
        jobs[index % count].extend(part);
    }
    let cpus_of = |index: usize| {
        // Each thread gets one CPU while there are enough, so that it keeps its caches.
        let cpus = threads.cpus.as_ref()?;
        if count <= cpus.len() { Some(vec![cpus[index]]) } else { Some(cpus.clone()) }
    };
    jobs.into_iter().enumerate().map(|(index, tasks)| (tasks, cpus_of(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Coupling, Limit, Role, Side};

    fn task(client: u32, coupled: bool) -> (TaskSpec, ()) {
        let coupling = coupled.then(|| (Arc::new(Coupling::new(9)), Side::Left));
        let limit = Limit::Operations(1);
        (TaskSpec { client, kind: 0, arrivals: Arrivals::Closed, limit, role: Role::Decides, coupling }, ())
    }

    fn clients_by_thread(tasks: Vec<(TaskSpec, ())>, count: u32) -> Vec<Vec<u32>> {
        let threads = Threads { count: Some(count), ..Threads::default() };
        let jobs = assign(tasks, HostShare::WHOLE, &threads).into_iter();
        jobs.map(|(tasks, _)| tasks.iter().map(|task| task.spec.client).collect()).collect()
    }

    #[test]
    fn coupled_connections_stay_together_and_others_are_spread() {
        let pair = |client| [task(client, true), task(client, false)];
        let coupled = (1..=3).flat_map(pair).collect();
        assert_eq!(clients_by_thread(coupled, 2), [vec![1, 1, 3, 3], vec![2, 2]]);
        let one_client = (0..5).map(|_| task(1, false)).collect();
        assert_eq!(clients_by_thread(one_client, 2), [vec![1; 3], vec![1; 2]]);
        assert_eq!(clients_by_thread(vec![task(1, false)], 8), [[1]]);
    }

    #[test]
    fn there_is_a_thread_for_every_64_connections_and_at_most_one_a_cpu() {
        let threads = |tasks: usize, cpus: &[u32]| {
            let threads = Threads { cpus: Some(cpus.to_vec()), ..Threads::default() };
            assign((0..tasks).map(|_| task(1, false)).collect(), HostShare::WHOLE, &threads).len()
        };
        assert_eq!([threads(64, &[0, 1]), threads(65, &[0, 1]), threads(4096, &[0, 1])], [1, 2, 2]);
    }
}
