//! Finds the control groups that a process is in, and reads how much CPU time and memory they
//! allow. The groups are its own and all their parents, in version 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

use dbdyno_record::Throttled;

use crate::device::{Mount, parse_mounts};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVersion {
    V1,
    V2,
}

/// A control group that a process belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup {
    /// The group's name as seen at the mount, such as `/user.slice/x.scope`. `/` is the outermost
    /// group that the mount shows.
    pub name: String,
    /// The folder of the group's files.
    pub folder: PathBuf,
    pub version: GroupVersion,
}

impl ControlGroup {
    /// Returns the throttling since the group was made, or `None` for a group that does not count it.
    pub fn throttled(&self) -> Option<Throttled> {
        parse_throttled(&fs::read_to_string(self.folder.join("cpu.stat")).ok()?, self.version)
    }

    /// Returns the CPU time that the group may use in each second, in CPUs: 0.2 is a fifth of one. It
    /// is `None` without a quota.
    pub fn quota_cpus(&self) -> Option<f64> {
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).ok();
        let (quota, period) = match self.version {
            GroupVersion::V1 => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
            GroupVersion::V2 => {
                let text = read("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.to_owned(), period.to_owned())
            }
        };
        // Without a quota the value is -1 in version 1 and `max` in version 2.
        let quota = quota.trim().parse::<f64>().ok().filter(|quota| *quota > 0.0)?;
        let period = period.trim().parse::<f64>().ok().filter(|period| *period > 0.0)?;
        Some(quota / period)
    }

    /// Returns the bytes of memory and page cache that the group may hold, or `None` without a limit.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        /// Version 1 writes the highest number of pages where there is no limit.
        const NONE_V1: u64 = 1 << 60;
        let name = match self.version {
            GroupVersion::V1 => "memory.limit_in_bytes",
            GroupVersion::V2 => "memory.max",
        };
        let text = fs::read_to_string(self.folder.join(name)).ok()?;
        text.trim().parse().ok().filter(|bytes| *bytes < NONE_V1)
    }
}

/// Returns the groups of a process that `controller` (`cpu`, `memory`) works on, the innermost first.
/// `process` is the name of its folder below `/proc`, and `root` is the root of the filesystem. The
/// list is empty where control groups are not mounted. Parents outside of a container are not seen.
pub fn control_groups(root: &Path, process: &str, controller: &str) -> Vec<ControlGroup> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let mounts = parse_mounts(&read("proc/self/mountinfo"));
    let own = read(&format!("proc/{process}/cgroup"));
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let version = match controllers {
            "" => GroupVersion::V2,
            list if list.split(',').any(|one| one == controller) => GroupVersion::V1,
            _ => return None,
        };
        let is_mount = |mount: &&Mount| match version {
            GroupVersion::V1 => mount.filesystem == "cgroup" && mount.has_option(controller),
            GroupVersion::V2 => mount.filesystem == "cgroup2",
        };
        mounts.iter().filter(is_mount).find_map(|mount| below(root, mount, path, version))
    };
    own.lines().filter_map(of_line).flatten().collect()
}

/// Reads the text of `cpu.stat`.
fn parse_throttled(text: &str, version: GroupVersion) -> Option<Throttled> {
    let value = |name: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
        pairs.find(|(found, _)| *found == name)?.1.trim().parse::<i64>().ok()
    };
    let us = match version {
        GroupVersion::V1 => value("throttled_time")? / 1000,
        GroupVersion::V2 => value("throttled_usec")?,
    };
    Some(Throttled { us, periods: value("nr_periods")?, throttled_periods: value("nr_throttled")? })
}

/// Returns a group and its parents up to the mount, or `None` where the mount does not show the group.
fn below(root: &Path, mount: &Mount, path: &str, version: GroupVersion) -> Option<Vec<ControlGroup>> {
    // A path with `..` is outside of the namespace of this process.
    let inner = Path::new(path).strip_prefix(&mount.root).ok().filter(|_| !path.contains("/.."))?;
    let top = root.join(mount.mount_point.strip_prefix("/").ok()?);
    let group = |inner: &Path| ControlGroup {
        name: format!("/{}", inner.display()),
        folder: top.join(inner),
        version,
    };
    Some(inner.ancestors().map(group).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a root folder with these files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn quotas(root: &Path) -> Vec<(String, Option<f64>)> {
        let groups = control_groups(root, "self", "cpu");
        groups.iter().map(|group| (group.name.clone(), group.quota_cpus())).collect()
    }

    #[test]
    fn version_1_has_a_path_for_each_controller_and_version_2_one_for_all() {
        let hybrid = machine(&[
            (
                "proc/self/mountinfo",
                "35 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                 36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/cgroup", "9:memory:/other\n4:cpu,cpuacct:/bench/in\n0::/user.slice\n"),
            ("sys/fs/cgroup/cpu,cpuacct/bench/in/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/bench/in/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/bench/cpu.cfs_quota_us", "20000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/bench/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "4000000000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let named = |name: &str, quota| (name.to_owned(), quota);
        let expected = [
            named("/bench/in", None),
            named("/bench", Some(0.2)),
            named("/", None),
            named("/user.slice", None),
            named("/", None),
        ];
        assert_eq!(quotas(hybrid.path()), expected);
        let memory = control_groups(hybrid.path(), "self", "memory");
        let limits: Vec<_> = memory.iter().map(ControlGroup::memory_limit_bytes).collect();
        assert_eq!(limits, [Some(4_000_000_000), None, None, None]);
        let unified = machine(&[
            ("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(quotas(unified.path()), [named("/a/b", None), named("/a", Some(1.5)), named("/", None)]);
    }

    #[test]
    fn in_a_container_the_part_of_the_tree_that_is_mounted_counts() {
        let inside = machine(&[
            ("proc/self/mountinfo", "35 31 0:32 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"),
            ("proc/self/cgroup", "4:cpu:/docker/ab\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(quotas(inside.path()), [("/".to_owned(), Some(0.5))]);
        let outside = machine(&[
            ("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/cgroup", "0::/../x\n"),
        ]);
        assert!(quotas(outside.path()).is_empty() && quotas(machine(&[]).path()).is_empty());
    }
    #[test]
    fn throttling_of_both_versions_is_read_in_microseconds() {
        let expected = Some(Throttled { us: 1_234_567, periods: 50, throttled_periods: 12 });
        let v1 = "nr_periods 50\nnr_throttled 12\nthrottled_time 1234567890\n";
        assert_eq!(parse_throttled(v1, GroupVersion::V1), expected);
        let v2 = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 50\nnr_throttled 12\n\
                  throttled_usec 1234567\nnr_bursts 0\nburst_usec 0\n";
        assert_eq!(parse_throttled(v2, GroupVersion::V2), expected);
        assert_eq!(parse_throttled("usage_usec 9\nuser_usec 5\nsystem_usec 4\n", GroupVersion::V2), None);
    }
}
