//! Exit statuses: what went wrong, by who has to do something about it.

use dbdyno_report::not_comparable;

/// Any error, of which only its words matter.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A comparison that ended as slower than allowed.
pub(crate) const SLOWER: u8 = 1;
/// The plan, a flag or a name is wrong: the user's to change.
pub(crate) const USAGE: u8 = 2;
/// This machine: no space, no rights, no such CPU.
pub(crate) const MACHINE: u8 = 3;
/// A server: it is not there, does not start, refuses or fails.
pub(crate) const SERVER: u8 = 4;
/// A fault of dbdyno.
pub(crate) const OURS: u8 = 5;
/// Stopped by the user, as shells report SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// A command that did not end well. What was printed already is not said again: then `message` is
/// `None`.
#[derive(Debug)]
pub(crate) struct ExitError {
    pub(crate) code: u8,
    pub(crate) message: Option<String>,
}

impl ExitError {
    pub(crate) fn new(code: u8, message: impl ToString) -> Self {
        Self { code, message: Some(message.to_string()) }
    }

    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::new(USAGE, message)
    }

    pub(crate) fn machine(message: impl ToString) -> Self {
        Self::new(MACHINE, message)
    }

    pub(crate) fn server(message: impl ToString) -> Self {
        Self::new(SERVER, message)
    }

    pub(crate) fn ours(message: impl ToString) -> Self {
        Self::new(OURS, message)
    }

    /// The same with the variant that it is about.
    pub(crate) fn of_variant(self, name: &str) -> Self {
        Self { message: self.message.map(|message| format!("variant {name}: {message}")), ..self }
    }

    /// What went wrong is on the terminal already.
    pub(crate) fn silent(code: u8) -> Self {
        Self { code, message: None }
    }
}

impl From<dbdyno_plan::Error> for ExitError {
    fn from(error: dbdyno_plan::Error) -> Self {
        Self::usage(error)
    }
}

impl From<dbdyno_record::Error> for ExitError {
    fn from(error: dbdyno_record::Error) -> Self {
        let code = match error {
            dbdyno_record::Error::NotARun { .. } | dbdyno_record::Error::NotBegun { .. } => USAGE,
            _ => MACHINE,
        };
        Self::new(code, error)
    }
}

impl From<dbdyno_analyse::Error> for ExitError {
    fn from(error: dbdyno_analyse::Error) -> Self {
        match error {
            dbdyno_analyse::Error::NotComparable { differences } => Self::usage(not_comparable(&differences)),
            error => Self::usage(error),
        }
    }
}

impl From<dbdyno_report::Error> for ExitError {
    fn from(error: dbdyno_report::Error) -> Self {
        Self::usage(error)
    }
}
