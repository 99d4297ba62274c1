//! PostgreSQL's protocol from the server's side, written from its documentation and sharing no code
//! with the drivers.

mod answers;
mod message;
mod session;
mod startup;

pub(crate) use answers::Answers;
pub(crate) use session::Session;
