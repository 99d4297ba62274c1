//! Finds where server and client ran, and warns about external and embedded servers and about
//! shared CPUs.

use dbdyno_record::{HostInfo, Run, VariantInfo};

use crate::model::{Code, Warning};
use crate::servers::cpu_list;
use crate::window::Hosting;

pub(crate) fn warnings(run: &Run) -> Vec<Warning> {
    let variants = &run.manifest.variants;
    let named = |hosting: Hosting| -> Vec<&str> {
        let of_hosting = |variant: &&VariantInfo| hosting_of(run, variant) == hosting;
        variants.iter().filter(of_hosting).map(|variant| variant.name.as_str()).collect()
    };
    let external_sampled: Vec<&str> = variants
        .iter()
        .filter(|variant| variant.external && hosting_of(run, variant) == Hosting::Process)
        .map(|variant| variant.name.as_str())
        .collect();
    let by_code = [
        (Code::ExternalServer, named(Hosting::External)),
        (Code::Embedded, named(Hosting::Embedded)),
        (Code::NoDatabase, named(Hosting::Nothing)),
        (Code::ExternalServerSeen, external_sampled),
    ];
    let warning = |(code, names): (Code, Vec<&str>)| Warning::new(code).at_all(names);
    let mut all: Vec<Warning> =
        by_code.into_iter().filter(|(_, names)| !names.is_empty()).map(warning).collect();
    if !named(Hosting::Process).is_empty() {
        all.extend(shared_cpus(&run.manifest.host));
    }
    all
}

/// Where the variant's database works, as its first step shows. Without a step, the manifest says
/// it.
pub(crate) fn hosting_of(run: &Run, variant: &VariantInfo) -> Hosting {
    let mut cells = run.cells.iter().filter(|cell| cell.id.variant == variant.name);
    match cells.find_map(|cell| cell.steps.first()) {
        Some(step) => Hosting::in_step(variant, &step.counters),
        None => Hosting::of(variant),
    }
}

/// Whether only the load client may use the CPUs on which it runs, as far as the plan says.
pub(crate) fn client_has_own_cpus(host: &HostInfo, is_external: bool) -> bool {
    match (host.client_cpus.as_deref().and_then(cpu_list), host.server_cpus.as_deref().and_then(cpu_list)) {
        (Some(client), Some(server)) => client.is_disjoint(&server),
        // The plan does not say where someone else's server runs.
        (Some(_), None) => is_external,
        _ => false,
    }
}

/// A warning where client and server may take CPU time from each other.
fn shared_cpus(host: &HostInfo) -> Option<Warning> {
    let (Some(server), Some(client)) = (&host.server_cpus, &host.client_cpus) else {
        return Some(Warning::new(Code::UnpinnedCpus));
    };
    let shared: Vec<String> =
        cpu_list(server)?.intersection(&cpu_list(client)?).map(u32::to_string).collect();
    (!shared.is_empty()).then(|| Warning::new(Code::SharedCpus).with("cpus", shared.join(", ")))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, load_step, run, series, shown_all};

    #[test]
    fn external_embedded_and_null_variants_have_a_warning_each() {
        let mut run = run(&["far", "lite", "none"], 1, Vec::new());
        run.manifest.variants[0].external = true;
        run.manifest.variants[1].embedded = true;
        run.manifest.variants[2].driver = "null".to_owned();
        assert_snapshot!(shown_all(&warnings(&run)), @r"
        external-server [far]
        embedded [lite]
        no-database [none]
        ");
    }

    #[test]
    fn an_external_server_that_was_sampled_is_a_process_on_this_host() {
        let mut step = load_step(1_000);
        step.counters.extend(series("server", &["cpu_us"], &[(0, vec![0])]));
        let mut run = run(&["near"], 1, vec![cell(1, "near", vec![step])]);
        run.manifest.variants[0].external = true;
        run.manifest.host.server_cpus = None;
        assert_snapshot!(shown_all(&warnings(&run)), @r"
        external-server-seen [near]
        unpinned-cpus
        ");
    }

    #[test]
    fn shared_and_unpinned_cpus_are_reported_where_a_server_process_runs() {
        let mut run = run(&["a"], 1, Vec::new());
        assert!(warnings(&run).is_empty());
        run.manifest.host.client_cpus = Some("1, 3".to_owned());
        assert_snapshot!(shown_all(&warnings(&run)), @"shared-cpus cpus: 1");
        run.manifest.host.client_cpus = None;
        assert_snapshot!(shown_all(&warnings(&run)), @"unpinned-cpus");
        run.manifest.variants[0].embedded = true;
        assert_eq!(warnings(&run).len(), 1);
    }
}
