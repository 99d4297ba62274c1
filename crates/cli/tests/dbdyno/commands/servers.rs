//! Tests `dbdyno servers` without a real server: wrong names, wrong catalogues, and downloads that
//! fail or are stopped.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::{Desk, Ended, wait_for};

const ENTRY: &str = "[[server]]\nname = \"own\"\nproduct = \"MySQL\"\nversion = \"8.4\"\n\
                     source = { kind = \"tarball\", url = \"https://vendor.example/mysql.tar\" }\n";

/// `dbdyno servers ARGS` with its own folders and catalogue, and with the script `curl` in place of
/// curl.
fn command(desk: &Desk, args: &[&str], catalogue: &str, curl: &str) -> Command {
    desk.write_program("bin/curl", curl);
    let others = std::env::var("PATH").unwrap();
    let mut command = desk.command(&[&["servers"], args].concat());
    command.env("PATH", format!("{}:{others}", desk.path("bin").display()));
    command.env("DBDYNO_SERVERS", desk.path("servers")).env("COLUMNS", "1000");
    command.env("DBDYNO_CATALOGUE", desk.write("catalogue.toml", catalogue));
    command
}

fn run(desk: &Desk, args: &[&str], catalogue: &str, curl: &str) -> Ended {
    desk.ended(&mut command(desk, args, catalogue, curl))
}

fn left(desk: &Desk) -> Vec<String> {
    let entries = std::fs::read_dir(desk.path("servers")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn unknown_names_are_refused_with_suggestions() {
    let desk = Desk::new();
    let refusals = [
        run(&desk, &["get", "mysql-8.0.99"], "", ""),
        run(&desk, &["start", "mysql-8.0.31"], "", ""),
        run(&desk, &["start", "mysql-8.0.31", "--config", "my.cnf"], "", ""),
        run(&desk, &["remove", "mysql-8.0.31"], "", ""),
        run(&desk, &["add", "a/b", "--basedir", "."], "", ""),
        run(&desk, &["add", "a", "--basedir", "nowhere"], "", ""),
    ];
    let refusals = refusals.map(|ended| desk.refusal(&ended));
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    exit 2: error: no server mysql-8.0.99 in the catalogue; suggestions: mysql-8.0.12, mysql-8.0.15, mysql-8.0.22, mysql-8.0.31; `dbdyno servers list` shows all
    exit 4: error: no server mysql-8.0.31 in FOLDER/servers; `dbdyno servers get mysql-8.0.31` gets it, as does `dbdyno run --get`
    exit 2: error: --config: there is no file my.cnf; name an option file
    exit 4: error: no server mysql-8.0.31 in FOLDER/servers; `dbdyno servers list` shows all
    exit 2: error: cannot add a/b: "a/b" is no name for a server: use letters, digits, dots, dashes and underscores
    exit 4: error: nowhere contains no server that dbdyno supports: looked for bin/mysqld, bin/mariadbd, sbin/mysqld, sbin/mariadbd, usr/sbin/mysqld, usr/sbin/mariadbd, libexec/mysqld, libexec/mariadbd, bin/postgres with bin/initdb, usr/lib/postgresql/*/bin/postgres; give the folder that the server was unpacked or installed into
    "#);
}

#[test]
fn a_wrong_catalogue_is_named_with_its_line() {
    let desk = Desk::new();
    let ended = run(&desk, &["list"], &ENTRY.replace("8.4", "new"), "");
    insta::assert_snapshot!(desk.refusal(&ended), @r#"exit 2: error: FOLDER/catalogue.toml:1: own: version "new" is no number; write 8.4.6, or 8.4 for any of that line"#);
    let mut command = command(&desk, &["list"], "", "");
    let ended = desk.ended(command.env("DBDYNO_CATALOGUE", "nowhere.toml"));
    insta::assert_snapshot!(desk.refusal(&ended), @"exit 2: error: nowhere.toml:1: cannot be read: No such file or directory (os error 2); DBDYNO_CATALOGUE names another file");
}

#[test]
fn a_failed_download_is_reported_with_curls_message_and_leaves_nothing() {
    let desk = Desk::new();
    let ended = run(&desk, &["get", "own"], ENTRY, "echo 'curl: (6) Could not resolve host' >&2; exit 6");
    ended.expect_code(4);
    assert!(ended.err.contains("curl: (6) Could not resolve host"), "{}", ended.err);
    assert_eq!(left(&desk), [".lock"]);
}

/// A stopped download has five seconds to end, and this one ignores the signal. On a busy machine
/// the second Ctrl-C may come after those five seconds, so the test tries several times.
#[test]
fn a_second_ctrl_c_ends_at_once() {
    wait_for("an end that leaves no time to clean up", || {
        let desk = Desk::new();
        let curl = format!("trap '' TERM; touch {}; sleep 60", desk.path("begun").display());
        let running = desk.start(&mut command(&desk, &["get", "own"], ENTRY, &curl));
        wait_for("the download to begin", || desk.path("begun").exists().then_some(()));
        running.signal(Signal::SIGINT);
        wait_for("the first to be noticed", || running.said().contains("stopping").then_some(()));
        // The kernel merges two signals that arrive at the same time.
        std::thread::sleep(std::time::Duration::from_millis(500));
        running.signal(Signal::SIGINT);
        running.wait().expect_code(130);
        (left(&desk) != [".lock"]).then_some(())
    });
}

#[test]
fn a_download_that_is_stopped_leaves_nothing_and_says_so() {
    let desk = Desk::new();
    let curl = format!("touch {}; exec sleep 60", desk.path("begun").display());
    let running = desk.start(&mut command(&desk, &["get", "own"], ENTRY, &curl));
    wait_for("the download to begin", || desk.path("begun").exists().then_some(()));
    running.signal(Signal::SIGTERM);
    let ended = running.wait();
    ended.expect_code(130);
    assert!(ended.err.ends_with("downloading https://vendor.example/mysql.tar: stopped\n"), "{}", ended.err);
    assert_eq!(left(&desk), [".lock"]);
}

#[test]
fn the_catalogue_is_listed_with_the_readers_own_entries() {
    let desk = Desk::new();
    let ended = run(&desk, &["list"], ENTRY, "");
    let text = &ended.expect_ok().out;
    let line =
        |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("own ").ends_with("tarball, yours"), "{text}");
    assert!(line("mysql-8.4.6 ").ends_with("tarball, untested"), "{text}");
    assert!(line("pg-18.6 ").contains("15 MB"), "{text}");
}

#[test]
fn unprobed_servers_are_listed_with_the_probe_command_and_wrong_ones_with_their_fault() {
    let desk = Desk::new();
    let version = "echo 'mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)'";
    for name in ["mysql-8.0.31", "mysql-8.0.33", "patched"] {
        desk.fake_server(&format!("servers/{name}"), version);
    }
    let ended = run(&desk, &["list", "--here"], "", "");
    // The width of the table's rule depends on the folder's name.
    let text = desk.golden(&ended.expect_ok().out);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('─')).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    servers folder: FOLDER/servers
    your catalogue: FOLDER/catalogue.toml

    name          server        here    download  source
    mysql-8.0.31  MySQL 8.0.31  here       51 MB  Maven
    mysql-8.0.33  MySQL 8.0.31  faulty    554 MB  Maven
    patched       MySQL 8.0.31  here              FOLDER/servers/patched

    mysql-8.0.33: by its name it should be MySQL 8.0.33
    features unknown, or rebuilt since; to ask the servers:
      dbdyno servers add patched --basedir FOLDER/servers/patched
      dbdyno servers get mysql-8.0.31
    ");
}

#[test]
fn a_server_that_prints_for_ever_is_killed_after_the_time_limit() {
    let desk = Desk::new();
    desk.fake_server("x", "exec yes");
    let ended = run(&desk, &["add", "e", "--basedir", "x"], "", "");
    ended.expect_code(4);
    let said = "/x/bin/mysqld --version failed: it did not end within 10 s and was killed\n";
    assert!(ended.err.ends_with(said), "{}", ended.err);
}
