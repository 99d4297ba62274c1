use std::sync::Arc;

use dbdyno_loadgen::OperationTimes;

use super::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

fn transaction(client: u32, number: u64, ending: Ending, retries: u32) -> Transaction {
    let times = OperationTimes { scheduled_ns: 1_000_000, sent_ns: 1_040_400, ended_ns: 3_500_600 };
    Transaction { client, number, script: 1, ending, retries, times }
}

enum Event {
    Ended(Transaction),
    Skipped(Skipped),
}

fn ended(client: u32, number: u64, ending: Ending, retries: u32) -> Event {
    Event::Ended(transaction(client, number, ending, retries))
}

/// Returns the text of logs after these events, each at its second.
fn written(format: Format, at_s: &[(u64, Event)]) -> String {
    let kept = Kept::default();
    let file = LogFile { out: Box::new(kept.clone()), interval: None, failure: None };
    let logs = Logs { files: vec![Mutex::new(file)], of_client: threads(4, 1), format };
    let at = |seconds: u64| UNIX_EPOCH + Duration::new(seconds, 25_000);
    logs.begin(at(100));
    for (seconds, event) in at_s {
        match event {
            Event::Ended(transaction) => logs.write(transaction, at(*seconds)),
            Event::Skipped(skipped) => logs.skip(skipped, at(*seconds)),
        }
    }
    logs.finish(at(108)).unwrap();
    String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
}

/// Returns one event of each kind.
fn all() -> Vec<(u64, Event)> {
    use FailureKind::{Deadlock, Serialization};
    vec![
        (100, ended(0, 1, Ending::Done, 0)),
        (101, ended(1, 1, Ending::Failed(Serialization), 2)),
        (103, ended(2, 1, Ending::Failed(Deadlock), 0)),
        (103, Event::Skipped(Skipped { client: 3, first: 1, count: 2, script: 1 })),
        (103, ended(3, 3, Ending::Done, 1)),
    ]
}

#[test]
fn each_transaction_has_a_line() {
    insta::assert_snapshot!(written(Format::default(), &all()), @r"
    0 1 2501 1 100 25
    1 1 failed 1 101 25
    2 1 failed 1 103 25
    3 1 skipped 1 103 25
    3 2 skipped 1 103 25
    3 3 2501 1 103 25
    ");
    let more = Format { has_rate: true, has_retries: true, is_detailed: true, ..Format::default() };
    insta::assert_snapshot!(written(more, &all()), @r"
    0 1 2501 1 100 25 40 0
    1 1 serialization 1 101 25 0 2
    2 1 deadlock 1 103 25 0 0
    3 1 skipped 1 103 25 0 0
    3 2 skipped 1 103 25 0 0
    3 3 2501 1 103 25 40 1
    ");
}

#[test]
fn intervals_have_a_line_each_and_the_last_only_when_it_is_over() {
    let format = Format { aggregate_s: Some(3), ..Format::default() };
    insta::assert_snapshot!(written(format.clone(), &all()), @r"
    100 1 2501 6255001 2501 2501 0 0 0 0 0 0 0 0 0
    103 1 2501 6255001 2501 2501 0 0 0 0 0 0 0 0 0
    ");
    let more = Format { has_rate: true, has_limit: true, has_retries: true, is_detailed: true, ..format };
    insta::assert_snapshot!(written(more, &all()), @r"
    100 1 2501 6255001 2501 2501 40 1600 40 40 0 1 2 1 0
    103 1 2501 6255001 2501 2501 40 1600 40 40 2 1 1 0 1
    ");
}

#[test]
fn a_sample_has_its_share_of_lines() {
    let format = Format { sampling: Some(0.25), seed: 7, ..Format::default() };
    let many: Vec<_> = (1..=4000).map(|number| (100, ended(0, number, Ending::Done, 0))).collect();
    let lines = written(format.clone(), &many).lines().count();
    // The bounds are six standard deviations of the binomial distribution.
    assert!((836..=1164).contains(&lines), "{lines}");
    let skipped = Skipped { client: 0, first: 1, count: 4000, script: 1 };
    assert_eq!(written(format, &[(100, Event::Skipped(skipped))]).lines().count(), lines, "the same sample");
}

#[test]
fn clients_belong_to_threads_as_in_the_original() {
    assert_eq!(threads(4, 2), [0, 0, 1, 1]);
    assert_eq!(threads(5, 3), [0, 0, 1, 1, 2]);
    assert_eq!(threads(1, 1), [0]);
}
