//! Tests of `dbdyno history`: the order of runs, refusals and formats.

use crate::commands::{plan, short_plan};
use crate::support::Desk;

#[test]
fn runs_of_a_folder_become_series_in_the_order_of_their_start() {
    let desk = Desk::new();
    let variant =
        "[[variant]]\nname = \"only\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";
    desk.write("p.toml", &plan(variant, "read_write_time = \"1s\""));
    for _ in 0..2 {
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        // Names of run directories hold whole seconds, so each run needs a second of its own.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    let json = desk.dbdyno(&["history", "runs", "--format", "json", "--fail-on", "slower"]);
    json.expect_ok();
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let started: Vec<&str> =
        value["runs"].as_array().unwrap().iter().map(|run| run["started"].as_str().unwrap()).collect();
    assert!(started.len() == 2 && started[0] < started[1], "{started:?}");
    for series in value["series"].as_array().unwrap() {
        assert_eq!(
            (series["variant"].as_str(), series["values"].as_array().unwrap().len()),
            (Some("only"), 2)
        );
        assert!(series["values"][0].as_f64().unwrap() > 0.0, "{series}");
    }
    a_run_that_is_named_twice_counts_once(&desk);
    desk.dbdyno(&["history", "runs", "-o", "h.html"]).expect_ok();
    let page = std::fs::read_to_string(desk.path("h.html")).unwrap();
    assert!(page.contains("<title>dbdyno history: test, 2 runs</title>") && page.contains("<svg"), "{page}");
    let ended = desk.dbdyno(&["history", "runs"]);
    ended.expect_ok();
    assert!(ended.out.starts_with("dbdyno history: test, 2 runs\n"), "{}", ended.out);
    assert!(
        ended.out.contains("No change of level can be found yet: there are too few runs."),
        "{}",
        ended.out
    );
    a_run_of_one_block_has_no_noise_estimate(&desk);
    the_tables_of_a_folder_hold_all_its_runs(&desk);
    a_newest_run_without_a_valid_block_fails_as_a_slower_one(&desk);
}

fn a_run_of_one_block_has_no_noise_estimate(desk: &Desk) {
    let dir = desk.run_dirs().remove(0);
    desk.write("two.toml", &plan(crate::commands::TWO_VARIANTS, ""));
    let ended = desk.dbdyno(&["plan", "two.toml", "--noise", dir.to_str().unwrap()]);
    let reported = ": no step has two valid blocks, so nothing is known of its noise; name a run of two or more blocks\n";
    assert!(ended.expect_code(2).err.ends_with(reported), "{}", ended.err);
}

fn the_tables_of_a_folder_hold_all_its_runs(desk: &Desk) {
    desk.write("runs/damaged/manifest.json", "{");
    let ended = desk.dbdyno(&["report", "runs", "--format", "parquet", "-o", "tables"]);
    let warnings: Vec<&str> = ended.expect_ok().err.lines().collect();
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("warning: runs/damaged is left out: "),
        "{warnings:?}"
    );
    std::fs::remove_dir_all(desk.path("runs/damaged")).unwrap();
    let observations = std::fs::read(desk.path("tables/observations.parquet")).unwrap();
    // A Parquet file holds the lowest and highest value of a column uncompressed. With two runs
    // these are both names.
    for run in desk.run_dirs() {
        let name = run.file_name().unwrap().to_str().unwrap().as_bytes().to_vec();
        assert!(observations.windows(name.len()).any(|bytes| bytes == name), "{}", run.display());
    }
    for words in [["--format", "json"], ["-o", "all.html"]] {
        desk.dbdyno(&[&["report", "runs"][..], &words].concat()).expect_code(2);
    }
}

fn a_newest_run_without_a_valid_block_fails_as_a_slower_one(desk: &Desk) {
    let mut runs = desk.run_dirs();
    runs.sort();
    let newest = runs.last().unwrap();
    let step = newest.join("cells/1/only/insert-benchmark/l.i0/events.jsonl");
    let mut events = std::fs::read_to_string(&step).unwrap();
    events.push_str("{\"event\":\"invalid\",\"reason\":\"the table has lost rows\"}\n");
    std::fs::write(&step, events).unwrap();
    let ended = desk.dbdyno(&["history", "runs", "--fail-on", "slower"]);
    let name = newest.file_name().unwrap().to_str().unwrap();
    let said = format!("only l.i0 has no valid block in the newest run {name}.");
    assert!(ended.out.contains(&said), "{}", ended.out);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    desk.dbdyno(&["history", "runs"]).expect_ok();
}

fn a_run_that_is_named_twice_counts_once(desk: &Desk) {
    let first = desk.run_dirs().remove(0);
    let name = first.file_name().unwrap().to_str().unwrap();
    std::os::unix::fs::symlink(name, desk.path("runs/latest")).unwrap();
    let ended = desk.dbdyno(&["history", "runs", &format!("runs/{name}")]);
    ended.expect_ok();
    assert!(ended.out.starts_with("dbdyno history: test, 2 runs\n"), "{}", ended.out);
    let notes: Vec<&str> = ended.err.lines().filter(|line| line.ends_with(", and counts once")).collect();
    assert_eq!(notes.len(), 2, "{}", ended.err);
    assert_eq!(notes[1].split(" is the run of ").next(), Some(format!("note: runs/{name}").as_str()));
    std::fs::remove_file(desk.path("runs/latest")).unwrap();
}

#[test]
fn what_is_no_history_says_why() {
    let desk = Desk::new();
    let ended = desk.dbdyno(&["history", "."]);
    let reported = "error: . is no run directory and holds none; name run directories, or a folder that holds them (dbdyno run makes \
                them in runs)\n";
    assert_eq!((ended.code, ended.err.as_str()), (Some(2), reported));
    let ended = desk.dbdyno(&["history", "nowhere"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.starts_with("error: cannot read nowhere: "), "{}", ended.err);
}

#[test]
fn a_folder_with_two_plans_needs_a_plan_name_and_left_out_runs_are_named() {
    let desk = Desk::new();
    let variant =
        "[[variant]]\nname = \"only\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";
    desk.write("p.toml", &short_plan(variant));
    for name in ["name=one", "name=two", "name=two"] {
        desk.dbdyno(&["run", "p.toml", "--set", name]).expect_ok();
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    desk.write("runs/damaged/manifest.json", "{");
    let ended = desk.dbdyno(&["history", "runs"]);
    assert_eq!(ended.code, Some(2));
    let asked = "error: these runs are of several plans: one (1 run), two (2 runs); choose one with --plan\n";
    assert!(
        ended.err.starts_with("warning: runs/damaged is left out: ") && ended.err.ends_with(asked),
        "{}",
        ended.err
    );
    for name in ["also", "again"] {
        desk.write(&format!("runs/{name}/manifest.json"), "{");
    }
    let ended = desk.dbdyno(&["history", "runs", "--plan", "two"]);
    ended.expect_ok();
    let warnings: Vec<&str> = ended.err.lines().filter(|line| line.starts_with("warning: ")).collect();
    let [warning] = warnings[..] else { panic!("{}", ended.err) };
    assert!(
        warning.starts_with("warning: 3 folders are left out, ")
            && warning.ends_with(", runs/also, runs/again"),
        "{warning}"
    );
    assert!(ended.out.starts_with("dbdyno history: two, 2 runs\n"), "{}", ended.out);
    assert!(ended.err.contains("-one is left out: it is of plan one\n"), "{}", ended.err);
}
