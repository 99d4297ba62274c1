//! Control groups (cgroups), versions 1 and 2: they limit a server's memory, its page cache
//! included.
//!
//! In version 1, dbdyno makes a server's group below the group of its own process. In version 2, it
//! makes the group below a group further up, because a group with processes cannot pass controllers
//! down there. The limits of the groups above still apply.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::server::Error;
use crate::server::process::{has_ended, own_marker};

/// Prefix for the names of groups that dbdyno makes. The process number, its start time and a
/// counter follow.
const PREFIX: &str = "dbdyno-";

/// Time limit for a group to become empty. The kernel refuses to remove it for a moment after its
/// last process has ended.
const EMPTYING_LIMIT: Duration = Duration::from_secs(10);

/// More bytes than the kernel charges to a group at once. The kernel charges at most one huge page
/// and a reserve for later allocations.
const CHARGE_BYTES: u64 = 4 << 20;

/// Levels of nested groups in which dbdyno searches for groups that an earlier run left.
const MAX_DEPTH: usize = 8;

/// Number of groups that this process has made. It makes each group's name unique.
static MADE: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    V1,
    V2,
}

/// One server's control group. Dropping the value removes the group, so the group's processes must
/// have ended by then.
#[derive(Debug)]
pub struct Cgroup {
    /// The group's folder, which holds the kernel's counters.
    pub folder: PathBuf,
    version: CgroupVersion,
    /// The limit in force. It is the limit as the kernel rounds it, or a lower limit from a group
    /// above.
    pub memory_limit_bytes: u64,
}

/// Formats bytes as `512 MiB`, `1.5 GiB`, `953.67 MiB`: the largest unit that fits, with at most
/// two decimals.
pub(crate) fn size_text(bytes: u64) -> String {
    let (unit, shift) = if bytes >> 30 > 0 { ("GiB", 30) } else { ("MiB", 20) };
    let text = format!("{:.2}", bytes as f64 / (1_u64 << shift) as f64);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A group below which groups with a memory limit can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CgroupParent {
    version: CgroupVersion,
    mount: PathBuf,
    /// The group below which new ones are made.
    folder: PathBuf,
}

/// A mounted hierarchy, as `/proc/self/mountinfo` reports it, and the path to this process's group
/// in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mounted {
    mount: PathBuf,
    own: PathBuf,
}

impl Cgroup {
    /// Makes a new group whose processes may use `bytes` of memory and no swap.
    pub fn with_memory(bytes: u64) -> Result<Self, Error> {
        Self::make(&CgroupParent::find().map_err(|why| Error::Cgroup { why })?, bytes)
    }

    fn make(parent: &CgroupParent, bytes: u64) -> Result<Self, Error> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = parent.folder.join(format!("{PREFIX}{}-{number}", own_marker()));
        let refused = |what: &str, error: std::io::Error| Error::Cgroup { why: format!("{what}: {error}") };
        fs::create_dir(&folder)
            .map_err(|error| refused(&format!("cannot make the group {}", folder.display()), error))?;
        // The group is removed if an error drops it.
        let mut group = Self { folder, version: parent.version, memory_limit_bytes: bytes };
        let (limit, files) = match parent.version {
            CgroupVersion::V1 => (
                "memory.limit_in_bytes",
                // dbdyno switches swap off instead of limiting it to nothing. When the two limits
                // are equal, the kernel meets the limit on memory and swap together first, and new
                // kernels (6.18) do not count that in `memory.memsw.failcnt`.
                vec![
                    ("memory.memsw.limit_in_bytes", bytes.saturating_add(CHARGE_BYTES)),
                    ("memory.swappiness", 0),
                ],
            ),
            CgroupVersion::V2 => ("memory.max", vec![("memory.swap.max", 0)]),
        };
        group
            .write(limit, bytes)
            .map_err(|error| refused(&format!("cannot set {limit} to {bytes}"), error))?;
        for (file, value) in files {
            // Kernels without swap accounting do not have this file.
            if group.folder.join(file).exists() {
                group.write(file, value).map_err(|error| refused(&format!("cannot set {file}"), error))?;
            }
        }
        group.memory_limit_bytes = group.effective_limit(&parent.mount);
        Ok(group)
    }

    /// Number of times that the kernel has killed a process in the group because it could reclaim
    /// no memory.
    pub fn kills(&self) -> u64 {
        let file = match self.version {
            CgroupVersion::V1 => "memory.oom_control",
            CgroupVersion::V2 => "memory.events",
        };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Words to put before a command, so that the process joins the group before it executes the
    /// command. The kernel charges memory to the group that the process belonged to at its first
    /// use of the memory, so a server must not start in another group.
    pub fn joining_command(&self) -> Vec<String> {
        let members = self.folder.join("cgroup.procs").display().to_string();
        ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", &members].map(str::to_owned).to_vec()
    }

    fn write(&self, file: &str, value: u64) -> std::io::Result<()> {
        fs::write(self.folder.join(file), value.to_string())
    }

    fn effective_limit(&self, mount: &Path) -> u64 {
        let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let file = match self.version {
            CgroupVersion::V1 => "memory.limit_in_bytes",
            CgroupVersion::V2 => "memory.max",
        };
        let groups = self.folder.ancestors().take_while(|folder| folder.starts_with(mount));
        groups.filter_map(|folder| number(folder.join(file))).min().unwrap_or(self.memory_limit_bytes)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + EMPTYING_LIMIT;
        // A group that cannot be removed now is removed at the next start.
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && Instant::now() < deadline {
            sleep(Duration::from_millis(20));
        }
    }
}

impl CgroupParent {
    /// Finds the group below which this process can make groups with a memory limit. The error
    /// names the missing requirement.
    fn find() -> Result<Self, String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"));
        let (mounts, own) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
        let mut why = "no hierarchy of control groups with the memory controller is mounted".to_owned();
        if let Some(found) = mounted(&mounts, &own, CgroupVersion::V2) {
            match found.parent_v2() {
                Some(folder) => return Ok(Self { version: CgroupVersion::V2, mount: found.mount, folder }),
                None => {
                    why = format!(
                        "no control group around this process, below {}, hands the memory controller down \
                         (cgroup.subtree_control); under systemd: systemd-run --scope --user -p Delegate=yes dbdyno ...",
                        found.mount.display()
                    );
                }
            }
        }
        let Some(found) = mounted(&mounts, &own, CgroupVersion::V1) else { return Err(why) };
        let own = if found.own.is_dir() { found.own } else { found.mount.clone() };
        Ok(Self { version: CgroupVersion::V1, mount: found.mount, folder: own })
    }
}

impl Mounted {
    /// The nearest group above this process's own that passes the memory controller to the groups
    /// below it.
    fn parent_v2(&self) -> Option<PathBuf> {
        let passes_memory_down = |folder: &&Path| {
            let controllers = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
            controllers.split_whitespace().any(|controller| controller == "memory")
        };
        let above = self.own.ancestors().skip(usize::from(self.own != self.mount));
        above
            .take_while(|folder| folder.starts_with(&self.mount))
            .find(passes_memory_down)
            .map(Path::to_path_buf)
    }
}

/// Finds, in the text of the two files, the hierarchy that may have the memory controller. See
/// proc(5) and cgroups(7).
fn mounted(mountinfo: &str, own: &str, version: CgroupVersion) -> Option<Mounted> {
    let is_ours = |(kind, options): (&str, &str)| match version {
        CgroupVersion::V1 => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        CgroupVersion::V2 => kind == "cgroup2",
    };
    let (root, mount) = mountinfo.lines().find_map(|line| {
        // 36 35 98:0 ROOT MOUNT OPTIONS [...] - TYPE SOURCE SUPEROPTIONS
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let kind = after.next()?;
        let options = after.nth(1)?;
        let mut before = before.split(' ').skip(3);
        let (root, mount) = (before.next()?, before.next()?);
        is_ours((kind, options)).then(|| (root.to_owned(), PathBuf::from(mount)))
    })?;
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_ours = match version {
            CgroupVersion::V1 => controllers.split(',').any(|controller| controller == "memory"),
            CgroupVersion::V2 => number == "0" && controllers.is_empty(),
        };
        is_ours.then_some(path)
    })?;
    // In a container the mount shows only a part of the hierarchy, while the path may start at the
    // hierarchy's root.
    let below = Path::new(path).strip_prefix(&root).or(Path::new(path).strip_prefix("/")).ok()?;
    Some(Mounted { own: mount.join(below), mount })
}

/// Removes groups whose dbdyno was killed, and returns their folders. A group that still has
/// processes stays.
pub(crate) fn sweep() -> Vec<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (mounts, own) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
    let mut removed = Vec::new();
    for version in [CgroupVersion::V1, CgroupVersion::V2] {
        if let Some(found) = mounted(&mounts, &own, version) {
            sweep_below(&found.mount, MAX_DEPTH, &mut removed);
        }
    }
    removed
}

fn sweep_below(folder: &Path, depth: usize, removed: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let path = entry.path();
        let name = entry.file_name();
        if let Some(maker) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) {
            if is_abandoned(maker) && fs::remove_dir(&path).is_ok() {
                removed.push(path);
            }
        } else if depth > 0 {
            sweep_below(&path, depth - 1, removed);
        }
    }
}

/// Whether the dbdyno that made the group has ended. `maker` is a process marker and a number.
fn is_abandoned(maker: &str) -> bool {
    maker.rsplit_once('-').is_some_and(|(marker, _)| has_ended(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchies_are_found_where_machines_mount_them() {
        let hybrid = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/user/x\n1:cpu,cpuacct:/\n0::/user.slice/x.scope\n";
        let found = |mounts, own, version| mounted(mounts, own, version).map(|found| found.own);
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(found(hybrid, own, CgroupVersion::V1), path("/sys/fs/cgroup/memory/user/x"));
        assert_eq!(found(hybrid, own, CgroupVersion::V2), path("/sys/fs/cgroup/unified/user.slice/x.scope"));
        let container = "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let inside = found(container, "4:memory:/docker/ab/inner\n", CgroupVersion::V1);
        assert_eq!(inside, path("/sys/fs/cgroup/memory/inner"));
        assert_eq!(found(container, own, CgroupVersion::V2), None);
    }

    #[test]
    fn in_version_2_the_nearest_group_above_that_passes_memory_down_is_used() {
        let mount = tempfile::tempdir().unwrap();
        let own = mount.path().join("user.slice/user-0.slice/session.scope");
        fs::create_dir_all(&own).unwrap();
        let set = |folder: &str, text: &str| {
            fs::write(mount.path().join(folder).join("cgroup.subtree_control"), text).unwrap();
        };
        let found = Mounted { mount: mount.path().to_path_buf(), own };
        assert_eq!(found.parent_v2(), None);
        set("", "cpu io memory pids\n");
        assert_eq!(found.parent_v2().as_deref(), Some(mount.path()));
        set("user.slice/user-0.slice", "memory pids\n");
        assert_eq!(found.parent_v2(), Some(mount.path().join("user.slice/user-0.slice")));
        set("user.slice/user-0.slice/session.scope", "memory\n");
        assert_eq!(found.parent_v2(), Some(mount.path().join("user.slice/user-0.slice")), "not the own one");
    }

    /// This test replaces the kernel's files with files in an ordinary folder. It checks the values
    /// that are written to and read from these files.
    #[test]
    fn in_version_2_the_limits_on_memory_and_swap_and_the_kills_have_their_own_files() {
        let mount = tempfile::tempdir().unwrap();
        let parent = mount.path().join("user.slice");
        fs::create_dir(&parent).unwrap();
        let made = |bytes| {
            let parent_group = CgroupParent {
                version: CgroupVersion::V2,
                mount: mount.path().to_path_buf(),
                folder: parent.clone(),
            };
            Cgroup::make(&parent_group, bytes).unwrap()
        };
        let read = |group: &Cgroup, file: &str| fs::read_to_string(group.folder.join(file)).ok();
        let group = made(512 << 20);
        assert_eq!((group.version, group.memory_limit_bytes), (CgroupVersion::V2, 512 << 20));
        assert_eq!(read(&group, "memory.max").as_deref(), Some("536870912"));
        assert_eq!(read(&group, "memory.swap.max"), None, "a kernel without swap accounting");
        assert!(group.joining_command()[3].ends_with("/cgroup.procs"));
        assert_eq!(group.kills(), 0);
        fs::write(group.folder.join("memory.events"), "low 0\nmax 71\noom 2\noom_kill 1\n").unwrap();
        assert_eq!(group.kills(), 1);
        fs::write(parent.join("memory.max"), "max\n").unwrap();
        let next = made(512 << 20);
        assert_eq!(next.memory_limit_bytes, 512 << 20, "no limit above");
        fs::write(parent.join("memory.max"), "268435456\n").unwrap();
        let lower = made(512 << 20);
        assert_eq!(lower.memory_limit_bytes, 256 << 20, "the lower one of the group above");
        for group in [group, next, lower] {
            // The kernel removes its files with their group, but these files stay.
            fs::remove_dir_all(&group.folder).unwrap();
        }
    }

    #[test]
    fn limits_are_reported_in_mib_or_gib() {
        let texts = [64 << 20, 3 << 29, 2 << 30, 1_000_000_000 / 4096 * 4096, 100 << 30].map(size_text);
        assert_eq!(texts, ["64 MiB", "1.5 GiB", "2 GiB", "953.67 MiB", "100 GiB"]);
    }

    #[test]
    fn only_groups_whose_maker_has_ended_count_as_abandoned() {
        let own = own_marker();
        // No process has this number.
        let ended = format!("{}-{}", u32::MAX, own.split_once('-').unwrap().1);
        assert!(!is_abandoned(&format!("{own}-0")));
        assert!(is_abandoned(&format!("{ended}-0")), "{ended}");
        assert!(!is_abandoned(&ended), "without a number");
    }
}
