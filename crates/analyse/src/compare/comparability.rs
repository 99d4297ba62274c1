//! Whether two runs may be compared: what was asked, of how much data, by which client, on what
//! class of host.

use std::collections::BTreeMap;

use dbdyno_record::{HostInfo, Manifest, Run, ServerInfo, WorkloadInfo};
use serde_json::{Map, Value};
use toml::Table;

use crate::model::{Code, Notice};
use crate::parity::size_text;
use crate::servers::servers;

const GIB: u64 = 1 << 30;

/// What differs, one phrase a difference, as `what BASE and NEW`; empty for runs that are alike.
/// `pairs` are the variants that are to be compared, each by its name in `base` and in `new`.
pub(crate) fn differences(base: &Run, new: &Run, pairs: &[(&str, &str)]) -> Vec<String> {
    differences_of((&base.manifest, &starts(base)), (&new.manifest, &starts(new)), pairs)
}

/// The same of runs whose records were given back.
pub(crate) fn differences_of(
    (base, base_starts): (&Manifest, &Starts),
    (new, new_starts): (&Manifest, &Starts),
    pairs: &[(&str, &str)],
) -> Vec<String> {
    let mut all = of_manifests(base, new);
    let pinned = base.host.server_cpus == new.host.server_cpus;
    for (base_name, new_name) in pairs {
        let (Some(base), Some(new)) = (base_starts.get(*base_name), new_starts.get(*new_name)) else {
            continue;
        };
        all.extend(base.differences(new, pinned).into_iter().map(|(what, base, new)| {
            let of_variant = if base_name == new_name { format!(" of {base_name}") } else { String::new() };
            format!("{what}{of_variant} {base} and {new}")
        }));
    }
    all
}

/// In what two variants of one run were not started alike: their memory.
pub(crate) fn started_otherwise(run: &Run, base_name: &str, new_name: &str) -> Vec<Notice> {
    let of = |name| servers(run, name).next().map(Started::of);
    let (Some(base), Some(new)) = (of(base_name), of(new_name)) else { return Vec::new() };
    let notice = |(what, base, new): (&str, String, String)| {
        let notice = Notice::new(Code::StartedOtherwise).at_all([base_name, new_name]);
        notice.with("what", what).with("base", base).with("new", new)
    };
    base.differences(&new, true).into_iter().map(notice).collect()
}

/// What differs in small: it may change rates a little, and does not keep runs from being compared.
/// As [`differences`].
pub(crate) fn small_differences(base: &Manifest, new: &Manifest) -> Vec<String> {
    let tool = |run: &Manifest| format!("{} ({})", run.tool.version, run.tool.commit);
    let facts = [
        ("dbdyno", tool(base), tool(new)),
        ("kernel", base.host.kernel.clone(), new.host.kernel.clone()),
        ("machine", base.host.hostname.clone(), new.host.hostname.clone()),
    ];
    let differ = facts.into_iter().filter(|(_, base, new)| base != new);
    differ.map(|(what, base, new)| format!("{what} {base} and {new}")).collect()
}

/// How the first server of each variant was started, by variant.
pub(crate) type Starts = BTreeMap<String, Started>;

pub(crate) fn starts(run: &Run) -> Starts {
    let names = run.manifest.variants.iter().map(|variant| &variant.name);
    names.filter_map(|name| Some((name.clone(), Started::of(servers(run, name).next()?)))).collect()
}

/// How dbdyno started a server: what is in no setting of its own.
#[derive(Debug)]
pub(crate) struct Started {
    memory: String,
    cpus: Option<String>,
}

impl Started {
    fn of(server: &ServerInfo) -> Self {
        let memory = server.memory_limit_bytes.map_or("not limited".to_owned(), size_text);
        Self { memory, cpus: server.cpus.clone() }
    }

    /// CPUs that the kernel gave differ beyond what the plans say where these say the same: a
    /// container may have fewer.
    fn differences(&self, new: &Self, with_cpus: bool) -> Vec<(&'static str, String, String)> {
        let mut all = Vec::new();
        if self.memory != new.memory {
            all.push(("server memory", self.memory.clone(), new.memory.clone()));
        }
        if let (true, Some(base), Some(new)) = (with_cpus, &self.cpus, &new.cpus)
            && base != new
        {
            all.push(("CPUs of the running server", base.clone(), new.clone()));
        }
        all
    }
}

fn of_manifests(base: &Manifest, new: &Manifest) -> Vec<String> {
    let mut all = Vec::new();
    let mut differ = |what: &str, base: String, new: String| {
        if base != new {
            all.push(format!("{what} {base} and {new}"));
        }
    };
    differ("plan", base.name.clone(), new.name.clone());
    differ("seed", base.seed.to_string(), new.seed.to_string());
    differ("build", base.tool.build.clone(), new.tool.build.clone());
    for (what, value) in HOST_CLASS {
        differ(what, value(&base.host), value(&new.host));
    }
    let [base_plan, new_plan] =
        [base, new].map(|manifest| manifest.plan_toml.parse::<Table>().unwrap_or_default());
    for (table, key, default) in PLAN_KEYS {
        let value = |plan: &Table| {
            let value = plan.get(table).and_then(|table| table.get(key));
            value.map_or(default.to_owned(), |value| value.to_string().trim_matches('"').to_owned())
        };
        differ(&format!("{table}.{key}"), value(&base_plan), value(&new_plan));
    }
    for workload in &base.workloads {
        match new.workloads.iter().find(|other| other.name == workload.name) {
            Some(other) => all.extend(workload_differences(workload, other)),
            None => all.push(format!("workload {} and no such workload", workload.name)),
        }
    }
    all
}

/// Keys of a plan that decide what the client costs and does, with what holds for a plan that does
/// not say them. What other keys of these tables change is in the server's own description, or in
/// no rate.
const PLAN_KEYS: [(&str, &str, &str); 8] = [
    ("clients", "hosts", "not set"),
    ("host", "sampling", "true"),
    ("host", "client_threads", "not set"),
    ("host", "client_work", "not set"),
    ("load", "connect_rate_per_second", "not set"),
    ("load", "lost_connections", "fail"),
    ("load", "reconnect_wait", "100ms"),
    ("load", "reconnect_wait_max", "5s"),
];

/// A property of a host, as text.
type HostFact = fn(&HostInfo) -> String;

/// What makes two hosts of one class. Names and kernels may differ, power may not.
const HOST_CLASS: [(&str, HostFact); 7] = [
    ("CPU", |host| host.cpu_model.clone()),
    ("number of CPUs", |host| host.cpus.to_string()),
    ("memory in GiB", |host| ((host.memory_bytes + GIB / 2) / GIB).to_string()),
    ("CPUs of the server", |host| cpus(host.server_cpus.as_deref())),
    ("CPUs of the client", |host| cpus(host.client_cpus.as_deref())),
    ("how the client waits", |host| host.client_wait().to_owned()),
    ("filesystem of the data", |host| host.data_filesystem.clone()),
];

/// What the class of a host is made of, by name: runs on hosts of one class can be compared, and
/// scatter alike.
pub fn host_class(host: &HostInfo) -> BTreeMap<String, String> {
    HOST_CLASS.iter().map(|(what, value)| ((*what).to_owned(), value(host))).collect()
}

fn cpus(list: Option<&str>) -> String {
    list.unwrap_or("any").to_owned()
}

fn workload_differences(base: &WorkloadInfo, new: &WorkloadInfo) -> Vec<String> {
    let mut all = Vec::new();
    if base.version != new.version {
        all.push(format!("version of {} {} and {}", base.name, base.version, new.version));
    }
    option_differences(&base.name, &base.options, &new.options, &mut all);
    all
}

/// Options that hold others, such as `settle`, are compared one by one:
/// `insert-benchmark.settle.wait "0s" and "1s"`.
fn option_differences(
    path: &str,
    base: &Map<String, Value>,
    new: &Map<String, Value>,
    all: &mut Vec<String>,
) {
    for key in base.keys().chain(new.keys().filter(|key| !base.contains_key(*key))) {
        let path = format!("{path}.{key}");
        match (base.get(key), new.get(key)) {
            (Some(Value::Object(base)), Some(Value::Object(new))) => {
                option_differences(&path, base, new, all)
            }
            (base, new) if base == new => {}
            (base, new) => {
                let [base, new] =
                    [base, new].map(|value| value.map_or("not set".to_owned(), ToString::to_string));
                all.push(format!("{path} {base} and {new}"));
            }
        }
    }
}

/// Steps that ended and whose files could not be compared with what they were then; `None` without
/// any.
pub(crate) fn unchecked_steps(run: &Run) -> Option<usize> {
    let steps = run.cells.iter().flat_map(|cell| &cell.steps);
    let unchecked = steps.filter(|step| step.outcome().is_some() && !step.has_checksums).count();
    (unchecked > 0).then_some(unchecked)
}

/// The same as a warning, for a comparison of runs.
pub(crate) fn unchecked_note(run: &Run) -> Option<Notice> {
    let notice = Notice::new(Code::WithoutChecksums).with("steps", unchecked_steps(run)?);
    Some(notice.with("run", run.manifest.run_id.as_str()))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CellEvent;
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::fixtures::{cell, run, shown_all};

    fn of(base: &Run, new: &Run) -> Vec<String> {
        differences(base, new, &[("a", "a")])
    }

    #[test]
    fn a_run_is_like_itself_and_like_one_of_other_variants() {
        let one = run(&["a"], 3, Vec::new());
        let two = run(&["b", "c"], 5, Vec::new());
        assert!(differences(&one, &two, &[("a", "b")]).is_empty());
        assert!(small_differences(&one.manifest, &two.manifest).is_empty());
    }

    #[test]
    fn every_difference_is_named_with_both_values() {
        let mut one = run(&["a"], 3, Vec::new());
        let settle = json!({"by": "wait", "wait": "0s"});
        one.manifest.workloads[0].options.insert("settle".to_owned(), settle);
        let mut two = run(&["a"], 3, Vec::new());
        let manifest = &mut two.manifest;
        manifest.name = "other".to_owned();
        manifest.seed = 8;
        manifest.tool.build = "debug".to_owned();
        manifest.host.cpus = 8;
        manifest.host.server_cpus = None;
        manifest.host.memory_bytes = 32 << 30;
        manifest.host.hostname = "elsewhere".to_owned();
        manifest.workloads[0].version = 2;
        manifest.workloads[0].options.insert("load_rows".to_owned(), json!(1_000));
        manifest.workloads[0].options.insert("settle".to_owned(), json!({"by": "wait", "wait": "1s"}));
        assert_snapshot!(of(&one, &two).join("\n"), @r#"
        plan small and other
        seed 7 and 8
        build release and debug
        number of CPUs 4 and 8
        memory in GiB 0 and 32
        CPUs of the server 0-1 and any
        version of insert-benchmark 1 and 2
        insert-benchmark.settle.wait "0s" and "1s"
        insert-benchmark.load_rows not set and 1000
        "#);
    }

    #[test]
    fn what_the_plans_say_of_the_client_counts_and_a_default_is_what_it_stands_for() {
        let plan = |text: &str| {
            let mut run = run(&["a"], 3, Vec::new());
            run.manifest.plan_toml = text.to_owned();
            run
        };
        let bare = plan("name = \"p\"\n");
        let written = "[host]\nsampling = true\nkeep_data = true\n[load]\nlost_connections = \"fail\"\n\
             reconnect_wait = \"100ms\"\nreconnect_wait_max = \"5s\"\nreconnect_for = \"60s\"\n";
        assert!(of(&bare, &plan(written)).is_empty());
        let other = "[host]\nsampling = false\nclient_threads = 2\n[load]\nlost_connections = \"reconnect\"\n\
             connect_rate_per_second = 50.0\nreconnect_wait = \"1s\"\n";
        assert_snapshot!(of(&bare, &plan(other)).join("\n"), @r"
        host.sampling true and false
        host.client_threads not set and 2
        load.connect_rate_per_second not set and 50.0
        load.lost_connections fail and reconnect
        load.reconnect_wait 100ms and 1s
        ");
    }

    /// A run of `a` and `b` whose servers were started with these.
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
        assert_snapshot!(of(&base, &started([two, two], "0,2")).join("\n"), @r"
        server memory of a not limited and 2 GiB
        CPUs of the running server of a 0-1 and 0,2
        ");
        let crossed = differences(&base, &base, &[("a", "b")]);
        assert_snapshot!(crossed.join("\n"), @"server memory not limited and 2 GiB");
        let mut elsewhere = started([none, two], "2-3");
        elsewhere.manifest.host.server_cpus = Some("2-3".to_owned());
        assert_snapshot!(of(&base, &elsewhere).join("\n"), @"CPUs of the server 0-1 and 2-3");
        assert_snapshot!(shown_all(&started_otherwise(&base, "a", "b")), @"started-otherwise [a, b] base: not limited, new: 2 GiB, what: server memory");
    }

    #[test]
    fn what_may_change_rates_a_little_is_kept_apart() {
        let mut one = run(&["a"], 3, Vec::new()).manifest;
        one.host.hostname = "lab1".to_owned();
        let mut two = one.clone();
        two.tool.commit = "def".to_owned();
        two.host.kernel = "6.12.0".to_owned();
        two.host.hostname = "lab2".to_owned();
        assert_snapshot!(small_differences(&one, &two).join("\n"), @r"
        dbdyno 0.1.0 (abc) and 0.1.0 (def)
        kernel 6.1.0 and 6.12.0
        machine lab1 and lab2
        ");
    }
}
