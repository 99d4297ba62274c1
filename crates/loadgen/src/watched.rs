//! Tells whether work on this thread should stop. Code that keeps the thread to itself, such as a
//! script, asks this from time to time.

use std::cell::RefCell;

type IsStopping = Box<dyn Fn() -> bool>;

thread_local! {
    static IS_STOPPING: RefCell<Option<IsStopping>> = const { RefCell::new(None) };
}

/// From now on `is_stopping` says whether work on this thread should stop.
pub fn watch_here(is_stopping: impl Fn() -> bool + 'static) {
    IS_STOPPING.with(|own| *own.borrow_mut() = Some(Box::new(is_stopping)));
}

/// Returns whether work on this thread should stop. On a load thread it should when the step stops.
pub fn is_stopping_here() -> bool {
    IS_STOPPING.with(|own| own.borrow().as_ref().is_some_and(|is_stopping| is_stopping()))
}
