//! The stall of one second: what a closed loop hides of it and an open loop shows, through the
//! whole tool.

use std::process::Stdio;

use dbdyno_analyse::{KindResult, Latency, Validity, analyse};
use dbdyno_record::Run;
use nix::sys::signal::Signal;

use crate::support::Desk;
use crate::support::listening::wait_until_it_listens;
use crate::truth::server_counts::OwnAccount;
use crate::truth::waits::{WAITS, Wait};
use crate::truth::{turn, urgent};

/// Answers take 1 ms, and once in this time nothing is served for a second.
const PERIOD_SECONDS: f64 = 1.4;
/// Operations a second of the open loop, over so many connections: few, so that what has waited is
/// done long before the next stall on a slow machine too.
const RATE: f64 = 100.0;
const CONNECTIONS: f64 = 4.0;
/// One of so many runs must report what is true: a hold-up of a tenth of a second after any of a
/// run's five stalls spoils it, and a tool that is wrong is wrong in all.
const ATTEMPTS: usize = 8;

/// What a run reports of its queries.
struct Stalled {
    found: KindResult,
    report: String,
    /// Of any query, by the server's clock.
    longest_us: u64,
}

/// Starts the server and runs a step of `options` against it. `Err` says why the run is good for
/// nothing.
fn stalled(options: &str, wait: Wait) -> Result<Stalled, String> {
    let desk = Desk::new();
    let socket = desk.path("answers");
    let freeze = format!("1s every {}ms", PERIOD_SECONDS * 1e3);
    let mut command =
        urgent(&desk, &["known-answer", "--protocol", "mysql", "--threads", "1", "--delay", "constant 1ms"]);
    command
        .args(wait.server())
        .args(["--freeze", &freeze, "--socket"])
        .arg(&socket)
        .arg("--stats")
        .arg(desk.path("answers.json"));
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until_it_listens(&socket);
    let plan = format!(
        "name = \"stall\"\n{}[[variant]]\nname = \"stalling\"\n\
         address = \"mysql://any@localhost/any?socket={}\"\n[workload.oltp]\ntests = [\"point-select\"]\n\
         table_size = 1\nload_connections = 1\ncreate_secondary = false\nsettle_wait = \"0s\"\n\
         verify = \"off\"\ntime = \"7s\"\n{options}\n",
        wait.host("sampling = false\n"),
        socket.display()
    );
    desk.write("p.toml", &plan);
    let ended = desk.ended(&mut wait.client(&desk, &["run", "p.toml"]));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(server.id()).unwrap()), Signal::SIGTERM)
        .unwrap();
    server.wait().unwrap();
    if ended.code != Some(0) {
        return Err(format!("{ended:?}"));
    }
    let findings = analyse(&Run::open(&desk.run_dir()).unwrap());
    let step = findings.workloads[0].steps.iter().find(|step| step.name.starts_with("point-select")).unwrap();
    let run = &step.variants[0].runs[0];
    if run.validity != Validity::Valid {
        return Err(format!("{:?}", run.validity));
    }
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    let longest_us = OwnAccount::of(&desk, "answers").longest_us;
    Ok(Stalled { found: run.kinds[0].clone(), report: report.expect_ok().out.clone(), longest_us })
}

/// Whether the report shows this time, in three figures.
fn shows(report: &str, us: u64) -> bool {
    let ms = us as f64 / 1e3;
    [format!("{ms:.2} ms"), format!("{ms:.1} ms"), format!("{ms:.0} ms")]
        .iter()
        .any(|text| report.contains(text))
}

/// Makes the run again where something is `wrong` with what it reports: a hold-up in addition to
/// the stall is not what was asked.
fn expect_once(options: &str, wrong: impl Fn(&Stalled) -> Vec<String>) {
    let _turn = turn();
    WAITS.into_iter().for_each(|wait| expect_once_of(wait, options, &wrong));
}

fn expect_once_of(wait: Wait, options: &str, wrong: impl Fn(&Stalled) -> Vec<String>) {
    let attempt = || {
        let reported = stalled(options, wait)?;
        let wrong = wrong(&reported);
        let Stalled { found, report, longest_us } = reported;
        let account = format!("{:?}\n{:?}\n{longest_us} us\n{report}", found.service, found.response);
        if wrong.is_empty() { Ok(()) } else { Err(format!("{}\n{account}", wrong.join("\n"))) }
    };
    let mut failures = Vec::new();
    while let Err(failure) = attempt() {
        failures.push(failure);
        assert!(failures.len() < ATTEMPTS, "{}", failures.join("\n\n"));
    }
}

/// Of a closed loop one operation in each period meets the stall: its 95th percentile is that of
/// all others.
#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn acceptance_check_6_a_closed_loop_hides_the_stall() {
    expect_once("connections = 1", |Stalled { found, report, longest_us }| {
        let (service, response) = (&found.service, &found.response);
        let mut wrong = not_hidden(service);
        wrong.extend((service.p95_us != response.p95_us).then(|| "two clocks".to_owned()));
        // What holds up the server in addition to its stall is in its own account too.
        let is_met = (990_000..longest_us + 200_000).contains(&service.max_us);
        wrong.extend((!is_met).then(|| format!("longest {} us", service.max_us)));
        wrong.extend((!shows(report, service.p95_us)).then(|| "p95 is not in the report".to_owned()));
        wrong
    });
}

/// What is not about 1.1 ms: half of the answers come at once after their millisecond, and where
/// others use the machine too the slowest twentieth of them some milliseconds later, which is
/// nothing compared with a second.
fn not_hidden(service: &Latency) -> Vec<String> {
    let bounds = [("p50", service.p50_us, 1_000..1_500), ("p95", service.p95_us, 1_000..20_000)];
    let outside = bounds.into_iter().filter(|(_, us, bounds)| !bounds.contains(us));
    outside.map(|(name, us, _)| format!("{name} of service {us} us, not about 1.1 ms")).collect()
}

/// What is due while nothing is served waits, and what comes after waits for that. An operation
/// that is due t seconds after the stall's begin is answered when the stall is over and the rate ×
/// t before it are done, each connection its part of them: 1 - t × (1 - rate × service ÷
/// connections) seconds later. The slowest twentieth of the operations of a period are those of its
/// first twentieth after the begin, so the percentile is 1 - 0.05 × period × (1 - rate × service ÷
/// connections) seconds: 0.93 s for a stall in 1.4 s and four connections. (In the original's
/// demonstration one thread had a stall in 4 s, for which it is 0.90 s; it was 0.943 s, the edge of
/// a bucket, over the operations that were answered before the end.) The service times show nothing
/// of it.
#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn acceptance_check_6_an_open_loop_shows_the_stall() {
    let options = format!("connections = {CONNECTIONS:.0}\narrivals = \"constant\"\nrates = [{RATE:.0}]");
    expect_once(&options, |Stalled { found, report, .. }| {
        let (service, response) = (&found.service, &found.response);
        let service_seconds = service.p50_us as f64 / 1e6;
        let expected = 1.0 - 0.05 * PERIOD_SECONDS * (1.0 - RATE * service_seconds / CONNECTIONS);
        let p95 = response.p95_us as f64 / 1e6;
        let mut wrong = not_hidden(service);
        let is_shown = (p95 - expected).abs() < 0.03 && (0.91..0.98).contains(&p95);
        wrong.extend((!is_shown).then(|| format!("p95 of response {p95} s, not {expected} s")));
        let is_reported = shows(report, service.p95_us) && shows(report, response.p95_us);
        wrong.extend((!is_reported).then(|| "p95 is not in the report".to_owned()));
        wrong
    });
}
