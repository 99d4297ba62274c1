//! The server side of PostgreSQL's protocol. It is written from the documentation and shares no
//! code with the drivers.

mod answers;
mod message;
mod session;
mod startup;

pub(crate) use answers::Answers;
pub(crate) use session::Session;
