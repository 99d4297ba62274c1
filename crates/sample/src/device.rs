//! Finds which block device holds a path.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

use crate::diskstats::device_line;
use crate::mounts::{Mount, mount_of, parse_mounts};

/// A block device and the filesystem on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name of the device: `sda1`, `nvme0n1`, `dm-0`.
    pub name: String,
    pub major: u64,
    pub minor: u64,
    /// Type of the filesystem: `ext4`, `xfs`, `btrfs`, ...
    pub filesystem: String,
    pub mount_point: PathBuf,
}

/// Returns the block device that holds `path`, or would hold it. For a path that does not exist yet,
/// the nearest folder above counts. The result is `None` where there is no such device (tmpfs, NFS) or
/// where it cannot be seen (the root of a container whose upper folder is the host's). For a btrfs over
/// several devices it is the one that was mounted.
pub fn device_of(path: &Path) -> Option<Device> {
    let existing = existing(path)?;
    let mount = mount_at(&existing)?;
    let (major, minor) = numbers(&existing, &mount)?;
    let name = device_line(&fs::read_to_string("/proc/diskstats").ok()?, major, minor)?.name;
    Some(Device { name, major, minor, filesystem: mount.filesystem, mount_point: mount.mount_point })
}

impl Device {
    /// Returns the requests in flight now, and bytes written since the system started. The result is
    /// `None` when the device is gone.
    pub fn traffic(&self) -> Option<(i64, i64)> {
        let stats = fs::read_to_string("/proc/diskstats").ok()?;
        let line = device_line(&stats, self.major, self.minor)?;
        Some((line.in_flight, line.written_bytes()))
    }
}

/// Returns the type of the filesystem that holds `path`, or `unknown` when that cannot be found out.
pub(crate) fn filesystem_of(path: &Path) -> String {
    let mount = existing(path).and_then(|path| mount_at(&path));
    mount.map_or_else(|| "unknown".to_owned(), |mount| mount.filesystem)
}

/// Returns what is mounted where `path` is, for a path without a block device: `tmpfs`,
/// `server:/export`.
pub(crate) fn mount_source_of(path: &Path) -> Option<String> {
    Some(mount_at(&existing(path)?)?.source)
}

/// Returns the real path of `path`, or of the nearest folder above it that exists.
fn existing(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()?.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok())
}

fn mount_at(real_path: &Path) -> Option<Mount> {
    let mounts = parse_mounts(&fs::read_to_string("/proc/self/mountinfo").ok()?);
    mount_of(&mounts, real_path).cloned()
}

/// Returns the device numbers of an existing path. Filesystems that may span devices have anonymous
/// numbers with major 0. For them the mounted source gives the device, and for an overlay the folder
/// that takes its writes does.
fn numbers(real_path: &Path, mount: &Mount) -> Option<(u64, u64)> {
    let device = fs::metadata(real_path).ok()?.dev();
    if major(device) != 0 {
        return Some((major(device), minor(device)));
    }
    if let Ok(source) = fs::metadata(&mount.source)
        && source.file_type().is_block_device()
    {
        return Some((major(source.rdev()), minor(source.rdev())));
    }
    let upper = mount.option("upperdir").filter(|_| mount.filesystem == "overlay")?;
    let upper = device_of(Path::new(upper)).filter(|_| Path::new(upper).exists())?;
    Some((upper.major, upper.minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_yet_is_on_the_device_of_the_folder_above() {
        let dir = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let device = device_of(dir.path());
        assert_eq!(device_of(&dir.path().join("not/yet/there")), device);
        if let Some(device) = device {
            assert!(dir.path().starts_with(&device.mount_point), "{device:?}");
            assert!(!device.name.is_empty() && !device.filesystem.is_empty());
        }
    }

    #[test]
    fn traffic_of_a_device_is_reported_and_of_one_that_is_gone_it_is_not() {
        let stats = fs::read_to_string("/proc/diskstats").unwrap();
        let mut fields = stats.split_ascii_whitespace();
        let mut number = || fields.next().unwrap().parse().unwrap();
        let mut device = Device {
            major: number(),
            minor: number(),
            name: String::new(),
            filesystem: String::new(),
            mount_point: PathBuf::new(),
        };
        assert!(device.traffic().is_some_and(|(in_flight, written)| in_flight >= 0 && written >= 0));
        device.major = 9_999;
        assert_eq!(device.traffic(), None);
    }

    #[test]
    fn proc_is_on_no_device() {
        assert_eq!(device_of(Path::new("/proc/self")), None);
        assert_eq!(filesystem_of(Path::new("/proc/self")), "proc");
        assert_eq!(mount_source_of(Path::new("/proc/self")).as_deref(), Some("proc"));
    }
}
