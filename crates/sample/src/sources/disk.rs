//! Source `disk`: the block device that holds the data directory, from `/proc/diskstats`.
//!
//! Keys: `reads`, `writes`, `discards` and `flushes` count completed requests. `read_bytes` and
//! `written_bytes` count bytes. `read_us`, `write_us`, `discard_us` and `flush_us` are the time
//! that requests of that kind took, summed over requests (in steps of 1 ms). `busy_us` is the time
//! in which at least one request was under way, and `in_flight` is the number of requests under way
//! now. Discards are counted since Linux 4.18, and flushes since 5.5. With older kernels the keys
//! are absent, not zero.
//!
//! For a partition its own line is read. The kernel counts flushes only on the whole disk, so these
//! come from the disk that the partition is part of. For stacked devices (LVM, dm-crypt, md) it does
//! not count them at all.
//!
//! Kernels before about 6.4 count IO of an NVMe device with native multipath on its paths, so it is
//! read there ([`crate::device`]). The header then names the paths as `counted_on`.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::{ProcFile, Source, Values, about};
use crate::Error;
use crate::device::{Device, device_line, device_of, filesystem_of, paths_of};

/// Numbers of a block device: major and minor.
type Numbers = (u64, u64);

#[derive(Debug)]
pub(crate) struct Disk {
    device: Device,
    /// The device whose line counts the flushes.
    flushes_of: Option<Numbers>,
    disk_name: String,
    /// Hidden devices that count the IO in its place.
    counted_on: Vec<String>,
    stats: ProcFile,
}

impl Disk {
    pub(crate) fn open(data_dir: &Path) -> Result<Self, Error> {
        let no_device = || Error::NoDevice { path: data_dir.to_owned(), filesystem: filesystem_of(data_dir) };
        let device = device_of(data_dir).ok_or_else(no_device)?;
        let own = (device.major, device.minor);
        let flushes_of = flushes_of(Path::new("/sys/dev/block"), own);
        let mut stats = ProcFile::open("/proc/diskstats")?;
        let whole = flushes_of.unwrap_or(own);
        let text = stats.text()?;
        let disk_name = device_line(&text, whole.0, whole.1).ok_or_else(no_device)?.name;
        let counted_on = paths_of(&text, device.major, device.minor);
        let counted_on = counted_on.into_iter().map(|path| path.name).collect();
        drop(text);
        Ok(Self { device, flushes_of, disk_name, counted_on, stats })
    }
}

/// Returns which device counts the flushes of device `own`, as far as it is described below `sys`
/// (`/sys/dev/block`). It is the device itself, for a partition the disk, and for a stacked device
/// none.
fn flushes_of(sys: &Path, own: Numbers) -> Option<Numbers> {
    let Ok(dir) = fs::canonicalize(sys.join(format!("{}:{}", own.0, own.1))) else { return Some(own) };
    if dir.join("partition").exists() {
        let numbers = fs::read_to_string(dir.parent()?.join("dev")).ok()?;
        let (major, minor) = numbers.trim().split_once(':')?;
        return Some((major.parse().ok()?, minor.parse().ok()?));
    }
    let is_stacked = fs::read_dir(dir.join("slaves")).is_ok_and(|mut slaves| slaves.next().is_some());
    (!is_stacked).then_some(own)
}

impl Source for Disk {
    fn about(&self) -> Map<String, Value> {
        let flushes_of = self.flushes_of.map(|_| self.disk_name.clone());
        let mut about = about([
            ("device", self.device.name.clone().into()),
            ("major", self.device.major.into()),
            ("minor", self.device.minor.into()),
            ("disk", self.disk_name.clone().into()),
            ("flushes_of", flushes_of.into()),
            ("filesystem", self.device.filesystem.clone().into()),
            ("mount_point", self.device.mount_point.display().to_string().into()),
        ]);
        if !self.counted_on.is_empty() {
            about.insert("counted_on".to_owned(), self.counted_on.clone().into());
        }
        about
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let text = self.stats.text()?;
        let own = (self.device.major, self.device.minor);
        let line = device_line(&text, own.0, own.1);
        let flushes = match self.flushes_of {
            Some(numbers) if numbers == own => line.as_ref().and_then(|line| line.flushes),
            Some((major, minor)) => device_line(&text, major, minor).and_then(|whole| whole.flushes),
            None => None,
        };
        let line = line.ok_or_else(|| self.stats.format_error("line of the data directory's device"))?;
        values.set("reads", line.reads);
        values.set("read_bytes", line.read_bytes());
        values.set("read_us", line.read_ms * 1000);
        values.set("writes", line.writes);
        values.set("written_bytes", line.written_bytes());
        values.set("write_us", line.write_ms * 1000);
        values.set("busy_us", line.busy_ms * 1000);
        values.set("in_flight", line.in_flight);
        if let Some((discards, discard_ms)) = line.discards {
            values.set("discards", discards);
            values.set("discard_us", discard_ms * 1000);
        }
        if let Some((flushes, flush_ms)) = flushes {
            values.set("flushes", flushes);
            values.set("flush_us", flush_ms * 1000);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_of_a_partition_are_those_of_its_disk_and_stacked_devices_have_none() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, stacked) = (dir.path().join("sda"), dir.path().join("dm-0"));
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::create_dir_all(disk.join("slaves")).unwrap();
        fs::create_dir_all(stacked.join("slaves/sda1")).unwrap();
        fs::write(disk.join("dev"), "8:0\n").unwrap();
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        for (number, target) in [("8:0", &disk), ("8:1", &disk.join("sda1")), ("253:0", &stacked)] {
            std::os::unix::fs::symlink(target, dir.path().join(number)).unwrap();
        }
        assert_eq!(flushes_of(dir.path(), (8, 0)), Some((8, 0)));
        assert_eq!(flushes_of(dir.path(), (8, 1)), Some((8, 0)));
        assert_eq!(flushes_of(dir.path(), (253, 0)), None);
    }
}
