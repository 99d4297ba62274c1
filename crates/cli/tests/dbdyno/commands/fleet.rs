//! Tests of runs whose blocks run on several machines. The machines are nodes of a mock Slurm on
//! this host, whose commands are scripts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use dbdyno_record::{CellId, Check, HostCalibration, Run, RunEvent};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::TWO_VARIANTS;
use crate::support::blocks::{complete, measured, whole};
use crate::support::{Desk, findings, texts, wait_for};

/// Ends a step after 100 operations, so that it is short.
const SHORT: &str = "events = 100";

/// Makes a step last `seconds` seconds, in which the client mostly sleeps.
fn seconds(seconds: u32) -> String {
    format!("arrivals = \"constant\"\nrates = [100]\ntime = \"{seconds}s\"")
}

fn write_plan(desk: &Desk, blocks: u32, length: &str) {
    let workload = "tests = [\"update-index\"]\ntable_size = 200\nconnections = [1]\nsettle_wait = \"0s\"";
    let text = format!(
        "name = \"test\"\nblocks = {blocks}\n{TWO_VARIANTS}\n[workload.oltp]\n{workload}\n{length}\n"
    );
    desk.write("p.toml", &text);
}

/// Returns each cell's last checks of its tables, without their durations.
fn checks(run: &Run) -> Vec<(CellId, Vec<Check>)> {
    let check = |cell: &dbdyno_record::CellRecord| {
        let step = cell.steps.iter().find(|step| step.name == "update-index.c1").unwrap();
        let checks = step.checks().into_iter().cloned().map(|check| Check { duration_us: 0, ..check });
        (cell.id.clone(), checks.collect())
    };
    run.cells.iter().map(check).collect()
}

#[test]
fn blocks_on_two_machines_are_one_run_with_the_cells_and_the_rows_of_a_run_on_one() {
    let desk = Desk::new();
    write_plan(&desk, 4, SHORT);
    slurm(&desk, TWO_NODES);
    let ended = on_slurm(&desk, &[]);
    ended.expect_ok();
    assert!(ended.out.contains("4 blocks on 2 machines"), "{}", ended.out);
    assert!(ended.err.contains("block 1 on n1: "), "{}", ended.err);
    let run = whole(&desk.run_dir());
    let measured = measured(&run);
    assert_eq!(measured.iter().map(|(block, _)| *block).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let machines: BTreeSet<&str> = measured.iter().map(|(_, machine)| machine.as_str()).collect();
    assert_eq!(machines, BTreeSet::from(["n1", "n2"]));
    let found = findings(&desk.run_dir());
    let calibrations = found.run.calibrations.iter();
    let is_measured =
        |(_, of): (_, &HostCalibration)| of.cpu_operations_per_second > 0.0 && of.fsync_us.is_some();
    assert_eq!((calibrations.len(), calibrations.clone().all(is_measured)), (2, true));
    let step = found.workloads[0].judged_steps().find(|step| step.name == "update-index.c1").unwrap();
    let (_, by_machine) = step.by_machine().next().unwrap();
    assert_eq!(by_machine.machines.iter().map(|of| of.blocks).sum::<usize>(), 4);

    desk.dbdyno(&["run", "p.toml", "--out", "alone"]).expect_ok();
    let dir = std::fs::read_dir(desk.path("alone")).unwrap().next().unwrap().unwrap().path();
    let alone = Run::open(&dir).unwrap();
    assert_eq!(run.manifest.order, alone.manifest.order);
    assert_eq!(checks(&run), checks(&alone));
}

/// Returns the process of a machine's task once the task runs a cell of `block`.
fn task_of(desk: &Desk, run: &Path, machine: &str, block: u32) -> Pid {
    let name = format!("{}-{block}.1", run.file_name().unwrap().to_str().unwrap());
    let cells = run.join("fleet").join(name).join("cells").join(block.to_string());
    wait_for("a cell to begin", || cells.exists().then_some(()));
    let files = std::fs::read_dir(desk.path(machine)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let pids: Vec<i32> = names.filter_map(|name| name.strip_prefix("dbdyno-run-")?.parse().ok()).collect();
    let [pid] = pids[..] else { panic!("{pids:?}") };
    Pid::from_raw(pid)
}

#[test]
fn a_block_whose_task_is_killed_is_run_again_on_another_machine() {
    let desk = Desk::new();
    write_plan(&desk, 2, &seconds(3));
    slurm(&desk, TWO_NODES);
    let running = desk.start(&mut with_slurm(&desk, &["run", "p.toml"]));
    let dir = desk.run_dir();
    kill(task_of(&desk, &dir, "n1", 1), Signal::SIGKILL).unwrap();
    running.wait().expect_ok();
    let run = whole(&dir);
    assert_eq!(measured(&run), [(1, "n2".to_owned()), (2, "n2".to_owned())]);
    let said = texts(&findings(&dir)).join("\n");
    let lost = "lock 1 was lost on n1: signal: 9 (SIGKILL); it is run again from its start";
    assert!(said.contains(lost), "{said}");
}

#[test]
fn a_fleet_whose_conductor_was_killed_goes_on_with_the_missing_blocks() {
    let desk = Desk::new();
    write_plan(&desk, 5, &seconds(1));
    slurm(&desk, TWO_NODES);
    let running = desk.start(&mut with_slurm(&desk, &["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_for("a complete block", || (!complete(&dir).is_empty()).then_some(()));
    running.signal(Signal::SIGKILL);
    running.wait();
    let kept = complete(&dir);
    let name = dir.to_str().unwrap();
    if kept.len() < 5 {
        let said = desk.refusal(&desk.dbdyno(&["run", "--resume", name]));
        let expected = "exit 2: error: this run is one of a fleet; go on with such machines: ";
        assert!(said.starts_with(expected), "{said}");
    }
    desk.ended(&mut with_slurm(&desk, &["run", "--resume", name])).expect_ok();
    let measured = measured(&whole(&dir));
    for block in kept {
        assert_eq!(measured.iter().filter(|(of, _)| *of == block).count(), 1, "{measured:?}");
    }
    assert_eq!(measured.iter().map(|(block, _)| *block).collect::<BTreeSet<_>>().len(), 5);
}

#[test]
fn a_fleet_that_is_interrupted_ends_its_tasks_and_keeps_no_part_of_a_block() {
    let desk = Desk::new();
    write_plan(&desk, 2, &seconds(20));
    slurm(&desk, TWO_NODES);
    let running = desk.start(&mut with_slurm(&desk, &["run", "p.toml"]));
    let dir = desk.run_dir();
    let tasks = [task_of(&desk, &dir, "n1", 1), task_of(&desk, &dir, "n2", 2)];
    running.signal(Signal::SIGINT);
    let ended = running.wait();
    let go_on = "stopped early; to continue: dbdyno run --resume runs/RUN --on slurm\n";
    assert!(desk.golden(&ended.expect_code(130).err).contains(go_on), "{}", ended.err);
    assert!(tasks.iter().all(|task| kill(*task, None).is_err()), "a task goes on");
    let run = Run::open(&dir).unwrap();
    assert_eq!((run.cells.len(), measured(&run)), (0, Vec::new()));
}

/// Script that prints what sinfo does on a cluster of two nodes.
const TWO_NODES: &str = "echo 'n1 2 perf*'; echo 'n2 2 perf*'";

/// Makes the commands of the mock Slurm. `sinfo` is the text of its sinfo script. Returns the file
/// in which srun records its arguments. Each node has a runtime directory of its own, so that a
/// node's tasks see only the runs on that node.
fn slurm(desk: &Desk, sinfo: &str) -> PathBuf {
    std::fs::create_dir(desk.path("bin")).unwrap();
    desk.write_program("bin/sinfo", sinfo);
    let asked = desk.path("asked.txt");
    let words = "while [ \"${1#--}\" != \"$1\" ]; do node=${1#--nodelist=}; [ \"$node\" = \"$1\" ] || own=$node; shift; done";
    let own = "export DBDYNO_RUNTIME=$DBDYNO_RUNTIME/$own; mkdir -p $DBDYNO_RUNTIME; exec \"$@\"";
    desk.write_program("bin/srun", &format!("echo \"$@\" >> {}; {words}; {own}", asked.display()));
    asked
}

/// Returns the command `dbdyno WORDS --on slurm`.
fn with_slurm(desk: &Desk, words: &[&str]) -> Command {
    let path = format!("{}:{}", desk.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = desk.command(words);
    command.args(["--on", "slurm"]).env("PATH", path);
    command
}

/// Runs the plan on the mock Slurm.
fn on_slurm(desk: &Desk, more: &[&str]) -> crate::support::Ended {
    desk.ended(with_slurm(desk, &["run", "p.toml"]).args(more))
}

#[test]
fn on_slurm_each_block_has_a_node_of_the_default_partition_for_itself() {
    let desk = Desk::new();
    write_plan(&desk, 2, SHORT);
    let asked = slurm(&desk, "echo 'n1 2 perf*'; echo 'n2 2 perf*'; echo 'n3 2 others'");
    on_slurm(&desk, &[]).expect_ok();
    let run = whole(&desk.run_dir());
    assert_eq!(measured(&run), [(1, "n1".to_owned()), (2, "n2".to_owned())]);
    let asked = std::fs::read_to_string(asked).unwrap();
    for node in ["n1", "n2"] {
        let line = asked.lines().find(|line| line.contains(&format!("--nodelist={node} "))).unwrap();
        assert!(line.contains("--exclusive ") && line.contains("--cpus-per-task=2 "), "{line}");
    }
}

/// Runs two blocks on two nodes, the second of which has another CPU model. Either node may begin
/// first.
fn on_unlike_nodes(desk: &Desk, unlike_machines: &str) -> Run {
    write_plan(desk, 2, SHORT);
    slurm(desk, TWO_NODES);
    desk.write("cpuinfo", "model name : another\n");
    let words = "node=; while [ \"${1#--}\" != \"$1\" ]; do [ $1 != --nodelist=n2 ] || node=n2; shift; done";
    let as_n2 = "unshare --mount sh -c 'mount --bind \"$0\" /proc/cpuinfo && exec \"$@\"'";
    let cpuinfo = desk.path("cpuinfo");
    let srun = format!("{words}; [ -n \"$node\" ] || exec \"$@\"; exec {as_n2} {} \"$@\"", cpuinfo.display());
    desk.write_program("bin/srun", &srun);
    on_slurm(desk, &["--set", &format!("host.unlike_machines={unlike_machines}")]).expect_ok();
    whole(&desk.run_dir())
}

#[test]
fn a_machine_of_another_class_gets_no_block() {
    let desk = Desk::new();
    let measured = measured(&on_unlike_nodes(&desk, "refuse"));
    let machines: BTreeSet<&str> = measured.iter().map(|(_, machine)| machine.as_str()).collect();
    assert_eq!((measured.len(), machines.len()), (2, 1), "{measured:?}");
    let said = texts(&findings(&desk.run_dir())).join("\n");
    let refused = if machines.contains("n1") { "n2" } else { "n1" };
    let expected = format!("{refused} is a machine of another class than ");
    assert!(said.contains(&expected) && said.contains("; it gets no block; "), "{said}");
}

#[test]
fn machines_of_two_classes_measure_where_the_plan_lets_them() {
    let desk = Desk::new();
    let run = on_unlike_nodes(&desk, "warn");
    let models = run.events.iter().filter_map(|event| match event {
        RunEvent::BlockMeasured { host, .. } => Some(host.cpu_model.as_str()),
        _ => None,
    });
    let models = BTreeSet::from_iter(models);
    assert!(models.len() == 2 && models.contains("another"), "{models:?}");
    let said = texts(&findings(&desk.run_dir())).join("\n");
    assert!(said.contains("is a machine of another class than n"), "{said}");
}

#[test]
fn a_block_that_is_lost_repeatedly_ends_the_run_with_the_message_of_its_task() {
    let desk = Desk::new();
    write_plan(&desk, 2, SHORT);
    slurm(&desk, "echo 'n1 2 perf*'");
    desk.write_program("bin/srun", "echo 'srun: error: the node is down' >&2; exit 1");
    let ended = on_slurm(&desk, &[]);
    let said = "error: block 1 was lost on n1: srun: error: the node is down (exit status: 1); it was lost 3 times, so the run ends; ";
    assert!(ended.expect_code(3).err.contains(said), "{}", ended.err);
    assert!(ended.err.contains("to continue: dbdyno run --resume "), "{}", ended.err);
    assert_eq!(measured(&Run::open(&desk.run_dir()).unwrap()), []);
}

#[test]
fn a_fleet_without_idle_nodes_is_refused_before_anything_is_written() {
    let desk = Desk::new();
    write_plan(&desk, 3, SHORT);
    slurm(&desk, "echo 'n3 2 others'");
    let said = desk.refusal(&on_slurm(&desk, &[]));
    insta::assert_snapshot!(said, @"exit 3: error: no node of the default partition is idle; see sinfo; wait, or name another partition with --on slurm:PARTITION");
    assert!(!desk.path("runs").exists(), "a run was begun");
}

#[test]
fn a_budget_on_two_machines_adds_blocks_after_all_earlier_ones_have_ended() {
    let desk = Desk::new();
    write_plan(&desk, 3, SHORT);
    slurm(&desk, TWO_NODES);
    let ended = on_slurm(&desk, &["--budget", "10s"]);
    ended.expect_ok();
    let run = whole(&desk.run_dir());
    let mut blocks = 3;
    let looks = run.events.iter().filter_map(|event| match event {
        RunEvent::Look { blocks, order, .. } => {
            Some((*blocks, order.iter().map(|cell| cell.block).collect::<BTreeSet<_>>()))
        }
        _ => None,
    });
    let mut is_over = false;
    for (after, further) in looks {
        assert!(!is_over && after == blocks && further.len() <= 2, "{after} blocks, then {further:?}");
        assert!(further.iter().copied().eq((blocks + 1..).take(further.len())), "{further:?}");
        is_over = further.is_empty();
        blocks += u32::try_from(further.len()).unwrap();
    }
    assert!(is_over, "{}", ended.err);
    let measured: BTreeSet<u32> = measured(&run).into_iter().map(|(block, _)| block).collect();
    assert!(measured.into_iter().eq(1..=blocks));
    let budget = findings(&desk.run_dir()).run.budget.unwrap();
    assert_eq!((budget.further_blocks, budget.seconds), (blocks - 3, 10.0));
}
