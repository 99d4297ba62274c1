//! Compares the statements of the Insert Benchmark, with their order and their number, with the
//! original's published script. These tests see only the statements that arrive at a database, so
//! they do not depend on the workload's code.

mod counts;
mod cursor;
mod draws;
mod engine;
mod recorded;
mod rows;
mod shapes;
mod tables;
