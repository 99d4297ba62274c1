//! Whether two runs may be compared: what was asked, of how much data, on what class of host.

use std::collections::BTreeMap;

use dbdyno_record::{HostInfo, Manifest, WorkloadInfo};

const GIB: u64 = 1 << 30;

/// What differs, one phrase a difference, as `what BASE and NEW`; empty for runs that are alike.
pub(crate) fn differences(base: &Manifest, new: &Manifest) -> Vec<String> {
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
    for workload in &base.workloads {
        match new.workloads.iter().find(|other| other.name == workload.name) {
            Some(other) => all.extend(workload_differences(workload, other)),
            None => all.push(format!("workload {} and no such workload", workload.name)),
        }
    }
    all
}

/// A property of a host, as text.
type HostFact = fn(&HostInfo) -> String;

/// What makes two hosts of one class. Names and kernels may differ, power may not.
const HOST_CLASS: [(&str, HostFact); 6] = [
    ("CPU", |host| host.cpu_model.clone()),
    ("number of CPUs", |host| host.cpus.to_string()),
    ("memory in GiB", |host| ((host.memory_bytes + GIB / 2) / GIB).to_string()),
    ("CPUs of the server", |host| cpus(host.server_cpus.as_deref())),
    ("CPUs of the client", |host| cpus(host.client_cpus.as_deref())),
    ("filesystem of the data", |host| host.data_filesystem.clone()),
];

/// What the class of a host is made of, by name: runs on hosts of one class can be compared, and scatter alike.
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
    let keys = base.options.keys().chain(new.options.keys().filter(|key| !base.options.contains_key(*key)));
    for key in keys {
        let text = |workload: &WorkloadInfo| {
            workload.options.get(key).map_or("not set".to_owned(), ToString::to_string)
        };
        if text(base) != text(new) {
            all.push(format!("{}.{key} {} and {}", base.name, text(base), text(new)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::fixtures::run;

    #[test]
    fn a_run_is_like_itself_and_like_one_of_other_variants() {
        let one = run(&["a"], 3, Vec::new()).manifest;
        let two = run(&["b", "c"], 5, Vec::new()).manifest;
        assert!(differences(&one, &two).is_empty());
    }

    #[test]
    fn every_difference_is_named_with_both_values() {
        let one = run(&["a"], 3, Vec::new()).manifest;
        let mut two = one.clone();
        two.name = "other".to_owned();
        two.seed = 8;
        two.tool.build = "debug".to_owned();
        two.host.cpus = 8;
        two.host.server_cpus = None;
        two.host.memory_bytes = 32 << 30;
        two.host.hostname = "elsewhere".to_owned();
        two.workloads[0].version = 2;
        two.workloads[0].options.insert("load_rows".to_owned(), json!(1_000));
        assert_snapshot!(differences(&one, &two).join("\n"), @r"
        plan small and other
        seed 7 and 8
        build release and debug
        number of CPUs 4 and 8
        memory in GiB 0 and 32
        CPUs of the server 0-1 and any
        version of insert-benchmark 1 and 2
        insert-benchmark.load_rows not set and 1000
        ");
    }
}
