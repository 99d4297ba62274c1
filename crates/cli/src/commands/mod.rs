//! The commands of dbdyno, one file per command.

pub(crate) mod compare;
pub(crate) mod history;
pub(crate) mod init;
pub(crate) mod known_answer;
pub(crate) mod list;
pub(crate) mod manual;
#[cfg(feature = "parquet")]
mod parquet;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod servers;
pub(crate) mod site;
