//! Opens the connections of a load thread before the barrier: so many at once, at a pace if one is
//! asked for.

use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;

use crate::histogram::{histogram, record};
use crate::lane_task::describe;
use crate::shared::Shared;
use crate::{Connections, Lane};

/// The storm of connections of a step, as each thread gets it.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) began: Instant,
    pub(crate) connections: Connections,
}

/// Opens `lanes`, each with its number among all lanes of the step, and measures how long each
/// took; the first failure stops the step, and those whose turn comes after a stop stay closed. In
/// the place of a lane whose task broke is none.
pub(crate) async fn open_all<L: Lane + 'static>(
    shared: &Rc<Shared>,
    opening: &Opening,
    lanes: impl Iterator<Item = (usize, L)>,
) -> (Vec<Option<L>>, Histogram<u64>) {
    let places = Rc::new(Semaphore::new(opening.connections.at_once.max(1)));
    let Connections { open_within: within, open_key: key, .. } = opening.connections;
    let task = |(number, lane): (usize, L)| {
        let due = opening.began + opening.connections.due(number);
        let (shared, places) = (Rc::clone(shared), Rc::clone(&places));
        tokio::task::spawn_local(async move {
            let _ = shared.timer.wait_until(due).await;
            // The semaphore is never closed; without a permit the lane would open all the same.
            let _place = places.acquire().await.ok();
            open(&shared, lane, (within, key)).await
        })
    };
    let tasks: Vec<_> = lanes.map(task).collect();
    let mut open = Vec::new();
    let mut logins = histogram();
    for task in tasks {
        match task.await {
            Ok((lane, took_us)) => {
                if let Some(took_us) = took_us {
                    record(&mut logins, took_us);
                }
                open.push(Some(lane));
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

/// Opens one lane; how long that took, if it went well.
async fn open<L: Lane>(shared: &Shared, mut lane: L, (within, key): (Duration, &str)) -> (L, Option<u64>) {
    if shared.control.is_stopping() {
        return (lane, None);
    }
    let began = Instant::now();
    let opening = tokio::time::timeout(within, lane.open());
    let Some(opened) = shared.abandon.unless(opening).await else { return (lane, None) };
    let Ok(opened) = opened else {
        shared.fail(not_open(shared.control.unopened(), shared.control.lanes, (within, key)));
        return (lane, None);
    };
    match opened {
        Ok(()) => {
            shared.control.lane_opened();
            let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            (lane, Some(took_us))
        }
        Err(failure) => {
            shared.fail(describe(&failure));
            (lane, None)
        }
    }
}

fn not_open(waiting: usize, all: usize, (within, key): (Duration, &str)) -> String {
    format!(
        "{waiting} of {all} connections were not open, with their statements prepared, when one of them had waited for \
         {within:?}: see whether a pooler or max_connections holds them, or raise {key}"
    )
}
