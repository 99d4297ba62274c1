//! Machines of this host, for trying a fleet: each has a network namespace of its own, and a part
//! of the CPUs and of the memory.

use std::path::Path;
use std::process::Child;

use dbdyno_provision::{Cgroup, calling, start_detached};

use crate::engines::{Launcher, cannot_start, printed, variables};
use crate::exit::ExitError;
use crate::host;
use crate::other_runs::FOLDER_VARIABLE;

/// Words before a command that run it in a network namespace of its own.
const ISOLATING: [&str; 7] =
    ["unshare", "--net", "--", "sh", "-c", "ip link set lo up && exec \"$@\"", "machine"];

pub(super) struct Local {
    machines: Vec<Machine>,
}

struct Machine {
    name: String,
    /// `None` where there are fewer CPUs than machines.
    cpus: Option<Vec<u32>>,
    /// `None` where control groups cannot be made.
    group: Option<Cgroup>,
}

impl Local {
    pub(super) fn new(count: usize) -> Result<Self, ExitError> {
        isolates()?;
        let usable = host::usable_cpus()?.0;
        let cpus = usable.len() / count;
        let memory_bytes = dbdyno_sample::host_info(Path::new("."), None, None).memory_bytes / count as u64;
        let machine = |number: usize| Machine {
            name: format!("local-{}", number + 1),
            cpus: (cpus > 0).then(|| usable[number * cpus..][..cpus].to_vec()),
            group: Cgroup::with_memory(memory_bytes).ok(),
        };
        Ok(Self { machines: (0..count).map(machine).collect() })
    }
}

fn isolates() -> Result<(), ExitError> {
    let tried = printed(calling(ISOLATING[0]).args(&ISOLATING[1..]).arg("true"));
    tried.map(drop).map_err(|why| {
        let advice = "run as root, with unshare (package util-linux) and ip (package iproute2)";
        let what = "each machine of local:N gets a network namespace, and this host makes none";
        ExitError::machine(format!("{what}: {why}; {advice}"))
    })
}

impl Launcher for Local {
    fn machines(&self) -> Vec<String> {
        self.machines.iter().map(|machine| machine.name.clone()).collect()
    }

    fn is_here(&self) -> bool {
        true
    }

    fn start(
        &self,
        machine: usize,
        words: &[String],
        log: &Path,
        is_piped: bool,
    ) -> Result<Child, ExitError> {
        let Machine { name, cpus, group } = &self.machines[machine];
        // Each sees its own runs only, as on a host of its own.
        let runs = log.with_file_name(name);
        let cannot = |error| ExitError::machine(format!("cannot make {}: {error}", runs.display()));
        std::fs::create_dir_all(&runs).map_err(cannot)?;
        let mut variables = variables();
        variables.push((FOLDER_VARIABLE.into(), runs.into()));
        let mut line = group.as_ref().map(Cgroup::entering).unwrap_or_default();
        line.extend(ISOLATING.map(str::to_owned));
        line.extend_from_slice(words);
        start_detached(&line, &variables, log, cpus.as_deref(), is_piped)
            .map_err(|error| cannot_start(name, &error))
    }
}
