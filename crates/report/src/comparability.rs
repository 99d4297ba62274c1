//! Words for differences between runs, between starts of servers, and between hosts.

use std::collections::BTreeMap;

use dbdyno_analyse::{Aspect, Difference};

pub fn not_comparable(differences: &[Difference]) -> String {
    format!("the runs are not comparable: {}; --anyway compares them anyway", phrases(differences))
}

/// The sentence about two joined runs that differ.
pub fn unlike_runs(one: &str, two: &str, differences: &[Difference]) -> String {
    format!("the runs {one} and {two} are not alike: {}", phrases(differences))
}

/// The properties of a host's class, by name. Stored noise has these names as keys, and is not
/// found again under other names.
pub fn host_class_words(class: Vec<(Aspect, Option<String>)>) -> BTreeMap<String, String> {
    class.into_iter().map(|(aspect, value)| (name(&aspect), text(&aspect, value.as_deref()))).collect()
}

/// Words such as `seed 7 and 8; server memory of a not limited and 2 GiB`.
pub(crate) fn phrases(differences: &[Difference]) -> String {
    differences.iter().map(phrase).collect::<Vec<_>>().join("; ")
}

fn phrase(Difference { aspect, variant, base, new }: &Difference) -> String {
    let of_variant = variant.as_ref().map_or_else(String::new, |variant| format!(" of {variant}"));
    let [base, new] = [base, new].map(|value| text(aspect, value.as_deref()));
    format!("{}{of_variant} {base} and {new}", name(aspect))
}

pub(crate) fn name(aspect: &Aspect) -> String {
    let name = match aspect {
        Aspect::Plan => "plan",
        Aspect::Seed => "seed",
        Aspect::Build => "build",
        Aspect::Dbdyno => "dbdyno",
        Aspect::Kernel => "kernel",
        Aspect::Machine => "machine",
        Aspect::CpuModel => "CPU",
        Aspect::Cpus => "number of CPUs",
        Aspect::MemoryGib => "memory in GiB",
        Aspect::ServerCpus => "CPUs of the server",
        Aspect::ClientCpus => "CPUs of the client",
        Aspect::ClientWait => "how the client waits",
        Aspect::DataFilesystem => "filesystem of the data",
        Aspect::StartedMemory => "server memory",
        Aspect::StartedCpus => "CPUs of the running server",
        Aspect::RatioBase => "base of the ratios",
        Aspect::Workload => "workload",
        Aspect::Version(workload) => return format!("version of {workload}"),
        Aspect::Key(path) => path,
    };
    name.to_owned()
}

/// The value on one side, in words.
pub(crate) fn text(aspect: &Aspect, value: Option<&str>) -> String {
    let absent = match aspect {
        Aspect::ServerCpus | Aspect::ClientCpus => "any",
        Aspect::StartedMemory => "not limited",
        Aspect::Workload => "no such workload",
        _ => "not set",
    };
    value.unwrap_or(absent).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differ(aspect: Aspect, base: Option<&str>, new: Option<&str>) -> Difference {
        let [base, new] = [base, new].map(|value| value.map(str::to_owned));
        Difference { aspect, variant: None, base, new }
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        let memory = differ(Aspect::StartedMemory, None, Some("2 GiB"));
        let all = [
            differ(Aspect::Plan, Some("small"), Some("other")),
            differ(Aspect::MemoryGib, Some("0"), Some("32")),
            differ(Aspect::ServerCpus, Some("0-1"), None),
            differ(Aspect::Workload, Some("oltp"), None),
            differ(Aspect::Version("oltp".to_owned()), Some("1"), Some("2")),
            differ(Aspect::Key("oltp.settle.wait".to_owned()), Some("\"0s\""), Some("\"1s\"")),
            differ(Aspect::Key("host.client_threads".to_owned()), None, Some("2")),
            differ(Aspect::Seed, Some("7"), Some("8")),
            differ(Aspect::Build, Some("release"), Some("debug")),
            differ(Aspect::Dbdyno, Some("0.1.0"), Some("0.2.0")),
            differ(Aspect::Kernel, Some("5.10"), Some("6.1")),
            differ(Aspect::Machine, Some("one"), Some("two")),
            differ(Aspect::StartedCpus, Some("0"), Some("1")),
            differ(Aspect::RatioBase, Some("a"), Some("b")),
            Difference { variant: Some("a".to_owned()), ..memory.clone() },
            memory,
        ];
        assert_eq!(unlike_runs("x", "y", &all[..1]), "the runs x and y are not alike: plan small and other");
        insta::assert_snapshot!(not_comparable(&all).replace("; ", "\n"), @r#"
        the runs are not comparable: plan small and other
        memory in GiB 0 and 32
        CPUs of the server 0-1 and any
        workload oltp and no such workload
        version of oltp 1 and 2
        oltp.settle.wait "0s" and "1s"
        host.client_threads not set and 2
        seed 7 and 8
        build release and debug
        dbdyno 0.1.0 and 0.2.0
        kernel 5.10 and 6.1
        machine one and two
        CPUs of the running server 0 and 1
        base of the ratios a and b
        server memory of a not limited and 2 GiB
        server memory not limited and 2 GiB
        --anyway compares them anyway
        "#);
    }

    #[test]
    fn the_class_of_a_host_is_by_name() {
        let class = [
            (Aspect::CpuModel, Some("Xeon")),
            (Aspect::Cpus, Some("4")),
            (Aspect::MemoryGib, Some("32")),
            (Aspect::ServerCpus, None),
            (Aspect::ClientCpus, Some("3")),
            (Aspect::ClientWait, Some("spin")),
            (Aspect::DataFilesystem, Some("ext4")),
        ];
        let class = class.into_iter().map(|(aspect, value)| (aspect, value.map(str::to_owned)));
        insta::assert_debug_snapshot!(host_class_words(class.collect()), @r#"
        {
            "CPU": "Xeon",
            "CPUs of the client": "3",
            "CPUs of the server": "any",
            "filesystem of the data": "ext4",
            "how the client waits": "spin",
            "memory in GiB": "32",
            "number of CPUs": "4",
        }
        "#);
    }
}
