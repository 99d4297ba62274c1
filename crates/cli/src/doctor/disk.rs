//! Checks the disk under the data: device, filesystem, queue, free space, and how long an fsync
//! takes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dbdyno_plan::grouped;
use dbdyno_sample::Device;

use crate::doctor::{Finding, bad, good, note, note_if};
use crate::host::HostFiles;
use crate::time;

const GB: u64 = 1_000_000_000;
/// The bytes that a small commit writes.
const BLOCK: [u8; 4096] = [0xdb; 4096];
/// Beginning of the name of the file that is synced. The process number follows.
const FSYNC_FILE: &str = "dbdyno-fsync-";
const FSYNCS_MAX: usize = 200;
const FSYNC_TIME_MAX: Duration = Duration::from_secs(1);
/// No device that keeps data over a power cut answers faster.
const TOO_FAST: Duration = Duration::from_micros(20);
const SLOW: Duration = Duration::from_millis(20);
/// A 99th percentile above this many times the median counts as stalls.
const UNEVEN: u32 = 20;

/// Returns `path`, or the nearest existing path above it. The result may be a file where a folder
/// is needed.
pub(crate) fn existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}

pub(crate) fn free(free: Option<u64>) -> Finding {
    let Some(free) = free else {
        return bad("the folder cannot be read", "name another with --data-dir");
    };
    let found = time::bytes(free);
    match free {
        free if free < GB / 10 => bad(found, "make room, or name another folder with --data-dir"),
        free if free < 10 * GB => note(found, "make room; dbdyno plan shows the need of a plan"),
        _ => good(found),
    }
}

/// Reports the filesystem and mount options of the folder with the data.
pub(crate) fn filesystem(files: &HostFiles, device: Option<&Device>, kind: &str) -> Finding {
    if ["tmpfs", "ramfs"].contains(&kind) {
        let advice =
            "it is in memory: an fsync costs nothing there; name a folder on the disk to be measured";
        return note(kind, advice);
    }
    let Some(device) = device else { return good(kind) };
    let options = mount_options(files, &device.mount_point);
    let found = format!("{kind} at {} ({options})", device.mount_point.display());
    let has_no_barriers = options.split(", ").any(|option| option == "nobarrier" || option == "barrier=0");
    let advice = "without barriers an fsync does not reach the disk; mount with barriers";
    note_if(has_no_barriers, found, advice)
}

/// Returns the options of the mount and of its filesystem (proc(5), mountinfo), without paths: `rw,
/// relatime, errors=remount-ro`.
fn mount_options(files: &HostFiles, mount_point: &Path) -> String {
    let text = files.text("/proc/self/mountinfo").unwrap_or_default();
    let options = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let fields: Vec<&str> = mount.split(' ').collect();
        if Path::new(fields.get(4)?) != mount_point {
            return None;
        }
        let mut all: Vec<&str> = fields.get(5)?.split(',').collect();
        for option in filesystem.split(' ').nth(2)?.split(',') {
            if !all.contains(&option) {
                all.push(option);
            }
        }
        all.retain(|option| !option.contains('/'));
        Some(all.join(", "))
    };
    text.lines().filter_map(options).next_back().unwrap_or_else(|| "options not visible".to_owned())
}

/// Reports model, array and queue of the device. For a partition they are its disk's.
pub(crate) fn device(files: &HostFiles, device: Option<&Device>) -> Finding {
    let Some(device) = device else {
        return note(
            "no block device is visible under the folder",
            "disk reads and writes cannot be measured; name a folder on a local disk with --data-dir",
        );
    };
    let name = &device.name;
    let own = format!("/sys/class/block/{name}");
    let disk = if files.has(&format!("{own}/queue")) { own } else { format!("{own}/..") };
    let queue = format!("{disk}/queue");
    let mut found = vec![name.clone()];
    found.extend(files.line(&format!("{disk}/device/model")));
    let members = || files.names(&format!("{disk}/slaves")).join(", ");
    found.extend(files.line(&format!("{disk}/md/level")).map(|level| format!("{level} of {}", members())));
    if let Some(rotates) = files.line(&format!("{queue}/rotational")) {
        found.push(if rotates == "1" { "rotating, or said to be" } else { "not rotating" }.to_owned());
    }
    found.extend(files.chosen(&format!("{queue}/scheduler")).map(|name| format!("scheduler {name}")));
    found.extend(files.line(&format!("{queue}/write_cache")).map(|cache| format!("cache {cache}")));
    good(found.join(", "))
}

/// Appends blocks to a new file in `folder` and syncs each one to the disk. It returns how long
/// each took, sorted, and removes the file.
pub(crate) fn measure_fsync(folder: &Path) -> std::io::Result<Vec<Duration>> {
    sweep(folder);
    let path = folder.join(format!("{FSYNC_FILE}{}", std::process::id()));
    // The file keeps its name while it is synced, because a filesystem may do less for a file
    // without a name.
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    // On a filesystem without locks this fails, and files of killed processes stay.
    let _ = file.try_lock();
    let measured = fsyncs(&mut file);
    std::fs::remove_file(&path)?;
    measured
}

/// Removes files of processes that were killed while they measured in `folder`. Such files are not
/// locked, and no process has their number.
fn sweep(folder: &Path) {
    let has_ended =
        |pid: u32| pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FSYNC_FILE)?.parse().ok());
        if process.is_some_and(has_ended)
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn fsyncs(file: &mut File) -> std::io::Result<Vec<Duration>> {
    let began = Instant::now();
    let mut took = Vec::with_capacity(FSYNCS_MAX);
    while took.len() < FSYNCS_MAX && (took.is_empty() || began.elapsed() < FSYNC_TIME_MAX) {
        let one = Instant::now();
        file.write_all(&BLOCK)?;
        file.sync_data()?;
        took.push(one.elapsed());
    }
    took.sort_unstable();
    Ok(took)
}

/// Returns a percentile of the times that [`measure_fsync`] has measured.
pub(crate) fn at(took: &[Duration], percent: usize) -> Duration {
    took[((took.len() - 1) * percent).div_ceil(100)]
}

pub(crate) fn fsync(folder: PathBuf, measured: std::io::Result<Vec<Duration>>) -> Finding {
    let took = match measured {
        Ok(took) => took,
        Err(error) => {
            let found = format!("{} cannot be written to: {error}", folder.display());
            return bad(found, "name another folder with --data-dir");
        }
    };
    let (median, slow) = (at(&took, 50), at(&took, 99));
    let found = format!("median {}, p99 {} of {} writes of 4 KiB", micros(median), micros(slow), took.len());
    let advice = if median < TOO_FAST {
        "too fast for a disk: a filesystem in memory or a volatile cache; durability costs \
         nothing here"
    } else if median > SLOW {
        "commits will be slow; check that this is the right disk and that nothing else writes to it"
    } else if slow > median * UNEVEN {
        "uneven: other writers, or garbage collection of the SSD; check again when the disk is idle"
    } else {
        return good(found);
    };
    note(found, advice)
}

fn micros(time: Duration) -> String {
    format!("{} µs", grouped(time.as_micros() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::host::machine;

    fn data_disk() -> Device {
        Device {
            name: "nvme0n1p2".to_owned(),
            major: 259,
            minor: 2,
            filesystem: "ext4".to_owned(),
            mount_point: PathBuf::from("/srv"),
        }
    }

    #[test]
    fn the_nearest_existing_path_is_checked() {
        assert_eq!(existing(Path::new("/proc/not/there")), Path::new("/proc"));
        assert_eq!(existing(Path::new("/proc/version/there")), Path::new("/proc/version"));
    }

    #[test]
    fn little_space_is_bad() {
        let verdicts = [1 << 20, GB, 20 * GB].map(|bytes| free(Some(bytes)).verdict);
        assert_eq!(verdicts, [Verdict::Bad, Verdict::Note, Verdict::Good]);
        assert_eq!(free(None).verdict, Verdict::Bad);
    }

    #[test]
    fn a_partition_has_the_queue_of_its_disk() {
        let (_folder, files) = machine(&[
            ("/sys/class/block/queue/scheduler", "[none] mq-deadline\n"),
            ("/sys/class/block/queue/write_cache", "write back\n"),
            ("/sys/class/block/queue/rotational", "0\n"),
            ("/sys/class/block/nvme0n1p2/partition", "2\n"),
        ]);
        let found = device(&files, Some(&data_disk()));
        assert_eq!(found.found, "nvme0n1p2, not rotating, scheduler none, cache write back");
        assert_eq!(device(&files, None).verdict, Verdict::Note);
    }

    #[test]
    fn filesystems_that_may_lose_synced_data_are_noted() {
        let info = |options: &str| {
            let line = format!("30 1 259:2 / /srv rw,noatime shared:1 - ext4 /dev/nvme0n1p2 {options}\n");
            let (_folder, files) = machine(&[("/proc/self/mountinfo", &line)]);
            filesystem(&files, Some(&data_disk()), "ext4")
        };
        assert_eq!(info("rw,discard,upperdir=/a"), good("ext4 at /srv (rw, noatime, discard)"));
        assert_eq!(info("rw,nobarrier").verdict, Verdict::Note);
        assert_eq!(filesystem(&machine(&[]).1, None, "tmpfs").verdict, Verdict::Note);
    }

    #[test]
    fn fsyncs_are_measured_and_judged_by_median_and_p99() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let took = measure_fsync(folder.path()).expect("a folder that can be written to");
        assert!(!took.is_empty() && took.is_sorted());
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "the file is gone");
        // The first file belongs to a killed process, the second to one that measures.
        for process in [u32::MAX, 1] {
            std::fs::write(folder.path().join(format!("{FSYNC_FILE}{process}")), "x").expect("a file");
        }
        measure_fsync(folder.path()).expect("a folder that can be written to");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().collect();
        assert!(left.len() == 1 && left[0].file_name() == "dbdyno-fsync-1", "{left:?}");
        let of = |median: u64, slow: u64| {
            let mut took = vec![Duration::from_micros(median); 99];
            took.push(Duration::from_micros(slow));
            fsync(PathBuf::new(), Ok(took))
        };
        assert_eq!(of(250, 900).found, "median 250 µs, p99 900 µs of 100 writes of 4 KiB");
        let verdicts =
            [of(250, 900), of(2, 900), of(50_000, 90_000), of(250, 12_000)].map(|found| found.verdict);
        assert_eq!(verdicts, [Verdict::Good, Verdict::Note, Verdict::Note, Verdict::Note]);
        let absent = Path::new("/proc/not/there");
        assert_eq!(fsync(absent.to_owned(), measure_fsync(absent)).verdict, Verdict::Bad);
    }
}
