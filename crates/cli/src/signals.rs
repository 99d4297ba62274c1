//! Handles Ctrl-C, SIGTERM and SIGHUP. The first signal asks the run to end, and the second ends it
//! at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dbdyno_db::DatabaseServer;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{ExitError, INTERRUPTED};
use crate::{host, terminal};

pub(crate) const RUN_STOPS: &str = "stopping; results are kept (again: stop at once)";

/// Signals that come within this time of the first are the same request. `timeout` signals its
/// command and then its command's group, and the two signals may arrive 0.1 ms apart. No user
/// presses Ctrl-C twice within this time.
const SAME_REQUEST: Duration = Duration::from_millis(250);
/// Time that the second signal leaves for cancelling statements on servers that keep running.
const CANCEL_LIMIT: Duration = Duration::from_secs(3);

/// Servers on which statements are cancelled when the process ends at once.
static GOES_ON: Mutex<Vec<DatabaseServer>> = Mutex::new(Vec::new());

/// Whether the first signal ends the process at once, because nothing runs yet that must be stopped
/// first.
static IS_IDLE: AtomicBool = AtomicBool::new(false);

/// Sets whether the first signal ends the process at once. Until its first server is started or
/// measured, a run has nothing to end. It only sends server queries, and some servers may never
/// answer them.
pub(crate) fn idle(is_idle: bool) {
    IS_IDLE.store(is_idle, Ordering::Relaxed);
}

/// Sets the servers that others run. The second signal cancels the statements that they still
/// execute for this process.
pub(crate) fn cancel_at(database_servers: Vec<DatabaseServer>) {
    *GOES_ON.lock().unwrap_or_else(PoisonError::into_inner) = database_servers;
}

/// Returns a flag that the first signal sets. That signal also prints `text`, and the second signal
/// ends the process. Servers that the process started end with it, because the kernel signals them
/// (parent death signal).
pub(crate) fn watch(text: &'static str) -> Result<Arc<AtomicBool>, ExitError> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    let cannot = |error: std::io::Error| ExitError::machine(format!("cannot watch for Ctrl-C: {error}"));
    let runtime = host::event_loop()?;
    // From this point on a signal no longer ends the process at once. The watch does not wait for
    // the thread below, which may start late.
    let signals = {
        let _runtime = runtime.enter();
        let watched = |kind| signal(kind).map_err(cannot);
        let hangup = if ignores_hangup() { None } else { Some(watched(SignalKind::hangup())?) };
        Signals {
            interrupt: watched(SignalKind::interrupt())?,
            terminate: watched(SignalKind::terminate())?,
            hangup,
        }
    };
    let watcher = std::thread::Builder::new().name("signals".to_owned());
    watcher.spawn(move || runtime.block_on(wait_for_signals(signals, &flag, text))).map_err(cannot)?;
    Ok(cancel)
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// SIGHUP, which means that the terminal was closed. It is `None` where that signal is ignored,
    /// as under `nohup`.
    hangup: Option<Signal>,
}

impl Signals {
    async fn next(&mut self) {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hung_up => {} }
    }
}

/// Whether this process was started to outlive its terminal. Watching for SIGHUP would undo that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    // Signal 1 is the lowest bit.
    bits & 1 != 0
}

async fn wait_for_signals(mut signals: Signals, cancel: &AtomicBool, text: &str) {
    let mut first_signal = None;
    loop {
        signals.next().await;
        match first_signal {
            None if IS_IDLE.load(Ordering::Relaxed) => end_now(),
            None => {
                first_signal = Some(Instant::now());
                cancel.store(true, Ordering::Relaxed);
                terminal::note(&format!("\n{text}"));
            }
            Some(first) if is_second_request(first.elapsed()) => {
                // A third signal does not wait for the cancelling.
                tokio::select! { () = cancelled() => {}, () = signals.next() => {} }
                end_now()
            }
            Some(_) => {}
        }
    }
}

/// Whether a signal that comes so long after the first is a second request.
fn is_second_request(since_first: Duration) -> bool {
    since_first > SAME_REQUEST
}

async fn cancelled() {
    let database_servers = GOES_ON.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for database_server in database_servers {
        if let Err(warning) = database_server.cancel_all(CANCEL_LIMIT).await {
            terminal::warning(&warning);
        }
    }
}

#[expect(clippy::exit, reason = "the user has asked twice; records are synced at step ends")]
fn end_now() -> ! {
    std::process::exit(i32::from(INTERRUPTED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_signals_at_once_are_one_request() {
        let is_another = |ms| is_second_request(Duration::from_millis(ms));
        assert_eq!([0, 100, 1_000].map(is_another), [false, false, true]);
    }
}
