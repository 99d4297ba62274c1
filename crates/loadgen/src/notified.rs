//! Waits for a condition that another thread changes.

use tokio::sync::Notify;

/// Waits on `notify` until `condition` holds. It registers before each look, so that no change is
/// missed.
pub(crate) async fn wait(notify: &Notify, condition: impl Fn() -> bool) {
    loop {
        let changed = notify.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if condition() {
            return;
        }
        changed.await;
    }
}
