//! Tests that delays, burns and freezes last as long as programmed, both by the client's clock and
//! in the server's statistics. The bounds are wide, because other tests run on the same machine.
//! How exact the server is on an idle machine is measured, not tested.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbdyno_db::{AnySession, Param, Session};
use dbdyno_known_answer::{Protocol, Script};

use crate::support::{BOTH, Running, ok_if, retry_if_disturbed};

/// Sends `count` statements, one after the other, and returns their times.
async fn times(session: &mut AnySession, count: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begin = Instant::now();
        session.query(b"SELECT 1").await.unwrap();
        times.push(begin.elapsed());
    }
    times
}

#[tokio::test(flavor = "current_thread")]
async fn every_answer_takes_at_least_its_own_delay_and_most_take_little_more() {
    for protocol in BOTH {
        for delay in ["constant 2ms", "exponential 2ms", "lognormal 2ms 0.5", "bimodal 1ms 4ms 0.2"] {
            retry_if_disturbed(async || delayed(protocol, delay).await).await;
        }
    }
}

/// Sends 150 statements with a programmed delay. No answer may be early, and half of the answers
/// must be late by less than 2 ms.
async fn delayed(protocol: Protocol, delay: &str) -> Result<(), String> {
    let script = Script { delay: delay.parse().unwrap(), seed: 3, ..Script::default() };
    let server = Running::start(protocol, script.clone());
    let mut session = server.connect().await;
    let mut late = Vec::new();
    for (number, time) in times(&mut session, 150).await.into_iter().enumerate() {
        let expected = script.delay_of(0, number as u64 + 1);
        assert!(time >= expected, "{delay}: {time:?}, not {expected:?}");
        late.push(time - expected);
    }
    let stats = server.settled(|stats| stats.actual.count() == 150).await;
    let programmed: Duration = (1..=150).map(|number| script.delay_of(0, number)).sum();
    assert_eq!(stats.programmed.mean(), programmed / 150, "{delay}");
    assert!(stats.actual.mean() >= stats.programmed.mean());
    late.sort();
    ok_if(late[late.len() / 2] < Duration::from_millis(2), late)
}

#[tokio::test(flavor = "current_thread")]
async fn connections_wait_side_by_side() {
    retry_if_disturbed(answers_side_by_side).await;
}

async fn answers_side_by_side() -> Result<(), String> {
    const CONNECTIONS: usize = 40;
    let server = Running::start(
        Protocol::Mysql,
        Script { delay: "constant 100ms".parse().unwrap(), ..Script::default() },
    );
    let mut sessions = Vec::new();
    for _ in 0..CONNECTIONS {
        sessions.push(server.connect().await);
    }
    let begin = Instant::now();
    let local = tokio::task::LocalSet::new();
    let tasks: Vec<_> = sessions
        .into_iter()
        .map(|mut session| local.spawn_local(async move { session.query(b"SELECT 1").await.unwrap() }))
        .collect();
    local.await;
    assert_eq!(tasks.len(), CONNECTIONS);
    let taken = begin.elapsed();
    assert!(taken >= Duration::from_millis(100), "{taken:?}");
    // One after the other, the answers would take 4 s.
    ok_if(taken < Duration::from_millis(3000), taken)
}

/// CPU time of this process, in which the server runs too.
fn process_cpu() -> Duration {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    nix::time::clock_gettime(clock).unwrap().into()
}

#[tokio::test(flavor = "current_thread")]
async fn a_burn_is_cpu_time_of_the_process() {
    for protocol in BOTH {
        retry_if_disturbed(async || {
            let server =
                Running::start(protocol, Script { burn: Duration::from_micros(500), ..Script::default() });
            let mut session = server.connect().await;
            let before = process_cpu();
            let times = times(&mut session, 200).await;
            let used = process_cpu() - before;
            let wanted = Duration::from_millis(100);
            let burnt = server.settled(|stats| stats.actual.count() == 200).await.burnt;
            assert!(wanted <= burnt && burnt <= used, "{wanted:?} wanted, {burnt:?} burnt, {used:?} used");
            assert!(times.iter().all(|time| *time >= Duration::from_micros(500)));
            // On some virtual machines the thread's CPU clock goes on while the hypervisor has
            // taken the CPU away. A burn that is interrupted in this way is too long.
            ok_if(burnt < wanted * 2, burnt)
        })
        .await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn text_queries_cost_nothing_when_only_executions_are_programmed() {
    for protocol in BOTH {
        retry_if_disturbed(async || {
            let script = Script {
                delay: "uniform 2ms 4ms".parse().unwrap(),
                burn: Duration::from_millis(1),
                prepared_only: true,
                disconnect_every: Some(3),
                ..Script::default()
            };
            let server = Running::start(protocol, script);
            let mut session = server.connect().await;
            times(&mut session, 50).await;
            let statement = session.prepare("SELECT c FROM t WHERE id=?").await.unwrap();
            for _ in 0..2 {
                assert_eq!(session.execute(statement, &[Param::Int(1)]).await.unwrap().rows, 1);
            }
            assert!(session.execute(statement, &[Param::Int(1)]).await.is_err(), "the third execution");
            let stats = server.stop();
            assert_eq!((stats.requests.queries, stats.requests.executions), (50, 3));
            assert_eq!((stats.actual.count(), stats.faults.disconnects), (2, 1));
            assert!(stats.actual.mean() >= Duration::from_millis(3), "{stats:?}");
            // The three executions burn 1 ms each. If the 50 text queries also did, the sum would
            // be 53 ms.
            ok_if(stats.burnt < Duration::from_millis(20), stats.burnt)
        })
        .await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_long_burn_does_not_delay_answers_on_other_connections() {
    retry_if_disturbed(answers_during_a_burn).await;
}

async fn answers_during_a_burn() -> Result<(), String> {
    let script = Script { burn: Duration::from_millis(600), ..Script::default() };
    let server = Running::start(Protocol::Mysql, script);
    // Connections 0 and 2 share a thread.
    let (mut burning, _other, mut pinging) =
        (server.connect().await, server.connect().await, server.connect().await);
    let local = tokio::task::LocalSet::new();
    let begin = Instant::now();
    let is_burnt = Rc::new(Cell::new(false));
    let ends = Rc::clone(&is_burnt);
    let burnt = local.spawn_local(async move {
        burning.query(b"SELECT 1").await.unwrap();
        ends.set(true);
        begin.elapsed()
    });
    let answered = local.spawn_local(async move {
        let mut before_its_end = 0;
        while !is_burnt.get() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            pinging.prepare("SELECT 1").await.unwrap();
            before_its_end += u32::from(!is_burnt.get());
        }
        before_its_end
    });
    local.await;
    let (burnt, answered) = (burnt.await.unwrap(), answered.await.unwrap());
    assert!(burnt >= Duration::from_millis(600), "{burnt:?}");
    // Even if the burn blocked the thread, one answer could come before the burn begins, and one as
    // it ends.
    ok_if(answered > 2, answered)
}

#[tokio::test(flavor = "current_thread")]
async fn a_freeze_delays_statements_for_its_whole_length() {
    for protocol in BOTH {
        retry_if_disturbed(async || frozen(protocol).await).await;
    }
}

async fn frozen(protocol: Protocol) -> Result<(), String> {
    let length = Duration::from_millis(150);
    let freeze = "150ms every 250ms at 100ms".parse().unwrap();
    let script = Script { delay: "constant 2ms".parse().unwrap(), freeze: Some(freeze), ..Script::default() };
    let server = Running::start(protocol, script);
    let mut session = server.connect().await;
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < Duration::from_millis(1600) {
        let asked = begin.elapsed();
        session.query(b"SELECT 1").await.unwrap();
        times.push((asked, begin.elapsed()));
    }
    // The server's clock starts when it reads the first statement. That is after the statement was
    // sent and before it was answered.
    let (_, counts_by) = times[0];
    for number in 0..6 {
        let start = Duration::from_millis(100 + 250 * number);
        let within = |(asked, answered): &(Duration, Duration)| {
            *asked >= start + counts_by && *answered < start + length
        };
        assert_eq!(times.iter().find(|times| within(times)), None, "the freeze at {start:?}");
    }
    // In the 100 ms between two freezes there is time for about 40 statements, or fewer on a busy
    // machine. A statement that is on its way when a freeze begins waits for all of it.
    let max = server.stop().actual.max();
    ok_if(times.len() > 60 && max >= length, (times.len(), max))
}

#[tokio::test(flavor = "current_thread")]
async fn a_freeze_delays_logins_and_prepares_too() {
    for protocol in BOTH {
        let script = Script { freeze: Some("300ms at 0s".parse().unwrap()), ..Script::default() };
        let server = Running::start(protocol, script);
        let (mut first, mut second) = (server.connect().await, server.connect().await);
        let begin = Instant::now();
        let local = tokio::task::LocalSet::new();
        local.spawn_local(async move { first.query(b"SELECT 1").await.unwrap() });
        let prepared = local.spawn_local(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            second.prepare("SELECT 1").await.unwrap();
        });
        local
            .run_until(async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                drop(server.connect().await);
                assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
                prepared.await.unwrap();
                assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
            })
            .await;
    }
}
