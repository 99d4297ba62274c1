//! MySQL's protocol from the server's side, written from its documentation and sharing no code with
//! the drivers.

mod answers;
mod greeting;
mod packet;
mod session;

pub(crate) use answers::Answers;
pub(crate) use session::Session;
