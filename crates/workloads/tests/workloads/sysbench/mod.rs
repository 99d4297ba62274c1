//! Tests sysbench scripts on a database that only records statements: the statements that they
//! send, the results of the API, and the errors of bad scripts. Debian's package has sysbench's own
//! scripts, and `cargo xtask servers` installs it.

mod api;
mod bad;
mod stock;

use dbdyno_db::{Capabilities, mysql};
use dbdyno_plan::{Plan, WorkloadOptions};
use dbdyno_workloads::Workload;
use dbdyno_workloads::plans::parse;
use dbdyno_workloads::sysbench::Sysbench;
use dbdyno_workloads::sysbench::options::SysbenchOptions;
use tempfile::TempDir;

use crate::desk::Desk;

/// A script in its own folder, with its options in the form of a plan.
struct Given {
    folder: TempDir,
    options: String,
}

fn script(text: &str) -> Given {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.lua"), text).unwrap();
    let path = folder.path().join("own.lua").display().to_string();
    Given { folder, options: format!("script = \"{path}\"\ncommands = [\"run\"]\n") }
}

/// Returns a plan's options for one of sysbench's own scripts.
fn stock(name: &str, options: &str) -> String {
    format!("script = \"{name}\"\noptions = {{ {options} }}\n")
}

/// Reads a plan whose table `[workload.sysbench]` has `options`.
fn plan(options: &str) -> Result<Plan, String> {
    let text = format!(
        "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.sysbench]\n{options}"
    );
    parse(&text, "p.toml").map_err(|error| error.to_string())
}

fn options(text: &str) -> SysbenchOptions {
    let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
    plan.workload.options::<SysbenchOptions>().unwrap().clone()
}

fn desk_on(text: &str, capabilities: Capabilities) -> Desk<Sysbench> {
    let options = options(text);
    Desk::of(|context| Sysbench::new(&options, context), capabilities)
}

fn desk(text: &str) -> Desk<Sysbench> {
    desk_on(text, mysql::capabilities("innodb", true))
}

/// Returns the error of a plan with this script.
fn mistake(given: &Given) -> String {
    plan(&given.options).expect_err("a bad script")
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn steps_are_the_commands_and_a_run_at_each_concurrency_level() {
    let named =
        |more: &str| options(&format!("{}{more}", stock("oltp_read_write.lua", ""))).step_names().join(" ");
    assert_eq!(named("connections = [1, 16]"), "prepare oltp_read_write.c1 oltp_read_write.c16");
    let rates = "arrivals = \"poisson\"\nrates = [100]\nconnections = 4\n";
    assert_eq!(named(rates), "prepare oltp_read_write.c4.r100");
    assert_eq!(
        named("commands = [\"prepare\", \"prewarm\", \"run\", \"cleanup\"]"),
        "prepare prewarm oltp_read_write.c1 cleanup"
    );
    let existing = SysbenchOptions {
        use_existing: true,
        script: "oltp_insert".to_owned(),
        ..SysbenchOptions::default()
    };
    assert_eq!((existing.step_names().join(" ").as_str(), existing.load_steps()), ("oltp_insert.c1", 0));
    assert!(existing.needs().existing_tables);
}
