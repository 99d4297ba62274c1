//! Tests verdicts and cost breakdowns through the whole tool, against servers whose differences are
//! programmed. The report must agree with the program, and a busy machine is no excuse. Where a
//! hypervisor takes CPUs away from the machine, no server can keep to its program. The report must
//! then agree with the servers' own accounts, and no verdict may be wrong.
//!
//! All of these tests are ignored by default: `cargo xtask test --all` runs them one at a time with
//! the machine for themselves. The programs are made to tolerate noise. An answer is sent at its
//! scheduled time however late its CPU time was used, so a rate changes only when the server gets no CPU
//! for longer than its programmed wait.

mod client_hosts;
mod server_counts;
mod stall;
mod waits;

use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use dbdyno_analyse::{Cause, CostBreakdown, StepFindings, VariantStep, Verdict};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::listening::wait_until_it_listens;
use crate::support::{Desk, faults, findings};
use server_counts::{OwnAccount, late_us};
use waits::{WAITS, Wait};

const BLOCKS: u64 = 5;
const OPERATIONS: u64 = 6;

/// The untrue statements in the report of one attempt.
struct Attempt {
    /// Statements that disagree with the servers' programs.
    wrong: Vec<String>,
    /// Statements that disagree with the servers' own accounts.
    false_of_servers: Vec<String>,
    /// Whether the servers were late by their own clocks.
    servers_were_late: bool,
    account: String,
}

/// A server whose operations each use this much CPU time and then wait this long.
struct Programmed {
    name: &'static str,
    burn_us: u32,
    delay_us: u32,
    verdict: Option<Verdict>,
}

const fn programmed(name: &'static str, burn_us: u32, delay_us: u32, verdict: Verdict) -> Programmed {
    Programmed { name, burn_us, delay_us, verdict: Some(verdict) }
}

const BASE: Programmed = Programmed { name: "base", burn_us: 50_000, delay_us: 200_000, verdict: None };

/// Variants that are equal to the base, that wait longer so that they are 1, 3 and 8 % slower, and
/// that are as much slower in both CPU time and waiting, so that the utilisation stays the same.
/// The last one uses less CPU time and waits longer instead.
const VARIANTS: [Programmed; 8] = [
    programmed("equal", 50_000, 200_000, Verdict::Same),
    programmed("waits-1", 50_000, 202_500, Verdict::Same),
    programmed("waits-3", 50_000, 207_500, Verdict::Slower),
    programmed("waits-8", 50_000, 220_000, Verdict::Slower),
    programmed("works-1", 50_500, 202_000, Verdict::Same),
    programmed("works-3", 51_500, 206_000, Verdict::Slower),
    programmed("works-8", 54_000, 216_000, Verdict::Slower),
    programmed("trades", 40_000, 210_000, Verdict::Same),
];

/// The workload has a fixed number of operations, and the clock ends with the last one. A fixed
/// time would cut an operation in two.
fn workload(operations: u64) -> String {
    format!(
        "[workload.microbenchmarks]\nsteps = [\"point-query\"]\noperations = {operations}\nconnections = [1]\n\
        table_size = 1\nload_connections = 1\nindex_before_load = true\nsettle_wait = \"0s\"\nverify = \"off\"\n"
    )
}

#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn servers_that_differ_by_0_1_3_and_8_percent_get_the_right_verdicts_and_the_right_accounts() {
    WAITS.into_iter().for_each(right_verdicts);
}

fn right_verdicts(wait: Wait) {
    let _turn = turn();
    on_a_machine_of_its_own(|| {
        let desk = Desk::new();
        let host = wait.host("");
        let (mut running, mut plan) = (Vec::new(), format!("name = \"truth\"\nblocks = {BLOCKS}\n{host}"));
        for server in std::iter::once(&BASE).chain(&VARIANTS) {
            let (process, variant) = Server::start(&desk, server, wait);
            running.push(process);
            plan.push_str(&variant);
        }
        let step = point_query(&desk, &(plan + &workload(OPERATIONS)), wait);
        // Each server writes its account when it ends.
        drop(running);
        compare_says_the_same(&desk, &step);
        let base = of(&step, "base");
        let all = || std::iter::once(&BASE).chain(&VARIANTS);
        let late_us = late_us(&desk, all().map(|server| server.name));
        let false_of = |server: &Programmed| {
            let reported = of(&step, server.name);
            let own = OwnAccount::of(&desk, server.name);
            let mut wrong = own.false_in(reported, BLOCKS * OPERATIONS, late_us);
            if reported.to_base.verdict != server.verdict
                && reported.to_base.verdict.is_some_and(|said| said != Verdict::Undecided)
            {
                wrong.push(format!(
                    "{}: {:?}, though {:?} is true",
                    server.name, reported.to_base.verdict, server.verdict
                ));
            }
            wrong
        };
        Attempt {
            wrong: VARIANTS.iter().flat_map(|server| wrong(server, of(&step, server.name), base)).collect(),
            false_of_servers: all().flat_map(false_of).collect(),
            servers_were_late: all().any(|server| OwnAccount::of(&desk, server.name).is_late()),
            account: account(&desk, &step),
        }
    });
}

/// Checks that `dbdyno compare` gives the step the same verdict as the run, and that its exit
/// status covers all steps, including the load.
fn compare_says_the_same(desk: &Desk, step: &StepFindings) {
    let run = desk.run_dir();
    for server in VARIANTS.iter().filter(|server| of(step, server.name).to_base.verdict == server.verdict) {
        let (base, new) = (format!("{}:base", run.display()), format!(":{}", server.name));
        let ended = desk.dbdyno(&["compare", &base, &new, "--format", "json"]);
        let reported: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        let steps = reported["steps"].as_array().unwrap();
        let found = steps.iter().find(|reported| reported["step"] == "point-query").unwrap();
        assert_eq!(found["verdict"], server.verdict.unwrap().word(), "{}", ended.out);
        let slower = steps.iter().any(|reported| reported["verdict"] == "slower");
        ended.expect_code(i32::from(slower));
    }
}

/// The untrue statements in the report about one variant.
fn wrong(server: &Programmed, reported: &VariantStep, base: &VariantStep) -> Vec<String> {
    let total = |server: &Programmed| f64::from(server.burn_us + server.delay_us);
    let ratio = reported.to_base.ratio.as_ref().unwrap().value;
    let (cpu, waiting) = factors(reported.to_base.cost_breakdown.as_ref().unwrap());
    let true_ratio = total(&BASE) / total(server);
    let true_cpu = f64::from(BASE.burn_us) / f64::from(server.burn_us);
    let mut wrong = Vec::new();
    if reported.to_base.verdict != server.verdict {
        wrong.push(format!("{}: {:?}, not {:?}", server.name, reported.to_base.verdict, server.verdict));
    }
    let mut expect = |what: &str, is, truth, tolerance| {
        expect(&mut wrong, &format!("{}: {what}", server.name), is, truth, tolerance);
    };
    expect("ratio", ratio, true_ratio, 0.003);
    expect("factor of CPU", cpu, true_cpu, 0.015);
    expect("factor of waiting", waiting, true_ratio / true_cpu, 0.015);
    expect("product of the factors", cpu * waiting, ratio, 1e-9);
    // The cost of the protocol and of polling for the scheduled time comes on top.
    expect("CPU per operation", cpu_us(reported), f64::from(server.burn_us), 0.03);
    expect("CPU per operation of the base", cpu_us(base), f64::from(BASE.burn_us), 0.03);
    wrong
}

/// In one variant a statement uses twice the CPU time, and nothing else takes time. The cost
/// breakdown must show exactly that.
#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn a_server_that_only_works_is_charged_for_all_of_its_time() {
    WAITS.into_iter().for_each(charged_for_all);
}

fn charged_for_all(wait: Wait) {
    let _turn = turn();
    on_a_machine_of_its_own(|| {
        let desk = Desk::new();
        let server = |name, burn_us| Programmed { name, burn_us, delay_us: 0, verdict: None };
        let (running, base) = Server::start(&desk, &server("base", 2_000), wait);
        let (dearer, dear) = Server::start(&desk, &server("dear", 4_000), wait);
        let host = wait.host("");
        let plan = format!("name = \"burn\"\nblocks = 3\n{host}{base}{dear}{}", workload(500));
        let step = point_query(&desk, &plan, wait);
        drop((running, dearer));
        let (base, dear) = (of(&step, "base"), of(&step, "dear"));
        let (cpu, waiting) = factors(dear.to_base.cost_breakdown.as_ref().unwrap());
        let mut wrong = Vec::new();
        expect(&mut wrong, "more CPU", cpu_us(dear) - cpu_us(base), 2_000.0, 0.03);
        expect(&mut wrong, "factor of CPU", cpu, 0.5, 0.03);
        let ratio = dear.to_base.ratio.as_ref().unwrap().value;
        expect(&mut wrong, "product of the factors", cpu * waiting, ratio, 1e-9);
        let late_us = late_us(&desk, ["base", "dear"]);
        let false_of = |reported: &VariantStep| {
            OwnAccount::of(&desk, &reported.variant).false_in(reported, 3 * 500, late_us)
        };
        let false_of_servers = [base, dear].into_iter().flat_map(false_of).collect();
        let servers_were_late = ["base", "dear"].iter().any(|name| OwnAccount::of(&desk, name).is_late());
        Attempt { wrong, false_of_servers, servers_were_late, account: account(&desk, &step) }
    });
}

fn expect(wrong: &mut Vec<String>, what: &str, is: f64, truth: f64, tolerance: f64) {
    if (is / truth - 1.0).abs() > tolerance {
        wrong.push(format!("{what} {is:.5}, not {truth:.5}"));
    }
}

/// Fails with the last account if all three attempts report something wrong. Two cases are excused,
/// because no program can prevent them: a hypervisor took CPUs away from this machine meanwhile, or
/// the servers were late by their own clocks in the last attempt too. The report must then agree
/// with the servers' own accounts.
fn on_a_machine_of_its_own(attempt: impl Fn() -> Attempt) {
    for is_last in [false, false, true] {
        let before = stolen();
        let Attempt { wrong, false_of_servers, servers_were_late, account } = attempt();
        if wrong.is_empty() {
            return;
        }
        let after = stolen();
        let share = (after.0 - before.0) / (after.1 - before.1);
        let is_excused = share > 0.01 || is_last && servers_were_late;
        if is_excused && false_of_servers.is_empty() {
            return;
        }
        let [wrong, of_servers] = [wrong, false_of_servers].map(|all| all.join("\n"));
        assert!(
            !is_last,
            "{wrong}\nby the servers' own accounts:\n{of_servers}\n{account}\nstolen: {share:.3}"
        );
    }
}

/// The ticks that a hypervisor took away from this machine's CPUs, and all ticks, from the first
/// line of /proc/stat.
fn stolen() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<f64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|tick| tick.parse().unwrap()).collect();
    (ticks[7], ticks[..8].iter().sum())
}

/// Runs the plan. Returns its only measured step.
fn point_query(desk: &Desk, plan: &str, wait: Wait) -> StepFindings {
    desk.write("p.toml", plan);
    desk.ended(&mut wait.client(desk, &["run", "p.toml"])).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    findings.workloads[0].steps.iter().find(|step| step.name == "point-query").unwrap().clone()
}

fn of<'a>(step: &'a StepFindings, name: &str) -> &'a VariantStep {
    step.variants.iter().find(|variant| variant.variant == name).unwrap()
}

/// The server's CPU time per operation, as the mean over the blocks.
fn cpu_us(variant: &VariantStep) -> f64 {
    let blocks: Vec<f64> = variant.runs.iter().map(|run| run.cost.server_cpu_us.unwrap()).collect();
    blocks.iter().sum::<f64>() / blocks.len() as f64
}

/// The factor of CPU time per operation, user and kernel together, and the factor of the remaining
/// time.
fn factors(cost_breakdown: &CostBreakdown) -> (f64, f64) {
    let of = |causes: [Cause; 2]| -> f64 {
        cost_breakdown
            .parts
            .iter()
            .filter(|part| causes.contains(&part.cause))
            .map(|part| part.factor)
            .product()
    };
    (of([Cause::CpuUser, Cause::CpuKernel]), of([Cause::IoWait, Cause::Idle]))
}

/// The figures that a failed test prints for each variant. The last one is the server's own
/// account.
fn account(desk: &Desk, step: &StepFindings) -> String {
    let line = |variant: &VariantStep| {
        let name = &variant.variant;
        let rates: Vec<f64> = variant.runs.iter().map(|run| run.rate).collect();
        let cost_breakdown = variant.to_base.cost_breakdown.as_ref().map(factors);
        let (cpu, verdict) = (cpu_us(variant), variant.to_base.verdict);
        let own = OwnAccount::of(desk, name);
        format!(
            "{name}: {cpu:.0} us, {cost_breakdown:.4?}, {verdict:?}, {rates:.3?} operations/s; by itself {own:.0?}"
        )
    };
    step.variants.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Makes these tests run one at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `dbdyno ARGS` with real-time priority where that is allowed (root). Other programs' load then
/// makes no difference between servers.
fn urgent(desk: &Desk, args: &[&str]) -> Command {
    static IS_ALLOWED: LazyLock<bool> = LazyLock::new(|| {
        Command::new("chrt").args(["-f", "1", "true"]).status().is_ok_and(|status| status.success())
    });
    if !*IS_ALLOWED {
        return desk.command(args);
    }
    let mut command = Command::new("chrt");
    command.args(["-f", "1", env!("CARGO_BIN_EXE_dbdyno")]).args(args);
    desk.prepare(&mut command);
    command
}

/// A server that ends with the test.
struct Server(Child);

impl Server {
    /// Starts the server and returns it with its variant for a plan. The server answers text
    /// queries (settings, status, tables) at once.
    fn start(desk: &Desk, programmed: &Programmed, wait: Wait) -> (Self, String) {
        let name = programmed.name;
        let socket = desk.path(name);
        let options = ["known-answer", "--protocol", "mysql", "--threads", "1", "--prepared-only"];
        let mut command = urgent(desk, &options);
        command.args(wait.server()).arg("--burn").arg(format!("{}us", programmed.burn_us));
        if programmed.delay_us > 0 {
            command.arg("--delay").arg(format!("constant {}us", programmed.delay_us));
        }
        command.arg("--socket").arg(&socket);
        command.arg("--stats").arg(desk.path(&format!("{name}.json")));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(command.spawn().unwrap());
        wait_until_it_listens(&socket);
        let address = format!("mysql://any@localhost/any?socket={}", socket.display());
        (server, format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.0.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let _ = self.0.wait();
    }
}
