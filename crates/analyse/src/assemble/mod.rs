//! Assembles a run's findings. `steps` computes the figures for one execution of a step.
//! `workloads` collects a workload's steps with their rates and ratios for all variants. `overview`
//! adds what is not measured, such as the machine and the order of the cells.

pub(crate) mod overview;
pub(crate) mod steps;
pub(crate) mod workloads;
