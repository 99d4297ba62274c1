//! Which CPUs go to the server and which to the client: whole cores, those included that a
//! hypervisor does not show.

use dbdyno_plan::{CpuList, Cpus, Plan};

use super::{ONE_CORE_SHARE, Pair};
use crate::host;
use crate::host_files::HostFiles;

/// The client gets one core of so many, the last ones.
const CORES_PER_CLIENT_CORE: usize = 4;

/// Where it is `shared`, plans without CPUs run on all of them: for machines that do other work as
/// well.
const CPUS_VARIABLE: &str = "DBDYNO_CPUS";

/// Connections for each core of the client: as many as a load thread has.
const CONNECTIONS_A_CORE: u32 = 64;

/// Gives servers that dbdyno starts and the client CPUs of their own where the plan names none and
/// this process may use two or more: whole cores of one node, the last ones to the client, one for
/// each 64 connections and at most a quarter.
pub(crate) fn give_cpus(plan: &mut Plan) {
    let is_shared = std::env::var_os(CPUS_VARIABLE).is_some_and(|value| value == "shared");
    let asked = &plan.host;
    let is_named = asked.server_cpus.is_some() || asked.client_cpus.is_some();
    let starts = plan.variants.iter().any(|variant| variant.kind().is_started());
    if is_shared || is_named || asked.cpus == Cpus::Shared || !starts {
        return;
    }
    let Ok(usable) = host::usable_cpus() else { return };
    let most = plan.most_connections().div_ceil(CONNECTIONS_A_CORE).max(1);
    let (server, client) = known_sides(&HostFiles::here(), &usable.0, most as usize);
    let fits = plan.host.client_threads.is_none_or(|threads| threads as usize <= client.len());
    if !client.is_empty() && fits {
        (plan.host.server_cpus, plan.host.client_cpus) = (Some(CpuList(server)), Some(CpuList(client)));
    }
}

/// CPUs of the server and of the client, which gets at most `most` cores and none where there is
/// one CPU. Where all are one core, the client has the last CPU.
pub(super) fn sides(files: &HostFiles, usable: &[u32], pairs: &[Pair], most: usize) -> (Vec<u32>, Vec<u32>) {
    let cores = match cores(files, usable, pairs) {
        cores if cores.len() > 1 => cores,
        _ => usable.iter().map(|cpu| vec![*cpu]).collect(),
    };
    if cores.len() < 2 {
        return (usable.to_vec(), Vec::new());
    }
    let for_client = (cores.len() / CORES_PER_CLIENT_CORE).min(most).max(1);
    let (server, client) = cores.split_at(cores.len() - for_client);
    let sorted = |cores: &[Vec<u32>]| {
        let mut cpus = cores.concat();
        cpus.sort_unstable();
        cpus
    };
    (sorted(server), sorted(client))
}

/// As [`sides`], of the node that has the most usable CPUs, from what the kernel says of cores and
/// nodes.
fn known_sides(files: &HostFiles, usable: &[u32], most: usize) -> (Vec<u32>, Vec<u32>) {
    let folder = "/sys/devices/system/node";
    let of_node = |node: String| {
        let list = files.line(&format!("{folder}/{node}/cpulist"))?.parse::<CpuList>().ok()?;
        Some(usable.iter().copied().filter(|cpu| list.0.contains(cpu)).collect::<Vec<u32>>())
    };
    let nodes = files.names(folder).into_iter().filter_map(of_node);
    // Of equal nodes the first.
    let largest = nodes.reduce(|best, node| if node.len() > best.len() { node } else { best });
    let usable = largest.filter(|node| node.len() > 1).unwrap_or_else(|| usable.to_vec());
    sides(files, &usable, &[], most)
}

/// CPUs of each core, by what the kernel says and by which of them slow each other down.
fn cores(files: &HostFiles, usable: &[u32], pairs: &[Pair]) -> Vec<Vec<u32>> {
    let mut cores: Vec<Vec<u32>> = usable.iter().map(|cpu| vec![*cpu]).collect();
    for &cpu in usable {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = files.line(&path).and_then(|list| list.parse::<CpuList>().ok());
        siblings.iter().flat_map(|list| &list.0).for_each(|sibling| join(&mut cores, cpu, *sibling));
    }
    for pair in pairs.iter().filter(|pair| pair.lost_share >= ONE_CORE_SHARE) {
        join(&mut cores, pair.server_cpu, pair.client_cpu);
    }
    cores
}

/// Makes one core of the cores of two CPUs.
fn join(cores: &mut Vec<Vec<u32>>, one: u32, other: u32) {
    let find = |cpu: u32| cores.iter().position(|core| core.contains(&cpu));
    let (Some(one), Some(other)) = (find(one), find(other)) else { return };
    if one != other {
        let moved = cores.remove(one.max(other));
        cores[one.min(other)].extend(moved);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::pair;
    use super::*;
    use crate::host_files::machine;

    const TOPOLOGY: &str = "/sys/devices/system/cpu/cpu";

    fn of(siblings: &[&str], usable: &[u32], pairs: &[Pair]) -> (Vec<u32>, Vec<u32>) {
        let paths: Vec<String> =
            (0..siblings.len()).map(|cpu| format!("{TOPOLOGY}{cpu}/topology/thread_siblings_list")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().map(String::as_str).zip(siblings.iter().copied()).collect();
        sides(&machine(&files).1, usable, pairs, usize::MAX)
    }

    #[test]
    fn the_client_has_a_quarter_of_the_cores_and_at_least_one() {
        assert_eq!(of(&[], &[0], &[]), (vec![0], vec![]));
        assert_eq!(of(&[], &[0, 1], &[]), (vec![0], vec![1]));
        assert_eq!(of(&[], &[0, 1, 2, 3, 4, 5, 6, 7], &[]), (vec![0, 1, 2, 3, 4, 5], vec![6, 7]));
    }

    #[test]
    fn cores_stay_whole_as_the_kernel_names_them_and_as_they_were_measured() {
        let siblings = ["0,2\n", "1,3\n", "0,2\n", "1,3\n"];
        assert_eq!(of(&siblings, &[0, 1, 2, 3], &[]), (vec![0, 2], vec![1, 3]));
        let hidden = ["0\n", "1\n", "2\n", "3\n"];
        let pairs = [pair(0, 1, 1.0, 0.4), pair(2, 3, 1.0, 0.1), pair(3, 2, 1.0, 0.16)];
        assert_eq!(of(&hidden, &[0, 1, 2, 3], &pairs), (vec![0, 1], vec![2, 3]));
        assert_eq!(of(&siblings, &[0, 3], &[]), (vec![0], vec![3]), "a sibling that may not be used");
    }

    #[test]
    fn of_several_nodes_the_largest_is_used_and_few_connections_need_few_cores() {
        let nodes = [
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("/sys/devices/system/node/node1/cpulist", "4-15\n"),
        ];
        let usable: Vec<u32> = (0..16).collect();
        let sides = |files: &[(&str, &str)], most| known_sides(&machine(files).1, &usable, most);
        assert_eq!(sides(&nodes, 9), ((4..13).collect(), vec![13, 14, 15]));
        assert_eq!(sides(&nodes, 1), ((4..15).collect(), vec![15]));
        assert_eq!(sides(&[], 2), ((0..14).collect(), vec![14, 15]));
    }

    #[test]
    fn two_threads_of_one_core_are_all_that_there_is() {
        assert_eq!(of(&[], &[0, 1], &[pair(0, 1, 1.0, 0.5)]), (vec![0], vec![1]));
    }
}
