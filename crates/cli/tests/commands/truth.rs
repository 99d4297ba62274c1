//! Verdicts and accounts through the whole tool, against servers whose differences are programmed.

use dbdyno_analyse::{Cause, Verdict, analyse};
use dbdyno_record::Run;
use nix::sys::signal::Signal;

use crate::support::{Desk, wait_for};

/// Variants with the delay of each statement: equal to the base, and 1, 3 and 8 % slower, and one of half the speed.
const SERVERS: [(&str, &str); 6] = [
    ("base", "constant 8000us"),
    ("equal", "constant 8000us"),
    ("slower-1", "constant 8080us"),
    ("slower-3", "constant 8240us"),
    ("slower-8", "constant 8640us"),
    ("slower-100", "constant 16000us"),
];

#[test]
fn servers_that_differ_by_0_1_3_and_8_percent_get_the_right_verdicts() {
    let desk = Desk::new();
    let mut plan = "name = \"truth\"\nblocks = 4\n[host]\nsampling = false\n".to_owned();
    let mut running = Vec::new();
    for (name, delay) in SERVERS {
        let (server, variant) = Server::start(&desk, name, ["--delay", delay]);
        running.push(server);
        plan.push_str(&variant);
    }
    plan.push_str(WORKLOAD);
    plan.push_str("connections = [2]\n");
    desk.write("p.toml", &plan);
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = analyse(&Run::open(&desk.run_dir()).unwrap());
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "point-select.c2").unwrap();
    let found: Vec<(f64, Verdict, f64)> = step
        .variants
        .iter()
        .skip(1)
        .map(|variant| {
            let ratio = variant.ratio.as_ref().unwrap();
            let deviation = ratio.inference.as_ref().unwrap().paired.as_ref().unwrap().deviation;
            (ratio.value, variant.verdict.unwrap(), deviation)
        })
        .collect();
    // A busy machine may leave a verdict open, but must not make a wrong one; a quiet one must find the right ones.
    let right = [Verdict::Same, Verdict::Same, Verdict::Slower, Verdict::Slower, Verdict::Slower];
    for ((_, verdict, _), right) in found.iter().zip(right) {
        assert!([right, Verdict::Undecided].contains(verdict), "{found:?}");
    }
    if found.iter().all(|(_, _, deviation)| *deviation < 0.004) {
        assert_eq!(found.iter().map(|found| found.1).collect::<Vec<_>>(), right, "{found:?}");
        assert!((found[3].0 - 1.0 / 1.08).abs() < 0.01, "{found:?}");
    }
    assert!(found[4].0 < 0.8, "twice the time is seen on any machine: {found:?}");
}

/// A statement costs 500 us of CPU more on the other server: that, and nothing else, is what the account must hold.
#[test]
fn cpu_that_a_server_burns_is_charged_to_it_and_explains_the_rate() {
    let desk = Desk::new();
    let (_base, base) = Server::start(&desk, "base", ["--burn", "1ms"]);
    let (_dear, dear) = Server::start(&desk, "dear", ["--burn", "1500us"]);
    desk.write("p.toml", &format!("name = \"burn\"\n{base}{dear}{WORKLOAD}connections = [1]\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = analyse(&Run::open(&desk.run_dir()).unwrap());
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "point-select.c1").unwrap();
    let cpu_us = |at: usize| step.variants[at].runs[0].cost.server_cpu_us.unwrap();
    let more_us = cpu_us(1) - cpu_us(0);
    assert!((400.0..650.0).contains(&more_us), "{} and {} us", cpu_us(0), cpu_us(1));
    let ratio = step.variants[1].ratio.as_ref().unwrap().value;
    let account = step.variants[1].account.as_ref().unwrap();
    let of = |causes: [Cause; 2]| -> f64 {
        account.parts.iter().filter(|part| causes.contains(&part.cause)).map(|part| part.factor).product()
    };
    let (cpu, waiting) = (of([Cause::CpuUser, Cause::CpuKernel]), of([Cause::IoWait, Cause::Idle]));
    assert!((cpu * waiting / ratio - 1.0).abs() < 1e-9, "the parts make up the whole: {account:?}");
    assert!((cpu / (cpu_us(0) / cpu_us(1)) - 1.0).abs() < 1e-9, "{account:?}");
    assert!((0.6..0.78).contains(&cpu), "{account:?}");
}

/// Point selects without anything around them.
const WORKLOAD: &str = "[workload.oltp]\ntests = [\"point-select\"]\ntime = \"2s\"\ntable_size = 1\n\
    load_connections = 1\ncreate_secondary = false\nsettle_wait = \"0s\"\nverify = \"off\"\n";

/// A server that ends with the test.
struct Server(std::process::Child);

impl Server {
    /// With its variant of a plan.
    fn start(desk: &Desk, name: &str, truth: [&str; 2]) -> (Self, String) {
        let socket = desk.path(name);
        let mut command = desk.command(&["known-answer", "--protocol", "mysql", "--threads", "1"]);
        command.args(truth).arg("--socket").arg(&socket);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let server = Self(command.spawn().unwrap());
        wait_for("the server to listen", || socket.exists().then_some(()));
        let address = format!("mysql://any@localhost/any?socket={}", socket.display());
        (server, format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap_or(0));
        if pid.as_raw() > 0 {
            let _ = nix::sys::signal::kill(pid, Signal::SIGTERM);
        }
        let _ = self.0.wait();
    }
}
