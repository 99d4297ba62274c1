//! Opens the connections of a load thread before the barrier: a limited number at once, and at a given
//! rate if one is asked for.

use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;

use crate::histogram::{histogram, record};
use crate::running_task::describe;
use crate::shared::Shared;
use crate::{ConnectionTask, Connections};

/// How a step opens its connections. Each load thread has a copy.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) began: Instant,
    pub(crate) connections: Connections,
}

/// Opens `tasks`, each given with its number among all tasks of the step, and measures how long each
/// took in microseconds. The first failure stops the step, and those whose turn comes after a stop stay
/// closed. `None` stands in place of a task that panicked.
pub(crate) async fn open_all<L: ConnectionTask + 'static>(
    shared: &Rc<Shared>,
    opening: &Opening,
    tasks: impl Iterator<Item = (usize, L)>,
) -> (Vec<Option<L>>, Histogram<u64>) {
    let places = Rc::new(Semaphore::new(opening.connections.at_once.max(1)));
    let Connections { open_within: within, open_key: key, .. } = opening.connections;
    let spawned = |(number, task): (usize, L)| {
        let due = opening.began + opening.connections.due(number);
        let (shared, places) = (Rc::clone(shared), Rc::clone(&places));
        tokio::task::spawn_local(async move {
            let _ = shared.timer.wait_until(due).await;
            // The semaphore is never closed. Without a permit the connection would open all the same.
            let _place = places.acquire().await.ok();
            open(&shared, task, (within, key)).await
        })
    };
    let handles: Vec<_> = tasks.map(spawned).collect();
    let mut open = Vec::new();
    let mut logins = histogram();
    for handle in handles {
        match handle.await {
            Ok((task, took_us)) => {
                if let Some(took_us) = took_us {
                    record(&mut logins, took_us);
                }
                open.push(Some(task));
            }
            Err(error) => {
                shared.fail(format!("a connection's task failed: {error}"));
                shared.control.abandon();
                open.push(None);
            }
        }
    }
    (open, logins)
}

/// Opens one task. The result has the time that it took in microseconds, if it went well.
async fn open<L: ConnectionTask>(
    shared: &Shared,
    mut task: L,
    (within, key): (Duration, &str),
) -> (L, Option<u64>) {
    if shared.control.is_stopping() {
        return (task, None);
    }
    let began = Instant::now();
    let opening = tokio::time::timeout(within, task.open());
    let Some(opened) = shared.abandon.unless(opening).await else { return (task, None) };
    let Ok(opened) = opened else {
        shared.fail(not_open(shared.control.unopened(), shared.control.tasks, (within, key)));
        return (task, None);
    };
    match opened {
        Ok(()) => {
            shared.control.task_opened();
            let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            (task, Some(took_us))
        }
        Err(failure) => {
            shared.fail(describe(&failure));
            (task, None)
        }
    }
}

fn not_open(waiting: usize, all: usize, (within, key): (Duration, &str)) -> String {
    format!(
        "{waiting} of {all} connections were not open, with their statements prepared, when one of them had waited for \
         {within:?}: see whether a pooler or max_connections holds them, or raise {key}"
    )
}
