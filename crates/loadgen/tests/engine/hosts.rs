//! Tests steps on several hosts. Each host is a thread of the test, and its commands and messages
//! go through JSON, as over a network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_loadgen::{
    ArrivalProcess, Arrivals, ConnectionTask, Follower, FromHost, HostMessage, HostShare, Limit, Observer,
    Schedule, Step, StepCommand, StepEnd, TaskEnd, TaskSpec, can_be_shared, run_on_hosts, run_part,
};
use dbdyno_record::{ErrorClass, Interval, Outcome, StepRecord, StepSpec, StepWriter, WindowRule};
use proptest::prelude::*;

use crate::support::{Act, Options, Script, answers, run_step, spec, sum, task};

/// The condition of a simulated host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostCondition {
    Sound,
    /// The start command arrives this long after it was sent.
    Late(Duration),
    /// The host sends nothing after this time.
    Lost(Duration),
}

/// Runs the tasks on simulated hosts in these conditions.
pub(crate) fn on_hosts<'a, L: ConnectionTask + 'static, F: FnOnce() -> L + Clone + Send + 'static>(
    hosts: &[HostCondition],
    step: &(dyn Fn() -> Step<'a> + Sync),
    tasks: Vec<(TaskSpec, F)>,
    writer: &mut StepWriter,
    observer: &mut dyn Observer,
) -> StepEnd {
    let specs: Vec<TaskSpec> = tasks.iter().map(|(spec, _)| spec.clone()).collect();
    assert!(can_be_shared(&specs, step().spec.window));
    let (say, from_hosts) = mpsc::channel();
    let (end, parts) = thread::scope(|scope| {
        let mut orders = Vec::new();
        for (host, condition) in hosts.iter().enumerate() {
            let (order, commands) = mpsc::channel();
            orders.push((*condition, order));
            let (tasks, say) = (tasks.clone(), say.clone());
            let part = HostShare { host: host as u32, hosts: hosts.len() as u32 };
            scope.spawn(move || run_host(&step(), tasks, (part, *condition), commands, &say));
        }
        run_on_hosts(&step(), &specs, (hosts.len(), &from_hosts), follower(orders), writer, observer)
            .expect("the engine works")
    });
    for (part, condition) in parts.iter().zip(hosts) {
        assert_eq!(!part.late.is_zero(), matches!(condition, HostCondition::Late(_)), "{parts:?}");
    }
    end
}

fn follower(orders: Vec<(HostCondition, Sender<StepCommand<Instant>>)>) -> Follower {
    Box::new(move |command| {
        for (condition, order) in &orders {
            if let (HostCondition::Late(by), StepCommand::Begin(_)) = (condition, &command) {
                thread::sleep(*by);
            }
            let _ = order.send(command.clone());
        }
    })
}

fn run_host<L: ConnectionTask + 'static, F: FnOnce() -> L + Send + 'static>(
    step: &Step<'_>,
    tasks: Vec<(TaskSpec, F)>,
    (part, condition): (HostShare, HostCondition),
    commands: Receiver<StepCommand<Instant>>,
    say: &Sender<(usize, FromHost)>,
) {
    let host = part.host as usize;
    let silent_from = match condition {
        HostCondition::Lost(after) => {
            let say = say.clone();
            thread::spawn(move || {
                thread::sleep(after);
                let _ = say.send((host, FromHost::Lost(format!("host {host} is lost"))));
            });
            Some(Instant::now() + after)
        }
        HostCondition::Sound | HostCondition::Late(_) => None,
    };
    let said = |message: HostMessage| {
        if silent_from.is_none_or(|from| Instant::now() < from) {
            let text = serde_json::to_string(&message).expect("a message in JSON");
            let message = serde_json::from_str(&text).expect("a message from JSON");
            let _ = say.send((host, FromHost::Message(message)));
        }
    };
    run_part(step, tasks, part, commands, said).expect("the engine works");
}

fn sound(hosts: usize) -> Options {
    Options { hosts: vec![HostCondition::Sound; hosts], ..Options::default() }
}

fn counted(clients: u32) -> StepSpec {
    StepSpec { window: WindowRule::LastEnded, ..spec(clients, &["query"]) }
}

/// Checks that the intervals of each client have no gap, and that those of all clients end
/// together.
fn assert_whole(record: &StepRecord) {
    let mut by_client: BTreeMap<u32, Vec<&Interval>> = BTreeMap::new();
    for interval in &record.intervals {
        by_client.entry(interval.client).or_default().push(interval);
    }
    let mut ends = BTreeSet::new();
    for (client, intervals) in &mut by_client {
        intervals.sort_by_key(|interval| (interval.from_us, interval.to_us));
        let end = intervals.iter().fold(0, |reached, interval| {
            assert_eq!(interval.from_us, reached, "client {client}: {intervals:#?}");
            interval.to_us
        });
        ends.insert(end);
    }
    assert_eq!(ends.len(), 1, "{ends:?}");
}

fn sorted(mut tasks: Vec<TaskEnd>) -> Vec<TaskEnd> {
    tasks.sort_by_key(|task| (task.client, task.started));
    tasks
}

#[test]
fn connections_on_three_hosts_do_what_they_do_on_one() {
    // The step takes over a second, so that counters are cut. There are seven clients, and some of
    // them have more connections than others.
    let tasks = || {
        let task = |connection: u32| {
            let limit = Limit::Operations(20 + u64::from(connection));
            (task(1 + connection % 7, 0, Arrivals::Closed, limit), answers(Duration::from_millis(60)))
        };
        (0..17).map(task).collect::<Vec<(TaskSpec, Script)>>()
    };
    let (alone, record) = run_step(&counted(7), tasks(), Options::default());
    let (end, of_three) = run_step(&counted(7), tasks(), sound(3));
    assert_eq!((alone.outcome, end.outcome), (Outcome::Completed, Outcome::Completed));
    assert_eq!(sorted(alone.tasks), sorted(end.tasks));
    for record in [&record, &of_three] {
        assert_whole(record);
        assert_eq!(sum(record, "query", |interval| interval.done), 17 * 20 + (0..17).sum::<u64>());
        let timed: u64 = record.histograms.iter().map(|span| span.histogram().expect("readable").len()).sum();
        assert_eq!(timed, 17 + 2 * (17 * 20 + (0..17).sum::<u64>()), "logins, service and response times");
    }
}

#[test]
fn a_timed_window_is_the_same_on_all_hosts() {
    let task = |connection: u32| {
        let limit = Limit::Time(Duration::from_millis(1300));
        (task(1 + connection / 3, 0, Arrivals::Closed, limit), answers(Duration::from_millis(7)))
    };
    let (end, record) = run_step(&spec(3, &["query"]), (0..9).map(task).collect(), sound(4));
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(record.window(), Some((0, 1_300_000)));
    assert_whole(&record);
}

#[test]
fn more_hosts_than_connections_are_allowed() {
    let task = (task(1, 0, Arrivals::Closed, Limit::Operations(3)), answers(Duration::ZERO));
    let (end, record) = run_step(&counted(1), vec![task], sound(3));
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(sum(&record, "query", |interval| interval.done), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn hosts_that_share_a_schedule_send_every_number_once(
        hosts in 1_usize..5,
        connections in 5_usize..20,
        service_us in 0_u64..3000,
    ) {
        let arrival_process = ArrivalProcess::Constant { operations: 400, per: Duration::from_secs(1), phase: Duration::ZERO };
        let numbers = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&numbers);
        let script: Script = Arc::new(move |number| {
            noted.lock().expect("no panic").push(number);
            Act::Answer(Duration::from_micros(service_us))
        });
        let arrivals = Arrivals::Shared(Arc::new(Schedule::new(arrival_process)));
        let one = || (task(1, 0, arrivals.clone(), Limit::Operations(500)), Arc::clone(&script));
        let (end, record) = run_step(&counted(1), (0..connections).map(|_| one()).collect(), sound(hosts));
        prop_assert_eq!(end.outcome, Outcome::Completed);
        let mut sent = numbers.lock().expect("no panic").clone();
        sent.sort_unstable();
        prop_assert_eq!(sent, (0..500).collect::<Vec<u64>>());
        for field in [|interval: &Interval| interval.due, |interval: &Interval| interval.done] {
            prop_assert_eq!(sum(&record, "query", field), 500);
        }
        assert_whole(&record);
    }
}

/// Runs a step of two seconds on two hosts, the second of which is in this condition.
fn ended_with(condition: HostCondition, script: &Script) -> StepEnd {
    let limit = Limit::Time(Duration::from_secs(2));
    let tasks =
        (1..=4).map(|client| (task(client, 0, Arrivals::Closed, limit), Arc::clone(script))).collect();
    let options = Options { hosts: vec![HostCondition::Sound, condition], ..Options::default() };
    run_step(&spec(4, &["query"]), tasks, options).0
}

#[test]
fn a_host_that_is_lost_ends_the_step_with_its_name() {
    // The host is lost before the barrier or after it.
    for after_ms in [0, 1200] {
        let condition = HostCondition::Lost(Duration::from_millis(after_ms));
        let end = ended_with(condition, &answers(Duration::from_millis(5)));
        assert_eq!((end.outcome, end.message.as_deref()), (Outcome::Failed, Some("host 1 is lost")));
    }
}

#[test]
fn a_failure_on_one_host_ends_the_step_on_all() {
    let script: Script = Arc::new(|number| match number {
        3 => Act::Fail(ErrorClass::Fatal),
        _ => Act::Answer(Duration::from_millis(5)),
    });
    let end = ended_with(HostCondition::Sound, &script);
    assert_eq!((end.outcome, end.tasks.len()), (Outcome::Failed, 4));
    assert!(end.message.is_some_and(|why| why.contains("the pretended answer is no")));
}

#[test]
fn a_host_that_gets_the_start_too_late_reports_it() {
    // `on_hosts` checks the lateness that the host reports.
    let end = ended_with(HostCondition::Late(Duration::from_secs(1)), &answers(Duration::from_millis(5)));
    assert_eq!(end.outcome, Outcome::Completed);
}
