//! Tests a stall of one second through the whole tool. A closed loop hides it, and an open loop
//! shows it.

use std::process::Stdio;

use dbdyno_analyse::{KindResult, Latency, Validity, analyse};
use dbdyno_record::Run;
use nix::sys::signal::Signal;

use crate::support::Desk;
use crate::support::listening::wait_until_it_listens;
use crate::truth::server_counts::OwnAccount;
use crate::truth::waits::{WAITS, Wait};
use crate::truth::{turn, urgent};

/// Time between two stalls. An answer takes 1 ms, but during a stall the server answers nothing for
/// a second.
const PERIOD_SECONDS: f64 = 1.4;
/// Operations per second in the open loop, over all connections. The rate is so low that even on a
/// slow machine the operations that waited are done long before the next stall.
const RATE: f64 = 100.0;
const CONNECTIONS: f64 = 4.0;
/// Number of runs, of which one must report the truth. A delay of a tenth of a second after any of
/// a run's five stalls spoils that run, but a faulty tool is wrong in all of them.
const ATTEMPTS: usize = 8;

/// A run's report about its queries.
struct Stalled {
    found: KindResult,
    report: String,
    /// Longest time of any query, by the server's clock.
    longest_us: u64,
}

/// Starts the server and runs a step with `options` against it. `Err` says why the run is unusable.
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

/// Whether the report shows this time with one of three precisions.
fn shows(report: &str, us: u64) -> bool {
    let ms = us as f64 / 1e3;
    [format!("{ms:.2} ms"), format!("{ms:.1} ms"), format!("{ms:.0} ms")]
        .iter()
        .any(|text| report.contains(text))
}

/// Repeats the run while its report is `wrong`, because a delay in addition to the stall spoils a
/// run.
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

/// In a closed loop only one operation per period meets the stall, so the 95th percentile is that
/// of the other operations.
#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn acceptance_check_6_a_closed_loop_hides_the_stall() {
    expect_once("connections = 1", |Stalled { found, report, longest_us }| {
        let (service, response) = (&found.service, &found.response);
        let mut wrong = not_hidden(service);
        wrong.extend((service.p95_us != response.p95_us).then(|| "two clocks".to_owned()));
        // Delays of the server in addition to its stall are in the server's own account too.
        let is_met = (990_000..longest_us + 200_000).contains(&service.max_us);
        wrong.extend((!is_met).then(|| format!("longest {} us", service.max_us)));
        wrong.extend((!shows(report, service.p95_us)).then(|| "p95 is not in the report".to_owned()));
        wrong
    });
}

/// The percentiles that are not near 1.1 ms. Half of the answers come right after their
/// millisecond. Where other programs use the machine, the slowest twentieth may be some
/// milliseconds later, which is little compared with a second.
fn not_hidden(service: &Latency) -> Vec<String> {
    let bounds = [("p50", service.p50_us, 1_000..1_500), ("p95", service.p95_us, 1_000..20_000)];
    let outside = bounds.into_iter().filter(|(_, us, bounds)| !bounds.contains(us));
    outside.map(|(name, us, _)| format!("{name} of service {us} us, not about 1.1 ms")).collect()
}

/// Operations that are due during the stall wait for its end, and later ones wait for those. An
/// operation that is due t seconds after the stall's begin is answered once the stall is over and
/// the rate × t operations before it are done, with an equal share for each connection. Its
/// response time is therefore 1 - t × (1 - rate × service ÷ connections) seconds. In each period
/// the slowest twentieth of the operations are those in the first twentieth of the period. The 95th
/// percentile is therefore 1 - 0.05 × period × (1 - rate × service ÷ connections) seconds, which is
/// 0.93 s for one stall per 1.4 s and four connections. (The original's demonstration had one
/// thread and one stall per 4 s, for which the formula gives 0.90 s. It measured 0.943 s, a
/// bucket's edge, over the operations that were answered before the end.) The service times do not
/// show the stall.
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
