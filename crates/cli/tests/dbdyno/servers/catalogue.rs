//! Tests `dbdyno servers` with a real server, which is added, listed, started, killed and removed.

use std::path::{Path, PathBuf};
use std::process::Command;

use dbdyno_db::server::servers_dir;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::servers::{POSTGRES_18, require};
use crate::support::{Desk, Running, wait_for};

/// A folder for temporary files that the server's user can enter. Its path is short, as sockets
/// need.
fn short_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    folder
}

fn command(desk: &Desk, tmp: &TempDir, args: &[&str]) -> Command {
    let mut command = desk.command(args);
    command.env("DBDYNO_SERVERS", desk.path("servers")).env("TMPDIR", tmp.path()).env("COLUMNS", "1000");
    command.env("DBDYNO_CATALOGUE", desk.write("catalogue.toml", ""));
    command
}

/// Starts a scratch server. Returns the process and the server's socket.
fn started(desk: &Desk, tmp: &TempDir) -> (Running, PathBuf) {
    let mut running = desk.start(&mut command(desk, tmp, &["servers", "start", "mine"]));
    let socket = wait_for("the server to be asked", || {
        assert!(running.is_running(), "{}", running.said());
        let out = std::fs::read_to_string(desk.path("out.txt")).unwrap();
        let line = out.lines().find(|line| line.starts_with("log "))?;
        assert!(line.ends_with("server.log"), "{out}");
        let socket = out.lines().find_map(|line| line.strip_prefix("socket"))?;
        Some(PathBuf::from(socket.trim()))
    });
    (running, socket)
}

fn has_data(tmp: &TempDir) -> bool {
    let entries = std::fs::read_dir(tmp.path()).unwrap().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("dbdyno-"))
}

fn answers(socket: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(socket).is_ok()
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn a_server_is_added_listed_started_and_removed() {
    let (desk, tmp) = (Desk::new(), short_folder());
    let base = servers_dir().join(require(POSTGRES_18)).canonicalize().unwrap();
    let base = base.to_str().unwrap();
    let added = desk.ended(&mut command(&desk, &tmp, &["servers", "add", "mine", "--basedir", base]));
    let line = &added.expect_ok().out;
    assert!(line.starts_with("mine: PostgreSQL 18."), "{line}");

    let listed = desk.ended(&mut command(&desk, &tmp, &["servers", "list", "--here", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&listed.expect_ok().out).unwrap();
    let servers = value["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "{value}");
    assert_eq!(servers[0]["here"]["base_dir"], base);
    assert_eq!(servers[0]["here"]["answer"]["abilities"]["default_login"], "scram-sha-256");
    let table = desk.ended(&mut command(&desk, &tmp, &["servers", "list"])).expect_ok().out.clone();
    assert!(table.lines().any(|line| line.starts_with("mine ") && line.contains(" heap ")), "{table}");
    assert!(
        table.lines().any(|line| line.starts_with("mysql-8.4.6 ") && line.ends_with("untested")),
        "{table}"
    );

    let (running, socket) = started(&desk, &tmp);
    assert!(answers(&socket));
    running.signal(Signal::SIGINT);
    running.wait().expect_ok();
    assert!(!answers(&socket) && !has_data(&tmp), "something was left");

    let removed = desk.ended(&mut command(&desk, &tmp, &["servers", "remove", "mine"]));
    assert_eq!(
        removed.expect_ok().out,
        format!("mine: forgotten; the base directory {base} stays as it is\n")
    );
    let again = desk.ended(&mut command(&desk, &tmp, &["servers", "remove", "mine"]));
    insta::assert_snapshot!(desk.refusal(&again), @"exit 4: error: no server mine in FOLDER/servers; `dbdyno servers list` shows all");
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn a_killed_dbdyno_leaves_no_server_and_the_next_start_removes_the_data() {
    let (desk, tmp) = (Desk::new(), short_folder());
    let base = servers_dir().join(require(POSTGRES_18));
    let base = base.to_str().unwrap();
    desk.ended(&mut command(&desk, &tmp, &["servers", "add", "mine", "--basedir", base])).expect_ok();
    let (running, socket) = started(&desk, &tmp);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.wait().code, None);
    wait_for("the kernel to end the server", || (!answers(&socket)).then_some(()));
    assert!(has_data(&tmp));
    let left = std::fs::read_dir(tmp.path()).unwrap().flatten().map(|entry| entry.path());
    let left = left.into_iter().find(|path| path.to_string_lossy().contains("dbdyno-scratch-")).unwrap();
    let (running, _) = started(&desk, &tmp);
    assert!(!left.exists(), "the data of the killed one is still there");
    running.signal(Signal::SIGTERM);
    running.wait().expect_ok();
}
