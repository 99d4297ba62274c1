//! The command `dbdyno`.
fn main() {}
