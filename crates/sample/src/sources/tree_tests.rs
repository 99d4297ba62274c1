//! Tests of the sum over processes, with shells whose children do a known amount of work and end at
//! known times.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::sources::Moment;
use crate::sources::process::parse_process_stat;

/// A shell that runs commands, and is killed when the test ends.
struct Shell(Child, BufReader<std::process::ChildStdout>);

impl Shell {
    fn new() -> Self {
        let mut child = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self(child, output)
    }

    fn run(&mut self, command: &str) {
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

/// A program that uses about 0.3 s of CPU time.
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
    // This child is never seen alive, and is reaped by the shell.
    shell.run(BUSY);
    let after = read(&mut tree, &mut values);
    assert!(after - before > 50_000, "{before} to {after}");
    // These two are seen alive.
    shell.run("cat /dev/zero | head -c 100000000000 >/dev/null &");
    let (mut last, mut highest) = (after, 0);
    let deadline = Instant::now() + Duration::from_secs(60);
    while last - after < 50_000 || highest < 3 {
        std::thread::sleep(Duration::from_millis(10));
        let now = read(&mut tree, &mut values);
        assert!(now >= last, "{now} after {last}");
        highest = highest.max(values.map()["threads"]);
        last = now;
        assert!(Instant::now() < deadline, "{after} to {last} with {highest} processes");
    }
    shell.run("kill $!");
    assert!(values.map()["rss_peak_bytes"] >= values.map()["rss_bytes"]);
}

/// Waits until the first process of `tree` has `count` children, and returns their process ids.
fn children(tree: &mut ServerTree, count: usize) -> Vec<u32> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let pids = tree.list().unwrap();
        if pids.len() == count {
            return pids;
        }
        assert!(Instant::now() < deadline, "{} children, not {count}", pids.len());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_child_that_ends_while_the_sum_is_made_is_noticed() {
    let mut shell = Shell::new();
    let mut tree = ServerTree::open(shell.0.id()).unwrap();
    shell.run("sleep 60 &");
    let pids = children(&mut tree, 1);
    assert!(tree.cpu_us(&pids).unwrap().1 && tree.files(&pids).unwrap().1);
    shell.run("kill $!; wait 2>/dev/null");
    assert!(children(&mut tree, 0).is_empty());
    assert!(!tree.cpu_us(&pids).unwrap().1, "by the clocks");
    assert!(!tree.files(&pids).unwrap().1, "by the files");
}

#[test]
fn sums_do_not_fall_while_children_end_one_after_the_other() {
    const CHILDREN: u32 = 15;
    let mut shell = Shell::new();
    let mut tree = ServerTree::open(shell.0.id()).unwrap();
    let busy = BUSY.replace("1500000", "250000");
    let all = format!("for n in $(seq {CHILDREN}); do {busy}; done; echo done >&2");
    let reader = std::thread::spawn(move || {
        shell.run(&all);
        shell
    });
    let (mut last_us, mut last_split_us) = (0, 0);
    // The kernel rounds the CPU time of ended children down to a tick, separately for user and
    // kernel time.
    let rounding_us = 2 * TICK_US;
    loop {
        let is_over = reader.is_finished();
        let sum = tree.sum().unwrap();
        let split_us = (sum.used.user_ticks + sum.used.kernel_ticks) * TICK_US;
        assert!(sum.cpu_us >= last_us - rounding_us, "{} after {last_us}", sum.cpu_us);
        assert!(split_us >= last_split_us - 2 * rounding_us, "{split_us} after {last_split_us}");
        (last_us, last_split_us) = (sum.cpu_us, split_us);
        if is_over {
            break;
        }
    }
    drop(reader.join().unwrap());
    assert!(last_us > 300_000, "{last_us}");
}

#[test]
fn a_child_that_was_not_waited_for_counts() {
    let mut shell = Shell::new();
    let mut tree = ServerTree::open(shell.0.id()).unwrap();
    // The program that the shell becomes does not know about any children.
    writeln!(shell.0.stdin.as_mut().unwrap(), "({BUSY}) & exec sleep 60").unwrap();
    let pid = children(&mut tree, 1)[0];
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut stat = ProcFile::open(format!("/proc/{pid}/stat")).unwrap();
    let ended = loop {
        let stat = parse_process_stat(&stat.text().unwrap()).unwrap();
        if stat.has_ended() {
            break stat;
        }
        assert!(Instant::now() < deadline, "{stat:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    let used_us = (ended.own.user_ticks + ended.own.kernel_ticks + ended.ended.user_ticks) * TICK_US;
    assert!(used_us > 50_000, "{ended:?}");
    let sum = tree.sum().unwrap();
    assert_eq!(sum.threads, 1, "one of the two has no memory and no threads any more");
    let split_us = (sum.used.user_ticks + sum.used.kernel_ticks) * TICK_US;
    assert!(sum.cpu_us > 50_000 && split_us > 50_000, "{sum:?}");
}

#[test]
fn without_the_parts_of_memory_no_estimate_is_made() {
    let (parts, mut values) =
        (MemoryParts { anonymous_bytes: 5, file_bytes: 2, shared_bytes: 7 }, Values::default());
    let mut sum = TreeTotal { has_parts: true, ..TreeTotal::default() };
    sum.add_parts(Some(parts));
    sum.add_parts(Some(parts));
    sum.write(&mut values);
    assert_eq!(values.map()["rss_bytes"], 19);
    sum.add_parts(None);
    let mut values = Values::default();
    sum.write(&mut values);
    assert!(!values.map().contains_key("rss_bytes") && values.map().contains_key("vsz_bytes"));
}

#[test]
fn the_sum_includes_the_writes_of_children_that_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    let mut shell = Shell::new();
    let mut tree = ServerTree::open(shell.0.id()).unwrap();
    let mut values = Values::default();
    read(&mut tree, &mut values);
    let before = values.map()["write_chars"];
    shell.run(&format!("dd if=/dev/zero of={} bs=1k count=1000 2>/dev/null", file.display()));
    read(&mut tree, &mut values);
    let written = values.map()["write_chars"] - before;
    assert!((1_024_000..1_100_000).contains(&written), "{written}");
}

#[test]
fn a_first_process_that_has_ended_is_reported_as_gone() {
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
