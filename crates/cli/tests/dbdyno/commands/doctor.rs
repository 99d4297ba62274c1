//! Tests of `dbdyno doctor`: the fitness list, and a calibration that later runs find.

use std::os::unix::net::UnixStream;
use std::process::Command;

use dbdyno_record::{LimitedBy, Manifest, Run};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::{Desk, wait_for};

/// Returns the command `dbdyno ARGS` with its own cache folder.
fn command(desk: &Desk, args: &[&str]) -> Command {
    let mut command = desk.command(args);
    command.env("XDG_CACHE_HOME", desk.path("cache")).env("DBDYNO_SERVERS", desk.path("servers"));
    command
}

fn manifest(desk: &Desk) -> Manifest {
    Run::open(&desk.run_dir()).unwrap().manifest
}

#[test]
fn the_machine_is_described_line_by_line_as_text_and_as_json() {
    let desk = Desk::new();
    let text = desk.ended(&mut command(&desk, &["doctor"]));
    let json = desk.ended(&mut command(&desk, &["doctor", "--json"]));
    let found: Vec<Value> = serde_json::from_str(&json.out).unwrap();
    let names: Vec<&str> = found.iter().map(|line| line["name"].as_str().unwrap()).collect();
    // The first two lines are the header and a rule. Indented lines continue the line above them.
    let lines = || text.out.lines().skip(2).filter(|line| !line.starts_with(' '));
    assert_eq!(names.len(), lines().count());
    for (line, name) in lines().zip(&names) {
        assert!(line.starts_with(name), "{line}");
    }
    // Each command checks the machine again, and the machine may be busier the second time.
    let width = names.iter().map(|name| name.len()).max().unwrap();
    let is_bad = |line: &str| line[width..].trim_start().starts_with("bad ");
    text.expect_code(if lines().any(is_bad) { 3 } else { 0 });
    json.expect_code(if found.iter().any(|line| line["verdict"] == "bad") { 3 } else { 0 });
    let of = |name: &str| found.iter().find(|line| line["name"] == name).unwrap();
    assert_eq!(of("dbdyno")["verdict"], if cfg!(debug_assertions) { "note" } else { "good" });
    assert_eq!(of("client")["verdict"], "note", "nothing is calibrated in an empty cache");
    let wake_ups = of("wake-ups")["found"].as_str().unwrap();
    assert!(wake_ups.starts_with("a waiting thread runs after "), "{wake_ups}");
}

#[test]
fn the_disk_of_the_data_is_checked_and_a_folder_that_cannot_be_written_to_is_bad() {
    let desk = Desk::new();
    let json = |folder: &str| {
        let ended = desk.ended(&mut command(&desk, &["doctor", "--json", "--data-dir", folder]));
        let found: Vec<Value> = serde_json::from_str(&ended.out).unwrap();
        let fsync = found.into_iter().find(|line| line["name"] == "fsync").unwrap();
        (ended, fsync)
    };
    let (ended, here) = json("runs/later");
    let nearest = desk.path("").canonicalize().unwrap();
    let nearest = nearest.to_str().unwrap().trim_end_matches('/');
    let reported =
        format!("folder runs/later does not exist; the disk checks are for {nearest}, its nearest");
    assert!(ended.err.contains(&reported), "{}", ended.err);
    assert!(here["found"].as_str().unwrap().starts_with("median "), "{here}");
    assert!(std::fs::read_dir(desk.path("")).unwrap().count() == 0, "nothing is left");
    let (ended, nowhere) = json("/proc/sys");
    ended.expect_code(3);
    assert_eq!(nowhere["verdict"], "bad", "{nowhere}");
}

#[test]
fn a_cache_folder_that_cannot_be_written_is_named() {
    let desk = Desk::new();
    // Nothing can be created below a file, not even by root.
    let file = desk.write("file", "");
    let mut doctor = desk.command(&["doctor", "--json"]);
    let ended = desk.ended(doctor.env("XDG_CACHE_HOME", file.join("cache")));
    let found: Vec<Value> = serde_json::from_str(&ended.out).unwrap();
    let cache = found.iter().find(|line| line["name"] == "cache folder").unwrap();
    assert_eq!(cache["found"], format!("{} cannot be written", file.display()));
    assert_eq!(cache["verdict"], "note");
    assert!(cache["advice"].as_str().unwrap().contains("set XDG_CACHE_HOME"), "{cache}");
}

#[test]
fn a_calibration_is_kept_and_later_runs_over_the_wire_record_it() {
    let desk = Desk::new();
    let args =
        ["doctor", "--client", "--json", "--time", "1s", "--connections", "1,3", "--client-threads", "1"];
    let ended = desk.ended(&mut command(&desk, &args));
    ended.expect_ok();
    let reported: Value = serde_json::from_str(&ended.out).unwrap();
    let rates = reported["rates"].as_array().unwrap();
    let of: Vec<String> = rates
        .iter()
        .map(|rate| format!("{} {}", rate["driver"].as_str().unwrap(), rate["connections"]))
        .collect();
    assert_eq!(of, ["mysql 1", "mysql 3", "postgres 1", "postgres 3"]);
    assert!(rates.iter().all(|rate| rate["statements_per_second"].as_f64().unwrap() > 0.0), "{reported}");
    assert_eq!(reported["host"]["client_threads"], 1);
    let kept = reported["kept_in"].as_str().unwrap();
    assert!(kept.ends_with("cache/dbdyno/client-calibration.json"), "{kept}");

    let mut server = desk.start(&mut desk.command(&["known-answer", "--protocol", "mysql", "--socket", "s"]));
    // The socket's file exists a moment before the server listens on it.
    wait_for("the server to listen", || {
        assert!(server.is_running(), "{}", server.said());
        UnixStream::connect(desk.path("s")).is_ok().then_some(())
    });
    let address = format!("mysql://any@localhost/any?socket={}", desk.path("s").display());
    let plan = format!(
        "name = \"test\"\nblocks = 1\n[[variant]]\nname = \"a\"\naddress = \"{address}\"\n[workload.oltp]\n\
         tests = [\"point-select\"]\ntables = 1\ntable_size = 1\ntime = \"1s\"\nverify = \"off\"\n\
         settle_wait = \"0s\"\n"
    );
    desk.write("p.toml", &plan);
    let run = |out: &str, set: &str| {
        let mut run = command(&desk, &["run", "p.toml", "--out", out]);
        if !set.is_empty() {
            run.args(["--set", set]);
        }
        desk.ended(&mut run).expect_ok();
    };
    run("runs", "host.client_threads=1");
    let found = manifest(&desk).client_calibration.expect("the same client");
    assert_eq!((found.rates.len(), found.host.client_threads), (4, Some(1)));
    assert!(found.rates.iter().all(|rate| rate.limit != LimitedBy::Server || rate.server_share.is_some()));
    std::fs::remove_dir_all(desk.path("runs")).unwrap();
    run("runs", "");
    assert_eq!(manifest(&desk).client_calibration, None, "other threads, another client");
    server.signal(Signal::SIGTERM);
    server.wait().expect_ok();
}

#[test]
fn flags_of_the_calibration_are_refused_without_it() {
    let desk = Desk::new();
    let said = |args: &[&str]| desk.refusal(&desk.ended(&mut command(&desk, args)));
    assert!(said(&["doctor", "--time", "2s"]).contains("--client"));
    let refused = said(&["doctor", "--client", "--client-cpus", "8000"]);
    assert!(
        refused.starts_with("exit 3: ") && refused.contains("error: host.client_cpus names CPU 8000"),
        "{refused}"
    );
    let refused = said(&["doctor", "--client", "--time", "10ms"]);
    // On a busy machine a warning precedes the error.
    let said = "error: --time is 10ms, but must be at least 1s";
    assert!(refused.starts_with("exit 2: ") && refused.ends_with(said), "{refused}");
}
