//! Whether a connection is in the middle of an exchange, the same for every protocol.

use crate::{Class, DbError};

/// A failure inside the code of one protocol.
pub(crate) trait Fault {
    /// What it means for the operation that met it.
    fn class(&self) -> Class;

    /// The failure as users see it, `context` saying what was done, on what.
    fn told(self, context: &str) -> DbError;
}

/// Whether the next answer on a connection belongs to the next question.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Whom and where, for messages.
    pub(crate) place: String,
    /// An exchange was begun and not ended: the next answer would belong to the wrong question.
    unfinished: bool,
}

impl Exchange {
    pub(crate) fn new(place: String) -> Self {
        Self { place, unfinished: false }
    }

    /// Marks an exchange as begun. It stays so when its future is dropped in the middle.
    pub(crate) fn begin(&mut self) -> Result<(), DbError> {
        if self.unfinished {
            return Err(self.abandoned());
        }
        self.unfinished = true;
        Ok(())
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Marks an exchange as ended, unless the connection is lost, and tells a fault with statement and place.
    pub(crate) fn end<T, F: Fault>(
        &mut self,
        outcome: Result<T, F>,
        what: impl FnOnce() -> String,
    ) -> Result<T, DbError> {
        outcome
            .inspect(|_| self.unfinished = false)
            .inspect_err(|fault| self.unfinished = fault.class() == Class::Lost)
            .map_err(|fault| fault.told(&format!("{} on {}", what(), self.place)))
    }

    fn abandoned(&self) -> DbError {
        let text = format!(
            "connection to {} is not usable: it was lost, or a statement on it was abandoned; connect again",
            self.place
        );
        DbError::new(Class::Lost, "io", text)
    }
}
