//! The server side of MySQL's protocol. It is written from the documentation and shares no code
//! with the drivers.

mod answers;
mod greeting;
mod packet;
mod session;

pub(crate) use answers::Answers;
pub(crate) use session::Session;
