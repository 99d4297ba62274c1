//! Tests the output and the exit status of `dbdyno compare`.

use crate::commands::{TWO_VARIANTS, short_plan};
use crate::support::Desk;

/// Runs one plan with three blocks, and returns its run directory.
fn three_blocks(desk: &Desk) -> String {
    let text = short_plan(TWO_VARIANTS).replace("name = \"test\"", "name = \"test\"\nblocks = 3");
    desk.write("p.toml", &text);
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    format!("runs/{}", desk.run_dir().file_name().unwrap().to_str().unwrap())
}

#[test]
fn two_variants_of_a_run_have_a_table_and_a_status() {
    let desk = Desk::new();
    let run = three_blocks(&desk);
    let (rollback, wal) = (format!("{run}:rollback"), format!("{run}:wal"));
    let ended = desk.dbdyno(&["compare", &rollback, ":wal", "--fail-on", "never"]);
    ended.expect_ok();
    assert!(ended.out.starts_with("dbdyno compare: wal against rollback\n"), "{}", ended.out);
    let words = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("3 blocks, paired by block; margin 2.0 %"), "{words}");

    let json = desk.dbdyno(&["compare", &rollback, &wal, "--format", "json", "--fail-on", "never"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["paired"], true);
    assert_eq!(value["steps"].as_array().unwrap().len(), 3);

    // The status follows the verdicts, whichever variant is the base.
    let slower = |base: &str, new: &str| {
        let ended = desk.dbdyno(&["compare", base, new, "--format", "json"]);
        let value: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        let any = value["steps"].as_array().unwrap().iter().any(|step| step["verdict"] == "slower");
        assert_eq!(ended.code, Some(i32::from(any)), "{}", ended.out);
    };
    slower(&rollback, &wal);
    slower(&wal, &rollback);
    let wide = desk.dbdyno(&["compare", &wal, &rollback, "--margin", "99", "--fail-on", "never"]);
    assert!(
        wide.out.split_whitespace().collect::<Vec<_>>().join(" ").contains("margin 99.0 %"),
        "{}",
        wide.out
    );
    what_cannot_be_compared_says_why(&desk, &run);
}

fn what_cannot_be_compared_says_why(desk: &Desk, run: &str) {
    let ended = desk.dbdyno(&["compare", run, ":wal"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.err,
        format!("error: {run} has several variants: write {run}:VARIANT with one of: rollback, wal\n")
    );
    let ended = desk.dbdyno(&["compare", &format!("{run}:wal"), ":wal"]);
    assert_eq!((ended.code, ended.err.contains("compared with itself")), (Some(2), true));
    let ended = desk.dbdyno(&["compare", "nowhere:a", ":b"]);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
}

#[test]
fn runs_that_are_not_alike_are_refused_and_compared_anyway_with_a_note() {
    let desk = Desk::new();
    let variant =
        "[[variant]]\nname = \"only\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";
    let text = short_plan(variant);
    for (out, seed) in [("one", 1), ("two", 2)] {
        desk.write("p.toml", &text.replace("name = \"test\"", &format!("name = \"test\"\nseed = {seed}")));
        desk.dbdyno(&["run", "p.toml", "--out", out]).expect_ok();
    }
    let run = |out: &str| {
        let entry = std::fs::read_dir(desk.path(out)).unwrap().next().unwrap().unwrap();
        format!("{out}/{}", entry.file_name().to_str().unwrap())
    };
    let (one, two) = (run("one"), run("two"));
    let ended = desk.dbdyno(&["compare", &one, &two]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.err, "error: the runs are not comparable: seed 1 and 2; use --anyway to compare them\n");
    let ended = desk.dbdyno(&["compare", &one, &two, "--anyway", "--format", "md"]);
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.out.contains("> **Warning:** The runs are not comparable: seed 1 and 2.\n"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("> **Warning:** One block:"), "{}", ended.out);
}

#[test]
fn runs_of_different_clients_are_not_comparable() {
    let desk = Desk::new();
    let variant =
        "[[variant]]\nname = \"only\"\nserver = \"sqlite\"\noptions.pragmas = { synchronous = \"off\" }\n";
    desk.write("p.toml", &short_plan(variant));
    let settle = "workload.oltp.settle_wait=1s";
    let runs = [
        ["--out", "one", "--set", "blocks=1"],
        ["--out", "two", "--set", "host.sampling=false"],
        ["--out", "three", "--set", settle],
    ];
    let [one, two, three] = runs.map(|args| {
        desk.dbdyno(&[&["run", "p.toml"], &args[..]].concat()).expect_ok();
        let entry = std::fs::read_dir(desk.path(args[1])).unwrap().next().unwrap().unwrap();
        format!("{}/{}", args[1], entry.file_name().to_str().unwrap())
    });
    let compare = |new: &str| desk.dbdyno(&["compare", &one, new]).err;
    insta::assert_snapshot!(compare(&two), @"error: the runs are not comparable: host.sampling true and false; use --anyway to compare them");
    insta::assert_snapshot!(compare(&three), @r#"error: the runs are not comparable: oltp.settle.wait "0s" and "1s"; use --anyway to compare them"#);
    let history = desk.dbdyno(&["history", &one, &two]);
    insta::assert_snapshot!(history.err, @"error: the runs are not comparable: host.sampling true and false; use --anyway to compare them");
}
