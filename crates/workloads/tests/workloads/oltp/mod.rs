//! The classic OLTP tests' statements against the original's published script: what is sent, in
//! which order, how often. No test here knows how the workload is made; all look at what arrives at
//! a database.

mod load;
mod prepared;
mod profiles;
mod streams;
mod sweeps;
