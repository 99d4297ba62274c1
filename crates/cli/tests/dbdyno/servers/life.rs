//! Tests servers that a run stops and starts between steps, servers with a memory limit or a full
//! disk, and servers that a killed dbdyno has left.

use std::path::{Path, PathBuf};

use dbdyno_record::{CellRecord, Outcome, Run};
use nix::sys::signal::Signal;

use crate::servers::watch::{process_is_there, server, server_of, wait_until_gone};
use crate::servers::{MARIADB_10_11, MY_CNF, MYSQL_8_0, POSTGRES_15, variant};
use crate::support::cells::works;
use crate::support::{Desk, faults, findings, wait_until_in_step};

/// A plan for two blocks with two tests on few rows.
fn oltp(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\nblocks = 2\n{variants}\n[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"insert\", \"update-index\"]\n\
         table_size = 2000\nevents = 200\n{options}\n"
    )
}

fn cells_of<'a>(run: &'a Run, variant: &str) -> Vec<&'a CellRecord> {
    run.cells.iter().filter(|cell| cell.id.variant == variant).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: restarts servers"]
fn every_block_of_three_products_begins_on_a_copy_of_the_data_that_were_loaded_once() {
    let desk = Desk::new();
    desk.write("my.cnf", MY_CNF);
    let variants = variant("ma", MARIADB_10_11, "own_config = \"my.cnf\"")
        + &variant("my", MYSQL_8_0, "own_config = \"my.cnf\"")
        + &variant("pg", POSTGRES_15, "");
    desk.write("p.toml", &oltp(&variants, "data = \"restore-each-step\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    // Each step's checks would make it invalid if rows were wrong after a restore.
    assert_eq!(faults(&findings(&dir)), Vec::<String>::new());
    let run = Run::open(&dir).unwrap();
    for name in ["ma", "my", "pg"] {
        let cells = cells_of(&run, name);
        let first = "stop, snapshot, restore, start, stop, restore, start";
        assert_eq!(works(cells[0]), first, "{name}");
        assert_eq!(works(cells[1]), "restore, stop, restore, start", "{name}");
        assert_eq!((cells[0].steps.len(), cells[1].steps.len()), (4, 2), "{name}");
        // Each cell has one log for all of its starts.
        assert!(dir.join(format!("logs/1-{name}-oltp.log")).exists(), "{name}");
        assert!(!dir.join(format!("logs/1-{name}-oltp.2.log")).exists(), "{name}");
    }
    assert!(!dir.join("data").exists());
}

#[test]
#[ignore = "in cargo xtask test --all: restarts servers"]
fn a_memory_limit_is_recorded_sampled_and_removed_with_its_server() {
    let desk = Desk::new();
    desk.write("my.cnf", MY_CNF);
    let limits = "[host]\nserver_memory = \"1 GB\"\nserver_cpus = \"0\"\n";
    let variants = variant("plain", MARIADB_10_11, "own_config = \"my.cnf\"")
        + &variant("less", MARIADB_10_11, "own_config = \"my.cnf\"\nserver_memory = \"512 MiB\"");
    desk.write("p.toml", &format!("{}{limits}", oltp(&variants, "data = \"restart\"")));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let run = Run::open(&desk.run_dir()).unwrap();
    for (name, limit) in [("plain", 1_000_000_000 / 4096 * 4096), ("less", 512 << 20)] {
        let cell = cells_of(&run, name)[0];
        let server = server(cell).unwrap();
        assert_eq!((server.memory_limit_bytes, server.cpus.as_deref()), (Some(limit), Some("0")), "{name}");
        assert_eq!(works(cell), "stop, start, stop, start", "{name}");
        let step = cell.steps.last().unwrap();
        let group = &step.counters["cgroup"];
        let folder = group.header.about["folder"].as_str().unwrap();
        assert!(!Path::new(folder).exists(), "{folder}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: kills a server"]
fn files_of_a_killed_dbdynos_limited_server_are_removed_at_the_next_start() {
    let desk = Desk::new();
    let text = oltp(&variant("victim", MARIADB_10_11, ""), "").replace("events = 200", "time = \"3s\"");
    desk.write("p.toml", &format!("{text}[host]\nserver_memory = \"1 GB\"\n"));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/victim/oltp/insert.c1");
    let pid = server_of(&dir, "victim").pid.unwrap();
    let runtime_dir = crate::servers::watch::socket_of(pid).parent().unwrap().to_path_buf();
    let group = group_of(&dir);
    assert!(process_is_there(pid) && runtime_dir.exists() && group.exists());
    running.signal(Signal::SIGKILL);
    running.wait();
    wait_until_gone(pid);
    let resumed = desk.dbdyno(&["run", "--resume", dir.to_str().unwrap()]);
    assert!(!runtime_dir.exists() && !group.exists(), "{}", resumed.expect_ok().err);
    assert!(!dir.join("data").exists());
}

/// The control group's folder, from the counters of the running step in the only cell.
fn group_of(dir: &Path) -> PathBuf {
    let path = dir.join("cells/1/victim/oltp/insert.c1/counters/cgroup.jsonl");
    let header = std::fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned();
    let header: serde_json::Value = serde_json::from_str(&header).unwrap();
    PathBuf::from(header["about"]["folder"].as_str().unwrap())
}

/// A plan with one cell whose rows need many times the space that the small disk has left.
fn larger(desk: &Desk, prefix: &str) -> String {
    desk.write("my.cnf", MY_CNF);
    let text = oltp(&variant("a", prefix, "own_config = \"my.cnf\""), "").replace("blocks = 2", "blocks = 1");
    text.replace("table_size = 2000", "table_size = 300000")
}

/// Texts that show a full disk. Some servers refuse the statement. Others abort, and the end of
/// their log gives the reason.
pub(crate) const DISK_FULL: &[&str] = &[
    "is full",
    "No space left",
    "rror: 28",
    "rror 28",
    "disk space",
    "disk full",
    "Assertion failure",
    "I/O error",
];

/// Runs a plan whose data are on a filesystem that is limited to 4 MB of free space as soon as
/// `sign` exists. The limit is lowered, because files that fill the filesystem would take memory.
/// It cannot be lower than the used space, which may have grown since it was read, so the script
/// tries again.
pub(crate) fn with_a_disk_that_fills(desk: &Desk, text: &str, sign: &str) -> String {
    desk.write("p.toml", &format!("{text}[host]\ndata_dir = \"small\"\n"));
    std::fs::create_dir(desk.path("small")).unwrap();
    let script = format!(
        "set -e; mount -t tmpfs -o size=2g small small; $DBDYNO run p.toml &\n\
         until [ -e {sign} ]; do sleep 0.01; kill -0 $!; done\n\
         until mount -o remount,size=$(( $(df --output=used -B1 small | tail -1) + 4000000 )) small\n\
         do sleep 0.01; done\n\
         wait $!"
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("DBDYNO", env!("CARGO_BIN_EXE_dbdyno"));
    desk.prepare(&mut command);
    // The templates must be on the small filesystem too.
    command.env_remove("DBDYNO_TEMPLATES");
    let ended = desk.ended(&mut command);
    ended.expect_code(4);
    let run = Run::open(&desk.run_dir()).unwrap();
    assert_eq!(run.cells[0].outcome(), Some(Outcome::Failed));
    ended.err.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "in cargo xtask test --all: a full disk"]
fn a_disk_that_is_full_while_a_server_is_initialised_fails_the_cell_with_the_reason() {
    let desk = Desk::new();
    let said = with_a_disk_that_fills(&desk, &larger(&desk, MYSQL_8_0), "runs/*/manifest.json");
    assert!(said.contains("error: block 1 a oltp failed: initialising a data directory for MySQL"), "{said}");
    // The reason depends on the file that is written first.
    let reasons = [
        "No space left on device",
        "disk is full",
        "errno: 28",
        "error number 28",
        "is full!",
        "Failed to set size",
        "initialization failed",
    ];
    assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
}

#[test]
#[ignore = "in cargo xtask test --all: a full disk"]
fn a_disk_that_is_full_in_the_load_fails_the_step_with_the_servers_words() {
    let desk = Desk::new();
    let sign = "runs/*/cells/1/a/oltp/load/intervals.jsonl";
    let said = with_a_disk_that_fills(&desk, &larger(&desk, MARIADB_10_11), sign);
    assert!(said.contains("error: block 1 a oltp failed: step "), "{said}");
    assert!(DISK_FULL.iter().any(|reason| said.contains(reason)), "{said}");
}
