//! Whether a server that was started answers: it does when it lets its superuser in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{Class, Endpoint, Session};
use tokio::time::sleep;

/// Until a server that does not answer yet is looked at again.
const LOOK: Duration = Duration::from_millis(10);

/// Until one that has refused a login, which its log notes, is asked again.
const REFUSED: Duration = Duration::from_millis(100);

/// What a PostgreSQL server that still starts says to a login: `cannot_connect_now`.
const STARTING: &str = "57P03";

/// How a server that was started is asked whether it answers.
pub(crate) struct Probe<'a> {
    /// The login, whose limit of time is no shorter than that of the start.
    pub(crate) endpoint: Endpoint,
    /// Whether it is worth asking: before, a login would be refused, and the log would say so.
    /// Gets the number of the server's process.
    pub(crate) is_worth_it: &'a (dyn Fn(u32) -> bool + Sync),
    /// Logins that were refused because the server still started.
    pub(crate) refused: &'a AtomicUsize,
}

impl Probe<'_> {
    /// Waits until the server `pid` answers. It is asked by one login, which takes as long as the
    /// server needs and takes its leave, because a connection that is merely dropped is a lost
    /// client in the server's log. A server that knows the login but refuses it answers too: the
    /// next one, which is no probe, says what is wrong.
    pub(crate) async fn answered(&self, pid: u32) {
        loop {
            if !(self.is_worth_it)(pid) {
                sleep(LOOK).await;
                continue;
            }
            match self.endpoint.connect().await {
                Ok(session) => return session.close().await,
                Err(error) if error.code == STARTING => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    sleep(REFUSED).await;
                }
                Err(error) if error.class == Class::Lost => sleep(LOOK).await,
                Err(error) if error.class == Class::Refused => sleep(REFUSED).await,
                Err(_) => return,
            }
        }
    }
}
