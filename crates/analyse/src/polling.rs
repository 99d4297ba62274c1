//! CPU time that a client that spins spent on asking for answers when there were none: it is no work, and kept apart from it.

use crate::counters::{Change, change};
use crate::measured::Measured;
use crate::span::Span;

/// What the load threads polled in vain between the samples nearest to `span`. `None` of a client that sleeps.
pub(crate) fn polled(step: &Measured<'_>, span: Span) -> Option<Change> {
    change(step.counters, "load", &["polled_us"], span)
}

/// CPU time of the client, or of the host, without what was polled in vain meanwhile.
pub(crate) fn without(step: &Measured<'_>, busy: Change) -> Change {
    let polled_us =
        polled(step, busy.between).map_or(0.0, |polled| polled.per_second() * busy.between.seconds());
    Change { value: (busy.value - polled_us).max(0.0), ..busy }
}

/// Part of the load threads' CPU time.
pub(crate) fn share(step: &Measured<'_>) -> Option<f64> {
    let polled = polled(step, step.window)?;
    let cpu = step.change("load", &["cpu_us"]).filter(|cpu| cpu.value > 0.0)?;
    Some((polled.per_second() / cpu.per_second()).min(1.0))
}
