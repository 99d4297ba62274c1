//! Compares a client that spins with a client that sleeps. Both must report the same truth.

use std::sync::LazyLock;

use dbdyno_analyse::{StepFindings, Verdict};
use dbdyno_record::Run;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::support::{Desk, Ended};
use crate::truth::{
    Attempt, Programmed, Server, of, on_a_machine_of_its_own, point_query, turn, urgent, workload,
};

/// The way in which the client waits for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Sleep,
    Spin,
}

pub(crate) const WAITS: [Wait; 2] = [Wait::Sleep, Wait::Spin];

/// The CPUs that this process may use.
static CPUS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap()).map(|cpu| cpu.to_string()).collect()
});

impl Wait {
    /// The `[host]` table for a plan, with these `keys`. The spinning client gets the last CPU,
    /// even if it is the only one, because the plan does not say on which CPUs a server at an
    /// address runs.
    pub(crate) fn host(self, keys: &str) -> String {
        let wait = match self {
            Self::Sleep => String::new(),
            Self::Spin => {
                format!("client_wait = \"spin\"\nclient_cpus = \"{}\"\n", CPUS.last().unwrap())
            }
        };
        format!("[host]\n{keys}{wait}")
    }

    /// Options for a server that leaves the last CPU to the spinning client, where there are at
    /// least two CPUs.
    pub(crate) fn server(self) -> Vec<String> {
        match (self, CPUS.split_last()) {
            (Self::Spin, Some((_, others @ [_, ..]))) => vec!["--cpus".to_owned(), others.join(",")],
            _ => Vec::new(),
        }
    }

    /// `dbdyno ARGS` for the client. A spinning client gets no real-time priority, because other
    /// programs would then get no time on its CPU.
    pub(crate) fn client(self, desk: &Desk, args: &[&str]) -> std::process::Command {
        match self {
            Self::Sleep => urgent(desk, args),
            Self::Spin => desk.command(args),
        }
    }
}

/// Below saturation a rate does not depend on how the client waits. The comparison says how each
/// client waited.
#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn a_sleeping_and_a_spinning_client_have_the_same_rates() {
    let _turn = turn();
    on_a_machine_of_its_own(|| {
        let desk = Desk::new();
        let server = Programmed { name: "one", burn_us: 1_000, delay_us: 40_000, verdict: None };
        let (running, variant) = Server::start(&desk, &server, Wait::Spin);
        let run = |wait: Wait| {
            let host = wait.host(&wait.own_cpu());
            let plan = format!("name = \"waits\"\nblocks = 3\n{host}{variant}{}", workload(50));
            let before = desk.run_dirs();
            desk.write("p.toml", &plan);
            desk.ended(&mut wait.client(&desk, &["run", "p.toml"])).expect_ok();
            desk.run_dirs().into_iter().find(|dir| !before.contains(dir)).unwrap()
        };
        let [sleeping, spinning] = WAITS.map(run);
        drop(running);
        let compared = |more: &[&str]| -> Ended {
            let [base, new] = [&sleeping, &spinning].map(|dir| dir.to_str().unwrap());
            desk.dbdyno(&[&["compare", base, new][..], more].concat())
        };
        let refused = compared(&[]);
        assert!(
            refused.code == Some(2) && refused.err.contains("how the client waits sleep and spin"),
            "{refused:?}"
        );
        let reported: serde_json::Value =
            serde_json::from_str(&compared(&["--anyway", "--format", "json"]).out).unwrap();
        let notes = reported["notes"].to_string();
        assert!(notes.contains("how the client waits sleep and spin"), "{notes}");
        let step = reported["steps"]
            .as_array()
            .unwrap()
            .iter()
            .find(|reported| reported["step"] == "point-query")
            .unwrap();
        let is_same = step["verdict"] == Verdict::Same.word();
        Attempt {
            wrong: if is_same { Vec::new() } else { vec![format!("not the same: {step}")] },
            false_of_servers: Vec::new(),
            servers_were_late: false,
            account: reported.to_string(),
        }
    });
}

impl Wait {
    /// Pins a sleeping client to the same CPU, so that nothing else differs.
    fn own_cpu(self) -> String {
        match self {
            Self::Sleep => format!("client_cpus = \"{}\"\n", CPUS.last().unwrap()),
            Self::Spin => String::new(),
        }
    }
}

/// A thread that always occupies its CPU still has time to spare while it polls without result. The
/// sampler on the same CPU must keep its interval of one second.
#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn a_spinning_client_with_nothing_to_do_is_not_called_busy() {
    let _turn = turn();
    on_a_machine_of_its_own(|| {
        let desk = Desk::new();
        let server = Programmed { name: "one", burn_us: 5_000, delay_us: 45_000, verdict: None };
        let (running, variant) = Server::start(&desk, &server, Wait::Spin);
        let host = Wait::Spin.host("");
        let plan = format!("name = \"idle\"\nblocks = 1\n{host}{variant}{}", workload(100));
        let step = point_query(&desk, &plan, Wait::Spin);
        drop(running);
        let mut wrong = idle_wrong(&step);
        let late_us = latest_sample_us(&desk);
        wrong.extend((late_us > 1_000_000).then(|| format!("a sample was {late_us} µs late")));
        Attempt {
            wrong,
            false_of_servers: Vec::new(),
            servers_were_late: false,
            account: format!("{:?}", of(&step, "one").runs[0].cost),
        }
    });
}

/// The untrue statements in the report about the client and the server's CPU time.
fn idle_wrong(step: &StepFindings) -> Vec<String> {
    let reported = of(step, "one");
    let cost = &reported.runs[0].cost;
    let polling = cost.client_polling_share.unwrap();
    let busiest = cost.busiest_load_thread_share.unwrap();
    let mut wrong = Vec::new();
    wrong.extend((polling < 0.9).then(|| format!("polling is {polling} of the load thread's CPU")));
    // The time in which other programs had the thread's CPU does not count.
    let at_work = busiest - cost.load_thread_wait_share.unwrap();
    wrong.extend((at_work > 0.5).then(|| format!("the load thread was at work in {at_work} of the time")));
    let client_us = cost.client_cpu_us.unwrap();
    wrong.extend((client_us > 10_000.0).then(|| format!("an operation cost the client {client_us} µs")));
    wrong
}

/// The longest time by which the sampler that waits for no disk and no server woke too late.
fn latest_sample_us(desk: &Desk) -> i64 {
    let run = Run::open(&desk.run_dir()).unwrap();
    let steps = run.cells.iter().flat_map(|cell| &cell.steps);
    let late = steps.flat_map(|step| {
        step.counters["sampler"].values("late_us").map(|(_, late_us)| late_us).collect::<Vec<_>>()
    });
    late.max().unwrap()
}
