//! Source `disk`: the block device that holds the data directory, from `/proc/diskstats`.
//!
//! Keys: `reads`, `writes`, `discards`, `flushes` completed; `read_bytes`, `written_bytes`; `read_us`, `write_us`,
//! `discard_us`, `flush_us` spent by requests of that kind, summed over requests (in steps of 1 ms); `busy_us` in
//! which at least one request was under way; `in_flight` requests now. Discards are counted since Linux 4.18, flushes
//! since 5.5: with older kernels the keys are absent, not zero.
//!
//! For a partition its own line is read. The kernel counts flushes only on the whole disk, so these come from the
//! disk that the partition is part of; for stacked devices (LVM, dm-crypt, md) it does not count them at all.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value};

use super::{Moment, Source, Values, about};
use crate::Error;
use crate::device::{Device, device_of, filesystem_of};
use crate::proc_file::ProcFile;

/// Sectors of `/proc/diskstats` are 512 bytes, whatever the device's own.
const SECTOR_BYTES: i64 = 512;

/// The line of one device.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskLine {
    pub(crate) name: String,
    reads: i64,
    sectors_read: i64,
    read_ms: i64,
    writes: i64,
    sectors_written: i64,
    write_ms: i64,
    pub(crate) in_flight: i64,
    busy_ms: i64,
    /// Number and ms; Linux 4.18 and later.
    discards: Option<(i64, i64)>,
    /// Number and ms; Linux 5.5 and later.
    flushes: Option<(i64, i64)>,
}

/// The line of device `major:minor` in the text of `/proc/diskstats`.
pub(crate) fn parse_diskstats(text: &str, major: u64, minor: u64) -> Option<DiskLine> {
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let is_it = fields.next()?.parse() == Ok(major) && fields.next()?.parse() == Ok(minor);
        if is_it { parse_counters(fields.next()?, fields) } else { None }
    })
}

impl DiskLine {
    pub(crate) fn written_bytes(&self) -> i64 {
        self.sectors_written * SECTOR_BYTES
    }
}

/// The fields after the name; 11 of them at least.
fn parse_counters<'a>(name: &str, fields: impl Iterator<Item = &'a str>) -> Option<DiskLine> {
    let mut counters = [None; 17];
    for (slot, field) in counters.iter_mut().zip(fields) {
        *slot = field.parse::<i64>().ok();
    }
    let [
        reads,
        _,
        sectors_read,
        read_ms,
        writes,
        _,
        sectors_written,
        write_ms,
        in_flight,
        busy_ms,
        rest @ ..,
    ] = counters;
    let [_weighted_ms, discards, _, _, discard_ms, flushes, flush_ms] = rest;
    Some(DiskLine {
        name: name.to_owned(),
        reads: reads?,
        sectors_read: sectors_read?,
        read_ms: read_ms?,
        writes: writes?,
        sectors_written: sectors_written?,
        write_ms: write_ms?,
        in_flight: in_flight?,
        busy_ms: busy_ms?,
        discards: discards.zip(discard_ms),
        flushes: flushes.zip(flush_ms),
    })
}

/// Whose line counts the flushes of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushSource {
    Itself,
    WholeDisk(u64, u64),
    Nobody,
}

/// The device of a data directory.
#[derive(Debug)]
pub(crate) struct Disk {
    device: Device,
    flush_source: FlushSource,
    disk_name: String,
    stats: ProcFile,
}

impl Disk {
    /// Finds the device that holds `data_dir`.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, Error> {
        let no_device = || Error::NoDevice { path: data_dir.to_owned(), filesystem: filesystem_of(data_dir) };
        let device = device_of(data_dir).ok_or_else(no_device)?;
        let flush_source = flush_source(Path::new("/sys/dev/block"), device.major, device.minor);
        let mut stats = ProcFile::open("/proc/diskstats")?;
        let whole = match flush_source {
            FlushSource::WholeDisk(major, minor) => (major, minor),
            FlushSource::Itself | FlushSource::Nobody => (device.major, device.minor),
        };
        let disk_name = parse_diskstats(&stats.text()?, whole.0, whole.1).ok_or_else(no_device)?.name;
        Ok(Self { device, flush_source, disk_name, stats })
    }
}

/// Looks below `sys` (`/sys/dev/block`) for what kind of device `major:minor` is.
fn flush_source(sys: &Path, major: u64, minor: u64) -> FlushSource {
    let Ok(dir) = fs::canonicalize(sys.join(format!("{major}:{minor}"))) else { return FlushSource::Itself };
    if dir.join("partition").exists() {
        let numbers = dir.parent().and_then(|disk| fs::read_to_string(disk.join("dev")).ok());
        let numbers = numbers.as_deref().and_then(|text| text.trim().split_once(':'));
        let numbers = numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        return numbers.map_or(FlushSource::Nobody, |(major, minor)| FlushSource::WholeDisk(major, minor));
    }
    let is_stacked = fs::read_dir(dir.join("slaves")).is_ok_and(|mut slaves| slaves.next().is_some());
    if is_stacked { FlushSource::Nobody } else { FlushSource::Itself }
}

impl Source for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn about(&self) -> Map<String, Value> {
        let flushes_of = match self.flush_source {
            FlushSource::Itself | FlushSource::WholeDisk(..) => Some(self.disk_name.clone()),
            FlushSource::Nobody => None,
        };
        about([
            ("device", self.device.name.clone().into()),
            ("major", self.device.major.into()),
            ("minor", self.device.minor.into()),
            ("disk", self.disk_name.clone().into()),
            ("flushes_of", flushes_of.into()),
            ("filesystem", self.device.filesystem.clone().into()),
            ("mount_point", self.device.mount_point.display().to_string().into()),
        ])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        let text = self.stats.text()?;
        let line = parse_diskstats(&text, self.device.major, self.device.minor);
        let whole = match self.flush_source {
            FlushSource::WholeDisk(major, minor) => parse_diskstats(&text, major, minor),
            FlushSource::Itself | FlushSource::Nobody => None,
        };
        let line = line.ok_or_else(|| self.stats.format_error("line of the data directory's device"))?;
        values.set("reads", line.reads);
        values.set("read_bytes", line.sectors_read * SECTOR_BYTES);
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
        let flushes = match self.flush_source {
            FlushSource::Itself => line.flushes,
            FlushSource::WholeDisk(..) => whole.and_then(|whole| whole.flushes),
            FlushSource::Nobody => None,
        };
        if let Some((flushes, flush_ms)) = flushes {
            values.set("flushes", flushes);
            values.set("flush_us", flush_ms * 1000);
        }
        Ok(Some(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_6_18_counts_discards_and_flushes() {
        let text = include_str!("../../tests/proc/linux-6.18-vm/diskstats");
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
        assert_eq!(parse_diskstats(text, 254, 0), Some(expected));
    }

    #[test]
    fn linux_4_has_14_fields_and_neither_discards_nor_flushes() {
        let text = include_str!("../../tests/proc/linux-4.4/diskstats");
        let line = parse_diskstats(text, 8, 1).unwrap();
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
        let text = include_str!("../../tests/proc/linux-4.19/diskstats");
        let line = parse_diskstats(text, 259, 0).unwrap();
        assert_eq!((line.name.as_str(), line.discards, line.flushes), ("nvme0n1", Some((9_000, 77)), None));
    }

    #[test]
    fn a_device_that_is_not_listed_or_has_too_few_fields_is_not_found() {
        assert_eq!(parse_diskstats("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n", 8, 1), None);
        assert_eq!(parse_diskstats("   3       1 hda1 35486 38030 38030 38030\n", 3, 1), None);
    }

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
        assert_eq!(flush_source(dir.path(), 8, 0), FlushSource::Itself);
        assert_eq!(flush_source(dir.path(), 8, 1), FlushSource::WholeDisk(8, 0));
        assert_eq!(flush_source(dir.path(), 253, 0), FlushSource::Nobody);
    }
}
