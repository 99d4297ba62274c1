//! Prepares a run: finds its plan, forecasts its time, computes the differences that it can detect,
//! prepares its variants, and compares their settings.

pub(crate) mod forecast;
pub(crate) mod parity;
pub(crate) mod plan_source;
pub(crate) mod power;
pub(crate) mod prepare;
