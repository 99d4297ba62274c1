//! Whether what runs on this thread is to stop: for code that takes the thread for itself, such as a
//! script, and is asked now and then.

use std::cell::RefCell;

type IsStopping = Box<dyn Fn() -> bool>;

thread_local! {
    static IS_STOPPING: RefCell<Option<IsStopping>> = const { RefCell::new(None) };
}

/// From now on `is_stopping` says whether work on this thread is to stop.
pub fn watch_here(is_stopping: impl Fn() -> bool + 'static) {
    IS_STOPPING.with(|own| *own.borrow_mut() = Some(Box::new(is_stopping)));
}

/// Whether the work of this thread is to stop: on a load thread, because its step is.
pub fn is_stopping_here() -> bool {
    IS_STOPPING.with(|own| own.borrow().as_ref().is_some_and(|is_stopping| is_stopping()))
}
