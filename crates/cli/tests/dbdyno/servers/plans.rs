//! Runs every shipped plan from start to end with tiny sizes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use dbdyno_analyse::parity::{Parity, RemarkKind};
use dbdyno_db::server::{list, servers_dir};
use toml::Value;

use crate::servers::MYSQL_8_0;
use crate::servers::external::{PASSWORD, address, external_server};
use crate::servers::tiny::{Tiny, tiny, write_configs};
use crate::support::{Desk, Ended, faults, findings};

/// Number of plans that run side by side. With tiny sizes they spend most of their time waiting.
const SIDE_BY_SIDE: usize = 4;

/// Settings that a substituted server refuses: plan, variant, message.
const REFUSED: &[(&str, &str, &str)] = &[
    ("insert-benchmark-2026", "engine", NO_BINLOG_IN_ENGINE),
    ("insert-benchmark-2026", "engine-nodw", NO_BINLOG_IN_ENGINE),
];
const NO_BINLOG_IN_ENGINE: &str =
    "binlog_in_engine = true: MariaDB 11.8.* has none; it exists in MariaDB from 12.3";

/// Pitfalls that a plan contains on purpose and that no class of settings covers: plan, pitfall.
const ON_PURPOSE: &[(&str, &str)] = &[
    ("flush-methods", "no-fsync-after-direct"),
    ("insert-benchmark-2024", "commit-not-synced"),
    ("insert-benchmark-2024", "no-fsync-after-direct"),
    ("insert-benchmark-2024", "checksum-slow"),
    ("microbenchmarks-2024", "commit-not-synced"),
    ("microbenchmarks-2024", "no-fsync-after-direct"),
    ("microbenchmarks-2024", "checksum-slow"),
    ("sysbench-io-bound-2021", "commit-not-synced"),
    ("sysbench-io-bound-2021", "no-fsync-after-direct"),
    ("sysbench-io-bound-2021", "checksum-slow"),
];

/// Pitfalls of the same kind that show only in a server's own settings: plan, pitfall.
const SHOWN_BY_THE_SERVER: &[(&str, &str)] = &[("oltp-2012", "checksum-slow")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans")
}

/// All plans. Those with the most variants come first, because they take the longest.
fn plans() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut plans: Vec<(usize, PathBuf)> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| (std::fs::read_to_string(&path).unwrap().matches("[[variant]]").count(), path))
        .collect();
    plans.sort();
    plans.into_iter().rev().map(|(_, path)| path).collect()
}

#[test]
#[ignore = "in cargo xtask test --all: every plan, minutes"]
fn every_shipped_plan_runs_to_its_end_with_only_intended_warnings() {
    let (plans, next) = (plans(), AtomicUsize::new(0));
    assert!(plans.len() > 15, "only {} plans found", plans.len());
    let work = || {
        let mut faults = Vec::new();
        while let Some(path) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            faults.extend(run(name, path).err().map(|fault| format!("{name}: {fault}")));
        }
        faults
    };
    let faults: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

fn run(name: &str, path: &Path) -> Result<(), String> {
    let desk = Desk::new();
    write_configs(&folder(), &desk);
    let text = std::fs::read_to_string(path).unwrap();
    let theirs = text.contains("\naddress = ").then(|| external_server(&desk, MYSQL_8_0));
    let address = theirs.as_ref().map(|server| address(server, "dbdyno")).unwrap_or_default();
    let path = &sized(&desk, path, &text);
    let Tiny { mut table, replaced, lost } = tiny(path, &list(&servers_dir()), &address);
    if !lost.is_empty() {
        return Err(format!(
            "nothing is left of {}, as servers are missing ({}); `cargo xtask servers` gets those that the tests need",
            lost.join(", "),
            replaced.join(", ")
        ));
    }
    let start = || {
        let mut command = desk.command(&["run", "p.toml"]);
        desk.ended(command.env("DBDYNO_PASSWORD", PASSWORD))
    };
    for (_, variant, sentence) in REFUSED.iter().filter(|(plan, ..)| *plan == name && !replaced.is_empty()) {
        desk.write("p.toml", &table.to_string());
        let ended = start();
        if ended.code != Some(2) || !holds(&ended.err, sentence) || !desk.run_dirs().is_empty() {
            return Err(format!("not refused with {sentence:?}: {ended:?}"));
        }
        let variants = table["variant"].as_array_mut().unwrap();
        variants.retain(|known| known["name"].as_str() != Some(variant));
    }
    desk.write("p.toml", &table.to_string());
    let ended = start();
    let workloads = table["workload"].as_table().map_or(0, toml::Table::len);
    let count = table["variant"].as_array().map_or(0, Vec::len) * workloads;
    judge(&desk, &ended, name, count).map_err(|fault| {
        let replaced = if replaced.is_empty() { "its own".to_owned() } else { replaced.join(", ") };
        format!("{fault}\nservers: {replaced}\n{}", std::fs::read_to_string(desk.path("p.toml")).unwrap())
    })
}

/// The path of the plan in its small size, if it has one, with this desk's configs.
fn sized(desk: &Desk, path: &Path, text: &str) -> PathBuf {
    if !text.contains("[size.small]") {
        return path.to_owned();
    }
    let sized = desk.dbdyno(&["plan", path.to_str().unwrap(), "--size", "small", "--resolved"]);
    let folder = std::path::absolute(folder()).unwrap();
    desk.write("sized.toml", &sized.expect_ok().out.replace(&format!("{}/", folder.display()), ""))
}

/// Whether `text` contains `sentence`, in which `*` stands for digits.
fn holds(text: &str, sentence: &str) -> bool {
    let (before, after) = sentence.split_once('*').unwrap_or((sentence, ""));
    text.split(before)
        .skip(1)
        .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(after))
}

fn judge(desk: &Desk, ended: &Ended, name: &str, cells: usize) -> Result<(), String> {
    if ended.code != Some(0) {
        return Err(format!("{ended:?}"));
    }
    let findings = findings(&desk.run_dir());
    let faults = faults(&findings);
    if !faults.is_empty() || findings.run.cells_completed != cells {
        return Err(format!("{} of {cells} cells, {faults:?}", findings.run.cells_completed));
    }
    let unintended: Vec<String> =
        findings.parity.iter().flat_map(|parity| unintended(parity, name)).collect();
    if unintended.is_empty() { Ok(()) } else { Err(unintended.join("\n")) }
}

/// The report's remarks about the configurations that the plan does not intend.
fn unintended(parity: &Parity, name: &str) -> Vec<String> {
    let is_fault = |kind| matches!(kind, RemarkKind::Difference | RemarkKind::Pitfall | RemarkKind::Detail);
    let known: Vec<_> = ON_PURPOSE.iter().chain(SHOWN_BY_THE_SERVER).collect();
    let remarks = parity
        .remarks
        .iter()
        .filter(|remark| is_fault(remark.kind))
        .filter(|remark| !known.contains(&&(name, remark.id.as_str())));
    remarks.map(|remark| format!("{:?} {}: {:?}", remark.kind, remark.id, remark.what)).collect()
}

/// The test sees each plan as a user does who has not installed its servers yet.
#[test]
fn every_shipped_plan_predicts_nothing_for_missing_servers_and_says_how_to_get_them() {
    let desk = Desk::new();
    for path in plans() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut command = desk.command(&["plan", path.to_str().unwrap()]);
        let ended =
            desk.ended(command.env("DBDYNO_SERVERS", desk.path("none")).env("DBDYNO_PASSWORD", "any"));
        // Missing servers and missing disk space each have their own exit status.
        assert!(matches!(ended.code, Some(0 | 3 | 4)), "{name}: {ended:?}");
        let said = |line: &&str| ["• differs", "• pitfall"].iter().any(|mark| line.starts_with(mark));
        let said: Vec<&str> = ended.out.lines().filter(said).collect();
        assert!(said.is_empty(), "{name}: {said:?}");
        let has_servers = std::fs::read_to_string(&path).unwrap().contains("server = \"m");
        let in_one_line = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let how = in_one_line.contains("before the run; `dbdyno servers get ");
        assert!(how || !has_servers, "{name}: {}", ended.out);
    }
}

/// A server that is not in the catalogue cannot be installed by its name.
#[test]
fn every_server_that_a_plan_names_is_in_the_catalogue() {
    for path in plans() {
        let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let variants = table["variant"].as_array().unwrap().iter();
        let servers = variants.filter_map(|variant| variant.get("server").and_then(Value::as_str));
        for server in servers.filter(|server| *server != "sqlite") {
            let found = dbdyno_fetch::by_name(server);
            assert!(found.is_ok(), "{}: {:?}", path.display(), found.err());
        }
    }
}
