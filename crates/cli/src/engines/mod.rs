//! Engines that give machines and start programs on them: Slurm, Ray, and namespaces of this host.

pub(crate) mod launcher;
mod local;
mod ray;
mod slurm;

use dbdyno_plan::On;

use crate::exit::{Ended, MACHINE};
use launcher::Gang;
pub(crate) use launcher::Launcher;
use local::Local;
use ray::Ray;
use slurm::Slurm;

/// The engine of a fleet.
pub(crate) fn engine(on: &On) -> Result<Box<dyn Launcher>, Ended> {
    Ok(match on {
        On::Local(machines) => Box::new(Local::new(*machines)?),
        On::Ray(address) => Box::new(Ray::find(address.as_deref())?),
        On::Slurm(partition) => Box::new(Slurm::find(partition.as_deref())?),
    })
}

/// Hosts of an engine that are given all at once.
pub(crate) fn gang(on: &On, hosts: u32) -> Result<Gang, Ended> {
    match on {
        On::Local(_) => Err(Ended::new(MACHINE, "client hosts are found by slurm or ray")),
        On::Ray(address) => ray::gang(address.as_deref(), hosts),
        On::Slurm(partition) => Ok(slurm::gang(partition.as_deref(), hosts)),
    }
}
