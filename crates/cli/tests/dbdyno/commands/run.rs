//! Tests a run from its plan to its reports.

use std::path::{Path, PathBuf};
use std::process::Command;

use dbdyno_analyse::metrics::Figures;
use dbdyno_record::{CellEvent, Outcome, Run, RunEvent};

use crate::commands::{TWO_VARIANTS, plan, short_plan};
use crate::support::{Desk, faults, findings, texts, without_files};

const STEPS: [&str; 6] = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100"];

fn two_blocks(desk: &Desk) -> PathBuf {
    let text = plan(TWO_VARIANTS, "read_write_time = \"1s\"");
    desk.write("p.toml", &text.replace("name = \"test\"", "name = \"test\"\nblocks = 2"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    assert!(
        ended.out.contains("\nwal is ") || ended.out.contains("\nwal against rollback: "),
        "{}",
        ended.out
    );
    assert!(ended.out.ends_with(&format!("report: runs/{}/report.html\n", name(&dir))), "{}", ended.out);
    assert_eq!(ended.err.lines().count(), 2 + 4 * STEPS.len(), "a line a step:\n{}", ended.err);
    dir
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The files below `dir` whose names belong to the documented layout, relative to it and sorted.
fn files(dir: &Path) -> Vec<String> {
    let output = Command::new("find").args([".", "-type", "f", "-printf", "%P\n"]).current_dir(dir).output();
    let mut files: Vec<_> =
        String::from_utf8(output.unwrap().stdout).unwrap().lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn two_variants_in_two_blocks_leave_a_complete_run_and_its_reports() {
    let desk = Desk::new();
    let dir = two_blocks(&desk);
    the_layout_is_the_documented_one(&dir);
    all_cells_are_recorded_in_order_and_valid(&dir);
    every_format_is_made_from_the_records_alone(&desk, &dir);
    another_base_inverts_the_ratios(&desk, &dir);
    let listed = desk.dbdyno(&["list", "runs"]);
    assert_eq!(desk.golden(&listed.out), "  runs/RUN  4 of 4 cells, complete\n");
    a_complete_run_has_nothing_to_resume(&desk, &dir);
}

#[test]
fn a_plan_with_published_figures_gets_a_page_of_details() {
    let desk = Desk::new();
    let figures = "title = \"t\"\nauthor = \"a\"\nyear = 2024\nmachine = \"m\"\n[[figures]]\nbase = \"rollback\"\n\
                   variant = \"wal\"\n[figures.values]\npoint-select = 1.5\n";
    desk.write("figures.toml", figures);
    desk.write("p.toml", &(short_plan(TWO_VARIANTS) + "[report]\npublished = \"figures.toml\"\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let page = |name: &str| std::fs::read_to_string(desk.run_dir().join(name)).unwrap();
    assert!(page("report.html").contains("report-details.html"));
    assert!(page("report-details.html").contains("point-select"));
}

fn the_layout_is_the_documented_one(dir: &Path) {
    let mut expected: Vec<String> =
        ["events.jsonl", "manifest.json", "report.csv", "report.html"].map(str::to_owned).to_vec();
    for cell in ["1/rollback", "1/wal", "2/rollback", "2/wal"] {
        // SQLite has no deferred work without a write-ahead log.
        let deferred_work = cell.ends_with("wal").then_some("deferred_work");
        let cell = format!("cells/{cell}/insert-benchmark");
        expected.push(format!("{cell}/events.jsonl"));
        for step in STEPS {
            for file in ["checksums.json", "events.jsonl", "intervals.jsonl", "histograms.hlog"] {
                expected.push(format!("{cell}/{step}/{file}"));
            }
            for source in ["client", "disk", "host", "load", "processes", "sampler", "size"]
                .into_iter()
                .chain(deferred_work)
            {
                expected.push(format!("{cell}/{step}/counters/{source}.jsonl"));
            }
        }
    }
    expected.sort();
    // Only some machines have control groups that limit the CPU.
    let is_everywhere = |file: &String| !file.ends_with("/throttling.jsonl");
    assert_eq!(files(dir).into_iter().filter(is_everywhere).collect::<Vec<_>>(), expected);
    assert!(dir.join("logs").is_dir() && !dir.join("data").exists());
}

fn all_cells_are_recorded_in_order_and_valid(dir: &Path) {
    let run = Run::open(dir).unwrap();
    assert_eq!(run.warnings, [""; 0]);
    let begun = run.events.iter().filter_map(|event| match event {
        RunEvent::CellStarted { cell, .. } => Some(cell.clone()),
        _ => None,
    });
    assert_eq!(begun.collect::<Vec<_>>(), run.manifest.order);
    assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Completed, .. })));
    assert_eq!(run.cells.len(), 4);
    for cell in &run.cells {
        assert_eq!(cell.outcome(), Some(Outcome::Completed));
        assert_eq!(cell.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), STEPS);
        let settings = cell.events.iter().find_map(|event| match event {
            CellEvent::Server { server, .. } => Some(server.settings.clone()),
            _ => None,
        });
        let mode = if cell.id.variant == "wal" { "wal" } else { "delete" };
        assert_eq!(settings.unwrap()["journal_mode"], mode);
        for step in &cell.steps {
            let checks = step.checks();
            assert_eq!(checks.len(), 1, "{} {}", cell.id, step.name);
            assert!(checks[0].is_ok() && checks[0].parts.len() >= 8, "{:?}", checks[0]);
        }
    }
    let findings = findings(dir);
    assert_eq!(faults(&findings), [""; 0]);
    assert_eq!(findings.run.cells_completed, 4);
    for step in &findings.workloads[0].steps {
        for variant in &step.variants {
            assert!(variant.rate.is_some_and(|rate| rate > 0.0), "{} {}", step.name, variant.variant);
            assert_eq!(variant.runs.len(), 2);
        }
    }
}

fn every_format_is_made_from_the_records_alone(desk: &Desk, dir: &Path) {
    let elsewhere = desk.path("elsewhere");
    let copied = Command::new("cp").arg("-a").arg(dir).arg(&elsewhere).status().unwrap();
    assert!(copied.success());
    std::fs::remove_file(elsewhere.join("report.html")).unwrap();
    for (format, sign) in [
        ("terminal", "Relative throughput"),
        ("md", "| l.i0 |"),
        ("csv", "l.i0"),
        ("json", "\"run_id\""),
        ("html", "<!DOCTYPE html>"),
    ] {
        let report = |dir: &Path| {
            let whole: &[&str] = if format == "terminal" { &["--all"] } else { &[] };
            let ended =
                desk.dbdyno(&[&["report", dir.to_str().unwrap(), "--format", format], whole].concat());
            ended.expect_ok();
            ended.out
        };
        let text = report(dir);
        assert!(text.to_lowercase().contains(&sign.to_lowercase()), "{format} lacks {sign}:\n{text}");
        assert_eq!(text, report(&elsewhere), "{format} depends on more than the records");
    }
    let saved = std::fs::read_to_string(dir.join("report.html")).unwrap();
    let written = desk.path("again.html");
    let ended = desk.dbdyno(&["report", dir.to_str().unwrap(), "-o", written.to_str().unwrap()]);
    assert_eq!(desk.golden(&ended.expect_ok().err), "report: FOLDER/again.html\n");
    assert!(saved.contains("<a href=\"report.csv\">"), "the page leads to every value");
    assert_eq!(
        std::fs::read_to_string(written).unwrap(),
        without_files(&saved),
        "the ending of the name is the format"
    );
}

fn another_base_inverts_the_ratios(desk: &Desk, dir: &Path) {
    let report = |arguments: &[&str]| -> serde_json::Value {
        let ended =
            desk.dbdyno(&[&["report", dir.to_str().unwrap(), "--format", "json"], arguments].concat());
        serde_json::from_str(&ended.expect_ok().out).unwrap()
    };
    let ratio = |report: &serde_json::Value, variant: &str| -> f64 {
        let rows = report["comparisons"].as_array().unwrap();
        let is_whole = |row: &&serde_json::Value| row["block"].is_null() && row["metric"] == "rate";
        let found = rows.iter().filter(is_whole).find(|row| row["variant"] == variant).unwrap();
        found["ratio"].as_f64().unwrap()
    };
    let (first, turned) = (report(&[]), report(&["--base", "wal"]));
    let product = ratio(&first, "wal") * ratio(&turned, "rollback");
    assert!((product - 1.0).abs() < 1e-9, "{product}");
    let unknown = desk.dbdyno(&["report", dir.to_str().unwrap(), "--base", "wall"]);
    insta::assert_snapshot!(desk.refusal(&unknown), @r#"exit 2: error: the run has no variant named "wall" to compare with; its variants are: rollback, wal"#);
}

fn a_complete_run_has_nothing_to_resume(desk: &Desk, dir: &Path) {
    let events = || std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let before = events();
    let ended = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    ended.expect_ok();
    assert!(ended.err.contains("nothing is left to run: 4 of 4 cells have ended"), "{}", ended.err);
    assert_eq!(events(), before, "a run that is over is not changed");
    assert_eq!(findings(dir).run.cells_completed, 4);
}

#[test]
fn the_null_driver_answers_every_step() {
    let desk = Desk::new();
    let variant = "[[variant]]\nname = \"nothing\"\nserver = \"null\"\n";
    desk.write("p.toml", &plan(variant, "read_write_time = \"1s\"\nclients = 2"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let steps = &findings.workloads[0].steps;
    assert_eq!(steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), STEPS);
    for name in ["l.i0", "l.i1", "qr100", "qp100"] {
        let step = steps.iter().find(|step| step.name == name).unwrap();
        assert!(step.variants[0].rate.is_some_and(|rate| rate > 0.0), "{name}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: sixteen steps of a second"]
fn a_run_of_one_plan_repeats_its_order_and_its_rows() {
    let desk = Desk::new();
    let text = plan(TWO_VARIANTS, "read_write_time = \"1s\"");
    desk.write("p.toml", &text.replace("name = \"test\"", "name = \"test\"\nblocks = 2"));
    let sums = |out: &str| {
        desk.dbdyno(&["run", "p.toml", "--out", out]).expect_ok();
        let dir = std::fs::read_dir(desk.path(out)).unwrap().next().unwrap().unwrap().path();
        let run = Run::open(&dir).unwrap();
        let mut checks = Vec::new();
        for cell in &run.cells {
            for step in cell.steps.iter().filter(|step| step.name == "l.i2") {
                checks.push((cell.id.clone(), step.checks()[0].parts.clone()));
            }
        }
        (run.manifest.order, checks)
    };
    assert_eq!(sums("first"), sums("second"));
}

#[test]
fn without_sampling_the_cost_columns_are_empty_and_the_report_says_why() {
    let desk = Desk::new();
    let text = plan(TWO_VARIANTS, "read_write_time = \"1s\"");
    desk.write("p.toml", &format!("{text}\n[host]\nsampling = false\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(files(&dir).iter().filter(|name| name.contains("/counters/")).count(), 0);
    let findings = findings(&dir);
    let reported = |text: &&String| text.starts_with("sampling is off") && text.contains("12 times");
    assert!(texts(&findings).iter().any(|text| reported(&text)), "{:?}", texts(&findings));
    assert_eq!(faults(&findings), [""; 0]);
    let run = &findings.workloads[0].steps[0].variants[0].runs[0];
    assert!(run.rate > 0.0 && run.cost.values().iter().all(Option::is_none), "{:?}", run.cost);
}

#[test]
fn the_report_is_the_summary_and_parts_of_the_details_on_request() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"1s\""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    let (summary, _) = ended.expect_ok().out.split_once("\nreport: ").expect("the page is named last");
    let lines: Vec<&str> = summary.trim_end().lines().collect();
    let line_of = |start: &str| lines.iter().position(|line| line.starts_with(start));
    assert_eq!(
        line_of("One block: ").zip(line_of("qp100 ")).map(|(note, row)| note - row),
        Some(1),
        "{summary}"
    );
    assert!(line_of("! This run was made by a debug build") > line_of("One block: "), "{summary}");
    assert!(lines.iter().all(|line| line.chars().count() <= 100), "{summary}");

    let report = |more: &[&str]| desk.dbdyno(&[&["report", "latest"], more].concat());
    let again = report(&[]);
    let unnamed = |text: &str| text.replace("runs/", "").replace(name(&desk.run_dir()).as_str(), "RUN");
    assert_eq!(unnamed(again.expect_ok().out.trim_end()), unnamed(summary.trim_end()));
    let cost = report(&["--section", "cost", "--step", "qr100"]);
    assert!(cost.expect_ok().out.contains("cpupq") && !cost.out.contains("l.i0"), "{}", cost.out);
    let latency = report(&["--section", "latency"]);
    assert!(latency.expect_ok().out.contains("l.i0") && latency.out.contains("p99.9"), "{}", latency.out);
    assert!(report(&["--warnings"]).expect_ok().out.contains("debug build"), "each warning is there");
    insta::assert_snapshot!(desk.refusal(&report(&["--step", "qr99"])), @"exit 2: error: the run has no step called `qr99`; its steps: l.i0, l.x, l.i1, l.i2, qr100, qp100");
    let refused = desk.refusal(&report(&["--section", "costs"]));
    let parts = "there are summary, warnings, tables, latency, cost, io, sql, statistics, config, all";
    assert!(refused.starts_with("exit 2: ") && refused.contains(parts), "{refused}");
}
