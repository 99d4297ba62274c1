//! Tests the reading of plans, the errors of wrong plans and their positions, forecasts, and the
//! plans that come with dbdyno.

mod data;
mod errors;
mod estimate;
mod estimate_data;
mod estimate_recorded;
mod overrides;
mod plans;
