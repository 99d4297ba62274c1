//! What the tasks of one load thread share.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::LostConnections;
use crate::abandon::Abandon;
use crate::control::{Control, StopReason};
use crate::message::Message;
use crate::recorder::Recorder;
use crate::timer::Timer;

pub(crate) struct Shared {
    pub(crate) control: Arc<Control>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) timer: Timer,
    pub(crate) lost: LostConnections,
    pub(crate) abandon: Abandon,
    pub(crate) added_work: Duration,
    pub(crate) messages: Sender<Message>,
}

impl Shared {
    /// Returns the time of the event that is about to be recorded. It makes all cuts before that time
    /// first.
    pub(crate) fn tick(&self) -> u64 {
        let now_ns = self.control.now_ns();
        self.recorder.borrow_mut().advance(now_ns, self.control.window_cut_ns());
        now_ns
    }

    pub(crate) fn fail(&self, message: String) {
        self.control.stop(StopReason::Failed(message));
    }
}
