//! Is this machine able to run the plan: CPUs, space, folders.

use std::path::Path;

use dbdyno_plan::{Plan, VariantKind, estimate};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::statvfs::statvfs;
use nix::unistd::Pid;

use crate::exit::{Ended, MACHINE};
use crate::{terminal, time};

/// Refuses what cannot work here, warns of what makes numbers doubtful.
///
/// # Errors
/// A CPU that this process may not use, a folder that cannot be made, too little space.
pub(crate) fn check(plan: &Plan, out: &Path) -> Result<(), Ended> {
    if cfg!(debug_assertions) {
        terminal::warning("this is a debug build of dbdyno; use --release for numbers that count");
    }
    check_cpus(plan)?;
    let data_dir = plan.host.data_dir.as_deref().unwrap_or(out);
    for folder in [out, data_dir] {
        std::fs::create_dir_all(folder).map_err(|error| {
            Ended::new(MACHINE, format!("cannot make folder {}: {error}", folder.display()))
        })?;
    }
    // An address's data lies on somebody else's disk.
    let local = plan
        .variants
        .iter()
        .any(|variant| !matches!(variant.kind(), VariantKind::Address(_) | VariantKind::Null));
    let needed = estimate(plan).peak_disk_bytes;
    let space = statvfs(data_dir).map_err(|error| {
        Ended::new(MACHINE, format!("cannot ask for the space in {}: {error}", data_dir.display()))
    })?;
    let free = space.blocks_available() * space.fragment_size();
    if local && needed > free {
        return Err(Ended::new(
            MACHINE,
            format!(
                "the plan needs about {} in {}, which has {} free; make room, name another folder with host.data_dir, \
                 or plan fewer rows",
                time::bytes(needed),
                data_dir.display(),
                time::bytes(free)
            ),
        ));
    }
    Ok(())
}

fn check_cpus(plan: &Plan) -> Result<(), Ended> {
    let usable = sched_getaffinity(Pid::from_raw(0))
        .map_err(|error| Ended::new(MACHINE, format!("cannot ask for this process's CPUs: {error}")))?;
    for (key, list) in [("server_cpus", &plan.host.server_cpus), ("client_cpus", &plan.host.client_cpus)] {
        for &cpu in list.iter().flat_map(|list| &list.0) {
            if !usable.is_set(cpu as usize).unwrap_or(false) {
                let count = (0..CpuSet::count()).filter(|&cpu| usable.is_set(cpu).unwrap_or(false)).count();
                return Err(Ended::new(
                    MACHINE,
                    format!(
                        "host.{key} names CPU {cpu}, which this process may not use (it has {count} CPUs)"
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Keeps dbdyno itself off the servers' CPUs. Threads started later inherit this; servers get their own set.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn pin_client(plan: &Plan) -> Result<(), Ended> {
    let Some(cpus) = &plan.host.client_cpus else { return Ok(()) };
    let mut set = CpuSet::new();
    for &cpu in &cpus.0 {
        set.set(cpu as usize).map_err(|error| Ended::new(MACHINE, format!("no CPU {cpu}: {error}")))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .map_err(|error| Ended::new(MACHINE, format!("cannot keep to CPUs {cpus}: {error}")))
}
