//! Checks whether a started server answers: it does once it lets its superuser in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::{Class, DatabaseServer, Session};
use tokio::time::sleep;

/// Interval between two checks of a server that does not answer yet.
const LOOK: Duration = Duration::from_millis(10);

/// Interval after a refused login, which the server's log notes.
const REFUSED: Duration = Duration::from_millis(100);

/// SQLSTATE `cannot_connect_now`, with which a PostgreSQL server refuses logins while it starts.
const STARTING: &str = "57P03";

/// How dbdyno checks whether a started server answers.
pub(crate) struct Probe<'a> {
    /// The login. Its time limit is no shorter than the one for the start.
    pub(crate) database_server: DatabaseServer,
    /// Whether a login is worth trying. Earlier the server would refuse it and log the refusal. The
    /// argument is the server's process number.
    pub(crate) is_worth_it: &'a (dyn Fn(u32) -> bool + Sync),
    /// Number of logins that the server refused because it was still starting.
    pub(crate) refused: &'a AtomicUsize,
}

impl Probe<'_> {
    /// Waits until the server `pid` answers. One login takes as long as the server needs and then
    /// quits properly, because the server would log a dropped connection as a lost client. A server
    /// that knows the user but refuses the login answers too; the next login, which is no probe,
    /// reports the reason.
    pub(crate) async fn answered(&self, pid: u32) {
        loop {
            if !(self.is_worth_it)(pid) {
                sleep(LOOK).await;
                continue;
            }
            match self.database_server.connect().await {
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
