//! Parses `/proc/diskstats`: the line of a device, or the sum of the lines that count in its place.
//!
//! With native NVMe multipath (`nvme_core.multipath=Y`, the default of many distributions) a disk
//! `nvme3n1` is a head over one hidden device per path, such as `nvme3c33n1`. Before about Linux 6.4
//! ("nvme-multipath: support io stats on the mpath device") the head counts no IO. Its line and those
//! of its partitions are zero, and the paths have lines with the numbers 0:0.

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
    /// Time in which the device was busy. Over several paths it is the sum, which exceeds the time that
    /// has passed when they work at once.
    pub(crate) busy_ms: i64,
    /// Number and ms, on Linux 4.18 and later.
    pub(crate) discards: Option<(i64, i64)>,
    /// Number and ms, on Linux 5.5 and later.
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
    // This partition has had no IO, but others have.
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
