//! Tests `dbdyno sysbench` without a server: scripts that query no database, and statements in a
//! dry run.

use serde_json::Value;

use crate::support::{Desk, Ended, figure};

/// Runs the script `text` with these options. No server listens on the socket, and no script
/// connects.
fn run(text: &str, options: &[&str]) -> Ended {
    command(text, options, "run")
}

fn command(text: &str, options: &[&str], command: &str) -> Ended {
    let desk = Desk::new();
    desk.write("own.lua", text);
    desk.dbdyno(&[&["sysbench", "own.lua", "--mysql-socket=none"], options, &[command]].concat())
}

/// A script whose events take at least a millisecond each.
const SLEEPS: &str = "local C = require('ffi').C function event() C.usleep(1000) end\n";

#[test]
fn reports_of_a_script_without_a_database_are_json_and_have_its_threads() {
    let hooks = "sysbench.hooks.report_intermediate = sysbench.report_json
                 sysbench.hooks.report_cumulative = sysbench.report_json\n";
    let ended = run(&format!("{SLEEPS}{hooks}"), &["--threads=3", "--time=2", "--report-interval=1"]);
    let out = &ended.expect_ok().out;
    let json = &out[out.find("[\n").unwrap_or_else(|| panic!("{out}"))..];
    let reports: Vec<Value> = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert!(reports.len() >= 2, "one in between and the last: {out}");
    for report in &reports {
        assert_eq!((&report["threads"], &report["qps"]["total"]), (&3.into(), &0.0.into()), "{out}");
    }
    assert!(reports[reports.len() - 1]["tps"].as_f64().unwrap() > 0.0, "{out}");
}

#[test]
fn lines_of_a_run_add_up_to_no_more_than_its_events() {
    let ended = run(SLEEPS, &["--threads=2", "--time=3", "--report-interval=1"]);
    let out = &ended.expect_ok().out;
    let rate = |line: &str| {
        let (_, rest) = line.strip_prefix("[ ")?.split_once(" eps: ")?;
        rest.split(' ').next()?.parse::<f64>().ok()
    };
    let rates: Vec<f64> = out.lines().filter_map(rate).collect();
    let events = figure(out, "total number of events:") as f64;
    assert!(rates.len() >= 2 && rates.iter().all(|rate| *rate > 0.0), "{out}");
    // Each line covers one second and has two decimal places.
    assert!(rates.iter().sum::<f64>() <= events + 0.01 * rates.len() as f64, "{out}");
}

#[test]
fn no_event_begins_before_all_threads_are_ready() {
    let text = "local C = require('ffi').C
                function thread_init(tid) C.usleep(tid * 50000) print('thread ' .. tid .. ' ready') end
                function event() print('an event') end
                function thread_done(tid) print('thread ' .. tid .. ' done') end\n";
    let ended = run(text, &["--threads=4", "--events=12", "--time=0"]);
    let lines: Vec<&str> = ended.expect_ok().out.lines().collect();
    let places = |what: &str| -> Vec<usize> {
        (0..lines.len()).filter(|place| lines[*place].contains(what)).collect()
    };
    let (ready, events, done) = (places(" ready"), places("an event"), places(" done"));
    assert_eq!((ready.len(), events.len(), done.len()), (4, 12, 4), "{lines:?}");
    assert!(ready.iter().max() < events.iter().min(), "{lines:?}");
}

#[test]
fn runs_of_one_seed_draw_the_same_and_unique_values_are_unique() {
    let text = "function event(tid)
                   local rand = sysbench.rand
                   local values = { tid, rand.uniform(1, 1000000), rand.default(1, 1000000), rand.string('####@@@@') }
                   print('drawn ' .. table.concat(values, ' '))
                   print('unique ' .. rand.unique())
                end\n";
    let drawn = |seed: &str, what: &str| {
        let options =
            ["--threads=4", "--events=80", "--time=0", "--report-interval=1", "--rand-type=zipfian", seed];
        let ended = run(text, &options);
        let out = &ended.expect_ok().out;
        let mut lines: Vec<String> =
            out.lines().filter(|line| line.starts_with(what)).map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines.len(), 80, "{out}");
        lines
    };
    assert_eq!(drawn("--rand-seed=7", "drawn"), drawn("--rand-seed=7", "drawn"));
    assert_ne!(drawn("--rand-seed=7", "drawn"), drawn("--rand-seed=8", "drawn"));
    let unique = drawn("--rand-seed=7", "unique");
    assert_eq!(unique, drawn("--rand-seed=7", "unique"));
    assert!(unique.windows(2).all(|pair| pair[0] != pair[1]), "{unique:?}");
}

#[test]
fn events_of_the_warm_up_are_in_no_figure_of_the_report() {
    let text = "local C = require('ffi').C function event() C.usleep(50000) end\n";
    let ended = run(text, &["--warmup-time=1", "--time=1"]);
    let out = &ended.expect_ok().out;
    let events = figure(out, "total number of events:");
    // One second has room for no more than 20 events. With the warm-up there would be twice as
    // many.
    assert!((1..=21).contains(&events), "{out}");
}

#[test]
fn a_rate_that_is_never_reached_leaves_a_queue_and_the_run_ends_with_its_time() {
    let ended = run(SLEEPS, &["--rate=400000", "--time=2", "--report-interval=1"]);
    let out = &ended.expect_ok().out;
    let (_, line) = out.split_once("queue length: ").unwrap_or_else(|| panic!("{out}"));
    let queue: u64 = line.split(',').next().unwrap().parse().unwrap();
    assert!(queue > 100_000, "{out}");
    // The events that were sent had waited in the queue.
    let highest = out.lines().find_map(|line| line.trim().strip_prefix("max:")).unwrap();
    assert!(highest.trim().parse::<f64>().unwrap() >= 1_000.0, "{out}");
}

#[test]
fn an_error_without_a_text_says_where_it_was_raised() {
    for raised in ["error()", "error(nil)", "error({})", "error(true)"] {
        let ended = run(&format!("function event()\n   {raised}\nend\n"), &["--events=1", "--time=0"]);
        let says = ended.err.contains("FATAL") && ended.err.contains("own.lua:2");
        assert!(ended.code == Some(1) && says, "{raised}: {ended:?}");
        let text = format!("function prepare()\n   {raised}\nend\nfunction event() end\n");
        let ended = command(&text, &[], "prepare");
        let says = ended.err.contains("FATAL") && ended.err.contains("own.lua");
        assert!(ended.code == Some(1) && says, "{raised}: {ended:?}");
    }
}

#[test]
fn a_file_that_has_the_name_of_a_script_is_not_taken_for_it() {
    let desk = Desk::new();
    desk.write("oltp_point_select", "sysbench 1.0.20 (using system LuaJIT)\n");
    let words = ["--mysql-dry-run", "--events=3", "--time=0", "run"];
    let ended = desk.dbdyno(&[&["sysbench", "oltp_point_select"], &words[..]].concat());
    assert_eq!(figure(&ended.expect_ok().out, "transactions:"), 3);
    // A user's own script may have any name.
    desk.write("mine", "function event() print('mine') end\n");
    let ended = desk.dbdyno(&[&["sysbench", "mine"], &words[..]].concat());
    assert!(ended.expect_ok().out.contains("mine\n"), "{}", ended.out);
}
