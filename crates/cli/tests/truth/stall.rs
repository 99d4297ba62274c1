//! The stall of one second: what a closed loop hides of it and an open loop shows, through the whole tool.

use std::process::Stdio;

use dbdyno_analyse::{KindResult, Latency, Validity, analyse};
use dbdyno_record::Run;
use nix::sys::signal::Signal;

use crate::support::{Desk, wait_for};
use crate::{Told, on_a_machine_of_its_own, turn, urgent};

/// Answers take 1 ms, and once in this time nothing is served for a second.
const PERIOD_SECONDS: f64 = 1.4;
/// Operations a second of the open loop, over so many connections: few, so that what has waited is done long before the next stall
/// on a slow machine too.
const RATE: f64 = 100.0;
const CONNECTIONS: f64 = 4.0;

/// Starts the server, runs a step of `options` against it, and gives what its queries took, and the report.
fn stalled(options: &str) -> (KindResult, String) {
    let desk = Desk::new();
    let socket = desk.path("answers");
    let freeze = format!("1s every {}ms", PERIOD_SECONDS * 1e3);
    let mut command =
        urgent(&desk, &["known-answer", "--protocol", "mysql", "--threads", "1", "--delay", "constant 1ms"]);
    command.args(["--freeze", &freeze, "--socket"]).arg(&socket).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    wait_for("the server to listen", || socket.exists().then_some(()));
    let plan = format!(
        "name = \"stall\"\n[host]\nsampling = false\n[[variant]]\nname = \"stalling\"\n\
         address = \"mysql://any@localhost/any?socket={}\"\n[workload.oltp]\ntests = [\"point-select\"]\n\
         table_size = 1\nload_connections = 1\ncreate_secondary = false\nsettle_wait = \"0s\"\n\
         verify = \"off\"\ntime = \"7s\"\n{options}\n",
        socket.display()
    );
    desk.write("p.toml", &plan);
    let ended = desk.ended(&mut urgent(&desk, &["run", "p.toml"]));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(server.id()).unwrap()), Signal::SIGTERM)
        .unwrap();
    server.wait().unwrap();
    ended.expect_ok();
    let findings = analyse(&Run::open(&desk.run_dir()).unwrap());
    let step = findings.workloads[0].steps.iter().find(|step| step.name.starts_with("point-select")).unwrap();
    let run = &step.variants[0].runs[0];
    assert_eq!(run.validity, Validity::Valid);
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    (run.kinds[0].clone(), report.expect_ok().out.clone())
}

/// Whether the report shows this time, in three figures.
fn shows(report: &str, us: u64) -> bool {
    let ms = us as f64 / 1e3;
    [format!("{ms:.2} ms"), format!("{ms:.1} ms"), format!("{ms:.0} ms")]
        .iter()
        .any(|text| report.contains(text))
}

/// Makes the run again where something is `wrong` with its queries or its report: a hold-up beside the stall is not what was asked.
fn expect_one_of_three(options: &str, wrong: impl Fn(&KindResult, &str) -> Vec<String>) {
    let _turn = turn();
    on_a_machine_of_its_own(|| {
        let (found, report) = stalled(options);
        let wrong = wrong(&found, &report);
        let evidence = format!("{:?}\n{:?}\n{report}", found.service, found.response);
        Told { false_of_servers: wrong.clone(), wrong, servers_were_late: false, evidence }
    });
}

/// Of a closed loop one operation in each period meets the stall: its 95th percentile is that of all others.
#[test]
fn acceptance_check_6_a_closed_loop_hides_the_stall() {
    expect_one_of_three("connections = 1", |found, report| {
        let (service, response) = (&found.service, &found.response);
        let mut wrong = not_hidden(service);
        wrong.extend((service.p95_us != response.p95_us).then(|| "two clocks".to_owned()));
        let is_met = (990_000..1_200_000).contains(&service.max_us);
        wrong.extend((!is_met).then(|| format!("longest {} us", service.max_us)));
        wrong.extend((!shows(report, service.p95_us)).then(|| "p95 is not in the report".to_owned()));
        wrong
    });
}

/// What is not about 1.1 ms: half of the answers come at once behind their millisecond, and where others use the machine too the
/// slowest twentieth of them some milliseconds later, which is nothing beside a second.
fn not_hidden(service: &Latency) -> Vec<String> {
    let bounds = [("p50", service.p50_us, 1_000..1_500), ("p95", service.p95_us, 1_000..20_000)];
    let outside = bounds.into_iter().filter(|(_, us, bounds)| !bounds.contains(us));
    outside.map(|(name, us, _)| format!("{name} of service {us} us, not about 1.1 ms")).collect()
}

/// What is due while nothing is served waits, and what comes after waits for that. An operation that is due t seconds after the
/// stall's begin is answered when the stall is over and the rate × t before it are done, each connection its part of them:
/// 1 - t × (1 - rate × service ÷ connections) seconds later. The slowest twentieth of the operations of a period are those of its
/// first twentieth behind the begin, so the percentile is 1 - 0.05 × period × (1 - rate × service ÷ connections) seconds:
/// 0.93 s for a stall in 1.4 s and four connections. (In the original's demonstration one thread had a stall in 4 s, for which it
/// is 0.90 s; it was 0.943 s, the edge of a bucket, over the operations that were answered before the end.) The service
/// times show nothing of it.
#[test]
fn acceptance_check_6_an_open_loop_shows_the_stall() {
    let options = format!("connections = {CONNECTIONS:.0}\npace = \"constant\"\nrates = [{RATE:.0}]");
    expect_one_of_three(&options, |found, report| {
        let (service, response) = (&found.service, &found.response);
        let service_seconds = service.p50_us as f64 / 1e6;
        let expected = 1.0 - 0.05 * PERIOD_SECONDS * (1.0 - RATE * service_seconds / CONNECTIONS);
        let p95 = response.p95_us as f64 / 1e6;
        let mut wrong = not_hidden(service);
        let is_shown = (p95 - expected).abs() < 0.03 && (0.91..0.98).contains(&p95);
        wrong.extend((!is_shown).then(|| format!("p95 of response {p95} s, not {expected} s")));
        let is_told = shows(report, service.p95_us) && shows(report, response.p95_us);
        wrong.extend((!is_told).then(|| "p95 is not in the report".to_owned()));
        wrong
    });
}
