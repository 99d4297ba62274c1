//! Source `server` of a server that is many processes: a first one and its children, as PostgreSQL is.
//!
//! Keys are those of one process ([`super::server`]), summed. A child that has ended stays in the sums, because the kernel
//! adds what it used to its parent: CPU and faults as `cutime`, `cstime`, `cminflt`, `cmajflt` (in steps of a tick of 10 ms,
//! over all ended children together), IO as the parent's own. Between a child's end and that moment sums stand still; they
//! never fall. So nothing that a child did is lost, but up to two ticks.
//!
//! Memory cannot be summed, as the processes share most of it. `rss_bytes` is the private memory (RssAnon) of all, plus the
//! greatest shared memory (RssShmem) and the greatest mapped files (RssFile) of one: an estimate, too high by what children
//! have in common with the first process since they were forked. `rss_peak_bytes` is the greatest of these samples,
//! `vsz_bytes` that of the largest process, `threads` the number of all.
//!
//! Children of children are not looked at while they live: PostgreSQL has none but programs that it runs for archiving.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::footprint::{Footprint, gone};
use super::host::TICK_US;
use super::process::{ProcessStat, parse_process_stat};
use super::{Moment, Source, Values, about};
use crate::Error;
use crate::clock::ProcessClock;
use crate::cost_limit::CostLimit;
use crate::proc_file::ProcFile;

/// Children whose files stay open between two readings; each costs three file descriptors of ours. The others' are opened
/// anew each time.
const MAX_OPEN: usize = 100;

/// Sums that never fall: they are what was used up to now.
const COUNTERS: [&str; 5] = ["cpu_us", "cpu_user_us", "cpu_kernel_us", "minor_faults", "major_faults"];

/// The first process of a server, and its children.
#[derive(Debug)]
pub(crate) struct ServerTree {
    pid: u32,
    first: Member,
    children_file: ProcFile,
    children: HashMap<u32, Member>,
    /// With hundreds of connections not each second.
    limit: CostLimit,
}

impl ServerTree {
    /// Looks at process `pid` and its children.
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let first = Member::open(pid)?;
        let children_file = children_file(pid)?;
        Ok(Self {
            pid,
            first,
            children_file,
            children: HashMap::new(),
            limit: CostLimit::new(Duration::ZERO),
        })
    }

    /// Reads all processes. The first one comes first: a child that ends in the meantime is then in neither, where else it
    /// could be in both.
    fn sum(&mut self) -> Result<Sum, Error> {
        let mut sum = Sum::default();
        let stat = self.first.add_to(&mut sum)?;
        if stat.has_ended() {
            return Err(Error::Gone { pid: self.pid });
        }
        sum.add_ended_children(&stat);
        let text = self.children_file.text().map_err(|error| gone(self.pid, error))?;
        let pids: Vec<u32> = parse_children(&text);
        self.children.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            self.add_child(pid, &mut sum);
        }
        Ok(sum)
    }

    /// Adds a child, unless it has ended meanwhile.
    fn add_child(&mut self, pid: u32, sum: &mut Sum) {
        if let Some(child) = self.children.get_mut(&pid) {
            if child.add_to(sum).is_ok() {
                return;
            }
            // The files were bound to a child that has ended; its number may be another one's by now.
            self.children.remove(&pid);
        }
        let Ok(mut child) = Member::open(pid) else { return };
        if child.add_to(sum).is_ok() && self.children.len() < MAX_OPEN {
            self.children.insert(pid, child);
        }
    }
}

impl Source for ServerTree {
    fn name(&self) -> &'static str {
        "server"
    }

    fn about(&self) -> Map<String, Value> {
        about([
            ("pid", self.pid.into()),
            ("sees_io", self.first.footprint.sees_io().into()),
            ("with_children", true.into()),
        ])
    }

    fn read(&mut self, moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let at = Instant::now();
        if !self.limit.is_due(moment, at) {
            return Ok(None);
        }
        let mut limit = std::mem::replace(&mut self.limit, CostLimit::new(Duration::ZERO));
        let sum = limit.measure(at, || self.sum());
        self.limit = limit;
        sum?.write(values);
        Ok(Some(at))
    }
}

/// The list of a process' children; the kernel keeps it for each thread, and a server's first process has one.
pub(super) fn children_file(pid: u32) -> Result<ProcFile, Error> {
    ProcFile::open(format!("/proc/{pid}/task/{pid}/children"))
}

/// Reads that list.
pub(super) fn parse_children(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// One process of the tree.
#[derive(Debug)]
struct Member {
    pid: u32,
    clock: ProcessClock,
    stat: ProcFile,
    footprint: Footprint,
}

impl Member {
    fn open(pid: u32) -> Result<Self, Error> {
        let stat = ProcFile::open(format!("/proc/{pid}/stat"))?;
        Ok(Self { pid, clock: ProcessClock::of(pid)?, stat, footprint: Footprint::open(pid)? })
    }

    /// Adds what this process uses, all of it or nothing.
    fn add_to(&mut self, sum: &mut Sum) -> Result<ProcessStat, Error> {
        // The clock goes by number and the file by process: only the file can tell that the number is another's now.
        let cpu_us = self.clock.cpu_us();
        let stat = parse_process_stat(&self.stat.text().map_err(|error| gone(self.pid, error))?);
        let stat = stat.ok_or_else(|| self.stat.format_error("fields up to cstime"))?;
        let memory = self.footprint.memory()?;
        let io = self.footprint.io()?;
        let cpu_us = cpu_us?;
        let own = [
            cpu_us,
            stat.user_ticks * TICK_US,
            stat.kernel_ticks * TICK_US,
            stat.minor_faults,
            stat.major_faults,
        ];
        sum.counters.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        for (key, value) in io {
            *sum.io.entry(key).or_insert(0) += value;
        }
        sum.anonymous_bytes += memory.anonymous_bytes;
        sum.shared_bytes = sum.shared_bytes.max(memory.shared_bytes);
        sum.file_bytes = sum.file_bytes.max(memory.file_bytes);
        sum.vsz_bytes = sum.vsz_bytes.max(memory.vsz_bytes);
        sum.threads += memory.threads;
        Ok(stat)
    }
}

/// What all processes use together.
#[derive(Debug, Default)]
struct Sum {
    /// In the order of [`COUNTERS`].
    counters: [i64; 5],
    io: HashMap<&'static str, i64>,
    anonymous_bytes: i64,
    shared_bytes: i64,
    file_bytes: i64,
    vsz_bytes: i64,
    threads: i64,
}

impl Sum {
    fn add_ended_children(&mut self, parent: &ProcessStat) {
        let (user_us, kernel_us) = (parent.ended_user_ticks * TICK_US, parent.ended_kernel_ticks * TICK_US);
        let ended =
            [user_us + kernel_us, user_us, kernel_us, parent.ended_minor_faults, parent.ended_major_faults];
        self.counters.iter_mut().zip(ended).for_each(|(sum, ended)| *sum += ended);
    }

    fn write(&self, values: &mut Values) {
        for (key, value) in COUNTERS.into_iter().zip(self.counters) {
            values.raise(key, value);
        }
        for (key, value) in &self.io {
            values.raise(key, *value);
        }
        let rss_bytes = self.anonymous_bytes + self.shared_bytes + self.file_bytes;
        values.set("rss_bytes", rss_bytes);
        values.raise("rss_peak_bytes", rss_bytes);
        values.set("vsz_bytes", self.vsz_bytes);
        values.set("threads", self.threads);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that does what it is told, and is killed at the end.
    struct Shell(Child, BufReader<std::process::ChildStdout>);

    impl Shell {
        fn new() -> Self {
            let mut child = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            Self(child, output)
        }

        fn tell(&mut self, command: &str) {
            writeln!(self.0.stdin.as_mut().unwrap(), "{command}\necho done").unwrap();
            self.1.read_line(&mut String::new()).unwrap();
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A program that uses some 0.3 s of CPU.
    const BUSY: &str = "dd if=/dev/zero of=/dev/null bs=64 count=1500000 2>/dev/null";

    fn read(tree: &mut ServerTree, values: &mut Values) -> i64 {
        tree.read(Moment::Boundary, values).unwrap().unwrap();
        values.map()["cpu_us"]
    }

    #[test]
    fn children_count_while_they_live_and_when_they_have_ended() {
        let mut shell = Shell::new();
        let mut tree = ServerTree::open(shell.0.id()).unwrap();
        let mut values = Values::default();
        let before = read(&mut tree, &mut values);
        assert_eq!(values.map()["threads"], 1);
        // One that is never seen alive, and is reaped by the shell.
        shell.tell(BUSY);
        let after = read(&mut tree, &mut values);
        assert!(after - before > 50_000, "{before} to {after}");
        // Two that are seen alive.
        shell.tell("cat /dev/zero | head -c 3000000000 >/dev/null &");
        let (mut last, mut most) = (after, 0);
        let deadline = Instant::now() + Duration::from_secs(60);
        while last - after < 50_000 || most < 3 {
            std::thread::sleep(Duration::from_millis(10));
            let now = read(&mut tree, &mut values);
            assert!(now >= last, "{now} after {last}");
            most = most.max(values.map()["threads"]);
            last = now;
            assert!(Instant::now() < deadline, "{after} to {last} with {most} processes");
        }
        assert!(values.map()["rss_peak_bytes"] >= values.map()["rss_bytes"]);
    }

    #[test]
    fn what_ended_children_have_written_is_in_the_sum() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        let mut shell = Shell::new();
        let mut tree = ServerTree::open(shell.0.id()).unwrap();
        let mut values = Values::default();
        read(&mut tree, &mut values);
        let before = values.map()["write_chars"];
        shell.tell(&format!("dd if=/dev/zero of={} bs=1k count=1000 2>/dev/null", file.display()));
        read(&mut tree, &mut values);
        let written = values.map()["write_chars"] - before;
        assert!((1_024_000..1_100_000).contains(&written), "{written}");
    }

    #[test]
    fn a_first_process_that_has_ended_is_said_to_have() {
        let mut shell = Shell::new();
        let mut tree = ServerTree::open(shell.0.id()).unwrap();
        shell.0.kill().unwrap();
        shell.0.wait().unwrap();
        let error = tree.read(Moment::Boundary, &mut Values::default()).unwrap_err();
        assert!(matches!(error, Error::Gone { .. }), "{error}");
    }

    #[test]
    fn a_list_of_children_is_read() {
        assert_eq!(parse_children("12 345 6 "), [12, 345, 6]);
        assert!(parse_children("").is_empty());
    }
}
