//! Empty caches: what the kernel keeps in memory of files is dropped, so that their readers read
//! the disk.

use std::fs::File;
use std::io::Write;

use dbdyno_plan::Plan;

use crate::exit::{Ended, MACHINE};

/// Writing 3 to it drops the page cache, and the cached names and inodes (see proc(5)). Only what
/// is on the disk already goes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Refuses a plan with cold steps where caches cannot be dropped.
pub(crate) fn check(plan: &Plan) -> Result<(), Ended> {
    if !plan.workload.is_cold() {
        return Ok(());
    }
    match File::options().write(true).open(DROP_CACHES) {
        Ok(_) => Ok(()),
        Err(error) => Err(Ended::new(
            MACHINE,
            format!(
                "cold steps drop the kernel's caches, which needs root ({DROP_CACHES}: {error}); leave cold out"
            ),
        )),
    }
}

/// Lets everything reach the disk and drops the kernel's caches, of all files of this machine.
pub(crate) fn drop_caches() -> Result<(), String> {
    nix::unistd::sync();
    let mut file = File::options()
        .write(true)
        .open(DROP_CACHES)
        .map_err(|error| format!("cannot open {DROP_CACHES}: {error}"))?;
    file.write_all(b"3\n").map_err(|error| format!("cannot drop the kernel's caches: {error}"))
}
