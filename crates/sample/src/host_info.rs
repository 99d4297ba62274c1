//! Describes the machine that this process runs on: CPU, memory, kernel, operating system, disk.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dbdyno_record::HostInfo;

use crate::device::{device_of, filesystem_of, mount_source_of};
use crate::sources::parse_stat;

/// Describes this machine. `data_dir` is the folder that holds the data directories, and the CPU lists
/// are those of the plan. A property that cannot be found out is `unknown` or 0.
pub fn host_info(data_dir: &Path, server_cpus: Option<String>, client_cpus: Option<String>) -> HostInfo {
    let device = device_of(data_dir).map(|device| device.name);
    HostInfo {
        hostname: line("/proc/sys/kernel/hostname"),
        os: parse_os(&text("/etc/os-release")).unwrap_or_else(unknown),
        kernel: line("/proc/sys/kernel/osrelease"),
        cpu_model: parse_cpu_model(&text("/proc/cpuinfo"))
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cpus: parse_stat(&text("/proc/stat"), &BTreeSet::new()).map_or(0, |stat| stat.cpus),
        memory_bytes: parse_memory_bytes(&text("/proc/meminfo")).unwrap_or(0),
        server_cpus,
        client_cpus,
        client_wait: None,
        client_wait_reason: None,
        data_filesystem: filesystem_of(data_dir),
        data_device: device.or_else(|| mount_source_of(data_dir)).unwrap_or_else(unknown),
        facts: Vec::new(),
        calibration: None,
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn line(path: &str) -> String {
    let text = text(path);
    let line = text.trim();
    if line.is_empty() { unknown() } else { line.to_owned() }
}

/// Returns the full name in a text of os-release(5).
fn parse_os(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// Returns the CPU's name in a text of `/proc/cpuinfo`. ARM gives only two numbers: who designed the
/// CPU, and which part it is.
fn parse_cpu_model(text: &str) -> Option<String> {
    let value = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.split_once(':'));
        values.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    if let Some(name) = value("model name") {
        return Some(name);
    }
    Some(format!("ARM implementer {} part {}", value("CPU implementer")?, value("CPU part")?))
}

/// Returns the memory of the machine in a text of `/proc/meminfo`, where kB means 1024 bytes.
fn parse_memory_bytes(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_system_is_read_with_and_without_quotes() {
        assert_eq!(
            parse_os("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n").unwrap(),
            "Debian GNU/Linux 12 (bookworm)"
        );
        assert_eq!(parse_os("PRETTY_NAME=Alpine\n").unwrap(), "Alpine");
        assert_eq!(parse_os(""), None);
    }

    #[test]
    fn cpus_of_intel_and_of_arm_have_a_name() {
        let intel =
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\nstepping\t: 3\n";
        assert_eq!(parse_cpu_model(intel).unwrap(), "Intel(R) Xeon(R) CPU @ 2.20GHz");
        let arm = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n";
        assert_eq!(parse_cpu_model(arm).unwrap(), "ARM implementer 0x41 part 0xd0c");
        assert_eq!(parse_cpu_model(""), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(parse_memory_bytes("MemTotal:       24662704 kB\nMemFree: 1 kB\n"), Some(25_254_608_896));
        assert_eq!(parse_memory_bytes("MemTotal: many\n"), None);
    }

    #[test]
    fn this_machine_is_described_completely() {
        let info = host_info(Path::new(env!("CARGO_MANIFEST_DIR")), Some("0-1".to_owned()), None);
        for text in [&info.hostname, &info.os, &info.kernel, &info.data_filesystem, &info.data_device] {
            assert!(!text.is_empty() && text != "unknown", "{info:?}");
        }
        assert!(!info.cpu_model.is_empty() && info.cpus > 0 && info.memory_bytes > 0, "{info:?}");
        assert_eq!((info.server_cpus.as_deref(), info.client_cpus), (Some("0-1"), None));
    }
}
