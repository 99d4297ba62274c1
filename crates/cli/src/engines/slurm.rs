//! Provides nodes of a Slurm cluster. Each task is alone on its node.

use std::path::Path;
use std::process::Child;

use dbdyno_db::server::{clean_command, start_detached};

use crate::engines::{Gang, Launcher, cannot_start, printed, variables};
use crate::exit::ExitError;

/// The words of every srun call. It runs one program on a node, with all of its memory, and dbdyno
/// chooses among the CPUs.
const SRUN: [&str; 5] = ["srun", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none"];

/// Shell command in an allocation. It prints the hosts, and keeps them until standard input ends.
const KEEP_NODES: &str = "sinfo --noheader --Node --nodes=\"$SLURM_JOB_NODELIST\" --format=\"host $SLURM_JOB_ID %N %o\" && exec cat";

pub(super) struct Slurm {
    partition: Option<String>,
    nodes: Vec<SlurmNode>,
}

#[derive(Debug, PartialEq, Eq)]
struct SlurmNode {
    name: String,
    cpus: String,
}

impl Slurm {
    /// Finds the nodes that are idle now, in `partition` or in the default one.
    pub(super) fn find(partition: Option<&str>) -> Result<Self, ExitError> {
        let mut sinfo = clean_command("sinfo");
        sinfo.envs(variables()).args(["--noheader", "--Node", "--responding", "--states=idle"]);
        sinfo.arg("--format=%N %c %P").args(partition.map(|name| format!("--partition={name}")));
        let listed = printed(&mut sinfo).map_err(|why| {
            let advice = "is Slurm there (packages slurm-client, munge), and its controller up?";
            ExitError::machine(format!("cannot ask sinfo for idle nodes: {why}; {advice}"))
        })?;
        let nodes = nodes(&listed, partition.is_none());
        if nodes.is_empty() {
            let of = partition.map_or("the default partition".to_owned(), |name| format!("partition {name}"));
            let advice = "see sinfo; wait, or name another partition with --on slurm:PARTITION";
            return Err(ExitError::machine(format!("no node of {of} is idle; {advice}")));
        }
        Ok(Self { partition: partition.map(str::to_owned), nodes })
    }
}

/// Reserves nodes of one allocation, in `partition` or in the default one.
pub(super) fn gang(partition: Option<&str>, hosts: u32) -> Gang {
    let of_all = ["salloc", "--job-name=dbdyno", "--quiet", "--immediate=60", "--exclusive", "--mem=0"];
    let mut words = of_all.map(str::to_owned).to_vec();
    words.extend([format!("--nodes={hosts}"), "--ntasks-per-node=1".to_owned()]);
    words.extend(partition.map(|name| format!("--partition={name}")));
    words.extend(["sh", "-c", KEEP_NODES].map(str::to_owned));
    let starting = |key: &[&str]| {
        let [job, node] = key else { return None };
        let host = [format!("--jobid={job}"), format!("--nodelist={node}")];
        Some(SRUN.map(str::to_owned).into_iter().chain(host).collect())
    };
    Gang { words, variables: variables(), starting: Box::new(starting) }
}

/// Returns the nodes that sinfo lists, each with its CPUs and a partition. A star marks the default
/// one.
fn nodes(listed: &str, only_default: bool) -> Vec<SlurmNode> {
    let node = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (name, cpus, partition) = (words.next()?, words.next()?, words.next()?);
        (!only_default || partition.ends_with('*')).then_some(SlurmNode { name, cpus })
    };
    listed.lines().filter_map(node).collect()
}

impl Launcher for Slurm {
    fn machines(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    fn start(
        &self,
        machine: usize,
        words: &[String],
        log: &Path,
        is_piped: bool,
    ) -> Result<Child, ExitError> {
        let SlurmNode { name, cpus } = &self.nodes[machine];
        let mut line: Vec<String> = SRUN.map(str::to_owned).to_vec();
        // Each task is a job of its own, for which `--exclusive` means the whole node. For a step
        // of an existing allocation it would mean only the CPUs that the step asks for (`--exact`),
        // so the steps of [`gang`] do without it.
        line.extend(["--job-name=dbdyno", "--exclusive"].map(str::to_owned));
        line.extend([format!("--nodelist={name}"), format!("--cpus-per-task={cpus}")]);
        line.push(format!("--input={}", if is_piped { "all" } else { "none" }));
        line.extend(self.partition.as_ref().map(|partition| format!("--partition={partition}")));
        line.extend_from_slice(words);
        start_detached(&line, &variables(), log, is_piped).map_err(|error| cannot_start(name, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_name_the_nodes_are_those_of_the_default_partition() {
        let listed = "n1 8 perf*\nn2 8 perf*\nn2 8 all\nn3 64 all\n";
        let names = |only_default| nodes(listed, only_default).into_iter().map(|node| node.name);
        assert!(names(true).eq(["n1", "n2"]));
        assert_eq!(names(false).count(), 4);
        assert_eq!(nodes("n3 64 all\n", false)[0].cpus, "64");
        assert_eq!(nodes("\n", false), []);
    }
}
