//! Whether a connection is in the middle of an exchange, the same for every protocol.

use std::time::Duration;

use crate::roster::{Roster, Ticket};
use crate::{Class, DbError};

/// A failure inside the code of one protocol.
pub(crate) trait Fault {
    /// What it means for the operation that met it.
    fn class(&self) -> Class;

    /// The failure as users see it, `context` saying what was done, on what.
    fn into_error(self, context: &str) -> DbError;
}

/// Whether the next answer on a connection belongs to the next question.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Whom and where, for messages.
    pub(crate) place: String,
    state: State,
    /// Where the connection is entered as long as it lasts.
    entered: Option<(Roster, Ticket)>,
    /// Longest time for a statement outside of a step. A session begins with that of small questions.
    pub(crate) limit: Option<Duration>,
}

/// Time limit of a statement whose time does not depend on how many rows there are.
const SMALL_QUESTION: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// An exchange was begun and not ended: the next answer would belong to the wrong question.
    Begun,
    /// So it was when the connection was lost.
    Lost,
}

impl Exchange {
    #[cfg(test)]
    pub(crate) fn new(place: String) -> Self {
        Self { place, state: State::Idle, entered: None, limit: Some(SMALL_QUESTION) }
    }

    /// The same for a connection that can be asked to stop: it is entered in `roster` until it ends.
    pub(crate) fn entered(place: String, roster: &Roster, ticket: Ticket) -> Self {
        roster.enter(ticket);
        Self {
            place,
            state: State::Idle,
            entered: Some((roster.clone(), ticket)),
            limit: Some(SMALL_QUESTION),
        }
    }

    /// Marks an exchange as begun. It stays so when its future is dropped in the middle.
    pub(crate) fn begin(&mut self) -> Result<(), DbError> {
        if self.is_unfinished() {
            return Err(self.abandoned());
        }
        self.state = State::Begun;
        Ok(())
    }

    /// The server's number for the connection.
    pub(crate) fn number(&self) -> Option<u32> {
        self.entered.as_ref().map(|(_, ticket)| ticket.id)
    }

    /// By which the server knows the connection, where it can be asked to stop.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.entered.as_ref().map(|(_, ticket)| *ticket)
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.state != State::Idle
    }

    /// Marks an exchange as ended, unless the connection is lost, and reports a fault with statement and place.
    pub(crate) fn end<T, F: Fault>(
        &mut self,
        outcome: Result<T, F>,
        what: impl FnOnce() -> String,
    ) -> Result<T, DbError> {
        outcome
            .inspect(|_| self.state = State::Idle)
            .inspect_err(|fault| {
                self.state = if fault.class() == Class::Lost { State::Lost } else { State::Idle };
            })
            .map_err(|fault| fault.into_error(&format!("{} on {}", what(), self.place)))
    }

    fn abandoned(&self) -> DbError {
        let text = format!(
            "connection to {} is not usable: it was lost, or a statement on it was abandoned; connect again",
            self.place
        );
        DbError::new(Class::Lost, "io", text)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match (&self.entered, self.state) {
            (None, _) => {}
            (Some((roster, ticket)), State::Begun) => roster.give_up(*ticket),
            // After a lost connection its number may soon be another's.
            (Some((roster, ticket)), State::Idle | State::Lost) => roster.leave(*ticket),
        }
    }
}
