//! Makes the manifest of a run: the plan, the program, the host, the variants and the cells.

use std::path::Path;

use dbdyno_plan::{Plan, WaitChoice, cells, client_wait, recorded};
use dbdyno_record::{CellId, FORMAT_VERSION, HostInfo, Manifest, ToolInfo, VariantInfo, WorkloadInfo};
use dbdyno_workloads::{Surroundings, kind_of};

use crate::exit::ExitError;
use crate::prepare::Prepared;
use crate::time;

pub(crate) fn host_info(plan: &Plan, out: &Path) -> HostInfo {
    let list = |cpus: &Option<dbdyno_model::CpuList>| cpus.as_ref().map(ToString::to_string);
    let data_dir = plan.host.data_dir.as_deref().unwrap_or(out);
    let WaitChoice { wait, reason } = client_wait(plan);
    let known =
        dbdyno_sample::host_info(data_dir, list(&plan.host.server_cpus), list(&plan.host.client_cpus));
    HostInfo {
        hostname: plan.host.name.clone().unwrap_or(known.hostname),
        client_wait: Some(wait.name().to_owned()),
        client_wait_reason: Some(reason),
        ..known
    }
}

pub(crate) fn manifest(plan: &Plan, variants: &[Prepared], out: &Path) -> Result<Manifest, ExitError> {
    let recorded = recorded(plan)
        .map_err(|error| ExitError::ours(format!("the plan cannot be written down: {error}")))?;
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        tool: tool(),
        run_id: format!("{}-{}", time::for_folder(), plan.name),
        started: time::now(),
        plan: recorded,
        client_calibration: None,
        host: host_info(plan, out),
        variants: variants.iter().map(|variant| variant.info.clone()).collect::<Vec<VariantInfo>>(),
        workloads: workloads(plan, variants),
        order: cells(plan)
            .into_iter()
            .map(|cell| CellId { block: cell.block, variant: cell.variant, workload: cell.workload })
            .collect(),
    })
}

/// Describes the workloads in the order in which a plan names them. Without `variants` it leaves
/// out the differences from the original benchmarks that depend on them.
pub(crate) fn workloads(plan: &Plan, variants: &[Prepared]) -> Vec<WorkloadInfo> {
    let on_socket = variants.iter().find_map(Prepared::on_a_socket_for_lack_of_tls);
    let around = Surroundings { rest: plan.host.rest.0, on_socket };
    let info = |(name, options)| kind_of(name)?.info(name, options, &around);
    plan.workload.iter().filter_map(info).collect()
}

pub(crate) fn tool() -> ToolInfo {
    ToolInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("DBDYNO_COMMIT").to_owned(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}
