//! Plans as their readers see them: what is read, what is refused and where, what ships with
//! dbdyno.

mod data;
mod errors;
mod estimate;
mod estimate_data;
mod estimate_recorded;
mod overrides;
mod plans;
