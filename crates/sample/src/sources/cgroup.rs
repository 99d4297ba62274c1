//! Source `cgroup`: memory of the server's control group, including the page cache of its files. It is
//! sampled only where dbdyno limits that memory.
//!
//! The values come from the group's files in version 1 (`memory.usage_in_bytes`, `memory.stat`,
//! `memory.failcnt`) or 2 (`memory.current`, `memory.stat`, `memory.events`). Keys: `memory_bytes` is
//! all memory, `anonymous_bytes` the group's own (heaps, buffer pools), and `file_bytes` the page
//! cache. `dirty_bytes` and `writeback_bytes` are the page cache on its way to the disk. `major_faults`
//! counts faults, and `limit_hits` how often the limit made the kernel take pages back. Version 2 also
//! has `cpu_us`, `cpu_user_us`, `cpu_kernel_us` (`cpu.stat`) and `read_bytes`, `written_bytes` over all
//! devices (`io.stat`), where these controllers are on.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{ProcFile, Source, Values, about};
use crate::Error;

/// Names in `memory.stat` of version 1 and 2, and the key that each becomes.
const STAT: [(&str, &str, &str); 5] = [
    ("rss", "anon", "anonymous_bytes"),
    ("cache", "file", "file_bytes"),
    ("dirty", "file_dirty", "dirty_bytes"),
    ("writeback", "file_writeback", "writeback_bytes"),
    ("pgmajfault", "pgmajfault", "major_faults"),
];

/// Names in `cpu.stat` of version 2, and the key that each becomes.
const CPU: [(&str, &str); 3] =
    [("usage_usec", "cpu_us"), ("user_usec", "cpu_user_us"), ("system_usec", "cpu_kernel_us")];

#[derive(Debug)]
pub(crate) struct MemoryGroup {
    folder: PathBuf,
    is_v2: bool,
    usage: ProcFile,
    stat: ProcFile,
    /// In version 1 the file has the number of hits. In version 2 it has a list in which `max` is that
    /// number.
    hits: ProcFile,
    cpu: Option<ProcFile>,
    io: Option<ProcFile>,
}

impl MemoryGroup {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let is_v2 = folder.join("memory.current").exists();
        let [usage, hits] = match is_v2 {
            true => ["memory.current", "memory.events"],
            false => ["memory.usage_in_bytes", "memory.failcnt"],
        };
        let optional = |name: &str| if is_v2 { ProcFile::open(folder.join(name)).ok() } else { None };
        Ok(Self {
            folder: folder.to_path_buf(),
            is_v2,
            usage: ProcFile::open(folder.join(usage))?,
            stat: ProcFile::open(folder.join("memory.stat"))?,
            hits: ProcFile::open(folder.join(hits))?,
            cpu: optional("cpu.stat"),
            io: optional("io.stat"),
        })
    }
}

impl Source for MemoryGroup {
    fn about(&self) -> Map<String, Value> {
        let version = if self.is_v2 { 2 } else { 1 };
        about([("folder", self.folder.display().to_string().into()), ("version", version.into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let number = |text: &str| text.trim().parse().ok();
        values.set("memory_bytes", self.usage.parsed("a number", number)?);
        let stat = self.stat.text()?;
        for (v1, v2, key) in STAT {
            values.set_known(key, value_of(&stat, if self.is_v2 { v2 } else { v1 }));
        }
        let is_v2 = self.is_v2;
        let hits = |text: &str| if is_v2 { value_of(text, "max") } else { number(text) };
        values.set("limit_hits", self.hits.parsed("the number of hits", hits)?);
        if let Some(cpu) = &mut self.cpu {
            let text = cpu.text()?;
            CPU.iter().for_each(|(name, key)| values.set_known(key, value_of(&text, name)));
        }
        if let Some(io) = &mut self.io {
            let text = io.text()?;
            values.set("read_bytes", sum_of(&text, "rbytes="));
            values.set("written_bytes", sum_of(&text, "wbytes="));
        }
        Ok(())
    }
}

/// Returns the number after `name` in lines `NAME NUMBER`.
fn value_of(text: &str, name: &str) -> Option<i64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter(|(found, _)| *found == name).find_map(|(_, value)| value.trim().parse().ok())
}

/// Returns the sum over all devices of the numbers after `key` in lines `8:0 rbytes=1 wbytes=2 ...`.
fn sum_of(text: &str, key: &str) -> i64 {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix(key));
    words.filter_map(|number| number.parse::<i64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Moment;

    fn read(files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut values = Values::default();
        MemoryGroup::open(folder.path()).unwrap().read(Moment::Tick, &mut values).unwrap();
        values.map().iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn both_versions_give_the_same_keys() {
        let v1 = read(&[
            ("memory.usage_in_bytes", "4096000\n"),
            ("memory.stat", "cache 1000\nrss 2000\ndirty 30\nwriteback 4\npgmajfault 5\ntotal_cache 9\n"),
            ("memory.failcnt", "17\n"),
        ]);
        let memory = "anonymous_bytes=2000 dirty_bytes=30 file_bytes=1000 limit_hits=17 major_faults=5 \
                      memory_bytes=4096000 writeback_bytes=4";
        assert_eq!(v1, memory);
        let v2 = [
            ("memory.current", "4096000\n"),
            ("memory.stat", "anon 2000\nfile 1000\nfile_dirty 30\nfile_writeback 4\npgmajfault 5\n"),
            ("memory.events", "low 0\nhigh 1\nmax 17\noom 0\n"),
        ];
        assert_eq!(read(&v2), memory);
        let more = [
            ("cpu.stat", "usage_usec 12\nuser_usec 8\nsystem_usec 4\n"),
            ("io.stat", "8:0 rbytes=100 wbytes=7 rios=1\n259:0 rbytes=11 wbytes=2 rios=1\n"),
        ];
        let all = read(&[v2.as_slice(), &more].concat());
        assert!(all.contains("cpu_kernel_us=4 cpu_us=12 cpu_user_us=8"), "{all}");
        assert!(all.contains("read_bytes=111") && all.contains("written_bytes=9"), "{all}");
    }
}
