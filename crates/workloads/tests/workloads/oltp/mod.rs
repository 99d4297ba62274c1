//! Compares the statements of the classic OLTP tests, with their order and their number, with the
//! original's published script. These tests see only the statements that arrive at a database, so
//! they do not depend on the workload's code.

mod load;
mod prepared;
mod profiles;
mod streams;
mod sweeps;
