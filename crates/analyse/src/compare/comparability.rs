//! Says whether two runs may be compared: they need the same plan, amount of data, load client and
//! class of host. It also says whether a server, its settings or dbdyno changed during one run. The
//! blocks of one variant are then from two servers, or were measured by two builds of dbdyno.

use std::collections::BTreeMap;

use dbdyno_model::Plan;
use dbdyno_products::KNOWN;
use dbdyno_record::{CellId, HostInfo, Manifest, Run, ServerInfo, WorkloadInfo};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{Aspect, Code, Difference, SettingChange, Warning};
use crate::parity::size_text;
use crate::servers::{servers, servers_of};

const GIB: u64 = 1 << 30;

/// The differences; empty for runs that are comparable. `pairs` are the variants to compare, each
/// by its name in `base` and in `new`.
pub(crate) fn differences(base: &Run, new: &Run, pairs: &[(&str, &str)]) -> Vec<Difference> {
    differences_of((&base.manifest, &starts(base)), (&new.manifest, &starts(new)), pairs)
}

/// The differences of runs whose records are no longer in memory.
pub(crate) fn differences_of(
    (base, base_starts): (&Manifest, &Starts),
    (new, new_starts): (&Manifest, &Starts),
    pairs: &[(&str, &str)],
) -> Vec<Difference> {
    let mut all = of_manifests(base, new);
    let pinned = base.host.server_cpus == new.host.server_cpus;
    for (base_name, new_name) in pairs {
        let (Some(base), Some(new)) = (base_starts.get(*base_name), new_starts.get(*new_name)) else {
            continue;
        };
        let variant = (base_name == new_name).then(|| (*base_name).to_owned());
        let of_pair = base.differences(new, pinned);
        all.extend(of_pair.map(|difference| Difference { variant: variant.clone(), ..difference }));
    }
    all
}

/// Warnings about differences in how the servers of two variants of one run were started: in their
/// memory or their CPUs.
pub(crate) fn start_difference_warnings(run: &Run, base_name: &str, new_name: &str) -> Vec<Warning> {
    let of = |name| servers(run, name).next().map(Started::of);
    let (Some(base), Some(new)) = (of(base_name), of(new_name)) else { return Vec::new() };
    let warning = |Difference { aspect, base, new, .. }| {
        let warning = Warning::new(Code::StartedOtherwise).at_all([base_name, new_name]);
        let warning = warning.with("base", (aspect.clone(), base)).with("new", (aspect.clone(), new));
        warning.with("what", aspect)
    };
    base.differences(&new, true).map(warning).collect()
}

/// Small differences, which may change rates a little but do not keep two runs from being compared.
pub(crate) fn small_differences(base: &Manifest, new: &Manifest) -> Vec<Difference> {
    let tool = |run: &Manifest| Some(format!("{} ({})", run.tool.version, run.tool.commit));
    let kernel = |run: &Manifest| Some(run.host.kernel.clone());
    let machine = |run: &Manifest| Some(run.host.hostname.clone());
    let all = [
        Difference::of(Aspect::Dbdyno, tool(base), tool(new)),
        Difference::of(Aspect::Kernel, kernel(base), kernel(new)),
        Difference::of(Aspect::Machine, machine(base), machine(new)),
    ];
    all.into_iter().flatten().collect()
}

/// How the first server of each variant was started, by variant.
pub(crate) type Starts = BTreeMap<String, Started>;

pub(crate) fn starts(run: &Run) -> Starts {
    let names = run.manifest.variants.iter().map(|variant| &variant.name);
    names.filter_map(|name| Some((name.clone(), Started::of(servers(run, name).next()?)))).collect()
}

/// The memory limit and the CPUs with which dbdyno started a server. No setting of the server shows
/// them.
#[derive(Debug)]
pub(crate) struct Started {
    memory: Option<String>,
    cpus: Option<String>,
}

impl Started {
    fn of(server: &ServerInfo) -> Self {
        Self { memory: server.memory_limit_bytes.map(size_text), cpus: server.cpus.clone() }
    }

    /// Differences between two starts. `with_cpus` also compares the CPUs that the kernel gave the
    /// servers. These may differ although the plans want the same CPUs, because a container may
    /// have fewer.
    fn differences(&self, new: &Self, with_cpus: bool) -> impl Iterator<Item = Difference> {
        let memory = Difference::of(Aspect::StartedMemory, self.memory.clone(), new.memory.clone());
        let are_known = with_cpus && self.cpus.is_some() && new.cpus.is_some();
        let cpus = Difference::of(Aspect::StartedCpus, self.cpus.clone(), new.cpus.clone());
        memory.into_iter().chain(cpus.filter(|_| are_known))
    }
}

fn of_manifests(base: &Manifest, new: &Manifest) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut differ = |aspect, base, new| all.extend(Difference::of(aspect, base, new));
    differ(Aspect::Plan, Some(base.plan.name.clone()), Some(new.plan.name.clone()));
    differ(Aspect::Seed, Some(base.plan.seed.to_string()), Some(new.plan.seed.to_string()));
    differ(Aspect::Build, Some(base.tool.build.clone()), Some(new.tool.build.clone()));
    for (aspect, value) in HOST_CLASS {
        differ(aspect, value(&base.host), value(&new.host));
    }
    for (key, value) in PLAN_KEYS {
        differ(Aspect::Key(key.to_owned()), value(&base.plan), value(&new.plan));
    }
    for workload in &base.workloads {
        match new.workloads.iter().find(|other| other.name == workload.name) {
            Some(other) => workload_differences(workload, other, &mut all),
            None => all.extend(Difference::of(Aspect::Workload, Some(workload.name.clone()), None)),
        }
    }
    all
}

/// The value of a plan's key as text; `None` where the plan does not set it.
type PlanKey = fn(&Plan) -> Option<String>;

/// Keys of a plan that decide what the client costs and does. Other keys of these tables change
/// what is in the server's own description, or change no rate.
const PLAN_KEYS: [(&str, PlanKey); 8] = [
    ("clients.hosts", |plan| text(&plan.clients.as_ref()?.hosts)),
    ("host.sampling", |plan| text(&plan.host.sampling)),
    ("host.client_threads", |plan| text(&plan.host.client_threads?)),
    ("host.client_work", |plan| text(&plan.host.client_work?)),
    ("load.connect_rate_per_second", |plan| text(&plan.load.connect_rate_per_second?)),
    ("load.lost_connections", |plan| text(&plan.load.lost_connections)),
    ("load.reconnect_wait", |plan| text(&plan.load.reconnect_wait)),
    ("load.reconnect_wait_max", |plan| text(&plan.load.reconnect_wait_max)),
];

/// The value as a plan writes it.
fn text(value: &impl Serialize) -> Option<String> {
    Some(serde_json::to_value(value).ok()?.to_string().trim_matches('"').to_owned())
}

/// A property of a host as text; `None` where any value will do.
type HostFact = fn(&HostInfo) -> Option<String>;

/// The properties that decide a host's class. Names and kernels may differ; performance may not.
const HOST_CLASS: [(Aspect, HostFact); 7] = [
    (Aspect::CpuModel, |host| Some(host.cpu_model.clone())),
    (Aspect::Cpus, |host| Some(host.cpus.to_string())),
    (Aspect::MemoryGib, |host| Some(((host.memory_bytes + GIB / 2) / GIB).to_string())),
    (Aspect::ServerCpus, |host| host.server_cpus.clone()),
    (Aspect::ClientCpus, |host| host.client_cpus.clone()),
    (Aspect::ClientWait, |host| host.client_wait.clone()),
    (Aspect::DataFilesystem, |host| Some(host.data_filesystem.clone())),
];

/// The properties that make up a host's class. Runs on hosts of one class can be compared, and
/// scatter alike.
pub fn host_class(host: &HostInfo) -> Vec<(Aspect, Option<String>)> {
    HOST_CLASS.into_iter().map(|(aspect, value)| (aspect, value(host))).collect()
}

fn workload_differences(base: &WorkloadInfo, new: &WorkloadInfo, all: &mut Vec<Difference>) {
    let [base_version, new_version] = [base, new].map(|workload| Some(workload.version.to_string()));
    all.extend(Difference::of(Aspect::Version(base.name.clone()), base_version, new_version));
    option_differences(&base.name, &base.options, &new.options, all);
}

/// Differences between options. Options that hold others, such as `settle`, are compared one by
/// one: `insert-benchmark.settle.wait`.
fn option_differences(
    path: &str,
    base: &Map<String, Value>,
    new: &Map<String, Value>,
    all: &mut Vec<Difference>,
) {
    for key in base.keys().chain(new.keys().filter(|key| !base.contains_key(*key))) {
        let path = format!("{path}.{key}");
        match (base.get(key), new.get(key)) {
            (Some(Value::Object(base)), Some(Value::Object(new))) => {
                option_differences(&path, base, new, all)
            }
            (base, new) if base == new => {}
            (base, new) => {
                let [base, new] = [base, new].map(|value| value.map(ToString::to_string));
                all.extend(Difference::of(Aspect::Key(path), base, new));
            }
        }
    }
}

/// Number of ended steps whose files could not be checked against their checksums; `None` where
/// there are none.
pub(crate) fn unchecked_steps(run: &Run) -> Option<usize> {
    let steps = run.cells.iter().flat_map(|cell| &cell.steps);
    let unchecked = steps.filter(|step| step.outcome().is_some() && !step.has_checksums).count();
    (unchecked > 0).then_some(unchecked)
}

/// A warning with the number of [`unchecked_steps`], for a comparison of runs.
pub(crate) fn without_checksums_note(run: &Run) -> Option<Warning> {
    let warning = Warning::new(Code::WithoutChecksums).with("steps", unchecked_steps(run)?);
    Some(warning.with("run", run.manifest.run_id.as_str()))
}

/// One warning for each variant whose server or settings changed from one start to another.
pub(crate) fn change_warnings(run: &Run) -> Vec<Warning> {
    let names = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    names.flat_map(|name| changes_of_variant(run, name)).collect()
}

pub(crate) fn changes_of_variant(run: &Run, name: &str) -> Vec<Warning> {
    [server_change(run, name), settings_change(run, name)].into_iter().flatten().collect()
}

/// A note that the run was continued with another build of dbdyno than the one that began it.
pub(crate) fn several_builds_note(run: &Run) -> Option<Warning> {
    let begun = &run.manifest.tool;
    let other = run.tools().find(|tool| *tool != begun)?;
    let [first, other] = [begun, other].map(|tool| format!("{} ({})", tool.version, tool.commit));
    let warning = Warning::new(Code::SeveralTools).with("run", run.manifest.run_id.as_str());
    Some(warning.with("first", first).with("other", other))
}

/// Every start of a variant's server, with its cell.
fn server_starts<'a>(run: &'a Run, variant: &str) -> impl Iterator<Item = (&'a CellId, &'a ServerInfo)> {
    let cells = run.cells.iter().filter(move |cell| cell.id.variant == variant);
    cells.flat_map(|cell| servers_of(cell).map(move |server| (&cell.id, server)))
}

fn server_change(run: &Run, variant: &str) -> Option<Warning> {
    let (_, first) = server_starts(run, variant).next()?;
    let (_, other) =
        server_starts(run, variant).find(|(_, server)| server.version_text != first.version_text)?;
    let warning = Warning::new(Code::ServerChanged).at(variant);
    Some(warning.with("first", first.version_text.as_str()).with("other", other.version_text.as_str()))
}

/// The first start whose settings differ from those of the variant's very first start. A server of
/// another version is reported separately.
fn settings_change(run: &Run, variant: &str) -> Option<Warning> {
    let (first_cell, first) = server_starts(run, variant).find(|(_, server)| !server.settings.is_empty())?;
    let same_build = |server: &ServerInfo| server.version_text == first.version_text;
    let others =
        server_starts(run, variant).filter(|(_, server)| same_build(server) && !server.settings.is_empty());
    let (cell, changes) = others
        .map(|(cell, server)| (cell, setting_changes(first, server)))
        .find(|(_, found)| !found.is_empty())?;
    let warning = Warning::new(Code::SettingsChanged).at(variant).with("changes", changes);
    Some(warning.with("first", first_cell.to_string()).with("other", cell.to_string()))
}

/// The settings that differ. A setting that only one of the two starts has counts as well.
fn setting_changes(first: &ServerInfo, other: &ServerInfo) -> Vec<SettingChange> {
    let names =
        first.settings.keys().chain(other.settings.keys().filter(|name| !first.settings.contains_key(*name)));
    let change = |name: &String| {
        let [first, other] = [first, other].map(|server| server.settings.get(name));
        let is_stable = !KNOWN.of_each_start.contains(&name.to_ascii_lowercase());
        let is_path = [first, other].into_iter().flatten().any(|value| value.contains('/'));
        (first != other && is_stable && !is_path).then(|| SettingChange {
            name: name.clone(),
            first: first.cloned(),
            other: other.cloned(),
        })
    };
    names.filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellEvent, CellRecord};
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::fixtures::{cell, run, shown_all, shown_differences};

    fn of(base: &Run, new: &Run) -> String {
        shown_differences(&differences(base, new, &[("a", "a")]))
    }

    #[test]
    fn a_run_is_comparable_with_itself_and_with_a_run_of_other_variants() {
        let one = run(&["a"], 3, Vec::new());
        let two = run(&["b", "c"], 5, Vec::new());
        assert!(differences(&one, &two, &[("a", "b")]).is_empty());
        assert!(small_differences(&one.manifest, &two.manifest).is_empty());
    }

    #[test]
    fn every_difference_has_both_values() {
        let mut one = run(&["a"], 3, Vec::new());
        let settle = json!({"by": "wait", "wait": "0s"});
        one.manifest.workloads[0].options.insert("settle".to_owned(), settle);
        let mut two = run(&["a"], 3, Vec::new());
        let manifest = &mut two.manifest;
        manifest.plan.name = "other".to_owned();
        manifest.plan.seed = 8;
        manifest.tool.build = "debug".to_owned();
        manifest.host.cpus = 8;
        manifest.host.server_cpus = None;
        manifest.host.memory_bytes = 32 << 30;
        manifest.host.hostname = "elsewhere".to_owned();
        manifest.workloads[0].version = 2;
        manifest.workloads[0].options.insert("load_rows".to_owned(), json!(1_000));
        manifest.workloads[0].options.insert("settle".to_owned(), json!({"by": "wait", "wait": "1s"}));
        assert_snapshot!(of(&one, &two), @r#"
        Plan small and other
        Seed 7 and 8
        Build release and debug
        Cpus 4 and 8
        MemoryGib 0 and 32
        ServerCpus 0-1 and none
        Version("insert-benchmark") 1 and 2
        Key("insert-benchmark.settle.wait") "0s" and "1s"
        Key("insert-benchmark.load_rows") none and 1000
        "#);
    }

    #[test]
    fn keys_for_the_client_are_compared_and_a_default_equals_its_written_value() {
        let plan = |text: &str| {
            let mut run = run(&["a"], 3, Vec::new());
            run.manifest.plan = crate::fixtures::plan(text);
            run
        };
        let bare = plan("");
        let written = "[host]\nsampling = true\nkeep_data = true\n[load]\nlost_connections = \"fail\"\n\
             reconnect_wait = \"100ms\"\nreconnect_wait_max = \"5s\"\nreconnect_for = \"60s\"\n";
        assert!(of(&bare, &plan(written)).is_empty());
        let other = "[host]\nsampling = false\nclient_threads = 2\n[load]\nlost_connections = \"reconnect\"\n\
             connect_rate_per_second = 50.0\nreconnect_wait = \"1s\"\n";
        assert_snapshot!(of(&bare, &plan(other)), @r#"
        Key("host.sampling") true and false
        Key("host.client_threads") none and 2
        Key("load.connect_rate_per_second") none and 50.0
        Key("load.lost_connections") fail and reconnect
        Key("load.reconnect_wait") 100ms and 1s
        "#);
    }

    /// A run of `a` and `b` whose servers were started with this memory and these CPUs.
    fn started(memory: [Option<u64>; 2], cpus: &str) -> Run {
        let cells = ["a", "b"].into_iter().zip(memory).map(|(name, memory)| {
            let mut cell = cell(1, name, Vec::new());
            for event in &mut cell.events {
                if let CellEvent::Server { server, .. } = event {
                    server.memory_limit_bytes = memory;
                    server.cpus = Some(cpus.to_owned());
                }
            }
            cell
        });
        run(&["a", "b"], 1, cells.collect())
    }

    #[test]
    fn servers_that_were_started_with_other_memory_or_got_other_cpus_are_not_alike() {
        let (none, two) = (None, Some(2 << 30));
        let base = started([none, two], "0-1");
        assert!(of(&base, &started([none, none], "0-1")).is_empty(), "b is not compared");
        assert_snapshot!(of(&base, &started([two, two], "0,2")), @r"
        StartedMemory of a none and 2 GiB
        StartedCpus of a 0-1 and 0,2
        ");
        let crossed = differences(&base, &base, &[("a", "b")]);
        assert_snapshot!(shown_differences(&crossed), @"StartedMemory none and 2 GiB");
        let mut elsewhere = started([none, two], "2-3");
        elsewhere.manifest.host.server_cpus = Some("2-3".to_owned());
        assert_snapshot!(of(&base, &elsewhere), @"ServerCpus 0-1 and 2-3");
        assert_snapshot!(shown_all(&start_difference_warnings(&base, "a", "b")), @"started-otherwise [a, b] base: none, new: 2 GiB, what: StartedMemory");
    }

    #[test]
    fn differences_that_may_change_rates_a_little_are_reported_separately() {
        let mut one = run(&["a"], 3, Vec::new()).manifest;
        one.host.hostname = "lab1".to_owned();
        let mut two = one.clone();
        two.tool.commit = "def".to_owned();
        two.host.kernel = "6.12.0".to_owned();
        two.host.hostname = "lab2".to_owned();
        assert_snapshot!(shown_differences(&small_differences(&one, &two)), @r"
        Dbdyno 0.1.0 (abc) and 0.1.0 (def)
        Kernel 6.1.0 and 6.12.0
        Machine lab1 and lab2
        ");
    }

    fn set(block: u32, settings: &[(&str, &str)]) -> CellRecord {
        let mut cell = cell(block, "a", Vec::new());
        for event in &mut cell.events {
            if let CellEvent::Server { server, .. } = event {
                let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                server.settings = settings.collect();
            }
        }
        cell
    }

    #[test]
    fn settings_that_differ_between_blocks_are_named_with_both_values() {
        let first = [("sync_binlog", "1"), ("innodb_io_capacity", "200"), ("old", "1")];
        let third = [("sync_binlog", "0"), ("innodb_io_capacity", "200"), ("new", "ON")];
        let run = run(&["a"], 3, vec![set(1, &first), set(2, &first), set(3, &third)]);
        assert_snapshot!(shown_all(&change_warnings(&run)), @r#"settings-changed [a] changes: [{"name":"old","first":"1","other":null},{"name":"sync_binlog","first":"1","other":"0"},{"name":"new","first":null,"other":"ON"}], first: block 1 a insert-benchmark, other: block 3 a insert-benchmark"#);
    }

    #[test]
    fn settings_that_differ_at_every_start_are_not_reported() {
        let start = |n: &'static str, folder: &'static str| {
            [("server_uuid", n), ("TIMESTAMP", n), ("datadir", folder)]
        };
        let cells = vec![set(1, &start("1", "/d/1")), set(2, &start("2", "/d/2")), set(3, &[])];
        assert!(change_warnings(&run(&["a"], 3, cells)).is_empty());
    }
}
