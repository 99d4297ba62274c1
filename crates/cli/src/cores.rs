//! Divides the CPUs between server and client where a plan names none. Each gets whole cores.

use dbdyno_model::{CpuList, Cpus};
use dbdyno_plan::Plan;
use dbdyno_products::VariantKind;

use crate::host;
use crate::host_files::HostFiles;

/// The client gets one of this many cores. It gets the last ones.
const CORES_PER_CLIENT_CORE: usize = 4;

/// Variable that, with the value `shared`, lets plans without CPUs run on all of them. It is for
/// machines that do other work as well.
const CPUS_VARIABLE: &str = "DBDYNO_CPUS";

/// Connections for each core of the client. A load thread serves as many.
const CONNECTIONS_PER_CORE: u32 = 64;

/// Gives servers that dbdyno starts, and the client, CPUs of their own, where the plan names none
/// and this process may use two or more. They are whole cores of one node. The client gets the last
/// ones, one per 64 connections and at most a quarter.
pub(crate) fn give_cpus(plan: &mut Plan) {
    let is_shared = std::env::var_os(CPUS_VARIABLE).is_some_and(|value| value == "shared");
    let asked = &plan.host;
    let is_named = asked.server_cpus.is_some() || asked.client_cpus.is_some();
    let starts = plan.variants.iter().any(|variant| VariantKind::of(variant).is_started());
    if is_shared || is_named || asked.cpus == Cpus::Shared || !starts {
        return;
    }
    let Ok(usable) = host::usable_cpus() else { return };
    let most = plan.workload.most_connections().div_ceil(CONNECTIONS_PER_CORE).max(1);
    let (server, client) = sides(&HostFiles::here(), &usable.0, most as usize);
    let fits = plan.host.client_threads.is_none_or(|threads| threads as usize <= client.len());
    if !client.is_empty() && fits {
        (plan.host.server_cpus, plan.host.client_cpus) = (Some(CpuList(server)), Some(CpuList(client)));
    }
}

/// Returns the CPUs of the server and of the client, on the node that has the most usable CPUs. The
/// client gets at most `most` cores, and none where there is one CPU. Where all CPUs are one core,
/// it gets the last CPU.
fn sides(files: &HostFiles, usable: &[u32], most: usize) -> (Vec<u32>, Vec<u32>) {
    let usable = of_one_node(files, usable);
    let cores = match cores(files, &usable) {
        cores if cores.len() > 1 => cores,
        _ => usable.iter().map(|cpu| vec![*cpu]).collect(),
    };
    if cores.len() < 2 {
        return (usable, Vec::new());
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

/// Returns the usable CPUs of the node that has the most of them. It returns all CPUs where no node
/// has two.
fn of_one_node(files: &HostFiles, usable: &[u32]) -> Vec<u32> {
    let folder = "/sys/devices/system/node";
    let of_node = |node: String| {
        let list = files.line(&format!("{folder}/{node}/cpulist"))?.parse::<CpuList>().ok()?;
        Some(usable.iter().copied().filter(|cpu| list.0.contains(cpu)).collect::<Vec<u32>>())
    };
    let nodes = files.names(folder).into_iter().filter_map(of_node);
    // The first of equally large nodes wins.
    let largest = nodes.reduce(|best, node| if node.len() > best.len() { node } else { best });
    largest.filter(|node| node.len() > 1).unwrap_or_else(|| usable.to_vec())
}

/// Returns the CPUs of each core, as the kernel reports them, in the order of their first CPUs.
fn cores(files: &HostFiles, usable: &[u32]) -> Vec<Vec<u32>> {
    let mut cores: Vec<(Option<String>, Vec<u32>)> = Vec::new();
    for &cpu in usable {
        let siblings = files.line(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        match cores.iter_mut().find(|(core, _)| core.is_some() && *core == siblings) {
            Some((_, cpus)) => cpus.push(cpu),
            None => cores.push((siblings, vec![cpu])),
        }
    }
    cores.into_iter().map(|(_, cpus)| cpus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_files::machine;

    const TOPOLOGY: &str = "/sys/devices/system/cpu/cpu";

    fn of(siblings: &[&str], usable: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let paths: Vec<String> =
            (0..siblings.len()).map(|cpu| format!("{TOPOLOGY}{cpu}/topology/thread_siblings_list")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().map(String::as_str).zip(siblings.iter().copied()).collect();
        sides(&machine(&files).1, usable, usize::MAX)
    }

    #[test]
    fn the_client_has_a_quarter_of_the_cores_and_at_least_one() {
        assert_eq!(of(&[], &[0]), (vec![0], vec![]));
        assert_eq!(of(&[], &[0, 1]), (vec![0], vec![1]));
        assert_eq!(of(&[], &[0, 1, 2, 3, 4, 5, 6, 7]), (vec![0, 1, 2, 3, 4, 5], vec![6, 7]));
    }

    #[test]
    fn cores_stay_whole_unless_there_is_only_one() {
        let siblings = ["0,2\n", "1,3\n", "0,2\n", "1,3\n"];
        assert_eq!(of(&siblings, &[0, 1, 2, 3]), (vec![0, 2], vec![1, 3]));
        assert_eq!(of(&siblings, &[0, 3]), (vec![0], vec![3]), "a sibling that may not be used");
        assert_eq!(of(&["0-1\n", "0-1\n"], &[0, 1]), (vec![0], vec![1]), "one core");
    }

    #[test]
    fn of_several_nodes_the_largest_is_used_and_few_connections_need_few_cores() {
        let nodes = [
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("/sys/devices/system/node/node1/cpulist", "4-15\n"),
        ];
        let usable: Vec<u32> = (0..16).collect();
        let sides = |files: &[(&str, &str)], most| sides(&machine(files).1, &usable, most);
        assert_eq!(sides(&nodes, 9), ((4..13).collect(), vec![13, 14, 15]));
        assert_eq!(sides(&nodes, 1), ((4..15).collect(), vec![15]));
        assert_eq!(sides(&[], 2), ((0..14).collect(), vec![14, 15]));
    }
}
