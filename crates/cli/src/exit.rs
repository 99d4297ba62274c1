//! Exit statuses of dbdyno. They show whether the user, the machine, a server or dbdyno caused an
//! error.

use dbdyno_report::not_comparable;

/// An error of any type, of which only the text matters.
pub(crate) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// A comparison found a variant that is slower than allowed.
pub(crate) const SLOWER: u8 = 1;
/// The plan, a flag or a name is wrong, and the user can change it.
pub(crate) const USAGE: u8 = 2;
/// This machine lacks something: space, rights, or a CPU of this number.
pub(crate) const MACHINE: u8 = 3;
/// A server is missing, does not start, refuses a request or fails.
pub(crate) const SERVER: u8 = 4;
/// dbdyno itself has a fault.
pub(crate) const OURS: u8 = 5;
/// The user stopped dbdyno. Shells report SIGINT by the same status.
pub(crate) const INTERRUPTED: u8 = 130;

/// The failure of a command. `message` is `None` where it is already printed.
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

    /// Adds the variant that the error is about.
    pub(crate) fn of_variant(self, name: &str) -> Self {
        Self { message: self.message.map(|message| format!("variant {name}: {message}")), ..self }
    }

    /// Makes an error whose text is already on the terminal.
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
