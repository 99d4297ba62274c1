//! The errors for which a step could not be run at all. What goes wrong inside a step is part of its
//! record.

/// Each message names what failed and, where the user can do something, what to try.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Record(#[from] dbdyno_record::Error),
    #[error(
        "cannot start a load thread: {0}; lower client_threads or raise the limit on processes (ulimit -u)"
    )]
    Thread(std::io::Error),
    #[error(
        "tasks of client {client} mix schedules: all tasks of a client and kind must share one schedule and one limit, \
         and no other task may use it; this is a fault of the workload, please report it"
    )]
    MixedSchedules { client: u32 },
    #[error("a load thread ended without a word: {0}; this is a fault of dbdyno, please report it")]
    Panicked(String),
}
