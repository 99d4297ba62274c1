//! Tests of reader threads whose sources answer at once, take long or hang.

use std::sync::Mutex;

use serde_json::{Map, Value};

use super::*;
use crate::recording::{Recording, wait_for};
use crate::sources::{Moment, Values};

const INTERVAL: Duration = Duration::from_millis(50);

/// A reading: why it was made, and from when to when.
#[derive(Debug, Clone, Copy)]
struct Read {
    moment: Moment,
    began: Instant,
    ended: Instant,
}

/// Every reading of a [`Fake`] up to now. The first one is made before the source has a file.
#[derive(Clone, Default)]
struct Reads(Arc<Mutex<Vec<Read>>>);

impl Reads {
    fn get(&self) -> Vec<Read> {
        self.0.lock().unwrap().clone()
    }

    fn at_boundaries(&self) -> usize {
        self.get().iter().filter(|read| read.moment == Moment::Boundary).count()
    }
}

/// A source that answers when `wait` ends, from the second reading on.
struct Fake {
    wait: Box<dyn FnMut() + Send>,
    reads: Reads,
}

impl Source for Fake {
    fn about(&self) -> Map<String, Value> {
        Map::new()
    }

    fn read(&mut self, moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let began = Instant::now();
        if !self.reads.get().is_empty() {
            (self.wait)();
        }
        let ended = Instant::now();
        self.reads.0.lock().unwrap().push(Read { moment, began, ended });
        values.set("reads", i64::try_from(self.reads.get().len()).unwrap());
        Ok(Some(ended))
    }
}

fn fake_reader(number: usize, name: &'static str, wait: impl FnMut() + Send + 'static) -> (Spec, Reads) {
    let reads = Reads::default();
    let fake = Fake { wait: Box::new(wait), reads: reads.clone() };
    let sources = vec![source(name, move || Ok(fake))];
    let spec = Spec {
        name,
        number,
        sources,
        interval: INTERVAL,
        warmup: Duration::ZERO,
        cpus: None,
        counts_samples: number == 0,
    };
    (spec, reads)
}

#[test]
fn costly_sources_are_not_read_in_each_interval() {
    let data = tempfile::tempdir().unwrap();
    let config = Config { data_dir: Some(data.path().to_owned()), ..Config::default() };
    let sources = readers_for(&config, &Arc::default()).into_iter().flat_map(|reader| reader.sources);
    let costly: Vec<_> = sources.filter(|(name, _)| ["size", "processes"].contains(name)).collect();
    assert_eq!(costly.len(), 2);
    for (name, open) in costly {
        let mut source = open().unwrap();
        let mut reads = |moment| source.read(moment, &mut Values::default()).unwrap().is_some();
        assert_eq!([reads(Moment::Boundary), reads(Moment::Tick)], [true, false], "{name}");
    }
}

#[test]
fn every_source_is_read_where_the_window_begins_after_a_warm_up() {
    let recording = Recording::new();
    let (mut reader, reads) = fake_reader(0, "quick", || ());
    reader.warmup = 3 * INTERVAL;
    let sampler = Sampler::start_readers(vec![reader], Arc::default(), |header| recording.counters(header));
    let (sampler, begin) = (sampler.unwrap(), Instant::now() + 3 * INTERVAL);
    sampler.begin(begin - 3 * INTERVAL);
    wait_for("the window's beginning", || reads.at_boundaries() == 3);
    assert!(reads.get().iter().rfind(|read| read.moment == Moment::Boundary).unwrap().began >= begin);
}

#[test]
fn a_mark_is_taken_when_every_reader_has_read_its_sources_or_is_gone() {
    let recording = Recording::new();
    let tally = Arc::new(ReadTally::default());
    let (quick, quick_reads) = fake_reader(0, "quick", || ());
    let (release, released) = channel::<()>();
    let (slow, slow_reads) = fake_reader(1, "slow", move || released.recv().unwrap_or_default());
    let counters = |header| recording.counters(header);
    let sampler = Sampler::start_readers(vec![quick, slow], tally, counters).unwrap();
    sampler.begin(Instant::now());
    let mark = sampler.mark();
    // The three readings are before the source has a file, at the beginning and at the mark.
    wait_for("the mark of one reader", || quick_reads.at_boundaries() == 3);
    assert!(!mark.is_taken());
    drop(release);
    wait_for("the mark", || mark.is_taken());
    assert_eq!(slow_reads.at_boundaries(), 3);
    let mark = sampler.mark();
    drop(sampler);
    wait_for("the end of the readers", || mark.is_taken());
    assert!(Sampler::off().mark().is_taken());
}

#[test]
fn sources_that_read_each_connection_do_not_delay_the_quick_ones() {
    let server = |server_tree| Config { server_pid: Some(1), server_tree, ..Config::default() };
    let reader_of = |config: &Config, name: &str| {
        let readers = readers_for(config, &Arc::default());
        assert!(readers.len() <= ReadTally::READERS);
        let found = readers.iter().find(|reader| reader.sources.iter().any(|source| source.0 == name));
        found.unwrap().name
    };
    for (server_tree, server_reader) in [(true, "sampler-server"), (false, "sampler")] {
        let config = server(server_tree);
        assert_eq!(reader_of(&config, "server"), server_reader);
        assert_eq!(reader_of(&config, "switches"), "sampler-server");
        assert_eq!([reader_of(&config, "client"), reader_of(&config, "host")], ["sampler"; 2]);
    }
}

#[test]
fn interrupts_are_counted_where_server_and_client_have_separate_cpus() {
    let is_read = |server_cpus, cpus| {
        let readers = readers_for(&Config { server_cpus, cpus, ..Config::default() }, &Arc::default());
        readers.iter().flat_map(|reader| &reader.sources).any(|source| source.0 == "interrupts")
    };
    assert!(is_read(Some(vec![0, 1]), Some(vec![2])));
    assert!(!is_read(Some(vec![0, 1]), Some(vec![1, 2])), "an interrupt of CPU 1 may be for either");
    assert!(!is_read(Some(vec![0]), None) && !is_read(None, Some(vec![1])));
}

#[test]
fn a_slow_source_does_not_delay_the_others_and_does_not_make_up_for_lost_ticks() {
    let recording = Recording::new();
    let tally = Arc::new(ReadTally::default());
    let (quick, quick_reads) = fake_reader(0, "quick", || ());
    let (slow, slow_reads) = fake_reader(1, "slow", || std::thread::sleep(Duration::from_millis(220)));
    let counters = |header| recording.counters(header);
    let sampler = Sampler::start_readers(vec![quick, slow], tally, counters).unwrap();
    let barrier = Instant::now();
    sampler.begin(barrier);
    wait_for("samples of both", || {
        let slow = slow_reads.get().len();
        slow > 3 && quick_reads.get().len() > slow + 6
    });
    let report = sampler.stop().unwrap();
    assert_eq!(report.warnings, Vec::<String>::new());
    let lines = |source| recording.read(source).unwrap().lines.len();
    let slow_reads = &slow_reads.get()[1..];
    assert_eq!((lines("quick") as u64, lines("slow")), (report.samples, slow_reads.len()));
    for reads in slow_reads.windows(2).filter(|reads| reads[1].moment == Moment::Tick) {
        let intervals = (reads[0].ended - barrier).as_millis() / INTERVAL.as_millis();
        let next = barrier + INTERVAL * u32::try_from(intervals + 1).unwrap();
        assert!(reads[1].began >= next, "{reads:?} with intervals from {barrier:?}");
    }
}
