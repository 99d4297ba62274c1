//! Tests of `dbdyno run --aa` and `--budget`, and of the power that `dbdyno plan` computes from the
//! noise.

use std::path::Path;

use dbdyno_record::{Run, RunEvent, StepEvent};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::commands::TWO_VARIANTS;
use crate::support::{Desk, wait_for};

/// Returns a plan with two variants whose measured step takes a second, in which the client mostly
/// sleeps.
fn short_plan() -> String {
    format!(
        "name = \"test\"\nblocks = 3\nmargins = {{ \"point*\" = 0.05 }}\n{TWO_VARIANTS}\n[workload.oltp]\n\
         tests = [\"point-select\"]\nconnections = [1]\ntime = \"1s\"\nthink_time = \"1ms\"\ntable_size = 50\nsettle_wait = \"0s\"\n"
    )
}

/// Returns for each look the number of blocks, whether it was the last look, and the number of
/// cells that it added.
fn looks(dir: &Path) -> Vec<(u32, bool, usize)> {
    let look = |event: &RunEvent| match event {
        RunEvent::Look { blocks, last, order, .. } => Some((*blocks, *last, order.len())),
        _ => None,
    };
    Run::open(dir).map_or_else(|_| Vec::new(), |run| run.events.iter().filter_map(look).collect())
}

/// Returns the text without the line breaks that fit it to the terminal's width.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_base_runs_twice_on_request_and_its_noise_gives_the_next_plan_its_power() {
    let desk = Desk::new();
    desk.write("p.toml", &short_plan());
    let unknown = desk.dbdyno(&["plan", "p.toml"]);
    assert!(unknown.expect_ok().out.contains("noise of this host unknown"), "{}", unknown.out);

    let ended = desk.dbdyno(&["run", "p.toml", "--aa"]);
    ended.expect_ok();
    assert!(ended.out.contains("A/A: rollback against itself"), "{}", ended.out);
    let whole = desk.dbdyno(&["report", "latest", "--all"]);
    assert!(words(&whole.expect_ok().out).contains("(5 % in point-select.c1)"), "{}", whole.out);
    let run = Run::open(&desk.run_dir()).unwrap();
    assert_eq!(run.manifest.plan.control(), Some("rollback~control"));
    let of_control = run.cells.iter().filter(|cell| cell.id.variant == "rollback~control").count();
    assert_eq!((of_control, run.cells.len()), (3, 9), "once in every block");

    let known = desk.dbdyno(&["plan", "p.toml"]);
    assert!(known.out.contains("(noise: A/A"), "{}", known.out);
    assert!(known.out.contains("blocks for twice the margin"), "{}", known.out);
    let dir = desk.run_dir();
    let args =
        ["plan", "p.toml", "--set", "blocks=5", "--json", "--detect", "4", "--noise", dir.to_str().unwrap()];
    let value: Value = serde_json::from_str(&desk.dbdyno(&args).expect_ok().out).unwrap();
    let steps = value["power"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["step"] == "point-select.c1").unwrap();
    assert_eq!(step["margin"], 0.05);
    assert!(step["noise"].as_f64().unwrap() > 0.0 && step["detects"].as_f64() > step["noise"].as_f64());
    assert!(value["power"]["noise_from"].as_str().unwrap().starts_with("A/A"), "{value}");
    assert_eq!((&value["power"]["comparisons"], &value["power"]["wanted"]), (&3.into(), &0.04.into()));
    desk.write("q.toml", &crate::commands::plan(crate::commands::TWO_VARIANTS, ""));
    let other = desk.dbdyno(&["plan", "q.toml", "--noise", dir.to_str().unwrap()]);
    let reported = ": it shares no step with this plan: it has oltp ";
    assert!(other.expect_code(2).err.contains(reported), "{}", other.err);
    assert!(other.err.contains("the plan has insert-benchmark l.i0, "), "{}", other.err);
}

#[test]
fn a_budget_adds_blocks_while_something_is_undecided_and_a_stopped_run_goes_on_with_it() {
    let desk = Desk::new();
    // The variants are equal and the margin is tiny, so that their comparison stays undecided.
    desk.write(
        "p.toml",
        &short_plan()
            .replace("[[variant]]\nname = \"wal\"", "[[variant]]\nname = \"twin\"")
            .replace("\"wal\"", "\"delete\"")
            .replace("0.05", "0.0001")
            .replace("blocks = 3", "blocks = 3\nmargin = 0.0001")
            .replace("[\"point-select\"]", "[\"point-select\", \"read-only\"]"),
    );
    let running = desk.start(&mut desk.command(&["run", "p.toml", "--budget", "10m"]));
    let dir = desk.run_dir();
    let first = wait_for("a look that adds a block", || looks(&dir).pop());
    assert_eq!(first, (3, false, 2));
    running.signal(Signal::SIGTERM);
    running.wait().expect_code(130);

    // The edited record says that the look has decided one of the two tests.
    let path = dir.join("events.jsonl");
    let events = std::fs::read_to_string(&path).unwrap();
    let with_steps = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if event.get("order").is_some() {
            event["steps"] = json!({ "oltp": ["load", "index", "point-select.c1"] });
        }
        format!("{event}\n")
    };
    std::fs::write(&path, events.lines().map(with_steps).collect::<String>()).unwrap();

    // The edited manifest has a budget of a second, so that the test need not wait for ten minutes,
    // and a host with more CPUs.
    let path = dir.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(manifest["plan"]["budget"], "10m");
    manifest["plan"]["budget"] = "1s".into();
    manifest["host"]["cpus"] = 999.into();
    std::fs::write(&path, manifest.to_string()).unwrap();
    let resume = || desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    let ended = resume();
    ended.expect_ok();
    assert!(ended.err.contains("interim analysis after 4 blocks"), "{}", ended.err);
    let whole = desk.dbdyno(&["report", dir.to_str().unwrap(), "--all"]);
    let words = words(&whole.expect_ok().out);
    assert!(words.contains("3 blocks and 1 more within 1 s, analysed 2 times"), "{words}");
    assert!(words.contains("Interim analyses: 2; verdicts"), "{words}");
    assert!(words.contains("on a host of another class: number of CPUs 999 then,"), "{words}");
    assert_eq!(looks(&dir), [(3, false, 2), (4, true, 0)]);
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.cells.len(), 8);
    for cell in &run.cells {
        let steps: Vec<&str> = cell.steps.iter().map(|step| step.name.as_str()).collect();
        let all = ["load", "index", "point-select.c1", "read-only.c1"];
        assert_eq!(steps, all[..if cell.id.block > 3 { 3 } else { 4 }], "{}", cell.id);
    }
    resume().expect_ok();
    assert_eq!(looks(&dir).len(), 2, "what is over is not looked at again");
}

#[test]
fn a_budget_without_enough_blocks_is_refused() {
    let desk = Desk::new();
    let said = desk.refusal(&desk.dbdyno(&["run", "--budget", "2h"]));
    insta::assert_snapshot!(said, @"exit 2: error: --set budget: a budget needs blocks = 3 or more, not 1: its first look is after the plan's blocks, and with fewer it would find nothing");
}

/// Returns the variant and the name of each step in a block, in the order in which the steps ran.
fn ran(run: &Run, block: u32) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for cell in run.cells.iter().filter(|cell| cell.id.block == block) {
        for step in &cell.steps {
            let started = step.events.iter().find_map(|event| match event {
                StepEvent::Started { at, .. } => Some(at.clone()),
                _ => None,
            });
            all.push((started.unwrap(), cell.id.variant.clone(), step.name.clone()));
        }
    }
    all.sort();
    all.into_iter().map(|(_, variant, step)| (variant, step)).collect()
}

#[test]
fn servers_that_alternate_load_once_and_run_each_step_one_after_the_other() {
    let desk = Desk::new();
    let plan = short_plan().replace("blocks = 3", "blocks = 4\ndesign = \"alternate\"");
    desk.write("p.toml", &plan.replace("[\"point-select\"]", "[\"point-select\", \"read-only\"]"));
    let planned = desk.dbdyno(&["plan", "p.toml", "--json"]);
    let value: Value = serde_json::from_str(&planned.expect_ok().out).unwrap();
    assert_eq!(value["power"]["comparisons"], 2, "the load runs once: {value}");
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    let run = Run::open(&dir).unwrap();
    assert_eq!((run.cells.len(), run.manifest.plan.design), (8, dbdyno_model::Design::Alternate));
    for block in 1..=4 {
        let ran = ran(&run, block);
        let measured: Vec<&str> =
            ran.iter().map(|(_, step)| step.as_str()).filter(|step| step.ends_with(".c1")).collect();
        let expected = ["point-select.c1", "point-select.c1", "read-only.c1", "read-only.c1"];
        assert_eq!(measured, expected, "block {block}");
        assert_eq!(ran.len(), if block == 1 { 8 } else { 4 }, "block {block}: {ran:?}");
    }
    let found = desk.dbdyno(&["report", "latest", "--all"]);
    let words = words(&found.expect_ok().out);
    assert!(words.contains("4 blocks, servers alternate step by step"), "{words}");
    assert!(words.contains("measured windows"), "{words}");
    assert!(!dir.join("data").exists(), "the data of servers that stayed up are removed in the end");
}

#[test]
fn servers_do_not_alternate_where_steps_change_what_others_read() {
    let desk = Desk::new();
    let refused = |plan: &str| {
        desk.write("p.toml", &plan.replace("blocks = 3", "blocks = 3\ndesign = \"alternate\""));
        desk.refusal(&desk.dbdyno(&["run", "p.toml"]))
    };
    let writes = short_plan().replace("\"point-select\"", "\"read-write\"");
    insta::assert_snapshot!(refused(&writes), @r#"exit 2: error: p.toml:3:10: design = "alternate" does not fit: step read-write.c1 of oltp changes the data that all later blocks read; leave it out"#);
    let restarts = format!("{}data = \"restart\"\n", short_plan());
    insta::assert_snapshot!(refused(&restarts), @r#"exit 2: error: p.toml:3:10: design = "alternate" does not fit: `data` and `cold` of oltp stop servers between steps; leave it out"#);
}

#[test]
fn set_ups_run_side_by_side_and_the_plan_names_their_cells() {
    let desk = Desk::new();
    let setups = "[[setup]]\nname = \"1t\"\n[[setup]]\nname = \"2t\"\nworkload.oltp = { tables = 2 }\n";
    desk.write("p.toml", &format!("{}{setups}", short_plan().replace("blocks = 3", "blocks = 1")));
    let plan = desk.dbdyno(&["plan", "p.toml", "--set", "setup.2t.workload.oltp.tables=3"]);
    assert!(words(&plan.expect_ok().out).contains("wal oltp@2t"), "{}", plan.out);
    assert!(plan.out.contains("oltp@1t on rollback, wal, once each: about"), "{}", plan.out);

    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let run = Run::open(&desk.run_dir()).unwrap();
    let tables: Vec<_> = run
        .manifest
        .workloads
        .iter()
        .map(|info| (info.name.as_str(), info.options["tables"].clone()))
        .collect();
    assert_eq!(tables, [("oltp@1t", 1.into()), ("oltp@2t", 2.into())]);
    assert_eq!(run.cells.len(), 4);
    let report = desk.dbdyno(&["report", "latest", "--section", "tables"]);
    let reported = words(&report.expect_ok().out);
    assert!(
        reported.contains("Relative throughput of wal in each set-up") && reported.contains("step 1t 2t"),
        "{reported}"
    );
}
