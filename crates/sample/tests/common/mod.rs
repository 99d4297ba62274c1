//! A step into which tests record samples, and its counter files as they are read back.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dbdyno_record::{
    CellId, CounterHeader, CounterLine, CounterWriter, Error, FORMAT_VERSION, HostInfo, Manifest, RunWriter,
    StepWriter, ToolInfo,
};

/// A run directory with one step, in a temporary folder.
pub(crate) struct Recording {
    pub(crate) step: StepWriter,
    _run: RunWriter,
    _dir: tempfile::TempDir,
}

impl Recording {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            tool: ToolInfo { version: "0".into(), commit: "unknown".into(), build: "debug".into() },
            run_id: "run".into(),
            started: "2024-01-01T00:00:00Z".into(),
            plan: dbdyno_model::Plan {
                name: "test".into(),
                seed: 1,
                blocks: 1,
                base: Some("base".into()),
                ..dbdyno_model::Plan::default()
            },
            client_calibration: None,
            host: HostInfo::default(),
            variants: Vec::new(),
            workloads: Vec::new(),
            order: Vec::new(),
        };
        let run = RunWriter::create(dir.path(), &manifest).unwrap();
        let cell = CellId { block: 1, variant: "base".into(), workload: "w".into() };
        let step = run.cell(&cell).unwrap().step("s").unwrap();
        Self { step, _run: run, _dir: dir }
    }

    /// Creates a counter file, as a sampler requests it.
    pub(crate) fn counters(&self, header: CounterHeader) -> Result<CounterWriter, Error> {
        self.step.counters(header)
    }

    fn counter_dir(&self) -> PathBuf {
        self.step.dir().join("counters")
    }

    /// Waits until every source that has a counter file has its first sample. The sources are read
    /// by several threads, so that the first samples come at different times.
    pub(crate) fn wait_for_first_samples(&self) {
        wait_for("the first sample of every source", || {
            let files = std::fs::read_dir(self.counter_dir()).unwrap().map(|file| file.unwrap().path());
            let mut sources = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
            sources.all(|source| self.read(&source).is_some_and(|read| !read.lines.is_empty()))
        });
    }

    /// Returns the counter file of `source` with unchanged values filled in, or `None` if there is
    /// no file. A line that is only partly written is left out.
    pub(crate) fn read(&self, source: &str) -> Option<Series> {
        let text = std::fs::read_to_string(self.counter_dir().join(format!("{source}.jsonl"))).ok()?;
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let header: CounterHeader = serde_json::from_str(lines.next()?).unwrap();
        assert_eq!(header.source, source);
        let mut values = BTreeMap::new();
        let lines = lines.map(|line| {
            let line: CounterLine = serde_json::from_str(line).unwrap();
            values.extend(line.values);
            (line.at_us, values.clone())
        });
        Some(Series { lines: lines.collect(), header })
    }
}

/// A counter file: time in µs since the barrier, and all values.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) header: CounterHeader,
    pub(crate) lines: Vec<(i64, BTreeMap<String, i64>)>,
}

impl Series {
    /// Returns by how much `key` grew from the first line to the last.
    pub(crate) fn growth(&self, key: &str) -> i64 {
        let value = |line: Option<&(i64, BTreeMap<String, i64>)>| line.unwrap().1[key];
        value(self.lines.last()) - value(self.lines.first())
    }

    /// Asserts that every line has all of `keys`.
    pub(crate) fn assert_keys(&self, keys: &[&str]) {
        for (at_us, values) in &self.lines {
            for key in keys {
                assert!(values.contains_key(*key), "`{key}` is missing at {at_us} µs in {values:?}");
            }
        }
    }
}

/// Runs `attempt` until it succeeds, at most eight times. It is for tests of timing, which fail
/// when the machine is busy. A mistake of the sampler makes all attempts fail. The error of an
/// attempt says which sample was missing.
pub(crate) fn retry_if_disturbed(attempt: impl Fn() -> Result<(), String>) {
    let mut failures = Vec::new();
    for _ in 0..8 {
        match attempt() {
            Ok(()) => return,
            Err(failure) => failures.push(failure),
        }
    }
    panic!("no attempt went well: {failures:#?}");
}

/// Waits for something that must happen, and fails after ten minutes.
pub(crate) fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(600);
    while !happened() {
        assert!(Instant::now() < deadline, "{what} did not happen within ten minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}
