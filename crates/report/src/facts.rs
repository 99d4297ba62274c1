//! Describes run, host and variants in words that every format shares. It also describes
//! differences between runs, between starts of servers, and between hosts.

use std::collections::BTreeMap;

use dbdyno_analyse::{
    Aspect, Difference, Failure, Findings, RunSummary, StepFindings, StepRun, VariantSummary, numbered,
    parity,
};
use serde_json::Value;

use crate::number::{fixed, gib, rate};

pub(crate) fn title(findings: &Findings) -> String {
    findings.prose.title.clone().unwrap_or_else(|| format!("dbdyno: {}", findings.run.name))
}

/// Says when the run began, with which build and which seed, and how many of its cells are
/// complete.
pub(crate) fn run_line(run: &RunSummary) -> String {
    let blocks = blocks_text(run);
    let unchecked = match run.unchecked_steps {
        None => String::new(),
        Some(steps) => format!(" · {} without checksums", numbered(steps, "step")),
    };
    format!(
        "Run {} · started {} · {blocks} · {} of {} cells completed{unchecked} · seed {} · dbdyno {} ({}, {} build)",
        run.run_id,
        run.started,
        run.cells_completed,
        run.cells_planned,
        run.seed,
        run.tool.version,
        run.tool.commit,
        run.tool.build
    )
}

/// Says where the run's time went. It is `None` where that is not known.
pub(crate) fn time_line(run: &RunSummary) -> Option<String> {
    let time = run.time.filter(|time| time.total_seconds > 0.0)?;
    let parts = [
        ("measured windows", time.windows_seconds),
        ("warm-up", time.warm_up_seconds),
        ("load", time.load_seconds),
        ("settling", time.settle_seconds),
        ("connecting and checks", time.checks_seconds),
        ("servers and their data", time.servers_seconds),
        ("rest", time.rest_seconds),
        ("other", time.other_seconds),
    ];
    let share = |seconds: f64| (100.0 * seconds / time.total_seconds).round();
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, seconds)| share(*seconds) >= 1.0)
        .map(|(name, seconds)| format!("{name} {} %", share(seconds)))
        .collect();
    Some(format!("Time {}: {}", long_time(time.total_seconds), parts.join(" · ")))
}

/// Counts the blocks: those in the plan, those of a fleet's machines, and those that a budget
/// added.
pub(crate) fn blocks_text(run: &RunSummary) -> String {
    let mut blocks = numbered(run.blocks_planned, "block");
    if !run.machines.is_empty() {
        blocks.push_str(&format!(" on {}", numbered(run.machines.len(), "machine")));
    }
    if run.design.as_deref() == Some("alternate") {
        blocks.push_str(", servers alternate step by step");
    }
    if let Some(budget) = &run.budget {
        blocks.push_str(&format!(
            " and {} more within {}, analysed {}",
            budget.further_blocks,
            long_time(budget.seconds),
            if budget.looks == 1 { "once".to_owned() } else { format!("{} times", budget.looks) }
        ));
    }
    blocks
}

/// Writes a length of time, such as `90 s`, `45 min`, `2 h`, `2.5 h`.
fn long_time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{} h", (s / 360.0).round() / 10.0),
    }
}

pub(crate) fn host_line(run: &RunSummary) -> String {
    let host = &run.host;
    let mut parts = vec![
        format!("Host {}", host.hostname),
        format!("{} × {}", host.cpus, host.cpu_model),
        format!("{} memory", gib(host.memory_bytes)),
        format!("{}, {}", host.os, host.kernel),
    ];
    parts.push(match (&host.server_cpus, &host.client_cpus) {
        (None, None) => "server and client share all CPUs".to_owned(),
        (server, client) => {
            let cpus = |list: &Option<String>| {
                list.as_ref().map_or("any CPU".to_owned(), |list| format!("CPUs {list}"))
            };
            format!("server on {}, client on {}", cpus(server), cpus(client))
        }
    });
    if let Some(wait) = &host.client_wait {
        let reason =
            host.client_wait_reason.as_ref().map_or(String::new(), |reason| format!(", since {reason}"));
        parts.push(format!("client {wait}s{reason}"));
    }
    let device =
        if host.data_device.is_empty() { String::new() } else { format!(" on device {}", host.data_device) };
    parts.push(format!("data on {}{device}", host.data_filesystem));
    parts.join(" · ")
}

/// Lists further facts about the machine. It is `None` for runs that did not look for them.
pub(crate) fn facts_line(run: &RunSummary) -> Option<String> {
    let facts: Vec<String> = run.host.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    (!facts.is_empty()).then(|| facts.join(" · "))
}

pub(crate) const FAILURES: &str = "Logs of failed cells";

/// Returns the cells that failed and left a log: which cell and why, and the end of its log,
/// without control characters for a terminal.
pub(crate) fn logs(findings: &Findings) -> Vec<(String, String)> {
    let of = |failure: &Failure| {
        format!("block {} {} {}: {}", failure.block, failure.variant, failure.workload, failure.message)
    };
    let plain = |line: &str| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let text = |log: &str| log.lines().map(plain).collect::<Vec<_>>().join("\n");
    let failures = findings.failures.iter();
    failures.filter_map(|failure| Some((of(failure), text(failure.log.as_deref()?)))).collect()
}

/// Describes a variant in one line, without its name.
pub(crate) fn variant_line(findings: &Findings, variant: &VariantSummary) -> String {
    let mut parts = vec![variant.server.clone()];
    parts.extend(variant.foreign.clone());
    parts.push(match variant.version_text.as_str() {
        "" if has_answered(findings, &variant.name) => "has no version".to_owned(),
        "" => "version unknown: it never answered".to_owned(),
        version => version.to_owned(),
    });
    parts.extend(variant.engine.as_ref().map(|engine| format!("engine {engine}")));
    parts.extend(
        variant.memory_limit_bytes.map(|bytes| format!("memory limited to {}", parity::size_text(bytes))),
    );
    parts.push(format!("driver {}", variant.driver));
    parts.extend(variant.encryption.as_ref().map(|encryption| format!("connections {encryption}")));
    if variant.external {
        parts.push("external server: not configured by dbdyno".to_owned());
    }
    if !variant.missing.is_empty() {
        parts.push(format!("without {}", variant.missing.join(", ")));
    }
    parts.join(" · ")
}

fn has_answered(findings: &Findings, variant: &str) -> bool {
    let mut steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let answered = |run: &StepRun| run.kinds.iter().any(|kind| kind.operations > 0);
    steps.any(|step| step.runs_of(variant).iter().any(answered))
}

/// Says which background rate a step had to keep. It is `None` for a step without one.
pub(crate) fn target_line(step: &StepFindings) -> Option<String> {
    let (target, share) = step.target?;
    Some(format!(
        "Target of the background writers: {} rows/s over all clients, each client at least {} % \
         of its part.",
        rate(Some(target)),
        fixed(Some(share * 100.0), 0)
    ))
}

/// Writes an option's value as one line of text.
pub(crate) fn option_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn not_comparable(differences: &[Difference]) -> String {
    format!("the runs are not comparable: {}; use --anyway to compare them", difference_phrases(differences))
}

/// Says in which respects two joined runs differ.
pub fn unlike_runs(one: &str, two: &str, differences: &[Difference]) -> String {
    format!("the runs {one} and {two} are not alike: {}", difference_phrases(differences))
}

/// Returns the properties of a host's class by name. Stored noise has these names as keys, and
/// would not be found under other names.
pub fn host_class_words(class: Vec<(Aspect, Option<String>)>) -> BTreeMap<String, String> {
    class
        .into_iter()
        .map(|(aspect, value)| (aspect_name(&aspect), aspect_text(&aspect, value.as_deref())))
        .collect()
}

/// Returns words such as `seed 7 and 8; server memory of a not limited and 2 GiB`.
pub(crate) fn difference_phrases(differences: &[Difference]) -> String {
    differences.iter().map(phrase).collect::<Vec<_>>().join("; ")
}

fn phrase(Difference { aspect, variant, base, new }: &Difference) -> String {
    let of_variant = variant.as_ref().map_or_else(String::new, |variant| format!(" of {variant}"));
    let [base, new] = [base, new].map(|value| aspect_text(aspect, value.as_deref()));
    format!("{}{of_variant} {base} and {new}", aspect_name(aspect))
}

pub(crate) fn aspect_name(aspect: &Aspect) -> String {
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

/// Puts the value of one side into words.
pub(crate) fn aspect_text(aspect: &Aspect, value: Option<&str>) -> String {
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
    use crate::fixture;

    #[test]
    fn run_host_and_variants_are_one_line_each() {
        let findings = fixture::findings();
        let lines = [
            run_line(&findings.run),
            host_line(&findings.run),
            variant_line(&findings, &findings.variants[1]),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        Run 20240401T101112Z-quickstart · started 2024-04-01T10:11:12Z · 1 block · 1 of 2 cells completed · seed 42 · dbdyno 0.1.0 (abc1234, debug build)
        Host bench1 · 16 × AMD Ryzen 7 7735HS · 32.0 GiB memory · Debian GNU/Linux 12, Linux 6.1.0 · server on CPUs 0-7, client on any CPU · data on xfs on device nvme0n1
        SQLite (embedded) · 3.50.2 · engine b-tree · driver sqlite
        ");
    }

    #[test]
    fn a_limit_on_memory_and_a_server_that_never_answered_are_in_the_variants_line() {
        let mut findings = fixture::findings();
        let mut variant = findings.variants.remove(0);
        variant.memory_limit_bytes = Some(256 << 20);
        variant.version_text.clear();
        assert!(variant_line(&findings, &variant).contains("(embedded) · has no version · "));
        findings.workloads.clear();
        insta::assert_snapshot!(variant_line(&findings, &variant), @"SQLite (embedded) · version unknown: it never answered · engine b-tree · memory limited to 256 MiB · driver sqlite");
    }

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
        use --anyway to compare them
        "#);
    }

    #[test]
    fn the_properties_of_a_host_class_have_names() {
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
