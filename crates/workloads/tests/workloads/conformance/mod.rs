//! The Insert Benchmark's statements against the original's published script: what is sent, in
//! which order, how often. No test here knows how the workload is made; all look at what arrives at
//! a database.

mod counts;
mod cursor;
mod draws;
mod engine;
mod recorded;
mod rows;
mod shapes;
mod tables;
