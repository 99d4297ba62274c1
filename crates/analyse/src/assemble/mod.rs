//! Puts the figures for steps and workloads together as findings.

pub(crate) mod overview;
pub(crate) mod steps;
pub(crate) mod workloads;
