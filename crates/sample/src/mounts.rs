//! Parses `/proc/self/mountinfo`: which filesystem is mounted where, and from what.

use std::path::{Path, PathBuf};

/// One line of mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The folder of the filesystem that is seen at the mount point: `/`, or a part of it.
    pub(crate) root: PathBuf,
    pub(crate) mount_point: PathBuf,
    /// Type of the filesystem: `ext4`, `btrfs`, `overlay`, `tmpfs`, ...
    pub(crate) filesystem: String,
    /// What is mounted: `/dev/sda1`, `tmpfs`, `server:/export`.
    pub(crate) source: String,
    /// Options of the filesystem itself, separated by commas.
    options: String,
}

impl Mount {
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
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
    let (place, filesystem) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, mount_point) = (place.next()?, place.next()?);
    let mut fields = filesystem.split(' ');
    Some(Mount {
        root: PathBuf::from(unescape(root)),
        mount_point: PathBuf::from(unescape(mount_point)),
        filesystem: fields.next()?.to_owned(),
        source: unescape(fields.next()?),
        options: fields.next().map(unescape).unwrap_or_default(),
    })
}

/// Returns the mount that `path` (absolute, without links) is on. It is the deepest one. Among equally
/// deep ones it is the last, which covers the others.
pub(crate) fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn of_two_mounts_on_one_place_the_later_one_counts() {
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
}
