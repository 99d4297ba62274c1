//! What lies in the servers folder: got or added, started once and asked what it can do, listed, played with, removed.

mod abilities;
mod add;
mod ask;
mod card;
mod client;
mod get;
mod lock;
mod play;
mod remove;
mod survey;

pub use abilities::{Abilities, ThreadPool, TlsAbility};
pub use add::add;
pub use card::{Answer, Card, Origin, answer_of};
pub use client::client;
pub use get::get;
pub use play::{Play, PlayOptions};
pub use remove::remove;
pub use survey::{Known, survey};
