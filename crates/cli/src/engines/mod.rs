//! Engines that give machines and start programs on them: Slurm, Ray, and namespaces of this host.

pub(crate) mod launcher;
mod local;
pub(crate) mod ray;
mod slurm;

use dbdyno_plan::On;

use crate::exit::Ended;
pub(crate) use launcher::Launcher;
use local::Local;
use ray::Ray;
use slurm::Slurm;

/// The engine of a fleet.
///
/// # Errors
/// What this host or the engine lacks.
pub(crate) fn engine(on: &On) -> Result<Box<dyn Launcher>, Ended> {
    Ok(match on {
        On::Local(machines) => Box::new(Local::new(*machines)?),
        On::Ray(address) => Box::new(Ray::find(address.as_deref())?),
        On::Slurm(partition) => Box::new(Slurm::find(partition.as_deref())?),
    })
}
