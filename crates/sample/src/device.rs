//! Finds which block device holds a path, from `/proc/self/mountinfo`, and parses its line of
//! `/proc/diskstats`, or the sum of the lines that count in its place.
//!
//! With native NVMe multipath (`nvme_core.multipath=Y`, the default of many distributions) a disk
//! `nvme3n1` is a head over one hidden device per path, such as `nvme3c33n1`. Before about Linux 6.4
//! ("nvme-multipath: support io stats on the mpath device") the head counts no IO. Its line and those
//! of its partitions are zero, and the paths have lines with the numbers 0:0.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

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

/// Returns the source of the mount that `path` is on, such as `tmpfs` or `server:/export`. It is
/// for paths without a block device.
pub(crate) fn mount_source_of(path: &Path) -> Option<String> {
    Some(mount_at(&existing(path)?)?.source)
}

/// Returns the real path of `path`, or of the nearest folder above it that exists.
fn existing(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()?.ancestors().find_map(|ancestor| fs::canonicalize(ancestor).ok())
}

/// Returns the mount that holds an existing path without links.
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

/// One line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The folder of the filesystem that is seen at the mount point: `/`, or a part of it.
    pub(crate) root: PathBuf,
    pub(crate) mount_point: PathBuf,
    /// Type of the filesystem: `ext4`, `btrfs`, `overlay`, `tmpfs`, ...
    pub(crate) filesystem: String,
    /// The mounted device or filesystem: `/dev/sda1`, `tmpfs`, `server:/export`.
    pub(crate) source: String,
    /// Options of the filesystem itself, separated by commas.
    options: String,
}

impl Mount {
    /// Returns the value of an option of the form `name=value`.
    fn option(&self, name: &str) -> Option<&str> {
        self.options.split(',').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns whether a word without a value is among the options.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }
}

/// Reads the text of mountinfo. Lines that are not understood are skipped.
///
/// A line is `id parent major:minor root mount-point options [optional]... - type source super-options`
/// (proc(5)).
pub(crate) fn parse_mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let (root, mount_point) = (mount.next()?, mount.next()?);
    let mut fields = filesystem.split(' ');
    Some(Mount {
        root: PathBuf::from(unescape(root)),
        mount_point: PathBuf::from(unescape(mount_point)),
        filesystem: fields.next()?.to_owned(),
        source: unescape(fields.next()?),
        options: fields.next().map(unescape).unwrap_or_default(),
    })
}

/// Returns the mount that `path` (absolute, without links) is on. This is the deepest mount above
/// it, and among equally deep ones the last, which covers the others.
fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    above.max_by_key(|mount| mount.mount_point.components().count())
}

/// Decodes a name. The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

/// Sectors of `/proc/diskstats` are 512 bytes, whatever the device's own sectors are.
const SECTOR_BYTES: i64 = 512;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskLine {
    pub(crate) name: String,
    pub(crate) reads: i64,
    sectors_read: i64,
    pub(crate) read_ms: i64,
    pub(crate) writes: i64,
    sectors_written: i64,
    pub(crate) write_ms: i64,
    pub(crate) in_flight: i64,
    /// Time in which the device was busy. For several paths this is the sum, which exceeds the time
    /// that has passed if they work at once.
    pub(crate) busy_ms: i64,
    /// Number of discards and their ms, on Linux 4.18 and later.
    pub(crate) discards: Option<(i64, i64)>,
    /// Number of flushes and their ms, on Linux 5.5 and later.
    pub(crate) flushes: Option<(i64, i64)>,
}

impl DiskLine {
    pub(crate) fn read_bytes(&self) -> i64 {
        self.sectors_read * SECTOR_BYTES
    }

    pub(crate) fn written_bytes(&self) -> i64 {
        self.sectors_written * SECTOR_BYTES
    }

    fn has_io(&self) -> bool {
        self.reads > 0 || self.writes > 0
    }

    fn add(&mut self, other: &Self) {
        let both = |one: Option<(i64, i64)>, other: Option<(i64, i64)>| {
            one.zip(other).map(|(one, other)| (one.0 + other.0, one.1 + other.1))
        };
        self.reads += other.reads;
        self.sectors_read += other.sectors_read;
        self.read_ms += other.read_ms;
        self.writes += other.writes;
        self.sectors_written += other.sectors_written;
        self.write_ms += other.write_ms;
        self.in_flight += other.in_flight;
        self.busy_ms += other.busy_ms;
        self.discards = both(self.discards, other.discards);
        self.flushes = both(self.flushes, other.flushes);
    }
}

/// Returns the line of device `major:minor` in the text of `/proc/diskstats`. Where its paths count in
/// its place, it is their sum under the device's own name.
pub(crate) fn device_line(text: &str, major: u64, minor: u64) -> Option<DiskLine> {
    let own = own_line(text, major, minor)?;
    let mut paths = paths_to(text, &own).into_iter();
    let Some(mut sum) = paths.next() else { return Some(own) };
    paths.for_each(|path| sum.add(&path));
    sum.name = own.name;
    Some(sum)
}

/// Returns the lines of the paths to device `major:minor` or, for a partition, to its whole disk. There
/// are none when the device's own line counts, as that of every other kind of device does.
pub(crate) fn paths_of(text: &str, major: u64, minor: u64) -> Vec<DiskLine> {
    own_line(text, major, minor).map_or_else(Vec::new, |own| paths_to(text, &own))
}

/// Does what [`paths_of`] does, for the device whose own line is `own`.
fn paths_to(text: &str, own: &DiskLine) -> Vec<DiskLine> {
    let head = if own.has_io() { None } else { head_of(&own.name) };
    let Some((subsystem, namespace)) = head else { return Vec::new() };
    let head = format!("nvme{subsystem}n{namespace}");
    // If the line of the whole disk has IO, the kernel counts on that disk, and this partition has
    // had no IO.
    if lines(text).any(|line| line.name == head && line.has_io()) {
        return Vec::new();
    }
    lines(text).filter(|line| is_path(&line.name, subsystem, namespace)).collect()
}

/// Returns `3` and `1` for `nvme3n1` and for `nvme3n1p2`.
fn head_of(name: &str) -> Option<(&str, &str)> {
    let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    let (namespace, partition) = namespace.split_once('p').unwrap_or((namespace, "1"));
    [subsystem, namespace, partition].into_iter().all(is_number).then_some((subsystem, namespace))
}

/// Returns whether `name` is `nvme<subsystem>c<any>n<namespace>`.
fn is_path(name: &str, subsystem: &str, namespace: &str) -> bool {
    let controller =
        name.strip_prefix("nvme").and_then(|name| name.strip_prefix(subsystem)?.strip_prefix('c'));
    controller
        .and_then(|name| name.split_once('n'))
        .is_some_and(|(controller, of)| is_number(controller) && of == namespace)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns all devices. Lines with fewer fields than Linux 2.6.25 wrote for every device are left out.
fn lines(text: &str) -> impl Iterator<Item = DiskLine> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(2);
        parse_counters(fields.next()?, fields)
    })
}

/// Returns the line of device `major:minor`.
fn own_line(text: &str, major: u64, minor: u64) -> Option<DiskLine> {
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let is_it = fields.next()?.parse() == Ok(major) && fields.next()?.parse() == Ok(minor);
        if is_it { parse_counters(fields.next()?, fields) } else { None }
    })
}

/// Parses the fields after the name. There must be at least 11 of them.
fn parse_counters<'a>(name: &str, fields: impl Iterator<Item = &'a str>) -> Option<DiskLine> {
    let mut counters = [None; 17];
    for (slot, field) in counters.iter_mut().zip(fields) {
        *slot = field.parse::<i64>().ok();
    }
    // The order is that of the kernel's Documentation/admin-guide/iostats.rst.
    Some(DiskLine {
        name: name.to_owned(),
        reads: counters[0]?,
        sectors_read: counters[2]?,
        read_ms: counters[3]?,
        writes: counters[4]?,
        sectors_written: counters[6]?,
        write_ms: counters[7]?,
        in_flight: counters[8]?,
        busy_ms: counters[9]?,
        discards: counters[11].zip(counters[14]),
        flushes: counters[15].zip(counters[16]),
    })
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

    const LAPTOP: &str = include_str!("../tests/proc/linux-5.15-btrfs/mountinfo");

    fn on(path: &str) -> (String, String) {
        let mounts = parse_mounts(LAPTOP);
        let mount = mount_of(&mounts, Path::new(path)).unwrap();
        (mount.filesystem.clone(), mount.source.clone())
    }

    #[test]
    fn the_deepest_mount_holds_a_path() {
        assert_eq!(on("/etc/fstab"), ("btrfs".into(), "/dev/nvme0n1p2".into()));
        assert_eq!(on("/home/me/data"), ("btrfs".into(), "/dev/nvme0n1p2".into()));
        assert_eq!(on("/boot/efi/x"), ("vfat".into(), "/dev/nvme0n1p1".into()));
        assert_eq!(on("/boots"), ("btrfs".into(), "/dev/nvme0n1p2".into()));
    }

    #[test]
    fn of_two_mounts_at_one_path_the_later_one_counts() {
        assert_eq!(on("/mnt/x"), ("tmpfs".into(), "tmpfs".into()));
    }

    #[test]
    fn names_with_spaces_are_read() {
        assert_eq!(on("/media/My Disk/data"), ("ext4".into(), "/dev/sdb1".into()));
        assert_eq!(unescape(r"a\134040b\"), r"a\040b\");
    }

    #[test]
    fn options_of_an_overlay_name_its_upper_folder() {
        let mounts = parse_mounts(include_str!("../tests/proc/docker-overlay/mountinfo"));
        let root = mount_of(&mounts, Path::new("/var/lib/mysql")).unwrap();
        assert_eq!(root.filesystem, "overlay");
        assert_eq!(root.option("upperdir"), Some("/var/lib/docker/overlay2/abc/diff"));
        assert_eq!(root.option("upper"), None);
    }

    #[test]
    fn linux_6_18_counts_discards_and_flushes() {
        let text = include_str!("../tests/proc/linux-6.18-vm/diskstats");
        let expected = DiskLine {
            name: "vda".to_owned(),
            reads: 54_940,
            sectors_read: 5_628_618,
            read_ms: 20_122,
            writes: 209_528,
            sectors_written: 12_392_720,
            write_ms: 154_897,
            in_flight: 0,
            busy_ms: 10_392,
            discards: Some((8_987, 831)),
            flushes: Some((15_734, 326)),
        };
        assert_eq!(device_line(text, 254, 0), Some(expected));
    }

    #[test]
    fn linux_4_has_14_fields_and_neither_discards_nor_flushes() {
        let text = include_str!("../tests/proc/linux-4.4/diskstats");
        let line = device_line(text, 8, 1).unwrap();
        assert_eq!(
            (line.name.as_str(), line.reads, line.sectors_read, line.read_ms),
            ("sda1", 1_082, 12_558, 244)
        );
        assert_eq!((line.writes, line.sectors_written, line.write_ms), (5_120, 81_920, 4_096));
        assert_eq!((line.in_flight, line.busy_ms), (2, 3_300));
        assert_eq!((line.discards, line.flushes), (None, None));
    }

    #[test]
    fn linux_4_19_counts_discards_but_no_flushes() {
        let text = include_str!("../tests/proc/linux-4.19/diskstats");
        let line = device_line(text, 259, 0).unwrap();
        assert_eq!((line.name.as_str(), line.discards, line.flushes), ("nvme0n1", Some((9_000, 77)), None));
    }

    #[test]
    fn a_device_that_is_not_listed_or_has_too_few_fields_is_not_found() {
        assert_eq!(device_line("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n", 8, 1), None);
        assert_eq!(device_line("   3       1 hda1 35486 38030 38030 38030\n", 3, 1), None);
    }

    /// A disk over two paths with a partition, as Linux 5.14 reports it, and one without multipath.
    const MULTIPATH: &str = "\
     259       0 nvme0n1 10 0 80 4 20 0 160 8 0 12 12 0 0 0 0 5 6
     259       3 nvme3n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
     259       4 nvme3n1p1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
       0       0 nvme3c33n1 100 0 800 40 200 0 1600 80 3 120 120 7 0 56 1 50 60
       0       0 nvme3c4n1 1 0 8 2 3 0 16 4 1 5 5 0 0 0 0 6 7
       0       0 nvme3c4n12 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9
       0       0 nvme33c4n1 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9
    ";

    #[test]
    fn io_of_an_nvme_disk_with_multipath_is_that_of_its_paths() {
        let expected = |name: &str| DiskLine {
            name: name.to_owned(),
            reads: 101,
            sectors_read: 808,
            read_ms: 42,
            writes: 203,
            sectors_written: 1_616,
            write_ms: 84,
            in_flight: 4,
            busy_ms: 125,
            discards: Some((7, 1)),
            flushes: Some((56, 67)),
        };
        assert_eq!(device_line(MULTIPATH, 259, 3), Some(expected("nvme3n1")));
        assert_eq!(device_line(MULTIPATH, 259, 4), Some(expected("nvme3n1p1")));
        let names: Vec<String> = paths_of(MULTIPATH, 259, 3).into_iter().map(|path| path.name).collect();
        assert_eq!(names, ["nvme3c33n1", "nvme3c4n1"]);
    }

    #[test]
    fn a_disk_that_counts_by_itself_is_read_by_itself() {
        let line = device_line(MULTIPATH, 259, 0).unwrap();
        assert_eq!((line.name.as_str(), line.reads, line.written_bytes()), ("nvme0n1", 10, 81_920));
        // This is Linux 6.4 and later, before this partition had any IO.
        let counting = MULTIPATH.replace("nvme3n1 0 0 0 0 0", "nvme3n1 101 0 808 42 203");
        assert_eq!(device_line(&counting, 259, 3).unwrap().writes, 203);
        assert_eq!(device_line(&counting, 259, 4).unwrap().writes, 0);
        assert!(paths_of(&counting, 259, 3).is_empty() && paths_of(&counting, 259, 4).is_empty());
        let unused = "   8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(device_line(unused, 8, 0).unwrap().reads, 0);
    }
}
