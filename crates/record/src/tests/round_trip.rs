//! Tests that a reader gets the same records that a writer wrote.

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

#[test]
fn a_run_comes_back_as_it_was_written() {
    let (_parent, dir) = sample_run();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.dir, dir);
    // The host of a fleet's run is that of its first block.
    assert_eq!(Manifest { host: manifest().host, ..run.manifest.clone() }, manifest());
    assert_eq!(run.events, run_events());
    assert_eq!(run.warnings, Vec::<String>::new());
    let [cell] = &run.cells[..] else { panic!("{:?}", run.cells) };
    assert_eq!(cell.id, cell_id("wal"));
    assert_eq!(cell.events, cell_events());
    assert_eq!(cell.outcome(), Some(Outcome::Completed));
    let names: Vec<&str> = cell.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["l.i0", "qr100"], "in the order of the workload, not of writing or of names");
    for step in &cell.steps {
        assert_eq!(step.damaged, None);
        assert_eq!(step.spec, spec(&step.name));
        assert_eq!(step.events, step_events(&step.name));
        assert_eq!(step.intervals, [interval(0), interval(1)]);
    }
}

#[test]
fn cells_that_a_look_has_added_belong_to_the_run() {
    let (_parent, dir) = sample_run();
    let (mut writer, planned) = RunWriter::resume(&dir).unwrap();
    let added = CellId { block: 2, ..cell_id("rollback") };
    let order = vec![added.clone()];
    writer.event(&RunEvent::Started { at: AT.into(), resumed: true, tool: manifest().tool }).unwrap();
    let at = AT.to_owned();
    writer
        .event(&RunEvent::Look { at, blocks: 1, elapsed_us: 7, last: false, order, steps: BTreeMap::new() })
        .unwrap();
    writer.cell(&added).unwrap();
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.manifest.order, [planned.order, vec![added.clone()]].concat());
    assert_eq!((run.cells.len(), &run.cells[1].id), (2, &added));
    assert_eq!(run.warnings, Vec::<String>::new());
}

#[test]
fn a_cell_that_another_run_measured_becomes_one_of_this_run_with_the_host_that_measured_it() {
    let (parent, measured) = sample_run();
    let manifest = Manifest { run_id: "fleet".into(), host: HostInfo::default(), ..manifest() };
    let mut fleet = RunWriter::create(parent.path(), &manifest).unwrap();
    run_events().iter().for_each(|event| fleet.event(event).unwrap());
    let cell = Run::open(&measured).unwrap().cells.remove(0);
    fleet.take_over(&measured, &cell.id).unwrap();
    let run = Run::open(fleet.dir()).unwrap();
    assert_eq!((run.manifest.host.hostname.as_str(), run.cells), ("lab1", vec![cell]));
    assert_eq!(Run::open(&measured).unwrap().cells, []);
}

#[test]
fn a_step_has_its_window_outcome_reasons_and_checks() {
    let (_parent, dir) = sample_run();
    let run = Run::open(&dir).unwrap();
    let step = &run.cells[0].steps[0];
    assert_eq!(step.window(), Some((0, 2_000_000)));
    assert_eq!(step.outcome(), Some(Outcome::Completed));
    assert_eq!(step.invalid_reasons(), ["table pi1: sum(customerid) differs"]);
    let checks: Vec<bool> = step.checks().iter().map(|check| check.is_ok()).collect();
    assert_eq!(checks, [false]);
}

#[test]
fn histograms_come_back_with_every_count_and_microsecond_and_merge_without_loss() {
    let (_parent, dir) = sample_run();
    let run = Run::open(&dir).unwrap();
    let spans = &run.cells[0].steps[1].histograms;
    let read: Vec<_> =
        spans.iter().map(|span| (&span.kind[..], span.clock, span.from_us, span.to_us)).collect();
    assert_eq!(
        read,
        [
            ("query", Clock::Service, 1, 1_000_001),
            ("query", Clock::Response, 1, 1_000_001),
            ("query", Clock::Service, 1_000_001, 2_000_001),
            ("query", Clock::Response, 1_000_001, 2_000_001),
        ]
    );
    let mut sum = histogram(&[]);
    for span in spans.iter().filter(|span| span.clock == Clock::Response) {
        sum.add(span.histogram().unwrap()).unwrap();
    }
    assert_eq!(sum, histogram(&[611, 641, 2_208, 611, 641, 2_209]));
    let mut first = spans[0].histogram().unwrap();
    assert_eq!(first, histogram(&[610, 640, 2_207]));
    first.add(histogram(&[3_000_000_000])).expect("an unpacked histogram takes greater values");
}

#[test]
fn unchanged_counters_are_not_written_and_filled_in_by_the_reader() {
    let (_parent, dir) = sample_run();
    let text = std::fs::read_to_string(step_dir(&dir).join("counters/server.jsonl")).unwrap();
    insta::assert_snapshot!(text, @r#"
    {"source":"server","about":{"pid":4711}}
    {"at_us":-250000,"values":{"cpu_user_us":10,"rss_bytes":4096}}
    {"at_us":750113,"values":{"cpu_user_us":25}}
    {"at_us":1750090,"values":{"cpu_user_us":40,"rss_bytes":8192}}
    "#);
    let run = Run::open(&dir).unwrap();
    let series = &run.cells[0].steps[0].counters["server"];
    assert_eq!(series.header, counter_header("server"));
    let rss: Vec<i64> = series.values("rss_bytes").map(|(_, value)| value).collect();
    assert_eq!(rss, [4_096, 4_096, 8_192]);
    assert_eq!(series.nearest("cpu_user_us", 800_000), Some((750_113, 25)));
}

#[test]
fn counters_can_be_written_by_another_thread() {
    let parent = TempDir::new().unwrap();
    let run = RunWriter::create(parent.path(), &manifest()).unwrap();
    let mut step = run.cell(&cell_id("wal")).unwrap().step("l.i0").unwrap();
    step.event(&step_events("l.i0")[0]).unwrap();
    let mut counters = step.counters(counter_header("host")).unwrap();
    std::thread::spawn(move || counters.line(7, &values(&[("busy_us", 1)]))).join().unwrap().unwrap();
    step.sync().unwrap();
    let read = Run::open(run.dir()).unwrap();
    assert_eq!(read.cells[0].steps[0].counters["host"].values("busy_us").next(), Some((7, 1)));
}

#[test]
fn nothing_is_overwritten() {
    let (parent, dir) = sample_run();
    let exists = |result: Result<(), Error>| matches!(result, Err(Error::Exists { .. }));
    assert!(exists(RunWriter::create(parent.path(), &manifest()).map(drop)));
    let (run, _) = RunWriter::resume(&dir).unwrap();
    assert!(exists(run.cell(&cell_id("wal")).map(drop)));
    let cell = run.cell(&cell_id("rollback")).unwrap();
    let step = cell.step("l.x").unwrap();
    assert!(exists(cell.step("l.x").map(drop)));
    let _counters = step.counters(counter_header("disk")).unwrap();
    assert!(exists(step.counters(counter_header("disk")).map(drop)));
}

#[test]
fn two_processes_cannot_write_one_run() {
    let parent = TempDir::new().unwrap();
    let run = RunWriter::create(parent.path(), &manifest()).unwrap();
    let error = RunWriter::resume(run.dir()).map(drop).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");
    let dir = run.dir().to_path_buf();
    drop(run);
    RunWriter::resume(&dir).map(drop).unwrap();
}

#[test]
fn names_that_lead_out_of_the_run_are_refused() {
    let parent = TempDir::new().unwrap();
    let elsewhere = Manifest { run_id: "../elsewhere".into(), ..manifest() };
    assert!(matches!(RunWriter::create(parent.path(), &elsewhere).map(drop), Err(Error::Name { .. })));
    let run = RunWriter::create(parent.path(), &manifest()).unwrap();
    assert!(matches!(run.cell(&cell_id("..")).map(drop), Err(Error::Name { .. })));
    let cell = run.cell(&cell_id("wal")).unwrap();
    assert!(matches!(cell.step("a/b").map(drop), Err(Error::Name { .. })));
}

#[test]
fn histogram_tags_and_spans_that_could_not_be_read_back_are_refused() {
    let parent = TempDir::new().unwrap();
    let run = RunWriter::create(parent.path(), &manifest()).unwrap();
    let mut step = run.cell(&cell_id("wal")).unwrap().step("l.i0").unwrap();
    let some = histogram(&[1]);
    for tag in ["query", "query/latency", "/service", "a b/service", "a,b/service", "a\n/service"] {
        let error = step.histogram(tag, 0, 1, &some).unwrap_err().to_string();
        assert!(error.contains("histograms.hlog") && error.contains("histogram tag"), "{error}");
    }
    let error = step.histogram("query/service", 2, 1, &some).unwrap_err().to_string();
    assert!(error.contains("ends at 1 us, before it begins at 2 us"), "{error}");
}

fn any_interval() -> impl Strategy<Value = Interval> {
    let numbers = proptest::collection::vec(0..1_u64 << 48, 11);
    let errors = proptest::array::uniform4(0..u64::from(u32::MAX));
    (numbers, errors, any::<u32>(), any::<String>()).prop_map(|(n, e, client, kind)| Interval {
        from_us: n[0],
        to_us: n[0] + n[1] % 1_000_001,
        client,
        kind,
        due: n[2],
        // There are operations in the interval, because their times are not 0.
        done: 1 + n[3] % 1_000,
        failed: n[4],
        dropped: n[5],
        backlog: n[6],
        in_flight: n[7],
        rows: n[8],
        received_bytes: n[0] % 2 * n[1],
        service_sum_us: n[9],
        service_max_us: n[9],
        response_sum_us: n[10],
        response_max_us: n[10],
        cycle_sum_us: n[9],
        cut: WindowCut { operations: (n[1] % 3) as f64 / 2.0 - 0.5, rows: 0.0, cycle_us: 0.0 },
        down: n[1] % 3,
        down_us: n[2] % 2 * n[3],
        errors: ErrorCounts { retry: e[0], refused: e[1], lost: e[2], fatal: e[3] },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_intervals_come_back(intervals in proptest::collection::vec(any_interval(), 0..20)) {
        let parent = TempDir::new().unwrap();
        let run = RunWriter::create(parent.path(), &manifest()).unwrap();
        let mut step = run.cell(&cell_id("wal")).unwrap().step("l.i0").unwrap();
        step.event(&step_events("l.i0")[0]).unwrap();
        intervals.iter().for_each(|interval| step.interval(interval).unwrap());
        step.sync().unwrap();
        let read = Run::open(run.dir()).unwrap();
        prop_assert_eq!(&read.cells[0].steps[0].damaged, &None);
        prop_assert_eq!(&read.cells[0].steps[0].intervals, &intervals);
    }

    #[test]
    fn any_histograms_come_back(
        values in proptest::collection::vec(0..3_600_000_000u64, 1..50),
        from_us in 0..u64::MAX / 2,
        length_us in 0..u64::MAX / 2,
    ) {
        let written = histogram(&values);
        let line = crate::histogram::format_line("a/b/response", from_us, from_us + length_us, &written).unwrap();
        let span = crate::histogram::parse_line(line.strip_suffix(b"\n").unwrap()).unwrap().unwrap();
        let expected = HistogramSpan::new("a/b", Clock::Response, from_us, from_us + length_us, &written).unwrap();
        prop_assert_eq!(&span, &expected);
        prop_assert_eq!(span.histogram().unwrap(), written);
    }
}
