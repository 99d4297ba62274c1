//! Ctrl-C and SIGTERM: the first asks the run to end, the second ends it at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Ended, INTERRUPTED, MACHINE};
use crate::terminal;

/// What a stopped run says.
pub(crate) const RUN_STOPS: &str = "stopping: what was measured is kept (once more to stop at once)";

/// A flag that the first signal sets, which also says `text`. On the second the process ends; servers it started end with it, because the
/// kernel tells them (parent death signal).
///
/// # Errors
/// When signals cannot be watched.
pub(crate) fn watch(text: &'static str) -> Result<Arc<AtomicBool>, Ended> {
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancel);
    let cannot = |error: std::io::Error| Ended::new(MACHINE, format!("cannot watch for Ctrl-C: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    // Here and not in the thread, which may begin late: behind this a signal no longer ends the process at once.
    let (interrupt, terminate) = {
        let _runtime = runtime.enter();
        let watched = |kind| signal(kind).map_err(cannot);
        (watched(SignalKind::interrupt())?, watched(SignalKind::terminate())?)
    };
    let watcher = std::thread::Builder::new().name("signals".to_owned());
    watcher
        .spawn(move || runtime.block_on(wait_for_signals(interrupt, terminate, &flag, text)))
        .map_err(cannot)?;
    Ok(cancel)
}

async fn wait_for_signals(mut interrupt: Signal, mut terminate: Signal, cancel: &AtomicBool, text: &str) {
    loop {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        if cancel.swap(true, Ordering::Relaxed) {
            end_now();
        }
        terminal::note(&format!("\n{text}"));
    }
}

#[expect(clippy::exit, reason = "the user has asked twice; records are synced at step ends")]
fn end_now() -> ! {
    std::process::exit(i32::from(INTERRUPTED));
}
