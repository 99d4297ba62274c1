//! What ends a cell before its last step, or the whole run.

use dbdyno_record::Outcome;

use crate::exit::Ended;

/// How a cell or step ended, with the reason if it did not complete.
pub(crate) type Ending = (Outcome, Option<String>);

#[derive(Debug)]
pub(crate) enum Stop {
    /// It is over; the next cell begins.
    Cell(Ending),
    /// The run is over: the record cannot be written, say.
    Run(Ended),
}

impl Stop {
    pub(crate) fn failed(why: impl ToString) -> Self {
        Self::Cell((Outcome::Failed, Some(why.to_string())))
    }

    pub(crate) fn interrupted(when: &str) -> Self {
        Self::Cell((Outcome::Interrupted, Some(format!("interrupted by the user {when}"))))
    }

    /// With the place where the cell ended in front of its reason.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Cell((outcome, why)) => Self::Cell((outcome, why.map(|why| format!("{place}: {why}")))),
            Self::Run(ended) => Self::Run(ended),
        }
    }
}

/// How a cell ended that has come to its end or has stopped.
pub(crate) fn ending(went: Result<Ending, Stop>) -> Result<Ending, Ended> {
    match went {
        Ok(ending) | Err(Stop::Cell(ending)) => Ok(ending),
        Err(Stop::Run(ended)) => Err(ended),
    }
}

impl From<Ended> for Stop {
    fn from(ended: Ended) -> Self {
        Self::Run(ended)
    }
}

impl From<dbdyno_record::Error> for Stop {
    fn from(error: dbdyno_record::Error) -> Self {
        Self::Run(error.into())
    }
}
