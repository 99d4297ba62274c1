//! CPUs of servers and client where a plan names none.

use dbdyno_plan::{CpuList, Cpus, Plan};

use crate::doctor::wakeups::known_sides;
use crate::host;
use crate::host_files::HostFiles;

/// Where it is `shared`, plans without CPUs run on all of them: for machines that do other work as
/// well.
const CPUS_VARIABLE: &str = "DBDYNO_CPUS";

/// Connections for each core of the client: as many as a load thread has.
const CONNECTIONS_A_CORE: u32 = 64;

/// Gives servers that dbdyno starts and the client CPUs of their own where the plan names none and
/// this process may use two or more: whole cores of one node, the last ones to the client, one for
/// each 64 connections and at most a quarter.
pub(crate) fn give(plan: &mut Plan) {
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
