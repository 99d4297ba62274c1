//! Tests the sampler with processes, disks and files whose behaviour is known.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Recording, retry_if_disturbed, wait_for};
use dbdyno_db::{DatabaseAddress, DatabaseServer, TimeLimits, mysql, null};
use dbdyno_sample::{Config, Error, Sampler, SamplerReport};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const HOST_KEYS: &[&str] = &[
    "cpu_user_us",
    "cpu_nice_us",
    "cpu_system_us",
    "cpu_idle_us",
    "cpu_iowait_us",
    "cpu_irq_us",
    "cpu_softirq_us",
    "cpu_steal_us",
    "context_switches",
    "procs_running",
    "load1_milli",
];
const PROCESS_KEYS: &[&str] = &[
    "cpu_us",
    "cpu_user_us",
    "cpu_kernel_us",
    "threads",
    "rss_bytes",
    "vsz_bytes",
    "read_bytes",
    "write_bytes",
    "minor_faults",
    "major_faults",
];
const SWITCH_KEYS: &[&str] = &["voluntary_switches", "involuntary_switches"];
const DISK_KEYS: &[&str] =
    &["reads", "read_bytes", "writes", "written_bytes", "read_us", "write_us", "busy_us", "in_flight"];

/// A process that is killed when the test ends, even if it fails.
struct Process(Child);

impl Process {
    fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }

    /// Stops the process until it gets SIGCONT.
    fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let stat = format!("/proc/{}/stat", self.0.id());
        wait_for("the stop", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    }

    /// Returns the CPU time of the first thread in ns, as the scheduler counts it.
    fn cpu_ns(&self) -> u64 {
        let schedstat = std::fs::read_to_string(format!("/proc/{}/schedstat", self.0.id())).unwrap();
        schedstat.split(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Samples from before `work` begins until after it ends.
fn sample(config: &Config, recording: &Recording, work: impl FnOnce()) -> SamplerReport {
    let sampler = Sampler::start(config, |header| recording.counters(header)).unwrap();
    sampler.begin(Instant::now());
    recording.wait_for_first_samples();
    work();
    sampler.stop().unwrap()
}

/// Returns a folder on the disk of the build directory, because the system's temporary folder may
/// be in memory.
fn folder_on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn a_process_that_writes_and_syncs_is_seen_in_its_own_counters_and_in_the_disks() {
    const WRITES: usize = 40;
    const WRITE_BYTES: usize = 65_536;
    let dir = folder_on_disk();
    let file = dir.path().join("written");
    let output = format!("of={}", file.display());
    let arguments = [output.as_str(), "bs=64k", "iflag=fullblock", "oflag=dsync", "status=none"];
    let mut writer = Process::spawn(Command::new("dd").args(arguments).stdin(Stdio::piped()));
    let recording = Recording::new();
    let config = Config {
        server_pid: Some(writer.0.id()),
        data_dir: Some(dir.path().to_owned()),
        database_dir: Some(dir.path().join("ib")),
        ..Config::default()
    };
    let report = sample(&config, &recording, || {
        let input = writer.0.stdin.as_mut().unwrap();
        for _ in 0..WRITES {
            input.write_all(&[7; WRITE_BYTES]).unwrap();
        }
        wait_for("all writes", || {
            file.metadata().is_ok_and(|file| file.len() == (WRITES * WRITE_BYTES) as u64)
        });
        // The file has its length before the last sync ends. After the sync the writer sleeps,
        // because it waits for input.
        let stat = format!("/proc/{}/stat", writer.0.id());
        wait_for("the last sync", || std::fs::read_to_string(&stat).unwrap().contains(") S "));
    });

    let written = (WRITES * WRITE_BYTES) as i64;
    let server = recording.read("server").unwrap();
    server.assert_keys(PROCESS_KEYS);
    let switches = recording.read("switches").unwrap();
    switches.assert_keys(SWITCH_KEYS);
    assert!(server.growth("write_bytes") >= written, "{server:?}");
    assert!(
        server.growth("write_chars") >= written && server.growth("write_calls") >= WRITES as i64,
        "{server:?}"
    );
    assert!(
        switches.growth("voluntary_switches") >= WRITES as i64,
        "each write waits for the disk: {switches:?}"
    );
    assert!(server.growth("cpu_us") > 0, "{server:?}");
    let size = recording.read("size").unwrap();
    assert_eq!(size.lines.last().unwrap().1["data_dir_bytes"], written);
    assert_eq!(
        (size.lines.last().unwrap().1["database_bytes"], size.lines.last().unwrap().1["files"]),
        (0, 1)
    );
    if let Some(disk) = recording.read("disk") {
        assert_eq!(report.warnings, Vec::<String>::new());
        disk.assert_keys(DISK_KEYS);
        assert!(disk.growth("written_bytes") >= written, "{disk:?}");
        assert!(disk.growth("writes") >= WRITES as i64, "{disk:?}");
    } else {
        assert!(report.warnings[0].contains("no block device"), "{report:?}");
    }
}

#[test]
fn the_sleeps_of_a_load_thread_are_counted() {
    const SLEEPS: usize = 2_000;
    let (slept, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (seen, ended) = (Arc::clone(&slept), Arc::clone(&is_over));
    let sleep = move || {
        while !ended.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(1));
            seen.fetch_add(1, Ordering::Release);
        }
    };
    let thread = std::thread::Builder::new().name("load-0".to_owned()).spawn(sleep).unwrap();
    // The thread has its name by then.
    wait_for("the first sleep", || slept.load(Ordering::Acquire) > 0);
    let recording = Recording::new();
    sample(&Config::default(), &recording, || {
        let enough = slept.load(Ordering::Acquire) + SLEEPS;
        wait_for("more sleeps", || slept.load(Ordering::Acquire) >= enough);
    });
    is_over.store(true, Ordering::Release);
    thread.join().unwrap();
    let load = recording.read("load").unwrap();
    // On a busy machine some sleeps are over before they begin, and cause no context switch.
    assert!(load.growth("voluntary_switches") >= SLEEPS as i64 / 4, "{load:?}");
}

#[test]
fn the_clock_and_the_ticks_of_a_busy_process_agree() {
    let process = Process::spawn(Command::new("sh").args(["-c", "while :; do :; done"]));
    // Clock and ticks are read one after the other, so the process must not run between these
    // readings in the first and in the last sample.
    process.pause();
    let recording = Recording::new();
    let config = Config { server_pid: Some(process.0.id()), ..Config::default() };
    sample(&config, &recording, || {
        let second = process.cpu_ns() + 1_000_000_000;
        process.signal(Signal::SIGCONT);
        wait_for("a second of CPU time", || process.cpu_ns() >= second);
        process.pause();
    });
    let server = recording.read("server").unwrap();
    let cpu_us = server.growth("cpu_us");
    let ticks_us = server.growth("cpu_user_us") + server.growth("cpu_kernel_us");
    assert!(cpu_us >= 1_000_000, "{server:?}");
    assert!((cpu_us - ticks_us).abs() <= 60_000, "{cpu_us} µs by the clock, {ticks_us} µs by ticks");
}

#[test]
fn samples_come_before_the_barrier_at_each_interval_at_the_mark_and_at_the_end() {
    retry_if_disturbed(samples_around_a_step);
}

/// Samples as in a step of 0.7 s. The error says which sample came too late, which may be due to a
/// busy machine.
fn samples_around_a_step() -> Result<(), String> {
    let recording = Recording::new();
    let config = Config {
        interval: Duration::from_millis(200),
        data_dir: Some(folder_on_disk().path().to_owned()),
        status: Some(DatabaseServer {
            address: DatabaseAddress::Null(null::Options::default()),
            capabilities: null::capabilities(),
        }),
        ..Config::default()
    };
    let sampler = Sampler::start(&config, |header| recording.counters(header)).unwrap();
    sampler.mark();
    let ahead = Duration::from_millis(500);
    let barrier = Instant::now() + ahead;
    sampler.begin(barrier);
    std::thread::sleep(ahead + Duration::from_millis(700));
    let marked_us = i64::try_from(barrier.elapsed().as_micros()).unwrap();
    sampler.mark();
    std::thread::sleep(Duration::from_millis(30));
    let stopped_us = i64::try_from(barrier.elapsed().as_micros()).unwrap();
    let report = sampler.stop().unwrap();

    let host = recording.read("host").unwrap();
    host.assert_keys(HOST_KEYS);
    let client = recording.read("client").unwrap();
    client.assert_keys(PROCESS_KEYS);
    let sampler = recording.read("sampler").unwrap();
    sampler.assert_keys(&["cpu_us", "samples", "late_us"]);
    let times: Vec<i64> = host.lines.iter().map(|line| line.0).collect();
    assert!(times.is_sorted(), "{times:?}");
    // There are three samples before the barrier, at the mark and at the end, and one per interval.
    let most = 3 + 1 + usize::try_from(times[times.len() - 1] / 200_000).unwrap();
    assert!(times.len() <= most, "{times:?}");
    assert_eq!(report.samples, times.len() as u64);
    assert!(report.cpu > Duration::ZERO);
    let sizes = recording.read("size");
    assert!(sizes.is_none(), "the folder was removed before sampling began: {sizes:?}");
    assert!(report.warnings.iter().any(|warning| warning.starts_with("`size` is not sampled")), "{report:?}");
    // A sample may come later by the longest delay that the sampler has recorded, and by the
    // longest time that a round took. The sampler does not make up for samples that it missed.
    let late_us: i64 = sampler.lines.iter().map(|line| line.1["late_us"]).max().unwrap();
    let lasted_us =
        sampler.lines.iter().zip(&client.lines).map(|(last, first)| last.0 - first.0).max().unwrap();
    let ticks = [0, 200_000, 400_000, 600_000].map(|due_us| (due_us, 150_000 + late_us + lasted_us));
    for (due_us, most_us) in ticks.into_iter().chain([(marked_us, 600_000), (stopped_us, 600_000)]) {
        let lateness_us = times.iter().map(|at_us| at_us - due_us).filter(|late_us| *late_us >= 0).min();
        if lateness_us.is_none_or(|after_us| after_us >= most_us) {
            return Err(format!("no sample within {most_us} µs after {due_us} in {times:?}"));
        }
    }
    if !(-500_000..0).contains(&times[0]) {
        return Err(format!("no sample before the barrier: {times:?}"));
    }
    // There are seven moments. The thread of this source takes one sample for all moments that it
    // has missed.
    let status = recording.read("status").unwrap().lines.len();
    if status < 4 { Err(format!("{status} samples of the status")) } else { Ok(()) }
}

#[test]
fn a_source_that_cannot_be_read_is_left_out_with_a_warning_before_the_clock_starts() {
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let recording = Recording::new();
    let config = Config {
        server_pid: Some(ended.id()),
        data_dir: Some(Path::new("/proc/self").to_owned()),
        ..Config::default()
    };
    let sampler = Sampler::start(&config, |header| recording.counters(header)).unwrap();
    let warnings = sampler.warnings().join("\n");
    assert!(
        warnings.contains(&format!("`server` is not sampled: process {} has ended", ended.id())),
        "{warnings}"
    );
    let no_device = "`disk` is not sampled: no block device of this machine is known to hold /proc/self (filesystem proc)";
    assert!(warnings.contains(no_device), "{warnings}");
    drop(sampler);
    assert!(recording.read("server").is_none() && recording.read("disk").is_none());
    assert!(recording.read("host").is_some());
}

#[test]
fn a_server_that_never_answers_costs_only_the_samples_of_status() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let limits = TimeLimits { login: Duration::from_secs(60), ..TimeLimits::default() };
    let options = mysql::Options::tcp("127.0.0.1", port, "root").with_limits(limits);
    let database_server = DatabaseServer {
        address: DatabaseAddress::Mysql(options),
        capabilities: mysql::capabilities("InnoDB", true),
    };
    let recording = Recording::new();
    let config = Config { status: Some(database_server), ..Config::default() };
    let started = Instant::now();
    let report = sample(&config, &recording, || ());
    assert!(started.elapsed() < limits.login, "{:?}", started.elapsed());
    let expected = "`status` is not sampled: the server did not answer a status query within 3 s";
    assert_eq!(report.warnings, [expected]);
    assert!(recording.read("status").is_none() && recording.read("host").is_some());
}

#[test]
fn a_server_that_is_killed_ends_its_samples_but_no_others() {
    let mut server = Process::spawn(Command::new("sleep").arg("60"));
    let recording = Recording::new();
    let config =
        Config { server_pid: Some(server.0.id()), interval: Duration::from_millis(100), ..Config::default() };
    let pid = server.0.id();
    let lines = |source| recording.read(source).map_or(0, |of| of.lines.len());
    let report = sample(&config, &recording, || {
        server.0.kill().unwrap();
        std::thread::sleep(Duration::from_millis(350));
        server.0.wait().unwrap();
        wait_for("samples of the others", || lines("host") > lines("server") + 3);
    });
    assert_eq!(report.warnings.len(), 1, "{report:?}");
    assert!(
        report.warnings[0].starts_with("`server`: ") && report.warnings[0].contains(" samples are missing, ")
    );
    assert!(report.warnings[0].ends_with(&format!("process {pid} has ended")), "{report:?}");
    assert!(lines("host") > lines("server") + 3);
}

#[test]
fn a_counter_file_that_cannot_be_written_is_an_error_that_names_it() {
    let recording = Recording::new();
    let counters = recording.step.dir().join("counters");
    std::fs::create_dir_all(&counters).unwrap();
    std::os::unix::fs::symlink("/dev/full", counters.join("host.jsonl")).unwrap();
    let started = Sampler::start(&Config::default(), |header| recording.counters(header));
    let error = started.and_then(|sampler| {
        sampler.begin(Instant::now());
        sampler.stop()
    });
    let error = error.expect_err("a full disk");
    assert!(matches!(error, Error::Counters(_)) && error.to_string().contains("host.jsonl"), "{error}");
}

#[test]
fn an_interval_of_zero_and_cpus_that_do_not_exist_are_noticed() {
    let recording = Recording::new();
    let config = Config { interval: Duration::ZERO, ..Config::default() };
    assert!(matches!(Sampler::start(&config, |header| recording.counters(header)), Err(Error::Interval)));
    let config = Config { cpus: Some(vec![1_000]), ..Config::default() };
    let sampler = Sampler::start(&config, |header| recording.counters(header)).unwrap();
    assert!(sampler.warnings()[0].contains("could not be pinned to CPUs [1000]"), "{:?}", sampler.warnings());
}
