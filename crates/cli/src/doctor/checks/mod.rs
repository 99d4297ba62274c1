//! The checks of `dbdyno doctor`, by topic. Each check judges only from what it is given. Files
//! come from [`crate::host_files`].

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod kernel;
pub(crate) mod limits;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod tools;
